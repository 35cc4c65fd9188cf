//! `select_idle_sibling`: an idle CPU near the target, step by step.

use super::capacity::{asym_fits_cpu, select_idle_capacity};
use super::decision::{Reason, SearchStats, SisPath};
use super::idle::{At, cookie_fits, is_idle_cpu};
use super::mutation::{Mutation as M, broken, shifted};
use super::search::{CpuScan, Part, Space, scan_cores, scan_cpus};
use super::turns::{search_in_turns, sis_prop_limit};
use super::view::{View, cpus_share_cache, cpus_share_resources, fits_capacity};
use super::wake_affine::almost_idle_cpu;
use crate::features::Feat;
use wakelab_machine::{CpuId, LlcId};

/// Where a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sibling {
    /// The CPU.
    pub cpu: CpuId,
    /// Why.
    pub reason: Reason,
    /// At which step.
    pub path: SisPath,
    /// What it took.
    pub searched: SearchStats,
}

impl Sibling {
    fn fast(cpu: CpuId, reason: Reason, path: SisPath) -> Sibling {
        let searched = SearchStats {
            called: true,
            fast: true,
            success: true,
            ..Default::default()
        };
        Sibling {
            cpu,
            reason,
            path,
            searched,
        }
    }

    pub(super) fn slow(cpu: CpuId, reason: Reason, path: SisPath, success: bool) -> Sibling {
        let searched = SearchStats {
            called: true,
            success,
            ..Default::default()
        };
        Sibling {
            cpu,
            reason,
            path,
            searched,
        }
    }
}

/// In what way a single CPU was found good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Good {
    Idle,
    AlmostIdle,
    Fits,
}

/// Idle CPUs that share the target's cache but not its cluster: only taken if nothing is found.
#[derive(Clone, Copy, Debug, Default)]
struct Spare {
    prev: Option<CpuId>,
    recent: Option<CpuId>,
}

/// An idle CPU near `target`, or `target` (kernel `sched/fair.c`, `select_idle_sibling()`).
pub(super) fn select_idle_sibling<V: View>(v: &mut V, prev: CpuId, target: CpuId) -> Sibling {
    let by_capacity = v.topo().asym_cpucap && v.rules().sis_by_capacity;
    let util = if by_capacity || v.feat(Feat::UTIL_FITS_CAPACITY) {
        v.sync_entity_load_avg();
        v.task_util_est()
    } else {
        0
    };
    let mut spare = Spare::default();
    let bias = v.feat(Feat::SELECT_BIAS_PREV) || broken(v, M::PrevFirst);
    if broken(v, M::RecentEarly) {
        v.set_recent_used_cpu(prev);
    }
    if bias && let Some(found) = bias_prev(v, prev, target, util) {
        return found;
    }
    if !broken(v, M::TargetSkipped)
        && let Some(found) = check_target(v, prev, target, util)
    {
        return found;
    }
    if !bias && let Some(found) = check_prev(v, prev, target, util, &mut spare) {
        return found;
    }
    if broken(v, M::KthreadLast)
        && let Some(found) = check_recent(v, prev, target, util, &mut spare)
    {
        return found;
    }
    if per_cpu_kthread_stacks(v, prev, util) {
        return Sibling::fast(prev, Reason::PerCpuKthread, SisPath::PerCpuKthread);
    }
    if let Some(found) = check_recent(v, prev, target, util, &mut spare) {
        return found;
    }
    search_domain(v, prev, target, util, spare)
}

/// Whether one CPU can be taken without a search. `almost`: whether an almost idle one counts.
fn good<V: View>(v: &mut V, cpu: CpuId, almost: bool, util: u64) -> Option<Good> {
    v.look_at(cpu);
    let good = if is_idle_cpu(v, cpu, At::Single) {
        Good::Idle
    } else if !cookie_fits(v, cpu, At::Single) {
        return None;
    } else if almost && almost_idle_cpu(v, cpu) {
        Good::AlmostIdle
    } else if fits_remaining_capacity(v, cpu, util) {
        Good::Fits
    } else {
        return None;
    };
    asym_fits_cpu(v, util, cpu).then_some(good)
}

/// UTIL_FITS_CAPACITY: what is queued on the CPU and the task together leave 20 % of it free.
fn fits_remaining_capacity<V: View>(v: &V, cpu: CpuId, util: u64) -> bool {
    v.feat(Feat::UTIL_FITS_CAPACITY)
        && v.feat(Feat::UTIL_EST)
        && fits_capacity(v.util_est_enqueued(cpu) + util, v.capacity_of(cpu))
}

