//! A whole search for a task to steal, with nothing in between.

use wakelab_machine::{CpuId, Ns};
use wakelab_sched::core_sched::{Steal, StealSearch};
use wakelab_sched::{Sched, TaskId};

/// `sched_core_balance` of a CPU that nobody interrupts. Gives what it stole.
pub fn steal(sched: &mut Sched, cpu: CpuId, now: Ns) -> Option<TaskId> {
    let mut search = StealSearch::by(cpu);
    while let Some(src) = sched.next_to_steal_from(&mut search) {
        if let Steal::Moved(p) = sched.try_steal_cookie(cpu, src, now) {
            return Some(p);
        }
    }
    sched.end_core_balance(cpu, now);
    None
}
