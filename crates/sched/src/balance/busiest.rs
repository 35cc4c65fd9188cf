//! Which group is busiest, and how much to take from it (`find_busiest_group`).

use super::by_load;
use super::env::{CpuIdle, LbEnv, MigrationType, asym_prefer, capacity_greater, lbf};
use super::group::{GroupType, GroupView, SdStats, SgStats};
use crate::{Rules, Sched};
use wakelab_machine::GroupId;
use wakelab_machine::domains::sd;

/// `NUMA_IMBALANCE_MIN`.
const NUMA_IMBALANCE_MIN: i64 = 2;

fn is_smt(group: &GroupView) -> bool {
    group.flags & sd::SHARE_CPUCAPACITY != 0
}

/// `smt_vs_nonsmt_groups`: one is an SMT core and the other is not.
fn smt_vs_nonsmt(a: Option<&GroupView>, b: Option<&GroupView>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if is_smt(a) != is_smt(b))
}

/// Fewer idle CPUs, or as many and more tasks.
fn has_less_spare(sgs: &SgStats, busiest: &SgStats) -> bool {
    sgs.idle_cpus < busiest.idle_cpus
        || (sgs.idle_cpus == busiest.idle_cpus && sgs.sum_nr_running > busiest.sum_nr_running)
}

/// Whether the group is busier than the busiest so far, of the same type.
fn same_type_is_busier(rules: &Rules, sds: &SdStats, sg: &GroupView, sgs: &SgStats) -> bool {
    let busiest = &sds.busiest_stat;
    let fully_busy = || {
        // Loads are not averaged for groups that are not overloaded: all are 0. The first is kept,
        // unless it is no SMT core, which can spare its task less well.
        sgs.avg_load > busiest.avg_load
            || (sgs.avg_load == busiest.avg_load && !sds.busiest.as_ref().is_some_and(is_smt))
    };
    match sgs.group_type {
        GroupType::Overloaded => sgs.avg_load > busiest.avg_load,
        // Nothing tells one from another.
        GroupType::Imbalanced | GroupType::ForceIdle => false,
        GroupType::AsymPacking => sds
            .busiest
            .is_some_and(|b| asym_prefer(b.asym_prefer_cpu, sg.asym_prefer_cpu)),
        GroupType::MisfitTask if rules.smt_balance => {
            sgs.misfit_task_load > busiest.misfit_task_load
        }
        GroupType::MisfitTask => sgs.misfit_task_load >= busiest.misfit_task_load,
        GroupType::SmtBalance if sgs.idle_cpus != 0 || busiest.idle_cpus != 0 => {
            has_less_spare(sgs, busiest)
        }
        GroupType::SmtBalance | GroupType::FullyBusy => fully_busy(),
        GroupType::HasSpare
            if rules.smt_balance && smt_vs_nonsmt(sds.busiest.as_ref(), Some(sg)) =>
        {
            !(is_smt(sg) && sgs.sum_h_nr_running <= 1)
        }
        GroupType::HasSpare => has_less_spare(sgs, busiest),
    }
}

/// Whether the group is busier than the busiest so far, in a way that the destination can help
/// (kernel sched/fair.c, `update_sd_pick_busiest`).
pub fn update_sd_pick_busiest(
    env: &LbEnv,
    rules: &Rules,
    sds: &SdStats,
    sg: &GroupView,
    sgs: &SgStats,
) -> bool {
    if sgs.sum_h_nr_running == 0 {
        return false;
    }
    if env.sd_has(sd::ASYM_CPUCAPACITY) {
        let helps_misfit = env.dst_core_idle
            && capacity_greater(env.dst_capacity, sg.max_capacity)
            && sds.local_stat.group_type == GroupType::HasSpare;
        if sgs.group_type == GroupType::MisfitTask && !helps_misfit {
            return false;
        }
        // One task a CPU, and bigger CPUs than ours: they are well where they are.
        if sgs.group_type <= GroupType::FullyBusy
            && capacity_greater(sg.min_capacity, env.dst_capacity)
        {
            return false;
        }
    }
    match sgs.group_type.cmp(&sds.busiest_stat.group_type) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => same_type_is_busier(rules, sds, sg, sgs),
    }
}

