//! What came out of a placement, and why.

use wakelab_machine::CpuId;

/// Why a task was put where it was: the row of the decision audit that it counts in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The target of the search was idle.
    #[default]
    TargetIdle,
    /// The target, which was the previous CPU too, was almost idle (WAKEUP_BIAS_PREV_IDLE).
    TargetAlmostIdle,
    /// The target had room for the task (UTIL_FITS_CAPACITY).
    TargetFits,
    /// The previous CPU, which shares the target's cache, was idle.
    PrevIdle,
    /// It was almost idle (WAKEUP_BIAS_PREV_IDLE).
    PrevAlmostIdle,
    /// It had room for the task (UTIL_FITS_CAPACITY).
    PrevFits,
    /// The waker is a per-CPU kernel thread on the previous CPU.
    PerCpuKthread,
    /// `recent_used_cpu` was idle.
    RecentIdle,
    /// `recent_used_cpu` had room for the task (UTIL_FITS_CAPACITY).
    RecentFits,
    /// An SMT sibling of the previous CPU was idle.
    SmtSibling,
    /// A wholly idle core was found.
    IdleCore,
    /// An idle CPU met while looking for an idle core that was not there.
    IdleCoreFallback,
    /// An idle CPU of the target's cluster was found.
    ClusterScan,
    /// An idle CPU of the LLC was found.
    LlcScan,
    /// Nothing was found in the LLC, but the previous CPU, idle in another cluster, had been seen.
    ClusterPrev,
    /// The same of `recent_used_cpu`.
    ClusterRecent,
    /// An idle CPU by capacity (asymmetric machines).
    IdleCapacity,
    /// Nothing was found, or with SYNC_STAY looked for, and the waker, about to sleep, makes room (WF_SYNC).
    Sync,
    /// Nothing was found, and the previous CPU is kept (SELECT_BIAS_PREV).
    BiasPrev,
    /// The task changed CPU a moment ago and stays (MIGRATION_RATELIMIT).
    RateLimit,
    /// The search ended at its limit, or was not begun for it: the target.
    ScanLimit,
    /// No CPU was idle: the target.
    NoIdleCpu,
    /// The target has no last-level cache domain to search.
    NoLlc,
    /// The waker asked for its own CPU (WF_CURRENT_CPU).
    CurrentCpu,
    /// The idlest CPU of the idlest group: fork, exec, or a wake-up that balances.
    SlowPath,
    /// A fork or exec without a domain to balance in.
    NoDomain,
    /// The task may run on one CPU only.
    OnlyCpu,
    /// The choice was not allowed: some CPU that is (`select_fallback_rq`).
    AffinityFallback,
    /// No choice: the task had not left its CPU yet (WF_ON_CPU, `ttwu_queue_wakelist`).
    OnCpu,
    /// No choice: the task was still queued, since its dequeueing was delayed (`ttwu_runnable`).
    StillQueued,
}

impl Reason {
    /// All of them, in the order of the audit's rows.
    pub const ALL: [Reason; 30] = [
        Reason::TargetIdle,
        Reason::TargetAlmostIdle,
        Reason::TargetFits,
        Reason::PrevIdle,
        Reason::PrevAlmostIdle,
        Reason::PrevFits,
        Reason::PerCpuKthread,
        Reason::RecentIdle,
        Reason::RecentFits,
        Reason::SmtSibling,
        Reason::IdleCore,
        Reason::IdleCoreFallback,
        Reason::ClusterScan,
        Reason::LlcScan,
        Reason::ClusterPrev,
        Reason::ClusterRecent,
        Reason::IdleCapacity,
        Reason::Sync,
        Reason::BiasPrev,
        Reason::RateLimit,
        Reason::ScanLimit,
        Reason::NoIdleCpu,
        Reason::NoLlc,
        Reason::CurrentCpu,
        Reason::SlowPath,
        Reason::NoDomain,
        Reason::OnlyCpu,
        Reason::AffinityFallback,
        Reason::OnCpu,
        Reason::StillQueued,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Reason::TargetIdle => "target idle",
            Reason::TargetAlmostIdle => "target almost idle",
            Reason::TargetFits => "target fits",
            Reason::PrevIdle => "prev idle",
            Reason::PrevAlmostIdle => "prev almost idle",
            Reason::PrevFits => "prev fits",
            Reason::PerCpuKthread => "per-CPU kthread",
            Reason::RecentIdle => "recent CPU",
            Reason::RecentFits => "recent CPU fits",
            Reason::SmtSibling => "SMT sibling",
            Reason::IdleCore => "idle core",
            Reason::IdleCoreFallback => "idle-core fallback",
            Reason::ClusterScan => "cluster scan",
            Reason::LlcScan => "LLC scan",
            Reason::ClusterPrev => "prev of other cluster",
            Reason::ClusterRecent => "recent of other cluster",
            Reason::IdleCapacity => "idle capacity",
            Reason::Sync => "sync",
            Reason::BiasPrev => "prev, nothing found",
            Reason::RateLimit => "rate limit",
            Reason::ScanLimit => "scan limit hit",
            Reason::NoIdleCpu => "no idle CPU",
            Reason::NoLlc => "no LLC domain",
            Reason::CurrentCpu => "current CPU",
            Reason::SlowPath => "slow path",
            Reason::NoDomain => "no domain",
            Reason::OnlyCpu => "only CPU",
            Reason::AffinityFallback => "affinity",
            Reason::OnCpu => "still on its CPU",
            Reason::StillQueued => "still queued",
        }
    }
}

