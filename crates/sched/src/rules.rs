//! Kernel releases as data: which rules are in force, and the tunables with their defaults.

use wakelab_machine::Ns;

/// A kernel release whose rules are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// 6.5: CFS, SIS_UTIL.
    V6_5,
    /// 6.12: EEVDF, delayed dequeue.
    V6_12,
    /// 6.18: slices are protected only as far as the shortest slice that waits.
    V6_18,
}

impl Release {
    /// All of them, oldest first.
    pub const ALL: [Release; 3] = [Release::V6_5, Release::V6_12, Release::V6_18];

    /// `6.5`.
    pub fn name(self) -> &'static str {
        match self {
            Release::V6_5 => "6.5",
            Release::V6_12 => "6.12",
            Release::V6_18 => "6.18",
        }
    }

    /// The release with this name.
    pub fn from_name(name: &str) -> Option<Release> {
        Release::ALL
            .into_iter()
            .find(|release| release.name() == name)
    }
}

/// What differs between releases, each a named rule so that a release is a row and not a copy.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The release that they are of.
    pub release: Release,
    /// The fair class picks by eligibility and virtual deadline (6.6 on).
    pub eevdf: bool,
    /// `update_cfs_group` leaves alone a group that is empty, which may be delayed, and a weight that
    /// stays the same (6.12 on).
    pub empty_group_keeps_weight: bool,
    /// What begins to run is protected for the shortest slice of its queue and not to its deadline
    /// (`vprot`), and is rescheduled when that is over (6.17 on).
    pub protect_min_slice: bool,
    /// Balancing counts the tasks that run or wait, not those whose dequeueing is delayed
    /// (`h_nr_runnable`, 6.14 on).
    pub balance_counts_runnable: bool,
    /// `select_idle_cpu` scans the target's cluster first (6.7 on).
    pub cluster_scan: bool,
    /// Balancing tells SMT groups with several tasks apart (`group_smt_balance`), weighs siblings by
    /// cores and lets the first CPU of an idle core balance (6.6 on).
    pub smt_balance: bool,
    /// `detach_tasks` goes on past its limit until it has seen a task that may move (6.1 to 6.9).
    pub detach_first_movable: bool,
    /// A failed pass for a misfit task neither counts as failed nor lengthens the interval (6.10 on).
    pub misfit_not_failed: bool,
    /// `update_tg_load_avg` at most once a millisecond for each run queue (6.7 on).
    pub tg_load_avg_ratelimit: bool,
    /// `util_est` is one number, reset upwards at once, and not lowered while the task waited for
    /// the CPU (6.8 on).
    pub util_est_single: bool,
    /// A new task's utilisation is scaled by its scaled-down weight (6.10 on).
    pub init_util_scaled_down: bool,
}

impl Rules {
    /// The rules of a release.
    pub fn of(release: Release) -> Rules {
        let later = release >= Release::V6_12;
        let latest = release >= Release::V6_18;
        Rules {
            release,
            eevdf: later,
            empty_group_keeps_weight: later,
            protect_min_slice: latest,
            balance_counts_runnable: latest,
            cluster_scan: later,
            smt_balance: later,
            detach_first_movable: !later,
            misfit_not_failed: later,
            tg_load_avg_ratelimit: later,
            util_est_single: later,
            init_util_scaled_down: later,
        }
    }
}

/// `normalized_sysctl_sched_base_slice`: the default slice before it is scaled to the machine.
pub const NORMALIZED_BASE_SLICE: Ns = Ns(700_000);

/// `/proc/sys/kernel/sched_*` and `/sys/kernel/debug/sched/*`, already scaled to the machine.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// Length of a tick: 1 s / HZ.
    pub tick: Ns,
    /// `sched_latency_ns`.
    pub latency: Ns,
    /// `sched_min_granularity_ns`.
    pub min_granularity: Ns,
    /// `sched_idle_min_granularity_ns`.
    pub idle_min_granularity: Ns,
    /// `sched_wakeup_granularity_ns`.
    pub wakeup_granularity: Ns,
    /// `base_slice_ns`: the slice of an entity without one of its own (EEVDF).
    pub base_slice: Ns,
    /// `sched_migration_cost_ns`.
    pub migration_cost: Ns,
    /// `sched_nr_migrate`.
    pub nr_migrate: u32,
    /// `sched_nr_latency`: latency / min_granularity.
    pub nr_latency: u32,
    /// What looking at one CPU in an idle search costs on the machine. Needed by SIS_PROP alone, which
    /// measures its searches; the model knows no clock, so the engine sets it.
    pub scan_cost: Ns,
    /// Threshold of WAKEUP_BIAS_PREV_IDLE: LOAD_AVG_MAX / 1000 = 47 in the patch.
    pub almost_idle_load: u64,
}

impl Tunables {
    /// The defaults of all releases for a machine with so many online CPUs at this tick rate: base values
    /// times 1 + log2(min(cpus, 8)) (kernel `sched/fair.c`, `get_update_sysctl_factor`).
    pub fn for_machine(ncpu: usize, hz: u32) -> Tunables {
        let factor = 1 + u64::from(ncpu.clamp(1, 8).ilog2());
        Tunables {
            tick: Ns(1_000_000_000 / u64::from(hz)),
            latency: Ns(6_000_000 * factor),
            min_granularity: Ns(750_000 * factor),
            idle_min_granularity: Ns(750_000 * factor),
            wakeup_granularity: Ns(1_000_000 * factor),
            base_slice: Ns(NORMALIZED_BASE_SLICE.0 * factor),
            migration_cost: Ns(500_000),
            nr_migrate: 32,
            nr_latency: 8,
            scan_cost: Ns::ZERO,
            almost_idle_load: 47,
        }
    }
}
