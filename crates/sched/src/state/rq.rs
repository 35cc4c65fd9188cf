//! Run queues.

use super::entity::SchedAvg;
use crate::ids::{CfsId, SeId, TaskId, TgId};
use wakelab_machine::CpuId;

/// An entity's place in the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeKey {
    /// Its vruntime (the order is by signed difference).
    pub vruntime: u64,
    /// The entity.
    pub se: SeId,
}

/// The tree of a fair run queue of the EEVDF releases; its nodes are in the entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Its root.
    pub root: SeId,
    /// The entity with the earliest deadline.
    pub leftmost: SeId,
}

/// Load that left with tasks that migrated away while asleep, to be taken off at the next update.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removed {
    /// How many tasks.
    pub nr: u32,
    /// Their load averages.
    pub load_avg: u64,
    /// Their utilisations.
    pub util_avg: u64,
    /// Their runnable averages.
    pub runnable_avg: u64,
}

/// `struct cfs_rq`: a group's fair run queue on one CPU.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct CfsRq {
    // Cache line 1: the averages.
    /// Averages.
    pub avg: SchedAvg,
    // Cache line 2: what queueing, accounting and picking read.
    /// Sum of the entities' weights, unscaled.
    pub weight: u64,
    /// `min_vruntime`.
    pub min_vruntime: u64,
    /// The queued entities except `curr`, **descending** by vruntime: the leftmost is the last, and
    /// of equal keys the one inserted first is nearer to the end.
    pub tree: Vec<TreeKey>,
    /// The running entity of this level.
    pub curr: SeId,
    /// Entities of this level.
    pub nr_running: u32,
    /// Tasks of this level and below (`h_nr_queued` since 6.12).
    pub h_nr_running: u32,
    /// Of `h_nr_running`, tasks that sleep but are still queued (DELAY_DEQUEUE).
    pub h_nr_delayed: u32,
    /// Buddies.
    pub next: SeId,
    /// The CPU.
    pub cpu: CpuId,
    /// Whether the parent must be told of a change.
    pub propagate: bool,
    /// Whether it is in the CPU's list of leaf run queues.
    pub on_list: bool,
    // Cache line 3: of these, what is read less.
    /// Buddies.
    pub last: SeId,
    /// Buddies.
    pub skip: SeId,
    /// Inverse of `weight`, 0 while not computed.
    pub inv_weight: u32,
    /// SCHED_IDLE entities of this level.
    pub idle_nr_running: u32,
    /// SCHED_IDLE tasks of this level and below.
    pub idle_h_nr_running: u32,
    /// The group.
    pub tg: TgId,
    /// The group's entity on this CPU (none for the root).
    pub owner: SeId,
    /// SCHED_IDLE group.
    pub idle: bool,
    /// Load that left.
    pub removed: Removed,
    // Cache line 4: what groups and EEVDF need.
    /// What of `load_avg` is in the group's `load_avg`.
    pub tg_load_avg_contrib: u64,
    /// Runnable sum to tell the parent of.
    pub prop_runnable_sum: i64,
    /// Share of the CPU's load in this group (`h_load`).
    pub h_load: u64,
    /// Jiffy of `h_load`.
    pub last_h_load_update: u64,
    /// EEVDF: the tree of the queued entities except `curr`, by deadline.
    pub timeline: Timeline,
    /// EEVDF: the virtual time that `avg_vruntime` is relative to; it follows the average.
    pub zero_vruntime: u64,
    /// EEVDF: sum over the tree of (vruntime - `zero_vruntime`) * scaled-down weight.
    pub avg_vruntime: i64,
    /// EEVDF: sum of the scaled-down weights in the tree.
    pub avg_load: u64,
    // Cache line 5: the rest.
    /// When that was last written (6.7 on), ns.
    pub last_update_tg_load_avg: u64,
    /// Core scheduling: the virtual time that tasks of different CPUs are compared by.
    pub zero_vruntime_fi: u64,
    /// Core scheduling: the force idle (`core_forceidle_seq`) that it was noted for.
    pub forceidle_seq: u32,
    /// Sum of the runnable weights of what is queued (`runnable_weight`, before 5.7).
    pub runnable_weight: u64,
}

impl CfsRq {
    /// The tasks that balancing counts; `runnable_only` leaves out those that sleep.
    #[inline(always)]
    pub(crate) fn tasks_to_balance(&self, runnable_only: bool) -> u32 {
        let asleep = if runnable_only { self.h_nr_delayed } else { 0 };
        self.h_nr_running - asleep
    }
}