fn prev_reason(good: Good) -> Reason {
    match good {
        Good::Idle => Reason::PrevIdle,
        Good::AlmostIdle => Reason::PrevAlmostIdle,
        Good::Fits => Reason::PrevFits,
    }
}

/// SELECT_BIAS_PREV: the previous CPU is looked at first, also when it is the target. Together with
/// WAKEUP_BIAS_PREV_IDLE an almost idle one counts, as it does at the check that this replaces.
fn bias_prev<V: View>(v: &mut V, prev: CpuId, target: CpuId, util: u64) -> Option<Sibling> {
    if !cpus_share_cache(v, prev, target) {
        return None;
    }
    let good = good(v, prev, true, util)?;
    Some(Sibling::fast(prev, prev_reason(good), SisPath::Prev))
}

/// The target itself. WAKEUP_BIAS_PREV_IDLE takes it almost idle only where it is the previous CPU.
fn check_target<V: View>(v: &mut V, prev: CpuId, target: CpuId, util: u64) -> Option<Sibling> {
    let almost = prev == target || broken(v, M::TargetAlmostIdle);
    let reason = match good(v, target, almost, util)? {
        Good::Idle => Reason::TargetIdle,
        Good::AlmostIdle => Reason::TargetAlmostIdle,
        Good::Fits => Reason::TargetFits,
    };
    Some(Sibling::fast(target, reason, SisPath::Target))
}

/// The previous CPU, if it shares the target's cache. With a cluster scan one of another cluster
/// is only remembered.
fn check_prev<V: View>(
    v: &mut V,
    prev: CpuId,
    target: CpuId,
    util: u64,
    spare: &mut Spare,
) -> Option<Sibling> {
    if prev == target
        || !cpus_share_cache(v, prev, target) && !broken(v, M::PrevAnyCache)
        || broken(v, M::PrevSkipped)
    {
        return None;
    }
    let good = good(v, prev, !broken(v, M::PrevAlmostSkipped), util)?;
    if in_other_cluster(v, prev, target) {
        spare.prev = Some(prev);
        return None;
    }
    Some(Sibling::fast(prev, prev_reason(good), SisPath::Prev))
}

/// Clusters count in searches: CLUSTER_SCAN, a word of this project for the change that 6.7 made.
fn scans_clusters<V: View>(v: &V) -> bool {
    v.rules().cluster_scan && v.feat(Feat::CLUSTER_SCAN)
}

fn in_other_cluster<V: View>(v: &V, cpu: CpuId, target: CpuId) -> bool {
    scans_clusters(v)
        && v.topo().cluster_active
        && !cpus_share_resources(v, cpu, target)
        && !broken(v, M::OtherClusterTaken)
}

/// A kernel thread of one CPU that wakes a task there has most likely done that task's work and is
/// about to sleep: the task may queue up behind it.
fn per_cpu_kthread_stacks<V: View>(v: &V, prev: CpuId, util: u64) -> bool {
    let most = shifted(v, 1, M::KthreadNrUp, M::KthreadNrDown);
    v.rules().kthread_stacks
        && v.curr_is_per_cpu_kthread()
        && (v.in_task() || broken(v, M::KthreadInInterrupt))
        && (prev == v.this_cpu() || broken(v, M::KthreadElsewhere))
        && u64::from(v.nr_running(prev)) <= most
        && asym_fits_cpu(v, util, prev)
        && !broken(v, M::KthreadSkipped)
}

/// The CPU before the previous one. It is overwritten with the previous CPU here, whether it is
/// taken or not (before 5.12 if it is taken).
fn check_recent<V: View>(
    v: &mut V,
    prev: CpuId,
    target: CpuId,
    util: u64,
    spare: &mut Spare,
) -> Option<Sibling> {
    let recent = v.recent_used_cpu();
    let of_waker = v.rules().recent_cpu_of_waker;
    if !of_waker && !broken(v, M::RecentKept) {
        v.set_recent_used_cpu(prev);
    }
    if recent == prev
        || recent == target
        || !cpus_share_cache(v, recent, target) && !broken(v, M::RecentAnyCache)
        || broken(v, M::RecentSkipped)
    {
        return None;
    }
    let good = good(v, recent, broken(v, M::RecentAlmostIdle), util)?;
    if !v.allowed(recent) && !broken(v, M::RecentNotAllowed) {
        return None;
    }
    if in_other_cluster(v, recent, target) {
        spare.recent = Some(recent);
        return None;
    }
    if of_waker {
        v.set_recent_used_cpu(prev);
    }
    if broken(v, M::RecentIfTaken) {
        v.set_recent_used_cpu(recent);
    }
    let reason = if good == Good::Fits {
        Reason::RecentFits
    } else {
        Reason::RecentIdle
    };
    Some(Sibling::fast(recent, reason, SisPath::Recent))
}

