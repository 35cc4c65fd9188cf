//! Kernel releases as data: which rules are in force, and the tunables with their defaults.

use wakelab_machine::Ns;

/// A kernel release whose rules are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// 5.2: CFS, `select_idle_core`, `select_idle_cpu` and `select_idle_smt` in turn, SIS_PROP.
    V5_2,
    /// 5.19-rc1 with the commit that brought SIS_UTIL (70fb5ccf2ebb).
    V5_19,
    /// 6.5: CFS, SIS_UTIL.
    V6_5,
    /// 6.6: EEVDF as it was merged.
    V6_6,
    /// 6.12: EEVDF, delayed dequeue.
    V6_12,
    /// 6.18: slices are protected only as far as the shortest slice that waits.
    V6_18,
}

impl Release {
    /// All of them, oldest first.
    pub const ALL: [Release; 6] = [
        Release::V5_2,
        Release::V5_19,
        Release::V6_5,
        Release::V6_6,
        Release::V6_12,
        Release::V6_18,
    ];

    /// `6.5`.
    pub fn name(self) -> &'static str {
        match self {
            Release::V5_2 => "5.2",
            Release::V5_19 => "5.19",
            Release::V6_5 => "6.5",
            Release::V6_6 => "6.6",
            Release::V6_12 => "6.12",
            Release::V6_18 => "6.18",
        }
    }

    /// `(6, 5)`: for what goes by release outside of the scheduler, such as the building of domains.
    pub fn number(self) -> (u32, u32) {
        match self {
            Release::V5_2 => (5, 2),
            Release::V5_19 => (5, 19),
            Release::V6_5 => (6, 5),
            Release::V6_6 => (6, 6),
            Release::V6_12 => (6, 12),
            Release::V6_18 => (6, 18),
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
    /// A queued entity's new weight moves its deadline about its own vruntime, which stays, and not
    /// both about the average (6.6).
    pub reweight_keeps_vruntime: bool,
    /// Yielding puts the deadline off by a slice (6.6; later vruntime goes to the deadline).
    pub yield_extends_deadline: bool,
    /// Whether the pick honours a buddy goes by NEXT_BUDDY and not by PICK_BUDDY (6.6).
    pub next_buddy_picks: bool,
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

    /// Idle core, idle CPU and SMT sibling of the target are looked for one after the other, from the
    /// target on, and SIS_PROP goes by `avg_idle` (before 5.12: one loop, `wake_avg_idle`).
    pub search_in_turns: bool,
    /// A CPU with SCHED_IDLE tasks only is taken for idle by placement (5.4 on).
    pub sched_idle_is_idle: bool,
    /// A wake-up leaves the *waker's* CPU in `recent_used_cpu`, of the waker (before 5.12).
    pub recent_cpu_of_waker: bool,
    /// A task that a per-CPU kernel thread wakes may queue up behind it (5.6 on).
    pub kthread_stacks: bool,
    /// `wake_affine_idle` ends with a look at the previous CPU (5.12 on).
    pub affine_looks_at_prev: bool,
    /// `select_idle_sibling` looks at capacities, where `wake_cap` kept wake-ups from being affine
    /// before (5.7 on).
    pub sis_by_capacity: bool,
    /// A CPU's load is that of what is queued on it (`runnable_load_avg`), and there is no runnable
    /// average (before 5.7).
    pub runnable_load: bool,
    /// Groups are compared by load for their capacity, in balancing and in the slow path (before 5.5).
    pub groups_by_load: bool,
    /// A wake-up to an idle CPU of the same cache goes by its wake list (6.0 on).
    pub wakelist_to_idle: bool,
    /// A sleeper that leaves an idle CPU is decayed for the time that it has not accounted
    /// (`migrate_se_pelt_lag`, 6.0 on).
    pub migrate_pelt_lag: bool,
    /// A newly idle pass ends when work has come (6.0 on).
    pub newidle_bails_out: bool,
    /// Newly idle balancing is not begun by a CPU that idles for less than `sched_migration_cost` on
    /// average (before 5.16: then for less than the lowest domain takes).
    pub newidle_by_migration_cost: bool,
    /// A newly idle CPU takes one task at a time, since the kernel is one that can preempt
    /// (PREEMPT_DYNAMIC, 5.12 on).
    pub newidle_takes_one: bool,
    /// A CPU that stops its tick has the time of the next balance found anew (NOHZ_NEXT_KICK, 5.16 on).
    pub nohz_next_kick: bool,
    /// A busy CPU's balancing interval is a jiffy short of its multiple (5.10 on).
    pub busy_interval_less_one: bool,
    /// Tasks are not cache hot between SMT siblings (5.10 on).
    pub smt_siblings_share_heat: bool,
    /// Cookies count (core scheduling, 5.14 on).
    pub core_scheduling: bool,
    /// A pipe has one queue of sleepers: each write, and each read that empties a page, wakes all of
    /// them (`pipe_wait`, before 5.5).
    pub pipe_wakes_all: bool,
}

impl Rules {
    /// The rules of a release.
    pub fn of(release: Release) -> Rules {
        let later = release >= Release::V6_12;
        let latest = release >= Release::V6_18;
        let six = release >= Release::V6_5;
        let eevdf = release >= Release::V6_6;
        let first = release == Release::V6_6;
        let old = release < Release::V5_19;
        Rules {
            release,
            eevdf,
            reweight_keeps_vruntime: first,
            yield_extends_deadline: first,
            next_buddy_picks: first,
            empty_group_keeps_weight: later,
            protect_min_slice: latest,
            balance_counts_runnable: latest,
            cluster_scan: later,
            smt_balance: eevdf,
            detach_first_movable: six && !later,
            misfit_not_failed: later,
            tg_load_avg_ratelimit: later,
            util_est_single: later,
            init_util_scaled_down: later,
            search_in_turns: old,
            sched_idle_is_idle: !old,
            recent_cpu_of_waker: old,
            kthread_stacks: !old,
            affine_looks_at_prev: !old,
            sis_by_capacity: !old,
            runnable_load: old,
            groups_by_load: old,
            wakelist_to_idle: six,
            migrate_pelt_lag: six,
            newidle_bails_out: six,
            newidle_by_migration_cost: old,
            newidle_takes_one: !old,
            nohz_next_kick: !old,
            busy_interval_less_one: !old,
            smt_siblings_share_heat: !old,
            core_scheduling: !old,
            pipe_wakes_all: old,
        }
    }
}

/// `normalized_sysctl_sched_base_slice`: the default slice before it is scaled to the machine.
pub const NORMALIZED_BASE_SLICE: Ns = Ns(700_000);

/// The same in 6.6.
const NORMALIZED_BASE_SLICE_6_6: Ns = Ns(750_000);

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
    /// The defaults of the newest release for a machine with so many online CPUs at this tick rate: base values
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

    /// The defaults of a release, where they are not those of all: 6.6 has longer slices.
    pub fn for_kernel(release: Release, ncpu: usize, hz: u32) -> Tunables {
        let mut tun = Tunables::for_machine(ncpu, hz);
        if release == Release::V6_6 {
            tun.base_slice =
                Ns(tun.base_slice.0 / NORMALIZED_BASE_SLICE.0 * NORMALIZED_BASE_SLICE_6_6.0);
        }
        tun
    }
}
