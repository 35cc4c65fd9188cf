//! Mutexes, condition variables and semaphores of user space.

use super::Engine;
use super::task::{Stage, Waits};
use crate::object::sync::SyncOp;
use crate::object::sync::mutex::{Locked, Unlocked};
use crate::work::Workload;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::TaskId;

impl<W: Workload> Engine<W> {
    /// A task begins an operation.
    pub(super) fn sync_op(&mut self, cpu: CpuId, p: TaskId, op: SyncOp, lead: u64) {
        match op {
            SyncOp::Lock(id) => self.lock_mutex(cpu, p, id, false, lead),
            SyncOp::Unlock(id) => {
                let cost = self.unlock_mutex(cpu, p, id, lead);
                self.sync_done(cpu, p, lead + cost);
            }
            SyncOp::Wait(id, mutex) => self.wait(cpu, p, id, mutex, lead),
            SyncOp::Signal(id) => self.wake_waiters(cpu, p, id, 1, lead),
            SyncOp::Broadcast(id) => {
                let all = self.sync.condvars[id as usize].waiters.len();
                self.wake_waiters(cpu, p, id, all, lead);
            }
            SyncOp::Post(id) => self.post(cpu, p, id, lead),
            SyncOp::Acquire(id) => self.acquire(cpu, p, id, lead),
        }
    }

    /// On to the next operation in an event of its own: many in a row must not nest.
    fn sync_done(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        self.tasks[p.index()].stage = Stage::Next;
        self.resume_at(cpu, self.now + lead);
    }

    /// Moves an object's cache line here from where it was last. Returns what that took, ns.
    fn take_line(&mut self, cpu: CpuId, last: CpuId) -> u64 {
        let cost = self.prices.transfer(last, cpu);
        self.stats.stalled += cost;
        cost
    }

    /// Takes a mutex or sleeps for it; `again` if the task was woken for it.
    pub(super) fn lock_mutex(&mut self, cpu: CpuId, p: TaskId, id: u32, again: bool, lead: u64) {
        let mutex = &mut self.sync.mutexes[id as usize];
        let last = std::mem::replace(&mut mutex.last_cpu, cpu);
        let locked = if again {
            mutex.lock_again(p)
        } else {
            mutex.lock(p)
        };
        let inherit = mutex.inherit;
        let mut cost = self.take_line(cpu, last);
        match locked {
            Locked::Yes => self.sync_done(cpu, p, lead + cost),
            Locked::Twice => self.sync_done(cpu, p, lead + cost + self.prices.syscall),
            Locked::Waits { first } => {
                cost += self.prices.syscall;
                if first && inherit {
                    cost += self.lend(cpu, p, id, lead + cost);
                }
                let at = self.now + lead + cost;
                self.block(cpu, p, Waits::ForMutex(id), Stage::Mutex(id), at);
            }
        }
    }

    /// Lets go of a mutex and wakes who is next. Returns what it took, ns.
    fn unlock_mutex(&mut self, cpu: CpuId, p: TaskId, id: u32, lead: u64) -> u64 {
        let mutex = &mut self.sync.mutexes[id as usize];
        let last = std::mem::replace(&mut mutex.last_cpu, cpu);
        let unlocked = mutex.unlock(p);
        let inherit = mutex.inherit;
        let mut cost = self.take_line(cpu, last);
        match unlocked {
            Unlocked::Quietly => {}
            Unlocked::NotOwner => cost += self.prices.syscall,
            Unlocked::Wakes(next) => {
                cost += self.prices.syscall;
                if inherit {
                    self.take_back(cpu, p, id);
                }
                cost += self.wake(cpu, next, 0, lead + cost);
            }
        }
        cost
    }

    /// `pthread_cond_wait`: once woken, the task takes the mutex again.
    fn wait(&mut self, cpu: CpuId, p: TaskId, id: u32, mutex: u32, lead: u64) {
        let condvar = &mut self.sync.condvars[id as usize];
        let last = std::mem::replace(&mut condvar.last_cpu, cpu);
        condvar.waiters.push_back(p);
        let mut cost = self.take_line(cpu, last);
        cost += self.unlock_mutex(cpu, p, mutex, lead + cost);
        let at = self.now + lead + cost + self.prices.syscall;
        self.block(cpu, p, Waits::ForSignal(id), Stage::Mutex(mutex), at);
    }

