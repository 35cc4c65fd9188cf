//! The slow path: the idlest CPU of the idlest group, from a wide domain down. Fork and exec take
//! it, and wake-ups in domains that balance on wake-up.

use super::mutation::{Mutation as M, broken, shifted};
use super::slow_by_load::find_idlest_group_by_load;
use super::view::{View, core_cookie_match, fits_capacity};
use std::cmp::Ordering;
use wakelab_machine::domains::sd;
use wakelab_machine::ids::GroupId;
use wakelab_machine::{CpuId, CpuMask};

/// A NUMA imbalance of so many CPUs is let be while few tasks run (kernel `sched/fair.c`,
/// `NUMA_IMBALANCE_MIN`).
const NUMA_IMBALANCE_MIN: u64 = 2;

/// How busy a group is, from the idlest (`enum group_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupType {
    HasSpare,
    FullyBusy,
    MisfitTask,
    Imbalanced,
    Overloaded,
}

/// What the slow path sums over a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
struct GroupStats {
    load: u64,
    util: u64,
    runnable: u64,
    capacity: u64,
    max_capacity: u64,
    avg_load: u64,
    nr_running: u32,
    idle_cpus: u32,
    weight: u32,
    misfit: bool,
    kind: GroupType,
}

/// What of a domain the slow path goes by.
#[derive(Clone, Copy)]
struct Domain {
    flags: u32,
    pct: u64,
    imb_numa_nr: u32,
}

/// The CPU for a task that may go anywhere in the domain at `level` of this CPU (kernel
/// `sched/fair.c`, `sched_balance_find_dst_cpu()`, before 6.10 `find_idlest_cpu()`). `sd_flag` is
/// the `SD_BALANCE_*` bit that a domain must have.
pub(super) fn find_idlest_cpu<V: View>(
    v: &mut V,
    level: usize,
    prev: CpuId,
    sd_flag: u32,
) -> CpuId {
    let mut cpu = v.this_cpu();
    let span = v.topo().domains[cpu.index()][level].span;
    if !span.iter().any(|member| v.allowed(member)) {
        return prev;
    }
    if sd_flag & sd::BALANCE_FORK == 0 {
        v.sync_entity_load_avg();
    }
    let mut new_cpu = cpu;
    let mut next = Some(level);
    while let Some(level) = next {
        let domain = &v.topo().domains[cpu.index()][level];
        let weight = domain.span_weight;
        next = level.checked_sub(1);
        if broken(v, M::SlowOneLevel) && new_cpu != v.this_cpu() {
            break;
        }
        if domain.flags & sd_flag == 0 {
            continue;
        }
        let group = match v.rules().groups_by_load {
            true => find_idlest_group_by_load(v, cpu, level, sd_flag),
            false => find_idlest_group(v, cpu, level),
        };
        let Some(group) = group else {
            continue;
        };
        new_cpu = find_idlest_group_cpu(v, group, cpu);
        if new_cpu != cpu {
            cpu = new_cpu;
            next = lower_domain(v, cpu, weight, sd_flag);
        }
    }
    new_cpu
}

/// The highest domain of the new CPU below so many CPUs that balances in the way asked for.
fn lower_domain<V: View>(v: &V, cpu: CpuId, weight: u32, sd_flag: u32) -> Option<usize> {
    v.topo().domains[cpu.index()]
        .iter()
        .enumerate()
        .take_while(|(_, domain)| domain.span_weight < weight)
        .filter(|(_, domain)| domain.flags & sd_flag != 0)
        .map(|(level, _)| level)
        .last()
}

/// The idlest group but the CPU's own, none to stay in its own (kernel `sched/fair.c`,
/// `sched_balance_find_dst_group()`).
fn find_idlest_group<V: View>(v: &mut V, cpu: CpuId, level: usize) -> Option<GroupId> {
    let domain = &v.topo().domains[cpu.index()][level];
    let ngroups = domain.groups.len();
    let domain = Domain {
        flags: domain.flags,
        pct: shifted(v, domain.imbalance_pct.into(), M::SlowPctUp, M::SlowPctDown),
        imb_numa_nr: domain.imb_numa_nr,
    };
    let mut local: Option<(GroupStats, CpuMask)> = None;
    let mut idlest: Option<(GroupStats, GroupId)> = None;
    for index in 0..ngroups {
        let group = v.topo().domains[cpu.index()][level].groups[index];
        let span = v.topo().groups[group.index()].span;
        if !span.iter().any(|member| v.allowed(member)) || !group_cookie_match(v, &span) {
            continue;
        }
        let stats = group_stats(v, &domain, group, &span);
        if span.contains(cpu) {
            local = Some((stats, span));
        } else if idlest
            .as_ref()
            .is_none_or(|(best, _)| is_idler(v, &stats, best))
        {
            idlest = Some((stats, group));
        }
    }
    let (idlest, group) = idlest?;
    let Some((local, span)) = local else {
        return Some(group);
    };
    match local.kind.cmp(&idlest.kind) {
        Ordering::Less => None,
        Ordering::Greater => Some(group),
        Ordering::Equal => leaves_local(v, &domain, &local, &span, &idlest).then_some(group),
    }
}

