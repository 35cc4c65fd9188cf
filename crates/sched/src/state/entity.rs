//! Scheduling entities and their averages.

use crate::ids::{CfsId, SeId, TaskId, TgId};

/// `struct sched_avg`: the PELT sums and averages of an entity or a fair run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// Time of the last update on the PELT clock, ns.
    pub last_update_time: u64,
    /// Decayed sum of weight (run queue) or of time runnable (entity).
    pub load_sum: u64,
    /// Decayed sum of the number of runnable tasks, times 1024.
    pub runnable_sum: u64,
    /// Decayed sum of time running, times 1024.
    pub util_sum: u32,
    /// Part of the current 1024 us period that is over.
    pub period_contrib: u32,
    /// Load average: 1024 is one nice-0 task always runnable.
    pub load_avg: u64,
    /// Runnable average: 1024 is one task always runnable.
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
pub struct SchedEntity {
    /// `load.weight`, unscaled: 1048576 for nice 0.
    pub weight: u64,
    /// `load.inv_weight`, 0 while not computed.
    pub inv_weight: u32,
    /// Whether it is on a run queue.
    pub on_rq: bool,
    /// `se_is_idle`: a SCHED_IDLE task, or a `cpu.idle` group.
    pub idle: bool,
    /// 0 at the root, one more for each group below it.
    pub depth: u8,
    /// Virtual run time.
    pub vruntime: u64,
    /// When the current stretch of running began or was last accounted (`rq_clock_task`), ns.
    pub exec_start: u64,
    /// Run time in all, ns.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when it was last picked.
    pub prev_sum_exec_runtime: u64,
    /// The entity of the group that it is in, none at the root.
    pub parent: SeId,
    /// The run queue that it is (to be) queued on.
    pub cfs_rq: CfsId,
    /// The run queue that it owns, none for a task.
    pub my_q: CfsId,
    /// The task that it is, none for a group.
    pub task: TaskId,
    /// The group that it stands for, none for a task.
    pub tg: TgId,
    /// `runnable_weight`: a group's `h_nr_running` as last seen.
    pub runnable_weight: u64,
    /// Its averages.
    pub avg: SchedAvg,
}
