//! `pthread_mutex_t` of the normal kind, with and without priority inheritance.
//!
//! Without, an unlock frees the mutex and wakes the first that sleeps for it, which tries again: who
//! comes in between is before it (glibc `lowlevellock`). With, the unlock hands it to the first
//! (`FUTEX_UNLOCK_PI`). Among tasks of the fair class the first is who came first: `__waiter_prio` has
//! one priority for all of them.

use std::collections::VecDeque;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;

/// A mutex.
#[derive(Clone, Debug, Default)]
pub struct UserMutex {
    /// The CPU that last had its cache line.
    pub last_cpu: CpuId,
    /// It inherits priorities.
    pub inherit: bool,
    /// The nice level of the first that waits, which its owner has meanwhile; none if nobody waits.
    pub lent: Option<i8>,
    owner: TaskId,
    /// Whoever unlocks it must look for sleepers.
    contended: bool,
    waiters: VecDeque<TaskId>,
}

/// What became of trying to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The task has the mutex.
    Yes,
    /// The task waits for it now, as the first of a mutex that inherits priorities or not.
    Waits {
        /// Nobody waited before.
        first: bool,
    },
    /// The task had it already, and is told so (EDEADLK).
    Twice,
}

/// What became of unlocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlocked {
    /// Nobody is to be told.
    Quietly,
    /// A task is to be woken.
    Wakes(TaskId),
    /// It was not the task's, and stays as it is (EPERM).
    NotOwner,
}

impl UserMutex {
    /// A free one.
    pub fn new(inherit: bool) -> UserMutex {
        UserMutex {
            inherit,
            ..UserMutex::default()
        }
    }

    /// Who has it.
    pub fn owner(&self) -> TaskId {
        self.owner
    }

    /// Takes it or joins those that wait. A task that has a plain mutex and locks it again waits for
    /// ever.
    pub fn lock(&mut self, p: TaskId) -> Locked {
        if self.owner.is_none() {
            self.owner = p;
            return Locked::Yes;
        }
        if self.inherit && self.owner == p {
            return Locked::Twice;
        }
        let first = self.waiters.is_empty();
        self.contended = true;
        self.waiters.push_back(p);
        Locked::Waits { first }
    }

    /// The same for a task that was woken: it may have been handed the mutex; and others may wait
    /// still, so that it is contended if it is got.
    pub fn lock_again(&mut self, p: TaskId) -> Locked {
        if self.inherit && self.owner == p {
            return Locked::Yes;
        }
        let locked = self.lock(p);
        self.contended |= locked == Locked::Yes && !self.inherit;
        locked
    }

    /// A task that waits for it does so no more.
    pub fn forget(&mut self, p: TaskId) {
        self.waiters.retain(|&waiter| waiter != p);
    }

    /// Lets go. A plain mutex is not asked whose it is.
    pub fn unlock(&mut self, p: TaskId) -> Unlocked {
        if self.inherit && self.owner != p {
            return Unlocked::NotOwner;
        }
        self.owner = TaskId::NONE;
        if !std::mem::take(&mut self.contended) {
            return Unlocked::Quietly;
        }
        let Some(next) = self.waiters.pop_front() else {
            return Unlocked::Quietly;
        };
        if self.inherit {
            self.owner = next;
            self.contended = !self.waiters.is_empty();
        }
        Unlocked::Wakes(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);

    #[test]
    fn who_comes_between_unlock_and_wake_up_is_before_the_sleeper() {
        let mut mutex = UserMutex::new(false);
        assert_eq!(mutex.lock(A), Locked::Yes);
        assert_eq!(mutex.lock(B), Locked::Waits { first: true });
        assert_eq!(mutex.unlock(A), Unlocked::Wakes(B));
        assert_eq!(mutex.lock(C), Locked::Yes);
        assert_eq!(mutex.lock_again(B), Locked::Waits { first: true });
        assert_eq!(mutex.unlock(C), Unlocked::Wakes(B));
        assert_eq!(mutex.lock_again(B), Locked::Yes);
        // It cannot know that nobody waits any more.
        assert!(mutex.contended);
        assert_eq!(mutex.unlock(B), Unlocked::Quietly);
        assert_eq!(mutex.owner(), TaskId::NONE);
    }

    #[test]
    fn with_inheritance_it_is_handed_to_who_came_first() {
        let mut mutex = UserMutex::new(true);
        mutex.lock(A);
        assert_eq!(mutex.lock(B), Locked::Waits { first: true });
        assert_eq!(mutex.lock(C), Locked::Waits { first: false });
        assert_eq!(mutex.unlock(A), Unlocked::Wakes(B));
        assert_eq!(mutex.owner(), B);
        assert_eq!(mutex.lock_again(B), Locked::Yes);
        assert_eq!(mutex.unlock(B), Unlocked::Wakes(C));
        assert_eq!(mutex.unlock(C), Unlocked::Quietly);
    }

    #[test]
    fn wrong_uses_are_told_only_with_inheritance() {
        let mut checked = UserMutex::new(true);
        checked.lock(A);
        assert_eq!(checked.lock(A), Locked::Twice);
        assert_eq!(checked.unlock(B), Unlocked::NotOwner);
        assert_eq!(checked.owner(), A);
        let mut plain = UserMutex::new(false);
        plain.lock(A);
        assert_eq!(plain.lock(A), Locked::Waits { first: true });
        assert_eq!(plain.unlock(B), Unlocked::Wakes(A));
    }
}
