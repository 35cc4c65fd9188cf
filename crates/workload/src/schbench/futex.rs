//! What both programs share: who is who, and a futex word a thread.

use wakelab_machine::Ns;
use wakelab_sched::TaskId;
use wakelab_sim::Op;

/// A message thread or a worker, by its number among all threads: first the message threads, then
/// the workers of the first, of the second...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread(pub u32);

/// How many threads there are, which task each is, and the word that each waits on.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    messengers: u32,
    workers_each: u32,
    tasks: Vec<TaskId>,
    /// By task; the main task has none.
    threads: Vec<Option<Thread>>,
    /// Whether the thread's word says that it has been posted.
    posted: Vec<bool>,
    /// What the clock said last.
    now: Vec<Ns>,
}

impl Threads {
    pub fn new(messengers: u32, workers_each: u32) -> Threads {
        let all = (messengers + messengers * workers_each) as usize;
        Threads {
            messengers,
            workers_each,
            tasks: vec![TaskId::NONE; all],
            threads: Vec::new(),
            posted: vec![false; all],
            now: vec![Ns(0); all],
        }
    }

    pub fn all(&self) -> usize {
        self.tasks.len()
    }

    pub fn workers_each(&self) -> u32 {
        self.workers_each
    }

    /// Roles are numbers of threads, from 1 on.
    pub fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(task.index(), self.threads.len());
        let thread = role.checked_sub(1).map(Thread);
        if let Some(thread) = thread {
            self.tasks[thread.index()] = task;
        }
        self.threads.push(thread);
    }

    pub fn of(&self, task: TaskId) -> Option<Thread> {
        self.threads[task.index()]
    }

    pub fn is_messenger(&self, thread: Thread) -> bool {
        thread.0 < self.messengers
    }

    /// The message thread of a worker.
    pub fn messenger_of(&self, worker: Thread) -> Thread {
        Thread((worker.0 - self.messengers) / self.workers_each)
    }

    /// A worker of a message thread.
    pub fn worker(&self, messenger: Thread, number: u32) -> Thread {
        Thread(self.messengers + messenger.0 * self.workers_each + number)
    }

    pub fn set_now(&mut self, thread: Thread, now: Ns) {
        self.now[thread.index()] = now;
    }

    pub fn now(&self, thread: Thread) -> Ns {
        self.now[thread.index()]
    }

    /// The thread's word says again that it waits.
    pub fn block(&mut self, thread: Thread) {
        self.posted[thread.index()] = false;
    }

    /// The thread finds work without waiting: nobody has to wake it.
    pub fn run_on(&mut self, thread: Thread) {
        self.posted[thread.index()] = true;
    }

    /// Posts a thread's word: a system call, but only if it did not say so already.
    pub fn post(&mut self, thread: Thread) -> Option<Op> {
        let posted = std::mem::replace(&mut self.posted[thread.index()], true);
        (!posted).then(|| Op::FutexWake(self.tasks[thread.index()]))
    }

    /// Waits on the thread's word, unless it has been posted. To be asked again after the wait.
    pub fn wait(&mut self, thread: Thread) -> Option<Op> {
        let posted = std::mem::replace(&mut self.posted[thread.index()], false);
        (!posted).then_some(Op::Park)
    }
}

impl Thread {
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Its role.
    pub fn role(self) -> u32 {
        self.0 + 1
    }
}

/// The difference of two times as `gettimeofday` tells them, in whole us.
pub(super) fn micros(from: Ns, to: Ns) -> u32 {
    let us = (to.0 / 1000).saturating_sub(from.0 / 1000);
    u32::try_from(us).unwrap_or(u32::MAX)
}
