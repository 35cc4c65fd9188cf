//! Rules broken on purpose, one at a time, to see whether recorded decisions notice
//! (`wakelab verify --mutate`).
//!
//! Each step asks [`broken`] whether its rule is the broken one. In the simulator the answer is the
//! constant "none" ([`View::mutation`]), so that the compiler removes the question with what hangs
//! on it.

use super::view::View;

/// A rule broken: a step skipped, two swapped, a threshold shifted by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The table says what each is.
#[repr(u8)]
pub enum Mutation {
    RecordWakeeLate,
    SyncOfExiting,
    AffineNotAllowed,
    WalkWithoutPrev,
    WalkBalanceFirst,
    WalkLowest,
    WalkGoesOn,
    AffineOfOneCpu,
    WideSkipped,
    WideSlaveUp,
    WideSlaveDown,
    WideMasterUp,
    WideMasterDown,
    AffineIdleSkipped,
    AffineWeightSkipped,
    ThisIdleSkipped,
    ThisIdleAnyCache,
    BothIdleThis,
    SyncSkipped,
    SyncNrUp,
    SyncCountsDelayed,
    PrevIdleFirst,
    PrevIdleSkipped,
    AffineAlmostSkipped,
    SyncLoadSkipped,
    SyncLoadTie,
    WakerLoadKept,
    TaskLoadNotAdded,
    TaskLoadKept,
    BiasUp,
    BiasDown,
    CapacitiesSwapped,
    SyncTieLost,
    LoadTie,
    AlmostIdleUp,
    AlmostIdleDown,
    AlmostIdleWithTask,
    TargetSkipped,
    TargetAlmostIdle,
    PrevFirst,
    PrevSkipped,
    PrevAlmostSkipped,
    PrevAnyCache,
    OtherClusterTaken,
    SchedIdleIgnored,
    CookieIgnored,
    IdleCoreCookie,
    KthreadSkipped,
    KthreadInInterrupt,
    KthreadElsewhere,
    KthreadNrUp,
    KthreadNrDown,
    KthreadLast,
    RecentSkipped,
    RecentKept,
    RecentEarly,
    RecentIfTaken,
    RecentAnyCache,
    RecentNotAllowed,
    RecentAlmostIdle,
    SmtSkipped,
    SmtDespiteCore,
    SmtAnyCache,
    SmtNotAllowed,
    SmtCookieIgnored,
    SisCoreIgnored,
    HasIdleCoreIgnored,
    IdleCoresKept,
    CoreFallbackDropped,
    ScanFromTarget,
    ScanCookieIgnored,
    ScanSchedIdleIgnored,
    ClusterLast,
    ClusterLimitAnew,
    SparePrevDropped,
    SpareRecentDropped,
    SpareRecentFirst,
    LimitZeroIgnored,
    LimitUp,
    LimitDown,
    SlowOneLevel,
    OverloadedUp,
    OverloadedDown,
    RoomUp,
    ImbalancedIgnored,
    SlowPctUp,
    SlowPctDown,
    LocalTie,
    LastOfEqual,
    NumaMinUp,
    NumaMinDown,
    NumaUnusable,
    SlowTaskCounts,
    SlowCookieIgnored,
    LatencyIgnored,
    IdleLongest,
    LeastLoadLast,
}

impl Mutation {
    /// All of them, in the order of the path.
    pub fn all() -> impl ExactSizeIterator<Item = Mutation> {
        TABLE.iter().map(|row| row.mutation)
    }

    /// The word that reports call it by.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// The step or feature that it belongs to.
    pub fn step(self) -> &'static str {
        TABLE[self as usize].step
    }

    /// What it does.
    pub fn what(self) -> &'static str {
        TABLE[self as usize].what
    }
}

/// Whether a rule is broken.
#[inline(always)]
pub(super) fn broken<V: View>(v: &V, mutation: Mutation) -> bool {
    v.mutation() == Some(mutation)
}

/// A threshold, or the number above or below it if that is the broken rule.
#[inline(always)]
pub(super) fn shifted<V: View>(v: &V, threshold: u64, up: Mutation, down: Mutation) -> u64 {
    if broken(v, up) {
        threshold + 1
    } else if broken(v, down) {
        threshold.saturating_sub(1)
    } else {
        threshold
    }
}

struct Row {
    mutation: Mutation,
    step: &'static str,
    name: &'static str,
    what: &'static str,
}

