//! What threads of a process wait for each other with: mutexes, condition variables and semaphores of
//! user space, as glibc makes them of futexes.
//!
//! What is free is taken, and what nobody waits for is let go, without the kernel: that costs the
//! transfer of the cache line. Whoever must wait makes a system call and joins the end of the queue;
//! whoever wakes makes one too. (glibc `nptl/`; kernel `futex/`.)

pub mod condvar;
pub mod mutex;
pub mod semaphore;

use condvar::Condvar;
use mutex::UserMutex;
use semaphore::Semaphore;
use wakelab_sched::TaskId;

/// How many of each exist from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Mutexes.
    pub mutexes: u32,
    /// Whether they inherit priorities (PTHREAD_PRIO_INHERIT).
    pub inherit: bool,
    /// Condition variables.
    pub condvars: u32,
    /// Semaphores, at 0.
    pub semaphores: u32,
}

/// An operation on one or two of them, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOp {
    /// `pthread_mutex_lock`.
    Lock(u32),
    /// `pthread_mutex_unlock`.
    Unlock(u32),
    /// `pthread_cond_wait` on a condition variable with a mutex.
    Wait(u32, u32),
    /// `pthread_cond_signal`.
    Signal(u32),
    /// `pthread_cond_broadcast`.
    Broadcast(u32),
    /// `sem_post`.
    Post(u32),
    /// `sem_wait`.
    Acquire(u32),
}

impl SyncOp {
    /// The same on objects behind so many others.
    pub fn behind(self, others: SyncCounts) -> SyncOp {
        let SyncCounts {
            mutexes: m,
            condvars: c,
            semaphores: s,
            ..
        } = others;
        match self {
            SyncOp::Lock(mutex) => SyncOp::Lock(mutex + m),
            SyncOp::Unlock(mutex) => SyncOp::Unlock(mutex + m),
            SyncOp::Wait(condvar, mutex) => SyncOp::Wait(condvar + c, mutex + m),
            SyncOp::Signal(condvar) => SyncOp::Signal(condvar + c),
            SyncOp::Broadcast(condvar) => SyncOp::Broadcast(condvar + c),
            SyncOp::Post(semaphore) => SyncOp::Post(semaphore + s),
            SyncOp::Acquire(semaphore) => SyncOp::Acquire(semaphore + s),
        }
    }
}

/// All of a run.
#[derive(Clone, Debug, Default)]
pub struct SyncObjects {
    /// Mutexes.
    pub mutexes: Vec<UserMutex>,
    /// Condition variables.
    pub condvars: Vec<Condvar>,
    /// Semaphores.
    pub semaphores: Vec<Semaphore>,
}

impl SyncObjects {
    /// So many, all free.
    pub fn new(counts: SyncCounts) -> SyncObjects {
        SyncObjects {
            mutexes: vec![UserMutex::new(counts.inherit); counts.mutexes as usize],
            condvars: vec![Condvar::default(); counts.condvars as usize],
            semaphores: vec![Semaphore::default(); counts.semaphores as usize],
        }
    }

    /// How many there are; not whether they inherit priorities.
    pub fn counts(&self) -> SyncCounts {
        SyncCounts {
            mutexes: self.mutexes.len() as u32,
            inherit: false,
            condvars: self.condvars.len() as u32,
            semaphores: self.semaphores.len() as u32,
        }
    }

    /// Adds others behind these.
    pub fn append(&mut self, mut others: SyncObjects) {
        self.mutexes.append(&mut others.mutexes);
        self.condvars.append(&mut others.condvars);
        self.semaphores.append(&mut others.semaphores);
    }

    /// A task that a signal ends waits for none of them any more.
    pub fn forget(&mut self, p: TaskId) {
        self.mutexes.iter_mut().for_each(|mutex| mutex.forget(p));
        for condvar in &mut self.condvars {
            condvar.waiters.retain(|&waiter| waiter != p);
        }
        self.semaphores
            .iter_mut()
            .for_each(|semaphore| semaphore.forget(p));
    }
}
