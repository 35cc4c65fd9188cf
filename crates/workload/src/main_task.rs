//! The main task of a workload that measures from its first task on.

use wakelab_machine::Ns;
use wakelab_sched::TaskId;
use wakelab_sim::{Op, Spawn};

/// Starts the measured part, makes roles 1, 2, 3... and waits for them to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MainTask {
    tasks: u32,
    thread: bool,
    stop_after: Option<Ns>,
    unparks: Option<TaskId>,
    started: bool,
    made: u32,
    joined: bool,
}

impl MainTask {
    /// The maker of so many threads or processes.
    pub fn new(tasks: u32, thread: bool) -> MainTask {
        MainTask {
            tasks,
            thread,
            stop_after: None,
            unparks: None,
            started: false,
            made: 0,
            joined: false,
        }
    }

    /// The same for tasks that never end: the run stops after a time, if there is one.
    pub fn stopping_after(self, time: impl Into<Option<Ns>>) -> MainTask {
        MainTask {
            stop_after: time.into(),
            ..self
        }
    }

    /// The same, and when all are made it unparks one of them.
    pub fn unparking(self, task: Option<TaskId>) -> MainTask {
        MainTask {
            unparks: task,
            ..self
        }
    }

    /// What it does next.
    pub fn next_op(&mut self) -> Op {
        if !std::mem::replace(&mut self.started, true) {
            return Op::Start;
        }
        if let Some(time) = self.stop_after.take() {
            return Op::StopAfter(time);
        }
        if let Some(op) = self.next_fork() {
            return op;
        }
        self.after_forks()
    }

    /// Whether the tasks are made, so that what follows has all of them.
    pub fn has_made_all(&self) -> bool {
        self.made == self.tasks
    }

    fn next_fork(&mut self) -> Option<Op> {
        (self.made < self.tasks).then(|| {
            self.made += 1;
            Op::Fork(Spawn {
                role: self.made,
                thread: self.thread,
            })
        })
    }

    fn after_forks(&mut self) -> Op {
        if let Some(task) = self.unparks.take() {
            return Op::Unpark(task);
        }
        if std::mem::replace(&mut self.joined, true) {
            return Op::Exit;
        }
        Op::Join
    }
}
