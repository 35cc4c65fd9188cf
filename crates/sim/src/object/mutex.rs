//! A kernel mutex with optimistic spinning (kernel `locking/mutex.c`).
//!
//! A contender spins in a queue while the owner runs and its own CPU need not reschedule; else it
//! sleeps. An unlock with sleepers wakes the first; a woken sleeper that finds the mutex taken
//! again demands a hand-over, so that the next unlock gives it the mutex.

use std::collections::VecDeque;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;

/// A contender that spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinner {
    /// The task.
    pub task: TaskId,
    /// Where it spins.
    pub cpu: CpuId,
    /// When it began, ns.
    pub since: u64,
}

/// The mutex. What only contenders touch is kept apart, so that a free mutex is one word.
#[derive(Clone, Debug, Default)]
pub struct Mutex {
    /// Who holds it.
    pub owner: TaskId,
    /// Somebody spins or sleeps for it.
    contended: bool,
    /// MUTEX_FLAG_HANDOFF.
    pub handoff: bool,
    contenders: Box<Contenders>,
}

#[derive(Clone, Debug, Default)]
struct Contenders {
    /// Those that spin in the queue, first come first (`osq`).
    spinners: VecDeque<Spinner>,
    /// Those that sleep, first come first (`wait_list`). The first may be awake and spinning.
    waiters: VecDeque<TaskId>,
    /// The first waiter is awake and spins.
    first_spins: Option<Spinner>,
}

/// Who gets the mutex at an unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nobody: it is free.
    Nobody,
    /// A contender that spins on its CPU.
    Spinner(Spinner),
    /// The first waiter, by hand-over, which does not run at the moment.
    Sleeper(TaskId),
}

impl Mutex {
    /// Takes the mutex if nobody has it.
    #[inline(always)]
    pub fn try_lock(&mut self, task: TaskId) -> bool {
        if self.owner.is_none() {
            self.owner = task;
        }
        self.owner == task
    }

    /// Whether somebody spins or sleeps for it.
    #[inline(always)]
    pub fn is_contended(&self) -> bool {
        self.contended
    }

    /// Joins the queue of those that spin.
    pub fn spin(&mut self, task: TaskId, cpu: CpuId, since: u64) {
        self.contended = true;
        let spinner = Spinner { task, cpu, since };
        self.contenders.spinners.push_back(spinner);
    }

    /// Joins those that sleep.
    pub fn wait(&mut self, task: TaskId) {
        self.contended = true;
        self.contenders.waiters.push_back(task);
    }

    /// A woken sleeper that found the mutex taken demands it, and spins if it is the first. Tells
    /// whether it is.
    pub fn demand(&mut self, task: TaskId, cpu: CpuId, now: u64) -> bool {
        let first = self.contenders.waiters.front() == Some(&task);
        if first {
            self.handoff = true;
            let since = now;
            self.contenders.first_spins = Some(Spinner { task, cpu, since });
        }
        first
    }

    /// The owner lets go. Tells who has the mutex now, and which sleeper is to be woken.
    #[inline(always)]
    pub fn unlock(&mut self) -> (Next, TaskId) {
        debug_assert!(self.owner.is_some(), "only an owner unlocks");
        self.owner = TaskId::NONE;
        if !self.contended {
            return (Next::Nobody, TaskId::NONE);
        }
        let next = self.unlock_slowpath();
        let left = &self.contenders;
        self.contended = !left.spinners.is_empty() || !left.waiters.is_empty();
        next
    }

    fn unlock_slowpath(&mut self) -> (Next, TaskId) {
        let spins = self.contenders.first_spins;
        if let (Some(first), true) = (spins, self.handoff || self.contenders.spinners.is_empty()) {
            self.take_first();
            return (Next::Spinner(first), TaskId::NONE);
        }
        if self.handoff {
            let first = self.take_first();
            return (Next::Sleeper(first), first);
        }
        let first = self.contenders.waiters.front().copied();
        let wake = match spins {
            None => first.unwrap_or(TaskId::NONE),
            Some(_) => TaskId::NONE,
        };
        match self.contenders.spinners.pop_front() {
            Some(spinner) => {
                self.owner = spinner.task;
                (Next::Spinner(spinner), wake)
            }
            None => (Next::Nobody, wake),
        }
    }

