//! `pthread_cond_t`: tasks that wait for a signal, which is lost if nobody does.
//!
//! Signals go to who has waited longest. (glibc's order is by two groups of waiters, and the same within
//! each.)

use std::collections::VecDeque;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;

/// A condition variable.
#[derive(Clone, Debug, Default)]
pub struct Condvar {
    /// The CPU that last had its cache line.
    pub last_cpu: CpuId,
    /// Who waits, first come first.
    pub waiters: VecDeque<TaskId>,
}