/// `adjust_numa_imbalance`: nodes may differ by two tasks while the destination runs few.
pub fn adjust_numa_imbalance(imbalance: i64, dst_running: u32, imb_numa_nr: u32) -> i64 {
    if dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN {
        0
    } else {
        imbalance
    }
}

/// By how many tasks the busiest group is ahead of the local one: since 6.6 for idle CPUs only, and
/// by core where the groups have different numbers of them (`sibling_imbalance`).
fn sibling_imbalance(env: &LbEnv, rules: &Rules, sds: &SdStats) -> i64 {
    let busiest = i64::from(sds.busiest_stat.sum_nr_running);
    let local = i64::from(sds.local_stat.sum_nr_running);
    if !rules.smt_balance {
        return (busiest - local).max(0);
    }
    if !env.idle.is_idle() || busiest == 0 {
        return 0;
    }
    let cores = |group: Option<GroupView>| group.map_or(1, |group| i64::from(group.cores));
    let (busy_cores, local_cores) = (cores(sds.busiest), cores(sds.local));
    if busy_cores == local_cores {
        return (busiest - local).max(0);
    }
    let ahead = (local_cores * busiest - busy_cores * local).max(0);
    let imbalance = (2 * ahead + local_cores + busy_cores) / (local_cores + busy_cores);
    if imbalance <= 1 && local == 0 && busiest > 1 {
        2
    } else {
        imbalance
    }
}

/// Whether the domain counts as unbalanced although the types of the groups do not say so: the tail
/// of `find_busiest_group`.
fn worth_it(env: &LbEnv, rules: &Rules, sds: &SdStats) -> bool {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    if sds.prefer_sibling && local.group_type == GroupType::HasSpare {
        let ahead = if rules.smt_balance {
            sibling_imbalance(env, rules, sds) > 1
        } else {
            busiest.sum_nr_running > local.sum_nr_running + 1
        };
        if ahead {
            return true;
        }
    }
    if busiest.group_type == GroupType::Overloaded {
        return true;
    }
    if !env.idle.is_idle() {
        return false;
    }
    if busiest.group_type == GroupType::SmtBalance
        && smt_vs_nonsmt(sds.local.as_ref(), sds.busiest.as_ref())
    {
        return true;
    }
    let as_idle = busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus.wrapping_add(1);
    !as_idle && busiest.sum_h_nr_running != 1
}

/// `find_busiest_group` once the statistics are there: the group to take from, if any; then
/// `env.imbalance` and `env.migration_type` say how much of what.
pub fn find_busiest_group(env: &mut LbEnv, rules: &Rules, sds: &mut SdStats) -> Option<GroupId> {
    env.imbalance = 0;
    let group = sds.busiest?.id;
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    let forced = matches!(
        busiest.group_type,
        GroupType::MisfitTask
            | GroupType::AsymPacking
            | GroupType::Imbalanced
            | GroupType::ForceIdle
    );
    if !forced {
        if local.group_type > busiest.group_type {
            return None;
        }
        if local.group_type == GroupType::Overloaded {
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity.max(1);
            if local.avg_load >= busiest.avg_load
                || local.avg_load >= sds.avg_load
                || 100 * busiest.avg_load <= u64::from(env.imbalance_pct) * local.avg_load
            {
                return None;
            }
        }
        if !worth_it(env, rules, sds) {
            return None;
        }
    }
    calculate_imbalance(env, rules, sds);
    (env.imbalance != 0).then_some(group)
}