/// How `wake_affine` chose between the waking and the previous CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AffinePath {
    /// Neither WA_IDLE nor WA_WEIGHT decided: the previous CPU.
    Undecided = 0,
    /// The waking CPU is idle and shares the cache, the previous is idle too: the previous.
    BothIdle = 1,
    /// The waking CPU is idle and shares the cache: the waking.
    ThisIdle = 2,
    /// The waker is its CPU's only task and about to sleep: the waking.
    Sync = 3,
    /// The previous CPU is idle, or almost: the previous.
    PrevIdle = 4,
    /// The waker, about to sleep, is more than its CPU's load: the waking.
    SyncLoad = 5,
    /// The waking CPU has less load.
    LessLoad = 6,
    /// It has not: the previous CPU.
    NotLessLoad = 7,
}

impl AffinePath {
    /// All of them, by number.
    pub const ALL: [AffinePath; 8] = [
        AffinePath::Undecided,
        AffinePath::BothIdle,
        AffinePath::ThisIdle,
        AffinePath::Sync,
        AffinePath::PrevIdle,
        AffinePath::SyncLoad,
        AffinePath::LessLoad,
        AffinePath::NotLessLoad,
    ];
}

/// What `wake_affine` came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeAffine {
    /// How.
    pub path: AffinePath,
    /// The CPU that the idle search starts from.
    pub target: CpuId,
    /// The two loads compared last, scaled by capacity and bias; 0 if none were.
    pub this_eff_load: i64,
    /// See `this_eff_load`.
    pub prev_eff_load: i64,
}

/// Where in `select_idle_sibling` it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SisPath {
    /// At the target.
    Target = 1,
    /// At the previous CPU.
    Prev = 2,
    /// At the rule for per-CPU kernel threads.
    PerCpuKthread = 3,
    /// At `recent_used_cpu`.
    Recent = 4,
    /// `select_idle_smt`.
    Smt = 5,
    /// `select_idle_cpu`.
    IdleCpu = 6,
    /// Nothing found; the previous CPU in another cluster.
    PrevCluster = 7,
    /// Nothing found; the recent CPU in another cluster.
    RecentCluster = 8,
    /// Nothing found.
    Nothing = 9,
    /// No LLC domain.
    NoLlc = 10,
    /// `select_idle_capacity`.
    Capacity = 11,
}

impl SisPath {
    /// All of them, by number from 1.
    pub const ALL: [SisPath; 11] = [
        SisPath::Target,
        SisPath::Prev,
        SisPath::PerCpuKthread,
        SisPath::Recent,
        SisPath::Smt,
        SisPath::IdleCpu,
        SisPath::PrevCluster,
        SisPath::RecentCluster,
        SisPath::Nothing,
        SisPath::NoLlc,
        SisPath::Capacity,
    ];
}

/// What an idle search (`select_idle_sibling`) took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Whether there was one.
    pub called: bool,
    /// Whether target, previous, kthread or recent CPU decided, with no CPU of the LLC searched.
    pub fast: bool,
    /// CPUs that the LLC search looked at. An idle-core search counts a core once.
    pub scanned: u32,
    /// Whether an idle CPU was found.
    pub success: bool,
    /// Whether the limit on CPUs ended it with one left to look at.
    pub limit_hit: bool,
    /// Whether a failed idle-core search cleared `has_idle_cores`.
    pub cleared_idle_cores: bool,
}

/// One placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The CPU.
    pub cpu: CpuId,
    /// Why.
    pub reason: Reason,
    /// What `wake_wide` said, if it was asked.
    pub wake_wide: Option<bool>,
    /// What `wake_affine` came to, if it was asked.
    pub wake_affine: Option<WakeAffine>,
    /// Where `select_idle_sibling` ended, if it was asked.
    pub sis: Option<SisPath>,
    /// What the idle search took.
    pub searched: SearchStats,
}

impl Decision {
    /// A decision that needed no search.
    pub(super) fn plain(cpu: CpuId, reason: Reason) -> Decision {
        Decision {
            cpu,
            reason,
            wake_wide: None,
            wake_affine: None,
            sis: None,
            searched: SearchStats::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stand_at_their_numbers() {
        for (index, path) in AffinePath::ALL.into_iter().enumerate() {
            assert_eq!(path as usize, index);
        }
        for (index, path) in SisPath::ALL.into_iter().enumerate() {
            assert_eq!(path as usize, index + 1);
        }
    }

    #[test]
    fn the_list_of_reasons_is_whole_and_their_names_differ() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        let mut names = Reason::ALL.map(Reason::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
