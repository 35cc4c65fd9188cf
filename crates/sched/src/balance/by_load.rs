//! The choice of the busiest group, and of how much to take from it, before 5.5: by load for capacity.
//!
//! A group is overloaded, imbalanced, has a misfit task, or is like any other; the busiest is the one
//! with the most load for its capacity of the worst kind. The imbalance is always a load
//! (`MigrationType::Load`, but for a misfit task), taken so that neither group passes the domain's
//! average, or one task's load where that is less and a task would do good all the same.

use super::env::{CpuIdle, LbEnv, MigrationType, asym_prefer};
use super::group::{GroupType, GroupView, SdStats, SgStats};
use wakelab_machine::GroupId;
use wakelab_machine::domains::sd;

/// SCHED_CAPACITY_SCALE.
const SCALE: u64 = 1024;

/// `fits_capacity`, of two capacities.
fn is_smaller(a: u64, b: u64) -> bool {
    a * 1280 < b * SCALE
}

/// `group_has_capacity`.
pub fn group_has_capacity(imbalance_pct: u32, sgs: &SgStats) -> bool {
    sgs.sum_h_nr_running < sgs.weight || sgs.capacity * 100 > sgs.util * u64::from(imbalance_pct)
}

/// `group_is_overloaded`.
pub fn group_is_overloaded(imbalance_pct: u32, sgs: &SgStats) -> bool {
    sgs.sum_h_nr_running > sgs.weight && sgs.capacity * 100 < sgs.util * u64::from(imbalance_pct)
}

/// `group_classify`; `imbalanced` is the group's `sgc->imbalance`.
pub fn group_classify(imbalanced: bool, sgs: &SgStats) -> GroupType {
    if sgs.no_capacity {
        GroupType::Overloaded
    } else if imbalanced {
        GroupType::Imbalanced
    } else if sgs.misfit_task_load > 0 {
        GroupType::MisfitTask
    } else {
        GroupType::HasSpare
    }
}

/// Completes the sums of a group (the end of `update_sg_lb_stats`).
pub(super) fn complete(env: &LbEnv, imbalanced: bool, sgs: &mut SgStats) {
    sgs.avg_load = sgs.load * SCALE / sgs.capacity.max(1);
    sgs.no_capacity = group_is_overloaded(env.imbalance_pct, sgs);
    sgs.group_type = group_classify(imbalanced, sgs);
}

/// Where tasks shall spread over groups, one that is two tasks ahead of a local group with room counts
/// as full (the middle of `update_sd_lb_stats`).
pub(super) fn prefer_sibling(env: &LbEnv, imbalanced: bool, sds: &SdStats, sgs: &mut SgStats) {
    let local = &sds.local_stat;
    if sds.prefer_sibling
        && sds.local.is_some()
        && group_has_capacity(env.imbalance_pct, local)
        && sgs.sum_h_nr_running > local.sum_h_nr_running + 1
    {
        sgs.no_capacity = true;
        sgs.group_type = group_classify(imbalanced, sgs);
    }
}

/// `update_sd_pick_busiest`.
pub fn update_sd_pick_busiest(env: &LbEnv, sds: &SdStats, sg: &GroupView, sgs: &SgStats) -> bool {
    let (busiest, local) = (&sds.busiest_stat, sds.local.as_ref());
    let misfit = sgs.group_type == GroupType::MisfitTask;
    if misfit {
        let helps = local.is_some_and(|local| is_smaller(sg.max_capacity, local.max_capacity));
        if !helps || !group_has_capacity(env.imbalance_pct, &sds.local_stat) {
            return false;
        }
    }
    if sgs.group_type != busiest.group_type {
        return sgs.group_type > busiest.group_type;
    }
    if sgs.avg_load <= busiest.avg_load {
        return false;
    }
    if env.sd_has(sd::ASYM_CPUCAPACITY) {
        let better = local.is_some_and(|local| is_smaller(local.min_capacity, sg.min_capacity));
        if sgs.sum_h_nr_running <= sgs.weight && better
            || misfit && sgs.misfit_task_load < busiest.misfit_task_load
        {
            return false;
        }
    }
    if !env.sd_has(sd::ASYM_PACKING) || !env.idle.is_idle() {
        return true;
    }
    sgs.sum_h_nr_running > 0
        && asym_prefer(env.dst_cpu, sg.asym_prefer_cpu)
        && sds
            .busiest
            .is_none_or(|busiest| asym_prefer(busiest.asym_prefer_cpu, sg.asym_prefer_cpu))
}