    /// Wakes so many of those that wait for a condition.
    fn wake_waiters(&mut self, cpu: CpuId, p: TaskId, id: u32, count: usize, lead: u64) {
        let condvar = &mut self.sync.condvars[id as usize];
        let last = std::mem::replace(&mut condvar.last_cpu, cpu);
        let mut cost = self.take_line(cpu, last);
        for number in 0..count {
            let Some(next) = self.sync.condvars[id as usize].waiters.pop_front() else {
                break;
            };
            if number == 0 {
                cost += self.prices.syscall;
            }
            cost += self.wake(cpu, next, 0, lead + cost);
        }
        self.sync_done(cpu, p, lead + cost);
    }

    fn post(&mut self, cpu: CpuId, p: TaskId, id: u32, lead: u64) {
        let semaphore = &mut self.sync.semaphores[id as usize];
        let last = std::mem::replace(&mut semaphore.last_cpu, cpu);
        let woken = semaphore.post();
        let mut cost = self.take_line(cpu, last);
        if let Some(next) = woken {
            cost += self.prices.syscall;
            cost += self.wake(cpu, next, 0, lead + cost);
        }
        self.sync_done(cpu, p, lead + cost);
    }

    /// Takes a post of a semaphore or sleeps for one.
    pub(super) fn acquire(&mut self, cpu: CpuId, p: TaskId, id: u32, lead: u64) {
        let semaphore = &mut self.sync.semaphores[id as usize];
        let last = std::mem::replace(&mut semaphore.last_cpu, cpu);
        let taken = semaphore.acquire(p);
        let cost = self.take_line(cpu, last);
        if taken {
            return self.sync_done(cpu, p, lead + cost);
        }
        let at = self.now + lead + cost + self.prices.syscall;
        self.block(cpu, p, Waits::ForPost(id), Stage::Semaphore(id), at);
    }

    /// The first that waits for a mutex lends its priority to the owner (`task_blocks_on_rt_mutex`). In
    /// the fair class it goes no further: the chain ends where a waiter's place in its queue stays.
    /// Returns what it took, ns.
    fn lend(&mut self, cpu: CpuId, p: TaskId, id: u32, lead: u64) -> u64 {
        let owner = self.sync.mutexes[id as usize].owner();
        let before = self.priority(owner);
        self.sync.mutexes[id as usize].lent = Some(self.priority(p));
        self.set_priority(owner, before);
        let there = self.sched.tasks[owner.index()].cpu;
        self.notify_resched(cpu, there, self.now + lead)
    }

    /// Who lets go gets its own priority back. The new owner is lent nothing until a task comes that is
    /// then the first to wait: none that waited already is looked at again.
    fn take_back(&mut self, cpu: CpuId, p: TaskId, id: u32) {
        let mutex = &mut self.sync.mutexes[id as usize];
        let Some(lent) = mutex.lent.take() else {
            return;
        };
        let before = self.priority(p).min(lent);
        debug_assert_eq!(self.sched.tasks[p.index()].cpu, cpu);
        self.set_priority(p, before);
    }

    /// A task's priority as a nice level: its own or the best that it was lent.
    fn priority(&self, p: TaskId) -> i8 {
        let own = self.sched.tasks[p.index()].nice;
        let held = self.sync.mutexes.iter().filter(|mutex| mutex.owner() == p);
        held.filter_map(|mutex| mutex.lent).fold(own, i8::min)
    }

    fn set_priority(&mut self, p: TaskId, before: i8) {
        let after = self.priority(p);
        if after != before {
            let cpu = self.sched.tasks[p.index()].cpu;
            self.sched.update_rq_clock(cpu, Ns(self.now));
            self.sched.rt_mutex_setprio(p, before, after);
        }
    }
}