/// The searches: by capacity on asymmetric machines, else of the SMT siblings and of the LLC.
fn search_domain<V: View>(
    v: &mut V,
    prev: CpuId,
    target: CpuId,
    util: u64,
    spare: Spare,
) -> Sibling {
    let place = &v.topo().cpus[target.index()];
    let llc = place.llc;
    let by_capacity = v.topo().asym_cpucap && v.rules().sis_by_capacity;
    if let Some(level) = place.sd_asym.filter(|_| by_capacity) {
        let (found, scanned) = select_idle_capacity(v, level, target, util);
        v.note_scanned(scanned);
        let reason = if found.is_some() {
            Reason::IdleCapacity
        } else {
            Reason::NoIdleCpu
        };
        let cpu = found.unwrap_or(target);
        let mut result = Sibling::slow(cpu, reason, SisPath::Capacity, found.is_some());
        result.searched.scanned = scanned;
        return result;
    }
    if place.sd_llc.is_none() {
        return Sibling::slow(target, Reason::NoLlc, SisPath::NoLlc, false);
    }
    v.look_at_llc(llc);
    if v.rules().search_in_turns {
        return search_in_turns(v, target, llc);
    }
    let mut has_idle_core = false;
    if v.topo().smt_active {
        let sis_core = v.feat(Feat::SIS_CORE) || broken(v, M::SisCoreIgnored);
        has_idle_core = sis_core && v.has_idle_cores(llc) && !broken(v, M::HasIdleCoreIgnored);
        if (!has_idle_core || broken(v, M::SmtDespiteCore))
            && (cpus_share_cache(v, prev, target) || broken(v, M::SmtAnyCache))
            && !broken(v, M::SmtSkipped)
            && let Some(cpu) = select_idle_smt(v, prev, llc)
        {
            return Sibling::slow(cpu, Reason::SmtSibling, SisPath::Smt, true);
        }
    }
    let mut searched = SearchStats {
        called: true,
        ..Default::default()
    };
    let found = select_idle_cpu(v, has_idle_core, target, &mut searched);
    v.note_scanned(searched.scanned);
    let (cpu, reason, path) = match found {
        Ok((cpu, reason)) => (cpu, reason, SisPath::IdleCpu),
        Err(failure) => fall_back(v, prev, target, spare, failure),
    };
    searched.success = !matches!(path, SisPath::Nothing);
    Sibling {
        cpu,
        reason,
        path,
        searched,
    }
}

/// Nothing found: an idle CPU seen in another cluster, or the target.
fn fall_back<V: View>(
    v: &V,
    prev: CpuId,
    target: CpuId,
    spare: Spare,
    failure: Reason,
) -> (CpuId, Reason, SisPath) {
    let recent_first = spare.recent.is_some() && broken(v, M::SpareRecentFirst);
    let spare_prev = spare
        .prev
        .filter(|_| !recent_first && !broken(v, M::SparePrevDropped));
    let spare_recent = spare.recent.filter(|_| !broken(v, M::SpareRecentDropped));
    if let Some(cpu) = spare_prev {
        (cpu, Reason::ClusterPrev, SisPath::PrevCluster)
    } else if let Some(cpu) = spare_recent {
        (cpu, Reason::ClusterRecent, SisPath::RecentCluster)
    } else if v.feat(Feat::SELECT_BIAS_PREV) && cpus_share_cache(v, prev, target) {
        (prev, Reason::BiasPrev, SisPath::Nothing)
    } else {
        (target, failure, SisPath::Nothing)
    }
}

/// An idle SMT sibling in the LLC on which the task may run (kernel `sched/fair.c`,
/// `select_idle_smt()`).
fn select_idle_smt<V: View>(v: &V, cpu: CpuId, llc: LlcId) -> Option<CpuId> {
    v.topo().cpus[cpu.index()].smt.iter().find(|&sibling| {
        sibling != cpu
            && (v.allowed(sibling) || broken(v, M::SmtNotAllowed))
            && (v.topo().cpus[sibling.index()].llc == llc || broken(v, M::SmtAnyCache))
            && is_idle_cpu(v, sibling, At::Smt)
    })
}