/// How much to take from the busiest group (kernel sched/fair.c, `calculate_imbalance`).
pub fn calculate_imbalance(env: &mut LbEnv, rules: &Rules, sds: &mut SdStats) {
    let busiest = &sds.busiest_stat;
    let (kind, amount) = match busiest.group_type {
        GroupType::MisfitTask if env.sd_has(sd::ASYM_CPUCAPACITY) => (MigrationType::Misfit, 1),
        GroupType::MisfitTask => (MigrationType::Load, busiest.misfit_task_load as i64),
        GroupType::AsymPacking => (MigrationType::Task, i64::from(busiest.sum_h_nr_running)),
        GroupType::ForceIdle => {
            env.flags |= lbf::FORCE_IDLE;
            (MigrationType::Task, 1)
        }
        GroupType::SmtBalance | GroupType::Imbalanced => (MigrationType::Task, 1),
        _ if sds.local_stat.group_type == GroupType::HasSpare => fill_spare(env, rules, sds),
        _ => return even_loads(env, sds),
    };
    env.migration_type = kind;
    env.imbalance = amount;
}

/// The local group has room: take what fills it, or half of the difference in tasks or idle CPUs.
fn fill_spare(env: &LbEnv, rules: &Rules, sds: &SdStats) -> (MigrationType, i64) {
    let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
    if busiest.group_type > GroupType::FullyBusy && !env.sd_has(sd::SHARE_LLC) {
        let room = local.capacity.saturating_sub(local.util) as i64;
        // A group without room by its averages, whose CPU is idle all the same: take one task.
        return if room == 0 && env.idle != CpuIdle::NotIdle {
            (MigrationType::Task, 1)
        } else {
            (MigrationType::Util, room)
        };
    }
    let mut imbalance = if busiest.weight == 1 || sds.prefer_sibling {
        sibling_imbalance(env, rules, sds)
    } else {
        // Unsigned in the kernel: fewer idle CPUs here than there is a huge difference.
        i64::from(local.idle_cpus.wrapping_sub(busiest.idle_cpus))
    };
    if env.sd_has(sd::NUMA) {
        imbalance = adjust_numa_imbalance(imbalance, local.sum_nr_running + 1, env.imb_numa_nr);
    }
    (MigrationType::Task, imbalance >> 1)
}

/// Both groups are or will be overloaded: even the loads, and pull neither above nor below the
/// domain's average.
fn even_loads(env: &mut LbEnv, sds: &mut SdStats) {
    let (local, busiest) = (&mut sds.local_stat, &sds.busiest_stat);
    if local.group_type < GroupType::Overloaded {
        local.avg_load = local.load * 1024 / local.capacity.max(1);
        if local.avg_load >= busiest.avg_load {
            env.imbalance = 0;
            return;
        }
        sds.avg_load = sds.total_load * 1024 / sds.total_capacity.max(1);
        if local.avg_load >= sds.avg_load {
            env.imbalance = 0;
            return;
        }
    }
    env.migration_type = MigrationType::Load;
    // Unsigned in the kernel: a busiest group below the average is a huge first term, not a bound.
    let above = busiest
        .avg_load
        .wrapping_sub(sds.avg_load)
        .wrapping_mul(busiest.capacity);
    let below = sds
        .avg_load
        .wrapping_sub(local.avg_load)
        .wrapping_mul(local.capacity);
    env.imbalance = (above.min(below) / 1024) as i64;
}

impl Sched {
    /// The busiest group of the domain, if it is worth balancing.
    pub(crate) fn find_busiest_group(&mut self, env: &mut LbEnv, jiffies: u64) -> Option<GroupId> {
        let mut sds = self.update_sd_lb_stats(env, jiffies);
        if self.rules.groups_by_load {
            let tasks = u64::from(self.cfs[env.dst_cpu.index()].h_nr_running);
            let each = self.cpu_load(env.dst_cpu).checked_div(tasks).unwrap_or(0);
            return by_load::find_busiest_group(env, &mut sds, each);
        }
        find_busiest_group(env, &self.rules, &mut sds)
    }
}
