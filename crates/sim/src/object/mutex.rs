//! A kernel mutex with optimistic spinning (kernel `locking/mutex.c`).
//!
//! A contender spins in a queue while the owner runs and its own CPU need not reschedule; else it
//! sleeps. An unlock with sleepers wakes the first; a woken sleeper that finds the mutex taken
//! again demands a hand-over, so that the next unlock gives it the mutex.

use std::collections::VecDeque;
use wakelab_sched::TaskId;

/// A contender that spins.
#[derive(Clone, Copy, Debug)]
pub struct Spinner {
    /// The task.
    pub task: TaskId,
    /// When it began, ns.
    pub since: u64,
}

/// The mutex.
#[derive(Clone, Debug, Default)]
pub struct Mutex {
    /// Who holds it.
    pub owner: TaskId,
    /// Those that spin in the queue, first come first (`osq`).
    pub spinners: VecDeque<Spinner>,
    /// Those that sleep, first come first (`wait_list`). The first may be awake and spinning.
    pub waiters: VecDeque<TaskId>,
    /// The first waiter is awake and spins since then.
    pub first_spins: Option<u64>,
    /// MUTEX_FLAG_HANDOFF.
    pub handoff: bool,
}

/// Who gets the mutex at an unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nobody: it is free.
    Nobody,
    /// A contender that spins on its CPU since then.
    Spinner(TaskId, u64),
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

    /// The owner lets go. Tells who has the mutex now, and which sleeper is to be woken.
    pub fn unlock(&mut self) -> (Next, TaskId) {
        debug_assert!(self.owner.is_some(), "only an owner unlocks");
        self.owner = TaskId::NONE;
        if let (Some(since), true) = (self.first_spins, self.handoff || self.spinners.is_empty()) {
            let first = self.take_first();
            return (Next::Spinner(first, since), TaskId::NONE);
        }
        if self.handoff {
            let first = self.take_first();
            return (Next::Sleeper(first), first);
        }
        let wake = match self.first_spins {
            None => self.waiters.front().copied().unwrap_or(TaskId::NONE),
            Some(_) => TaskId::NONE,
        };
        match self.spinners.pop_front() {
            Some(spinner) => {
                self.owner = spinner.task;
                (Next::Spinner(spinner.task, spinner.since), wake)
            }
            None => (Next::Nobody, wake),
        }
    }

    /// A waiter that was woken takes the mutex, if nobody has it.
    pub fn try_lock_waiter(&mut self, task: TaskId) -> bool {
        if !self.try_lock(task) {
            return false;
        }
        if self.waiters.front() == Some(&task) {
            self.handoff = false;
            self.first_spins = None;
        }
        self.waiters.retain(|&waiter| waiter != task);
        true
    }

    /// A spinner gives up.
    pub fn stop_spinning(&mut self, task: TaskId) {
        self.spinners.retain(|spinner| spinner.task != task);
        if self.waiters.front() == Some(&task) {
            self.first_spins = None;
        }
    }

    fn take_first(&mut self) -> TaskId {
        let first = self
            .waiters
            .pop_front()
            .expect("a hand-over needs a waiter");
        self.handoff = false;
        self.first_spins = None;
        self.owner = first;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spinner(n: u32) -> Spinner {
        Spinner {
            task: TaskId(n),
            since: u64::from(n),
        }
    }

    #[test]
    fn spinners_get_it_in_order_and_the_first_sleeper_is_woken_each_time() {
        let mut mutex = Mutex::default();
        assert!(mutex.try_lock(TaskId(0)));
        assert!(!mutex.try_lock(TaskId(1)));
        mutex.spinners.extend([spinner(1), spinner(2)]);
        mutex.waiters.push_back(TaskId(3));
        assert_eq!(mutex.unlock(), (Next::Spinner(TaskId(1), 1), TaskId(3)));
        assert_eq!(mutex.unlock(), (Next::Spinner(TaskId(2), 2), TaskId(3)));
        assert_eq!(mutex.unlock(), (Next::Nobody, TaskId(3)));
        assert!(mutex.try_lock_waiter(TaskId(3)) && mutex.waiters.is_empty());
    }

    #[test]
    fn a_woken_waiter_that_failed_gets_it_handed_over_before_spinners() {
        let mut mutex = Mutex::default();
        mutex.try_lock(TaskId(0));
        mutex.spinners.push_back(spinner(1));
        mutex.waiters.push_back(TaskId(3));
        mutex.handoff = true;
        mutex.first_spins = Some(9);
        assert_eq!(mutex.unlock(), (Next::Spinner(TaskId(3), 9), TaskId::NONE));
        assert_eq!((mutex.owner, mutex.handoff), (TaskId(3), false));
        mutex.waiters.push_back(TaskId(4));
        mutex.handoff = true;
        assert_eq!(mutex.unlock(), (Next::Sleeper(TaskId(4)), TaskId(4)));
    }
}