/// The search of the target's LLC (kernel `sched/fair.c`, `select_idle_cpu()`): for an idle core if
/// there is said to be one, else for an idle CPU within a number of CPUs that depends on how busy
/// the LLC is. The failure says whether that number ended it.
fn select_idle_cpu<V: View>(
    v: &mut V,
    has_idle_core: bool,
    target: CpuId,
    searched: &mut SearchStats,
) -> Result<(CpuId, Reason), Reason> {
    let llc = v.topo().cpus[target.index()].llc;
    let prop = v.feat(Feat::SIS_PROP) && !has_idle_core;
    let mut limit = if prop { sis_prop(v)? } else { u32::MAX };
    if v.feat(Feat::SIS_UTIL) {
        let scan = v.nr_idle_scan(llc).max(0) as u64;
        limit = shifted(v, scan, M::LimitUp, M::LimitDown) as u32;
        if limit == 0 && !(has_idle_core && broken(v, M::LimitZeroIgnored)) {
            return Err(Reason::ScanLimit);
        }
    }
    let rank = v.ranks().rank(target);
    let space = Space {
        llc,
        start: rank + usize::from(!broken(v, M::ScanFromTarget)),
        part: Part::Whole,
    };
    let clustered = scans_clusters(v) && !v.ranks().llc(llc).cluster.is_empty();
    if has_idle_core {
        return search_cores(v, space, clustered.then_some(rank), searched);
    }
    let scan = match clustered {
        true => scan_cluster_first(v, space, rank, limit),
        false => (scan_cpus(v, space, limit), Reason::LlcScan),
    };
    let (scan, reason) = scan;
    searched.scanned = scan.visited;
    searched.limit_hit = scan.limited;
    if prop && !scan.limited {
        v.charge_scan(scan.visited);
    }
    match scan.found {
        Some(cpu) => Ok((cpu, reason)),
        None if scan.limited => Err(Reason::ScanLimit),
        None => Err(Reason::NoIdleCpu),
    }
}

/// The target's cluster first, then the rest of the LLC with what is left of the limit (6.7 on).
fn scan_cluster_first<V: View>(v: &V, space: Space, rank: usize, limit: u32) -> (CpuScan, Reason) {
    let parts = match broken(v, M::ClusterLast) {
        true => [Part::Rest(rank), Part::Cluster(rank)],
        false => [Part::Cluster(rank), Part::Rest(rank)],
    };
    let [first, second] = parts.map(|part| Space { part, ..space });
    let cluster = scan_cpus(v, first, limit);
    if cluster.found.is_some() || cluster.limited {
        return (cluster, Reason::ClusterScan);
    }
    let left = match broken(v, M::ClusterLimitAnew) {
        true => limit,
        false => limit.saturating_sub(cluster.visited),
    };
    let mut scan = scan_cpus(v, second, left);
    scan.visited += cluster.visited;
    (scan, Reason::LlcScan)
}

/// The search for an idle core, in the cluster first where there is one. A failure clears
/// `has_idle_cores`, whatever it falls back to.
fn search_cores<V: View>(
    v: &mut V,
    space: Space,
    cluster: Option<usize>,
    searched: &mut SearchStats,
) -> Result<(CpuId, Reason), Reason> {
    let parts = match cluster {
        Some(rank) => [Some(Part::Cluster(rank)), Some(Part::Rest(rank))],
        None => [Some(Part::Whole), None],
    };
    let mut fallback = None;
    for part in parts.into_iter().flatten() {
        let scan = scan_cores(v, Space { part, ..space });
        searched.scanned += scan.visited;
        if let Some(cpu) = scan.found {
            return Ok((cpu, Reason::IdleCore));
        }
        fallback = fallback.or(scan.fallback);
    }
    if !broken(v, M::IdleCoresKept) {
        v.clear_idle_cores(space.llc);
        searched.cleared_idle_cores = true;
    }
    fallback
        .filter(|_| !broken(v, M::CoreFallbackDropped))
        .map(|cpu| (cpu, Reason::IdleCoreFallback))
        .ok_or(Reason::NoIdleCpu)
}

/// SIS_PROP: as many CPUs as the average search can look at in the average idle time, at least 3
/// (kernel 6.5 `sched/fair.c`, `select_idle_cpu()`).
fn sis_prop<V: View>(v: &mut V) -> Result<u32, Reason> {
    let place = &v.topo().cpus[v.this_cpu().index()];
    if place.sd_llc.is_none() {
        return Err(Reason::NoLlc);
    }
    let span = place.llc_size;
    let (idle, cost) = (v.wake_avg_idle(), v.avg_scan_cost() + 1);
    Ok(sis_prop_limit(span, idle, cost))
}