/// `find_busiest_group` once the statistics are there: the group to take from, if any; then
/// `env.imbalance` and `env.migration_type` say how much of what. `dst_load_per_task` is the load of the
/// destination's tasks each.
pub fn find_busiest_group(
    env: &mut LbEnv,
    sds: &mut SdStats,
    dst_load_per_task: u64,
) -> Option<GroupId> {
    env.imbalance = 0;
    env.migration_type = MigrationType::Load;
    let group = sds.busiest?;
    let packs = env.sd_has(sd::ASYM_PACKING) && env.idle.is_idle();
    if packs && !asym_prefer(group.asym_prefer_cpu, env.dst_cpu) {
        env.imbalance = sds.busiest_stat.load as i64;
        return Some(group.id);
    }
    if sds.busiest_stat.sum_h_nr_running == 0 {
        return None;
    }
    sds.avg_load = SCALE * sds.total_load / sds.total_capacity.max(1);
    if !is_forced(env, sds) && is_balanced(env, sds) {
        return None;
    }
    if sds.busiest_stat.group_type == GroupType::MisfitTask {
        env.migration_type = MigrationType::Misfit;
    }
    env.imbalance = calculate_imbalance(sds, dst_load_per_task) as i64;
    (env.imbalance != 0).then_some(group.id)
}

/// What is balanced whatever the loads: affinity stood in the way below, an idle CPU sees a full group
/// while its own has room, or a task is too big for its CPU.
fn is_forced(env: &LbEnv, sds: &SdStats) -> bool {
    let busiest = &sds.busiest_stat;
    let room = || group_has_capacity(env.imbalance_pct, &sds.local_stat);
    matches!(
        busiest.group_type,
        GroupType::Imbalanced | GroupType::MisfitTask
    ) || env.idle.is_idle() && busiest.no_capacity && room()
}

/// Whether loads are even enough: an idle CPU minds idle CPUs, others the domain's `imbalance_pct`.
fn is_balanced(env: &LbEnv, sds: &SdStats) -> bool {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    if local.avg_load >= busiest.avg_load || local.avg_load >= sds.avg_load {
        return true;
    }
    if env.idle == CpuIdle::Idle {
        busiest.group_type != GroupType::Overloaded && local.idle_cpus <= busiest.idle_cpus + 1
    } else {
        100 * busiest.avg_load <= u64::from(env.imbalance_pct) * local.avg_load
    }
}

/// How much load to take from the busiest group (`calculate_imbalance`).
pub fn calculate_imbalance(sds: &SdStats, dst_load_per_task: u64) -> u64 {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    let mut per_task = load_per_task(busiest);
    if busiest.group_type == GroupType::Imbalanced {
        per_task = per_task.min(sds.avg_load);
    }
    let misfit = busiest.group_type == GroupType::MisfitTask;
    if !misfit && (busiest.avg_load <= sds.avg_load || local.avg_load >= sds.avg_load) {
        return fix_small_imbalance(sds, per_task, dst_load_per_task, 0);
    }
    // Unsigned in the kernel: below the average the differences are huge and bound nothing.
    let over = busiest.avg_load.wrapping_sub(sds.avg_load);
    let pull = over.min(load_above_capacity(local, busiest));
    let room = sds.avg_load.wrapping_sub(local.avg_load);
    let mut imbalance = pull
        .wrapping_mul(busiest.capacity)
        .min(room.wrapping_mul(local.capacity))
        / SCALE;
    if misfit {
        imbalance = (imbalance as i64).max(busiest.misfit_task_load as i64) as u64;
    }
    if imbalance < per_task {
        return fix_small_imbalance(sds, per_task, dst_load_per_task, imbalance);
    }
    imbalance
}