/// `sched_group_cookie_match`: some allowed CPU of the group matches the task's cookie.
fn group_cookie_match<V: View>(v: &V, span: &CpuMask) -> bool {
    !v.core_sched()
        || broken(v, M::SlowCookieIgnored)
        || span
            .iter()
            .any(|cpu| v.allowed(cpu) && core_cookie_match(v, cpu))
}

/// Sums a group up (kernel `sched/fair.c`, `update_sg_wakeup_stats()`).
fn group_stats<V: View>(v: &mut V, domain: &Domain, group: GroupId, span: &CpuMask) -> GroupStats {
    let record = v.group_capacity(group);
    let mut stats = GroupStats {
        load: 0,
        util: 0,
        runnable: 0,
        capacity: record.capacity,
        max_capacity: record.max_capacity,
        avg_load: 0,
        nr_running: 0,
        idle_cpus: 0,
        weight: v.topo().groups[group.index()].weight,
        misfit: domain.flags & sd::ASYM_CPUCAPACITY != 0,
        kind: GroupType::HasSpare,
    };
    let mut read = 0;
    for cpu in span.iter() {
        if !v.allowed(cpu) {
            continue;
        }
        read += 1;
        stats.load += v.cpu_load_without(cpu);
        stats.util += v.cpu_util_without(cpu);
        stats.runnable += v.cpu_runnable_without(cpu);
        let own = v.task_running_on(cpu) && !broken(v, M::SlowTaskCounts);
        let running = v.nr_running(cpu).wrapping_sub(u32::from(own));
        stats.nr_running = stats.nr_running.wrapping_add(running);
        stats.idle_cpus += u32::from(running == 0 && v.idle_cpu_without(cpu));
        stats.misfit &= !fits_capacity(v.task_util_est(), v.capacity_of(cpu));
    }
    v.note_stats_read(read);
    let imbalanced = record.imbalance && !broken(v, M::ImbalancedIgnored);
    stats.kind = group_classify(v, domain.pct, imbalanced, &stats);
    if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
        stats.avg_load = stats.load * 1024 / stats.capacity.max(1);
    }
    stats
}

/// `group_classify`.
fn group_classify<V: View>(v: &V, pct: u64, imbalanced: bool, stats: &GroupStats) -> GroupType {
    if group_is_overloaded(v, pct, stats) {
        GroupType::Overloaded
    } else if imbalanced {
        GroupType::Imbalanced
    } else if stats.misfit {
        GroupType::MisfitTask
    } else if !group_has_capacity(v, pct, stats) {
        GroupType::FullyBusy
    } else {
        GroupType::HasSpare
    }
}

fn group_is_overloaded<V: View>(v: &V, pct: u64, stats: &GroupStats) -> bool {
    let least = shifted(v, stats.weight.into(), M::OverloadedUp, M::OverloadedDown);
    u64::from(stats.nr_running) > least
        && (stats.capacity * 100 < stats.util * pct || stats.capacity * pct < stats.runnable * 100)
}

fn group_has_capacity<V: View>(v: &V, pct: u64, stats: &GroupStats) -> bool {
    stats.nr_running < stats.weight + u32::from(broken(v, M::RoomUp))
        || (stats.capacity * pct >= stats.runnable * 100 && stats.capacity * 100 > stats.util * pct)
}

