//! Scheduling entities and their averages.

use crate::ids::{CfsId, SeId, TaskId, TgId};

/// `struct sched_avg`: the PELT sums and averages of an entity or a fair run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// Time of the last update on the PELT clock, ns.
    pub last_update_time: u64,
    /// Decayed sum of weight (run queue) or of time runnable (entity).
    pub load_sum: u64,
    /// Decayed sum of the number of runnable tasks, times 1024; before 5.7 (`runnable_load_sum`) of the
    /// runnable weight (run queue) or of time queued (entity).
    pub runnable_sum: u64,
    /// Decayed sum of time running, times 1024.
    pub util_sum: u32,
    /// Part of the current 1024 us period that is over.
    pub period_contrib: u32,
    /// Load average: 1024 is one nice-0 task always runnable.
    pub load_avg: u64,
    /// Runnable average: 1024 is one task always runnable; before 5.7 the load average of what is
    /// queued (`runnable_load_avg`).
    pub runnable_avg: u64,
    /// Utilisation: 1024 is one CPU always busy.
    pub util_avg: u64,
    /// Estimated utilisation.
    pub util_est: UtilEst,
}

/// `struct util_est` of 6.5. Of a run queue only `enqueued` is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtilEst {
    /// Utilisation at the last dequeue; bit 31 is UTIL_AVG_UNCHANGED.
    pub enqueued: u32,
    /// Its exponential moving average.
    pub ewma: u32,
}

/// `struct sched_entity`.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct SchedEntity {
    // Cache line 1: the averages.
    /// Its averages.
    pub avg: SchedAvg,
    // Cache line 2: what queueing, accounting and picking read.
    /// `load.weight`, unscaled: 1048576 for nice 0.
    pub weight: u64,
    /// Virtual run time.
    pub vruntime: u64,
    /// When the current stretch of running began or was last accounted (`rq_clock_task`), ns.
    pub exec_start: u64,
    /// Run time in all, ns.
    pub sum_exec_runtime: u64,
    /// `runnable_weight`: a group's `h_nr_running` as last seen; before 5.7 the weight, and a group's as
    /// far as it is queued, unscaled.
    pub runnable_weight: u64,
    /// The entity of the group that it is in, none at the root.
    pub parent: SeId,
    /// The run queue that it is (to be) queued on.
    pub cfs_rq: CfsId,
    /// The run queue that it owns, none for a task.
    pub my_q: CfsId,
    /// The task that it is, none for a group.
    pub task: TaskId,
    /// `load.inv_weight`, 0 while not computed.
    pub inv_weight: u32,
    /// Whether it is on a run queue.
    pub on_rq: bool,
    /// `se_is_idle`: a SCHED_IDLE task, or a `cpu.idle` group.
    pub idle: bool,
    /// 0 at the root, one more for each group below it.
    pub depth: u8,
    /// It sleeps, but stays queued until its lag is used up (DELAY_DEQUEUE).
    pub sched_delayed: bool,
    // Cache line 3: what the picks of EEVDF read.
    /// `sum_exec_runtime` when it was last picked.
    pub prev_sum_exec_runtime: u64,
    /// EEVDF: virtual time by which its request shall be served. While it is off the queue and
    /// `rel_deadline` is set, relative to its vruntime.
    pub deadline: u64,
    /// EEVDF: while it is off the queue, by how much virtual time it was behind the average
    /// (positive: it is owed service). While it runs, its deadline when it was picked, which protects
    /// its slice as long as the two are equal.
    pub vlag: i64,
    /// EEVDF: how much run time it requests at a time, ns.
    pub slice: u64,
    /// EEVDF: its place in the tree of its queue.
    pub node: TreeNode,
    // Cache line 4: what is seldom read.
    /// The group that it stands for, none for a task.
    pub tg: TgId,
    /// EEVDF: its slice is its own and not `base_slice`. A group's entity keeps this once set.
    pub custom_slice: bool,
    /// EEVDF: its deadline was kept when it left its queue (PLACE_REL_DEADLINE).
    pub rel_deadline: bool,
}

/// A node of the tree of a fair run queue of the EEVDF releases: a red-black tree by deadline in
/// which every node knows the least vruntime of its subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeNode {
    /// What is left (0) and right (1) of it.
    pub child: [SeId; 2],
    /// Its parent, none for the root.
    pub parent: SeId,
    /// Its colour.
    pub red: bool,
    /// The least vruntime of its subtree.
    pub min_vruntime: u64,
    /// The least slice of its subtree, or more: it is not kept up when the tree is re-balanced.
    pub min_slice: u64,
}