fn load_per_task(sgs: &SgStats) -> u64 {
    sgs.load
        .checked_div(u64::from(sgs.sum_h_nr_running))
        .unwrap_or(0)
}

/// Where no group has idle CPUs none shall be made: only what is above one task a CPU may go.
fn load_above_capacity(local: &SgStats, busiest: &SgStats) -> u64 {
    let overloaded = |sgs: &SgStats| sgs.group_type == GroupType::Overloaded;
    let tasks = u64::from(busiest.sum_h_nr_running) * SCALE;
    if !overloaded(local) || !overloaded(busiest) || tasks <= busiest.capacity {
        return u64::MAX;
    }
    (tasks - busiest.capacity) * 1024 / busiest.capacity.max(1)
}

/// One task's load, if moving it evens loads out or lets more capacity be used; else what it was
/// (`fix_small_imbalance`).
fn fix_small_imbalance(
    sds: &SdStats,
    per_task: u64,
    dst_load_per_task: u64,
    imbalance: u64,
) -> u64 {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    let mut local_per_task = load_per_task(local);
    let mut tasks = 2;
    if local.sum_h_nr_running == 0 {
        local_per_task = dst_load_per_task;
    } else if per_task > local_per_task {
        tasks = 1;
    }
    let capacity = |sgs: &SgStats| sgs.capacity.max(1);
    let scaled = per_task * SCALE / capacity(busiest);
    if busiest.avg_load + scaled >= local.avg_load + scaled * tasks {
        return per_task;
    }
    let now = capacity(busiest) * per_task.min(busiest.avg_load)
        + capacity(local) * local_per_task.min(local.avg_load);
    let taken = match busiest.avg_load.checked_sub(scaled) {
        Some(left) if left > 0 => capacity(busiest) * per_task.min(left),
        _ => 0,
    };
    let added = if busiest.avg_load * capacity(busiest) < per_task * SCALE {
        busiest.avg_load * capacity(busiest) / capacity(local)
    } else {
        per_task * SCALE / capacity(local)
    };
    let then = taken + capacity(local) * local_per_task.min(local.avg_load + added);
    if then / SCALE > now / SCALE {
        per_task
    } else {
        imbalance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of so many CPUs with so many tasks of 1024 each.
    fn group(weight: u32, tasks: u32) -> SgStats {
        let capacity = u64::from(weight) * 1024;
        let load = u64::from(tasks) * 1024;
        let mut sgs = SgStats {
            load,
            capacity,
            util: load.min(capacity),
            sum_nr_running: tasks,
            sum_h_nr_running: tasks,
            idle_cpus: weight.saturating_sub(tasks),
            weight,
            ..SgStats::default()
        };
        complete(&env(CpuIdle::Idle), false, &mut sgs);
        sgs
    }

    fn env(idle: CpuIdle) -> LbEnv {
        LbEnv {
            imbalance_pct: 125,
            idle,
            ..LbEnv::default()
        }
    }

    fn view(id: u32) -> GroupView {
        GroupView {
            id: GroupId(id),
            flags: 0,
            cores: 1,
            asym_prefer_cpu: wakelab_machine::CpuId(id as u16),
            min_capacity: 1024,
            max_capacity: 1024,
        }
    }

    fn domain(local: SgStats, busiest: SgStats) -> SdStats {
        let total_load = local.load + busiest.load;
        let total_capacity = local.capacity + busiest.capacity;
        SdStats {
            local: Some(view(0)),
            local_stat: local,
            busiest: Some(view(1)),
            busiest_stat: busiest,
            total_load,
            total_capacity,
            avg_load: total_load * 1024 / total_capacity,
            ..SdStats::default()
        }
    }

    #[test]
    fn more_tasks_than_cpus_and_no_room_is_overloaded() {
        assert_eq!(group(4, 4).group_type, GroupType::HasSpare);
        assert_eq!(group(4, 5).group_type, GroupType::Overloaded);
        let mut light = group(4, 5);
        light.util = 3000;
        complete(&env(CpuIdle::Idle), false, &mut light);
        assert_eq!(
            light.group_type,
            GroupType::HasSpare,
            "tasks that sleep much"
        );
        complete(&env(CpuIdle::Idle), true, &mut light);
        assert_eq!(light.group_type, GroupType::Imbalanced);
        light.misfit_task_load = 1;
        assert_eq!(group_classify(false, &light), GroupType::MisfitTask);
    }

    #[test]
    fn a_group_two_tasks_ahead_is_full_where_tasks_spread() {
        let sds = |tasks| SdStats {
            prefer_sibling: true,
            ..domain(group(2, tasks), group(2, 0))
        };
        for (local, there, full) in [(0, 2, true), (0, 1, false), (1, 2, false), (1, 3, true)] {
            let mut sgs = group(4, there);
            prefer_sibling(&env(CpuIdle::Idle), false, &sds(local), &mut sgs);
            assert_eq!(sgs.no_capacity, full, "{local} here, {there} there");
        }
    }

    #[test]
    fn loads_meet_at_the_average() {
        // 8 and 2 tasks on 4 CPUs each: 3 tasks' load, on which both meet at 5.
        let sds = domain(group(4, 2), group(4, 8));
        assert_eq!(calculate_imbalance(&sds, 0), 3 * 1024);
        // Both overloaded: of 6 tasks on 4 CPUs 2 are above one a CPU, half a task a CPU.
        let sds = domain(group(4, 5), group(4, 6));
        assert_eq!(
            calculate_imbalance(&sds, 0),
            1024,
            "half a task is less than one"
        );
    }

    #[test]
    fn a_single_task_moves_if_that_evens_out() {
        // 1 against 0 on single CPUs: the average is half a task, so one task's load is the least.
        let sds = domain(group(1, 0), group(1, 1));
        assert_eq!(calculate_imbalance(&sds, 0), 1024);
        // 3 against 2 even out by half a task each, and the loads change places at worst.
        let sds = domain(group(1, 2), group(1, 3));
        assert_eq!(calculate_imbalance(&sds, 0), 1024);
        // Lighter tasks there, and less than one of them ahead: nothing is gained, what is left is 226.
        let mut light = group(1, 3);
        light.load = 2500;
        light.avg_load = 2500;
        let sds = domain(group(1, 2), light);
        assert_eq!(calculate_imbalance(&sds, 0), 226);
    }

    #[test]
    fn an_idle_cpu_minds_idle_cpus_and_a_busy_one_the_percentage() {
        let find = |idle, local, busiest| {
            let (mut env, mut sds) = (env(idle), domain(local, busiest));
            find_busiest_group(&mut env, &mut sds, 0)
        };
        // One idle CPU more here is no imbalance, two are.
        assert_eq!(find(CpuIdle::Idle, group(4, 2), group(4, 3)), None);
        assert_eq!(
            find(CpuIdle::Idle, group(4, 1), group(4, 3)),
            Some(GroupId(1))
        );
        // A busy CPU lets a quarter be.
        assert_eq!(find(CpuIdle::NotIdle, group(4, 8), group(4, 10)), None);
        assert_eq!(
            find(CpuIdle::NotIdle, group(4, 8), group(4, 11)),
            Some(GroupId(1))
        );
        // A full group is relieved by an idle CPU whose group has room, whatever the loads.
        let mut full = group(4, 5);
        full.load = 2560;
        full.avg_load = 640;
        assert_eq!(
            find(CpuIdle::NewlyIdle, group(4, 3), full),
            Some(GroupId(1))
        );
    }

    #[test]
    fn the_busiest_has_the_most_load_of_the_worst_kind() {
        let mut sds = domain(group(4, 0), group(4, 3));
        let picks = |sds: &SdStats, sgs: &SgStats| {
            update_sd_pick_busiest(&env(CpuIdle::Idle), sds, &view(2), sgs)
        };
        assert!(!picks(&sds, &group(4, 3)), "the first of equals is kept");
        assert!(picks(&sds, &group(4, 4)));
        assert!(
            picks(&sds, &group(16, 17)),
            "overloaded, though with less load"
        );
        sds.busiest_stat = group(4, 9);
        assert!(!picks(&sds, &group(4, 4)));
    }
}