const fn row(
    step: &'static str,
    mutation: Mutation,
    name: &'static str,
    what: &'static str,
) -> Row {
    Row {
        mutation,
        step,
        name,
        what,
    }
}

use Mutation as M;

#[rustfmt::skip] // A table.
const TABLE: &[Row] = &[
    row("record_wakee", M::RecordWakeeLate, "record-wakee-late",
        "wake_wide is asked before record_wakee counts the flip"),
    row("select_task_rq_fair", M::SyncOfExiting, "sync-of-exiting",
        "a wake-up by an exiting task stays synchronous"),
    row("select_task_rq_fair", M::AffineNotAllowed, "affine-not-allowed",
        "the waking CPU is wanted though the task may not run there"),
    row("select_task_rq_fair", M::WalkWithoutPrev, "walk-without-prev",
        "an affine domain need not have the previous CPU"),
    row("select_task_rq_fair", M::WalkBalanceFirst, "walk-balance-first",
        "balancing is looked for before affinity in each domain"),
    row("select_task_rq_fair", M::WalkLowest, "walk-lowest",
        "the lowest domain to balance in is taken, not the highest"),
    row("select_task_rq_fair", M::WalkGoesOn, "walk-goes-on",
        "a domain without the flag does not end the walk"),
    row("select_task_rq_fair", M::AffineOfOneCpu, "affine-of-one-cpu",
        "wake_affine runs though the waking CPU is the previous"),
    row("wake_wide", M::WideSkipped, "wide-skipped",
        "wake_wide is not asked"),
    row("wake_wide", M::WideSlaveUp, "wide-slave+1",
        "the lesser flips must be one more than the LLC has CPUs"),
    row("wake_wide", M::WideSlaveDown, "wide-slave-1",
        "the lesser flips may be one less than the LLC has CPUs"),
    row("wake_wide", M::WideMasterUp, "wide-master+1",
        "the greater flips must be one more than the product"),
    row("wake_wide", M::WideMasterDown, "wide-master-1",
        "the greater flips may be one less than the product"),
    row("wake_affine", M::AffineIdleSkipped, "affine-idle-skipped",
        "wake_affine_idle is skipped"),
    row("wake_affine", M::AffineWeightSkipped, "affine-weight-skipped",
        "wake_affine_weight is skipped"),
    row("wake_affine", M::ThisIdleSkipped, "this-idle-skipped",
        "an idle waking CPU is no reason"),
    row("wake_affine", M::ThisIdleAnyCache, "this-idle-any-cache",
        "an idle waking CPU attracts from another cache too"),
    row("wake_affine", M::BothIdleThis, "both-idle-this",
        "of two idle CPUs the waking is taken"),
    row("wake_affine", M::SyncSkipped, "sync-skipped",
        "a waker about to sleep is no reason"),
    row("wake_affine", M::SyncNrUp, "sync-nr+1",
        "a waker about to sleep has one task beside it"),
    row("wake_affine", M::SyncCountsDelayed, "sync-counts-delayed",
        "tasks whose dequeue is delayed count beside the waker"),
    row("wake_affine", M::PrevIdleFirst, "prev-idle-first",
        "an idle previous CPU is looked at before a waker about to sleep"),
    row("wake_affine", M::PrevIdleSkipped, "affine-prev-idle-skipped",
        "an idle previous CPU is no reason"),
    row("wake_affine", M::AffineAlmostSkipped, "affine-almost-idle-skipped",
        "an almost idle previous CPU is no reason"),
    row("wake_affine", M::SyncLoadSkipped, "sync-load-skipped",
        "a waker heavier than its CPU's load is no reason"),
    row("wake_affine", M::SyncLoadTie, "sync-load-tie",
        "a waker as heavy as its CPU's load is a reason"),
    row("wake_affine", M::WakerLoadKept, "waker-load-kept",
        "the load of a waker about to sleep is not taken off"),
    row("wake_affine", M::TaskLoadNotAdded, "task-load-not-added",
        "the task's load is not added to the waking CPU"),
    row("wake_affine", M::TaskLoadKept, "task-load-kept",
        "the task's load is not taken off the previous CPU"),
    row("wake_affine", M::BiasUp, "bias+1",
        "the bias to the waking CPU is one per cent more"),
    row("wake_affine", M::BiasDown, "bias-1",
        "the bias to the waking CPU is one per cent less"),
    row("wake_affine", M::CapacitiesSwapped, "capacities-swapped",
        "each side is scaled by its own capacity"),
    row("wake_affine", M::SyncTieLost, "sync-tie-lost",
        "equal loads leave a synchronous wake-up where it was"),
    row("wake_affine", M::LoadTie, "load-tie",
        "equal loads move the task to the waking CPU"),
    row("almost idle", M::AlmostIdleUp, "almost-idle+1",
        "a load of one more than the threshold is almost idle"),
    row("almost idle", M::AlmostIdleDown, "almost-idle-1",
        "the threshold itself is not almost idle"),
    row("almost idle", M::AlmostIdleWithTask, "almost-idle-with-task",
        "the task's own load counts"),
    row("select_idle_sibling", M::TargetSkipped, "target-skipped",
        "the target is not looked at"),
    row("select_idle_sibling", M::TargetAlmostIdle, "target-almost-idle",
        "an almost idle target is taken though it is not the previous CPU"),
    row("select_idle_sibling", M::PrevFirst, "prev-first",
        "the previous CPU is looked at before the target"),
    row("select_idle_sibling", M::PrevSkipped, "prev-skipped",
        "the previous CPU is not looked at"),
    row("select_idle_sibling", M::PrevAlmostSkipped, "prev-almost-idle-skipped",
        "an almost idle previous CPU is not taken"),
    row("select_idle_sibling", M::PrevAnyCache, "prev-any-cache",
        "the previous CPU need not share the target's cache"),
    row("select_idle_sibling", M::OtherClusterTaken, "other-cluster-taken",
        "an idle CPU of another cluster is taken at once"),
    row("select_idle_sibling", M::SchedIdleIgnored, "sched-idle-ignored",
        "a CPU with only SCHED_IDLE tasks is not idle"),
    row("select_idle_sibling", M::CookieIgnored, "cookie-ignored",
        "target, previous and recent CPU need not match the cookie"),
    row("select_idle_sibling", M::IdleCoreCookie, "idle-core-cookie",
        "an idle core has to match the cookie as any other"),
    row("select_idle_sibling", M::KthreadSkipped, "kthread-skipped",
        "a per-CPU kernel thread is no reason"),
    row("select_idle_sibling", M::KthreadInInterrupt, "kthread-in-interrupt",
        "an interrupt on an idle CPU counts as its idle task"),
    row("select_idle_sibling", M::KthreadElsewhere, "kthread-elsewhere",
        "the per-CPU kernel thread may run on another CPU than the previous"),
    row("select_idle_sibling", M::KthreadNrUp, "kthread-nr+1",
        "one task may be queued beside the kernel thread"),
    row("select_idle_sibling", M::KthreadNrDown, "kthread-nr-1",
        "the kernel thread itself must not be queued"),
    row("select_idle_sibling", M::KthreadLast, "kthread-last",
        "the recent CPU is looked at before the kernel thread's rule"),
    row("recent_used_cpu", M::RecentSkipped, "recent-skipped",
        "the recent CPU is not looked at"),
    row("recent_used_cpu", M::RecentKept, "recent-kept",
        "it is not overwritten"),
    row("recent_used_cpu", M::RecentEarly, "recent-early",
        "it is overwritten before the target is looked at"),
    row("recent_used_cpu", M::RecentIfTaken, "recent-if-taken",
        "it is overwritten only if it is not taken"),
    row("recent_used_cpu", M::RecentAnyCache, "recent-any-cache",
        "it need not share the target's cache"),
    row("recent_used_cpu", M::RecentNotAllowed, "recent-not-allowed",
        "the task need not be allowed there"),
    row("recent_used_cpu", M::RecentAlmostIdle, "recent-almost-idle",
        "it is taken almost idle"),
    row("select_idle_smt", M::SmtSkipped, "smt-skipped",
        "no sibling is looked for"),
    row("select_idle_smt", M::SmtDespiteCore, "smt-despite-core",
        "a sibling is looked for though there is said to be an idle core"),
    row("select_idle_smt", M::SmtAnyCache, "smt-any-cache",
        "neither the previous CPU nor its sibling need share the target's cache"),
    row("select_idle_smt", M::SmtNotAllowed, "smt-not-allowed",
        "the task need not be allowed on the sibling"),
    row("select_idle_smt", M::SmtCookieIgnored, "smt-cookie-ignored",
        "the sibling need not match the cookie"),
    row("select_idle_cpu", M::SisCoreIgnored, "sis-core-ignored",
        "idle cores are looked for with SIS_CORE off"),
    row("select_idle_cpu", M::HasIdleCoreIgnored, "has-idle-core-ignored",
        "no idle core is looked for"),
    row("select_idle_cpu", M::IdleCoresKept, "idle-cores-kept",
        "a search that finds no idle core does not clear has_idle_cores"),
    row("select_idle_cpu", M::CoreFallbackDropped, "core-fallback-dropped",
        "an idle CPU met on the way to an idle core is not taken"),
    row("select_idle_cpu", M::ScanFromTarget, "scan-from-target",
        "the search starts at the target, not after it"),
    row("select_idle_cpu", M::ScanCookieIgnored, "scan-cookie-ignored",
        "a CPU found need not match the cookie"),
    row("select_idle_cpu", M::ScanSchedIdleIgnored, "scan-sched-idle-ignored",
        "a CPU with only SCHED_IDLE tasks is not found"),
    row("select_idle_cpu", M::ClusterLast, "cluster-last",
        "the target's cluster is not searched before the rest"),
    row("select_idle_cpu", M::ClusterLimitAnew, "cluster-limit-anew",
        "the limit begins anew after the cluster"),
    row("select_idle_cpu", M::SparePrevDropped, "spare-prev-dropped",
        "an idle previous CPU of another cluster is forgotten"),
    row("select_idle_cpu", M::SpareRecentDropped, "spare-recent-dropped",
        "an idle recent CPU of another cluster is forgotten"),
    row("select_idle_cpu", M::SpareRecentFirst, "spare-recent-first",
        "of two idle CPUs of other clusters the recent is taken"),
    row("SIS_UTIL", M::LimitZeroIgnored, "limit-zero-ignored",
        "a limit of 0 does not keep from searching for an idle core"),
    row("SIS_UTIL", M::LimitUp, "limit+1",
        "one CPU more is looked at"),
    row("SIS_UTIL", M::LimitDown, "limit-1",
        "one CPU less is looked at"),
    row("slow path", M::SlowOneLevel, "slow-one-level",
        "the search does not go down from the domain that it starts in"),
    row("slow path", M::OverloadedUp, "slow-overloaded+1",
        "a group is overloaded from one task more on"),
    row("slow path", M::OverloadedDown, "slow-overloaded-1",
        "a group with as many tasks as CPUs can be overloaded"),
    row("slow path", M::RoomUp, "slow-room+1",
        "a group with as many tasks as CPUs has room"),
    row("slow path", M::ImbalancedIgnored, "slow-imbalanced-ignored",
        "the mark of an imbalanced group is ignored"),
    row("slow path", M::SlowPctUp, "slow-pct+1",
        "imbalance_pct is one more"),
    row("slow path", M::SlowPctDown, "slow-pct-1",
        "imbalance_pct is one less"),
    row("slow path", M::LocalTie, "slow-local-tie",
        "an equally idle group is preferred to the local"),
    row("slow path", M::LastOfEqual, "slow-last-of-equal",
        "the last of equally idle groups is taken, not the first"),
    row("slow path", M::NumaMinUp, "slow-numa-min+1",
        "a NUMA imbalance of one CPU more is let be"),
    row("slow path", M::NumaMinDown, "slow-numa-min-1",
        "a NUMA imbalance of one CPU less is let be"),
    row("slow path", M::NumaUnusable, "slow-numa-unusable",
        "CPUs that the task may not use count as room of a node"),
    row("slow path", M::SlowTaskCounts, "slow-task-counts",
        "the task itself counts as running where it was"),
    row("slow path", M::SlowCookieIgnored, "slow-cookie-ignored",
        "groups and CPUs need not match the cookie"),
    row("slow path", M::LatencyIgnored, "slow-latency-ignored",
        "the exit latency of idle states does not count"),
    row("slow path", M::IdleLongest, "slow-idle-longest",
        "the CPU idle for the longest time is taken"),
    row("slow path", M::LeastLoadLast, "slow-least-load-last",
        "the last of equally loaded CPUs is taken, not the first"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_mutation_at_its_place() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.mutation as usize, place);
        }
    }

    #[test]
    fn names_differ() {
        let mut names: Vec<&str> = Mutation::all().map(Mutation::name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
