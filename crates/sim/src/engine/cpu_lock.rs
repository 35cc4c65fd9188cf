//! Locks of a program's own, one a CPU, on which its tasks spin in user space. A program is a session.

use super::Engine;
use super::cpu::Phase;
use super::task::Stage;
use crate::work::Workload;
use std::ops::Range;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;

/// A spinner is told when the lock comes free; it looks again after so long in any case.
const LOOK_AGAIN: u64 = 1_000_000_000;

/// Who holds the lock of each CPU, and who spins for one.
#[derive(Clone, Debug)]
pub(super) struct CpuLocks {
    /// By session and CPU.
    owners: Vec<TaskId>,
    /// Who of them is preempted does not see that a lock comes free, and tries when it runs again.
    spinners: Vec<(TaskId, CpuId)>,
}

impl CpuLocks {
    pub fn new(sessions: usize, ncpu: usize) -> CpuLocks {
        CpuLocks {
            owners: vec![TaskId::NONE; sessions * ncpu],
            spinners: Vec::new(),
        }
    }

    pub fn stop_spinning(&mut self, p: TaskId) {
        self.spinners.retain(|&(spinner, _)| spinner != p);
    }
}

impl<W: Workload> Engine<W> {
    /// Tries the lock `of` a CPU. Once it has it, a task that runs elsewhere by now lets go of it and
    /// tries the one of the CPU where it is.
    pub(super) fn lock_cpu(&mut self, cpu: CpuId, p: TaskId, of: CpuId, lead: u64) {
        self.cpu_locks.stop_spinning(p);
        let lock = self.cpu_locks_of(p).start + of.index();
        if self.cpu_locks.owners[lock].is_some() {
            self.cpu_locks.spinners.push((p, of));
            self.tasks[p.index()].stage = Stage::LockCpu(of);
            return self.set_phase(cpu, Phase::Timed, self.now + lead + LOOK_AGAIN);
        }
        if of != cpu {
            return self.lock_cpu(cpu, p, cpu, lead);
        }
        self.cpu_locks.owners[lock] = p;
        self.tasks[p.index()].stage = Stage::Next;
        self.resume_at(cpu, self.now + lead);
    }

    /// Lets go of the lock that the task holds. Returns what it took, ns.
    pub(super) fn unlock_cpu(&mut self, cpu: CpuId, p: TaskId) -> u64 {
        let locks = self.cpu_locks_of(p);
        let owners = &mut self.cpu_locks.owners[locks];
        let Some(index) = owners.iter().position(|&owner| owner == p) else {
            return 0;
        };
        owners[index] = TaskId::NONE;
        let of = CpuId::from_index(index);
        self.lock_is_free(cpu, p, of);
        // The lock's line was last written where it was taken.
        self.prices.transfer(of, cpu)
    }

    /// The locks of a task's program.
    fn cpu_locks_of(&self, p: TaskId) -> Range<usize> {
        let (ncpu, session) = (self.cpus.len(), self.tasks[p.index()].session);
        let first = usize::from(session) * ncpu;
        first..first + ncpu
    }

    /// Those who spin for the lock and run see that `p` let go of it: the first to try has it.
    fn lock_is_free(&mut self, from: CpuId, p: TaskId, of: CpuId) {
        let session = self.tasks[p.index()].session;
        for n in 0..self.cpu_locks.spinners.len() {
            let (spinner, lock) = self.cpu_locks.spinners[n];
            let there = self.sched.tasks[spinner.index()].cpu;
            let same = lock == of && self.tasks[spinner.index()].session == session;
            let runs = self.sched.rq(there).curr == spinner;
            if same && runs && self.cpus[there.index()].phase == Phase::Timed {
                let at = self.now + self.prices.transfer(from, there);
                self.set_phase(there, Phase::Timed, at);
            }
        }
    }
}
