//! Spans of CPU time and of wall time, and parking.

use super::Engine;
use super::cpu::Phase;
use super::task::{Stage, Waits};
use crate::work::Workload;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::TaskId;

impl<W: Workload> Engine<W> {
    /// CPU time: no sibling and no capacity changes it, so that nothing re-times it.
    pub(super) fn work_for(&mut self, cpu: CpuId, p: TaskId, ns: u64, lead: u64) {
        // Known if it is preempted: see `resched_now`.
        self.tasks[p.index()].stage = Stage::Work(ns);
        self.set_phase(cpu, Phase::Timed, self.now + lead + ns);
    }

    pub(super) fn spin_until(&mut self, cpu: CpuId, p: TaskId, end: u64) {
        self.tasks[p.index()].stage = Stage::SpinUntil(end);
        self.set_phase(cpu, Phase::Timed, end.max(self.now));
    }

    /// A task that was preempted while it read the clock reads it again.
    pub(super) fn spin_again(&mut self, cpu: CpuId, p: TaskId, end: u64, lead: u64) {
        let at = self.now + lead;
        if let Some(since) = self.tasks[p.index()].placed.off_since.take() {
            self.work.ran_again(p, Ns(at - since));
        }
        self.spin_until(cpu, p, end.max(at));
    }

    /// Wakes a parked task, or lets it go on when it parks. Returns what it took, ns.
    pub(super) fn unpark(&mut self, cpu: CpuId, p: TaskId, lead: u64) -> u64 {
        let task = &mut self.tasks[p.index()];
        if task.waits == Waits::ForUnpark {
            return self.wake(cpu, p, 0, lead);
        }
        task.permit = true;
        0
    }

    /// `FUTEX_WAKE` of a task that is parked. Returns what it took, ns. With one waiter on the word it
    /// does not show that the kernel collects waiters first and wakes them without the bucket's lock.
    pub(super) fn futex_wake(&mut self, cpu: CpuId, p: TaskId, lead: u64) -> u64 {
        match self.tasks[p.index()].waits {
            Waits::ForUnpark => self.wake(cpu, p, 0, lead),
            _ => 0,
        }
    }
}