    /// A waiter that was woken takes the mutex, if nobody has it.
    pub fn try_lock_waiter(&mut self, task: TaskId) -> bool {
        if !self.try_lock(task) {
            return false;
        }
        if self.contenders.waiters.front() == Some(&task) {
            self.handoff = false;
            self.contenders.first_spins = None;
        }
        self.contenders.waiters.retain(|&waiter| waiter != task);
        true
    }

    /// A spinner gives up.
    pub fn stop_spinning(&mut self, task: TaskId) {
        let contenders = &mut self.contenders;
        contenders.spinners.retain(|spinner| spinner.task != task);
        if contenders.waiters.front() == Some(&task) {
            contenders.first_spins = None;
        }
    }

    fn take_first(&mut self) -> TaskId {
        let first = self
            .contenders
            .waiters
            .pop_front()
            .expect("a hand-over needs a waiter");
        self.handoff = false;
        self.contenders.first_spins = None;
        self.owner = first;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId(5);

    fn spins(task: u32, since: u64) -> Next {
        Next::Spinner(Spinner {
            task: TaskId(task),
            cpu: CPU,
            since,
        })
    }

    #[test]
    fn spinners_get_it_in_order_and_the_first_sleeper_is_woken_each_time() {
        let mut mutex = Mutex::default();
        assert!(mutex.try_lock(TaskId(0)));
        assert!(!mutex.try_lock(TaskId(1)));
        mutex.spin(TaskId(1), CPU, 1);
        mutex.spin(TaskId(2), CPU, 2);
        mutex.wait(TaskId(3));
        assert_eq!(mutex.unlock(), (spins(1, 1), TaskId(3)));
        assert_eq!(mutex.unlock(), (spins(2, 2), TaskId(3)));
        assert_eq!(mutex.unlock(), (Next::Nobody, TaskId(3)));
        assert!(mutex.try_lock_waiter(TaskId(3)));
        assert_eq!(mutex.unlock(), (Next::Nobody, TaskId::NONE));
    }

    #[test]
    fn a_woken_waiter_that_failed_gets_it_handed_over_before_spinners() {
        let mut mutex = Mutex::default();
        mutex.try_lock(TaskId(0));
        mutex.spin(TaskId(1), CPU, 1);
        mutex.wait(TaskId(3));
        assert!(!mutex.try_lock_waiter(TaskId(3)));
        assert!(mutex.demand(TaskId(3), CPU, 9));
        assert_eq!(mutex.unlock(), (spins(3, 9), TaskId::NONE));
        assert_eq!((mutex.owner, mutex.handoff), (TaskId(3), false));
    }

    #[test]
    fn a_demand_holds_while_its_task_is_preempted() {
        let mut mutex = Mutex::default();
        mutex.try_lock(TaskId(0));
        mutex.wait(TaskId(4));
        mutex.wait(TaskId(5));
        assert!(!mutex.demand(TaskId(5), CPU, 1), "only the first may");
        assert!(mutex.demand(TaskId(4), CPU, 1));
        mutex.stop_spinning(TaskId(4));
        assert_eq!(mutex.unlock(), (Next::Sleeper(TaskId(4)), TaskId(4)));
        assert_eq!(mutex.owner, TaskId(4));
    }

    #[test]
    fn a_spinner_that_gave_up_gets_nothing() {
        let mut mutex = Mutex::default();
        mutex.try_lock(TaskId(0));
        mutex.spin(TaskId(1), CPU, 1);
        mutex.stop_spinning(TaskId(1));
        assert_eq!(mutex.unlock(), (Next::Nobody, TaskId::NONE));
    }
}