/// Whether a group is idler than the idlest so far (kernel `sched/fair.c`, `update_pick_idlest()`).
/// The first group always is.
fn is_idler<V: View>(v: &V, stats: &GroupStats, best: &GroupStats) -> bool {
    if stats.kind != best.kind {
        return stats.kind < best.kind;
    }
    match stats.kind {
        GroupType::Overloaded | GroupType::FullyBusy => stats.avg_load < best.avg_load,
        GroupType::Imbalanced => false,
        GroupType::MisfitTask => stats.max_capacity > best.max_capacity,
        GroupType::HasSpare => match stats.idle_cpus.cmp(&best.idle_cpus) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal if broken(v, M::LastOfEqual) => stats.util <= best.util,
            Ordering::Equal => stats.util < best.util,
        },
    }
}

/// Whether the idlest group is preferred to the CPU's own one of the same type.
fn leaves_local<V: View>(
    v: &V,
    domain: &Domain,
    local: &GroupStats,
    span: &CpuMask,
    idlest: &GroupStats,
) -> bool {
    let numa = domain.flags & sd::NUMA != 0;
    match local.kind {
        GroupType::Overloaded | GroupType::FullyBusy => {
            let imbalance = 1024 * (domain.pct - 100) / 100;
            let near = numa && idlest.avg_load + imbalance >= local.avg_load;
            !near
                && idlest.avg_load < local.avg_load + imbalance
                && 100 * local.avg_load > domain.pct * idlest.avg_load
        }
        GroupType::Imbalanced => false,
        GroupType::MisfitTask => local.max_capacity < idlest.max_capacity,
        GroupType::HasSpare => {
            if numa && numa_imbalance_allowed(v, domain, local, span, idlest) {
                return false;
            }
            local.idle_cpus < idlest.idle_cpus + u32::from(broken(v, M::LocalTie))
        }
    }
}

/// Whether a node may stay ahead of another because few tasks run there (kernel `sched/fair.c`,
/// `adjust_numa_imbalance()`). A pinned task counts only the CPUs that it can use.
fn numa_imbalance_allowed<V: View>(
    v: &V,
    domain: &Domain,
    local: &GroupStats,
    span: &CpuMask,
    idlest: &GroupStats,
) -> bool {
    let usable = |&cpu: &CpuId| v.allowed(cpu) || broken(v, M::NumaUnusable);
    let usable = span.iter().filter(usable).count() as u32;
    let imb_numa_nr = domain.imb_numa_nr.min(usable);
    let imbalance = u64::from(local.idle_cpus.abs_diff(idlest.idle_cpus));
    let few = local.nr_running < imb_numa_nr;
    let most = shifted(v, NUMA_IMBALANCE_MIN, M::NumaMinUp, M::NumaMinDown);
    imbalance == 0 || (few && imbalance <= most)
}

/// The idlest CPU of a group: of idle ones that in the shallowest idle state, then the one idle for
/// the shortest time; else the one with the least load (kernel `sched/fair.c`,
/// `sched_balance_find_dst_group_cpu()`).
fn find_idlest_group_cpu<V: View>(v: &mut V, group: GroupId, this: CpuId) -> CpuId {
    let span = v.topo().groups[group.index()].span;
    if v.topo().groups[group.index()].weight == 1 {
        return span.first().unwrap_or(this);
    }
    let mut latency = u32::MAX;
    let mut stamp = 0;
    let mut shallowest = None;
    let mut least = (u64::MAX, this);
    for cpu in span.iter() {
        let cookie = core_cookie_match(v, cpu) || broken(v, M::SlowCookieIgnored);
        if !v.allowed(cpu) || !cookie {
            continue;
        }
        if v.sched_idle_cpu(cpu) {
            return cpu;
        }
        if v.idle_cpu(cpu) {
            let exit = v
                .exit_latency(cpu)
                .filter(|_| !broken(v, M::LatencyIgnored));
            let shallower = exit.is_some_and(|exit| exit < latency);
            let idle_since = match broken(v, M::IdleLongest) {
                true => u64::MAX - v.idle_stamp(cpu),
                false => v.idle_stamp(cpu),
            };
            let later = exit.is_none_or(|exit| exit == latency) && idle_since > stamp;
            if shallower || later {
                latency = if shallower {
                    exit.unwrap_or(latency)
                } else {
                    latency
                };
                stamp = idle_since;
                shallowest = Some(cpu);
            }
        } else if shallowest.is_none() {
            let load = v.cpu_load(cpu);
            if load < least.0 || broken(v, M::LeastLoadLast) && load == least.0 {
                least = (load, cpu);
            }
        }
    }
    shallowest.unwrap_or(least.1)
}