/// `struct rq`: a CPU's run queue.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Rq {
    // Cache line 1: what every event and every balance pass reads.
    /// The running task, none for the idle task.
    pub curr: TaskId,
    /// Tasks queued or running.
    pub nr_running: u32,
    /// The CPU.
    pub cpu: CpuId,
    /// `need_resched` of the running task.
    pub need_resched: bool,
    /// `ttwu_pending`: remote wake-ups are queued.
    pub ttwu_pending: bool,
    /// Its bits in the LLC's masks as last written: 1 idle, 2 SCHED_IDLE only.
    pub idle_bits: u8,
    /// `nohz_tick_stopped`: this idle CPU is in `nohz.idle_cpus_mask`.
    pub nohz_tick_stopped: bool,
    /// `has_blocked_load`.
    pub has_blocked_load: bool,
    /// `idle_balance`: idle at the last tick or kick.
    pub idle_balance: bool,
    /// `clock`, ns.
    pub clock: u64,
    /// `clock_task`, ns.
    pub clock_task: u64,
    /// `clock_pelt`, ns, scaled by capacity.
    pub clock_pelt: u64,
    /// `lost_idle_time`, ns.
    pub lost_idle_time: u64,
    /// Arch capacity (`cpu_capacity_orig`): 1024 for the biggest CPU.
    pub cpu_capacity_orig: u64,
    /// `cpu_capacity`: what is left of the capacity for the fair class.
    pub cpu_capacity: u64,
    // Cache line 2: what queueing and going idle read.
    /// When it became idle, 0 if it is not (or the kernel cleared it).
    pub idle_stamp: u64,
    /// Average idle time, ns.
    pub avg_idle: u64,
    /// `max_idle_balance_cost`, ns.
    pub max_idle_balance_cost: u64,
    /// Jiffy of the next balance.
    pub next_balance: u64,
    /// `cfs_tasks`: queued fair tasks, the most recently added or run **last** (the kernel's list
    /// head); balancing takes from the front (its tail).
    pub cfs_tasks: Vec<TaskId>,
    /// The address space last run (`prev_mm`).
    pub last_mm: u32,
    /// Its LLC, an index into [`Sched::llc`](super::Sched::llc).
    pub llc: u16,
    /// Its rank among the CPUs of that LLC.
    pub llc_rank: u16,
    // Cache line 3: remote wake-ups, leaf queues, balancing.
    /// `wake_list`: remote wake-ups queued, first come first.
    pub wake_list: Vec<TaskId>,
    /// Leaf run queues with load (`leaf_cfs_rq_list`), children before their parents.
    pub leaf_cfs_rqs: Vec<CfsId>,
    /// How many entries at the head of `leaf_cfs_rqs` are still without their parent
    /// (`tmp_alone_branch`).
    pub tmp_alone: u32,
    /// Active balancing is under way.
    pub active_balance: bool,
    /// Where active balancing pushes to.
    pub push_cpu: CpuId,
    /// `misfit_task_load`.
    pub misfit_task_load: u64,
    /// `wake_avg_idle`, ns: half of `avg_idle` when it was last updated, less what searches cost
    /// since (SIS_PROP).
    pub wake_avg_idle: u64,
    /// `wake_stamp`: jiffy of that update.
    pub wake_stamp: u64,
    /// Exit latency of the idle state that the CPU is in, us; none when it runs or the state is not
    /// known (`idle_get_state`).
    pub idle_exit_latency: Option<u32>,
    /// Jiffy of the last update of blocked load by NOHZ balancing.
    pub last_blocked_load_update_tick: u64,
    /// `last_wakee` of the idle task, which wakes tasks in interrupts.
    pub idle_last_wakee: TaskId,
    /// `wakee_flips` of the idle task.
    pub idle_wakee_flips: u32,
    /// `wakee_flip_decay_ts` of the idle task, jiffies.
    pub idle_wakee_flip_decay_ts: u64,
    /// `clock` when `clock_pelt` last followed it on an idle CPU.
    pub clock_idle: u64,
    /// `rq_clock_pelt` at that time.
    pub clock_pelt_idle: u64,
}

impl Rq {
    /// `idle_cpu()`: the idle task runs, nothing is queued and no remote wake-up is pending.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.curr.is_none() && self.nr_running == 0 && !self.ttwu_pending
    }
}
