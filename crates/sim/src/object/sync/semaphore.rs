//! `sem_t`: a number of posts that have not been taken yet.
//!
//! A post wakes the first that sleeps, which tries again: who comes in between may take the post.

use std::collections::VecDeque;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;

/// A semaphore.
#[derive(Clone, Debug, Default)]
pub struct Semaphore {
    /// The CPU that last had its cache line.
    pub last_cpu: CpuId,
    value: u64,
    waiters: VecDeque<TaskId>,
}

impl Semaphore {
    /// Takes a post if there is one, else joins those that wait. Tells whether it was taken.
    pub fn acquire(&mut self, p: TaskId) -> bool {
        if self.value > 0 {
            self.value -= 1;
            return true;
        }
        self.waiters.push_back(p);
        false
    }

    /// A task that waits for it does so no more.
    pub fn forget(&mut self, p: TaskId) {
        self.waiters.retain(|&waiter| waiter != p);
    }

    /// Posts. Gives who is to be woken.
    pub fn post(&mut self) -> Option<TaskId> {
        self.value += 1;
        self.waiters.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_remembered_and_may_be_taken_before_the_sleeper() {
        let [a, b] = [TaskId(0), TaskId(1)];
        let mut semaphore = Semaphore::default();
        assert_eq!(semaphore.post(), None);
        assert!(semaphore.acquire(a));
        assert!(!semaphore.acquire(a));
        assert_eq!(semaphore.post(), Some(a));
        assert!(semaphore.acquire(b));
        assert!(!semaphore.acquire(a));
        assert_eq!(semaphore.post(), Some(a));
        assert!(semaphore.acquire(a));
    }
}
