//! Sessions: commands with all that they make, of which one is measured.

use super::task::{Stage, Waits};
use super::{Engine, Grouping, Start};
use crate::queue::NEVER;
use crate::work::{self, Workload};
use wakelab_sched::{Sched, TaskId, TgId};

/// The address space of kernel threads, which have none.
pub(super) const NO_MM: u32 = u32::MAX;

/// The session that is measured.
const MEASURED: u16 = 0;

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Its task group.
    pub group: TgId,
    /// Its tasks are kernel threads.
    pub kernel: bool,
    /// Tasks that have not ended.
    pub live: usize,
    /// Tasks made so far.
    made: u32,
    /// The task that waits for the others to end.
    joiner: TaskId,
    /// When it is stopped.
    stop_at: u64,
}

/// The sessions of a workload, each in its group.
pub(super) fn begin(
    sched: &mut Sched,
    grouping: Grouping,
    sessions: &[work::Session],
) -> Vec<Session> {
    let begin = |(index, session): (usize, &work::Session)| Session {
        group: if session.kernel {
            TgId::ROOT
        } else {
            add_group(sched, grouping, index + 1)
        },
        kernel: session.kernel,
        live: 0,
        made: 0,
        joiner: TaskId::NONE,
        stop_at: NEVER,
    };
    sessions.iter().enumerate().map(begin).collect()
}

fn add_group(sched: &mut Sched, grouping: Grouping, number: usize) -> TgId {
    let root = TgId::ROOT;
    match grouping {
        Grouping::Root => root,
        Grouping::Autogroup => sched.add_group(&format!("/autogroup-{number}"), root, 1024),
        Grouping::Cgroup { shares } => {
            sched.add_group(&format!("/workload-{number}"), root, shares)
        }
    }
}

impl<W: Workload> Engine<W> {
    fn session_of(&mut self, p: TaskId) -> &mut Session {
        &mut self.sessions[usize::from(self.tasks[p.index()].session)]
    }

    /// A new task is in the session, with this number there.
    pub(super) fn enter_session(&mut self, session: u16) -> u32 {
        let session = &mut self.sessions[usize::from(session)];
        session.live += 1;
        session.made += 1;
        session.made - 1
    }

    /// A task ends: tells who is to be woken since only it is left, and whether the measured session
    /// has ended with it.
    pub(super) fn leave_session(&mut self, p: TaskId) -> (TaskId, bool) {
        let session = self.session_of(p);
        session.live -= 1;
        let (ended, alone) = (session.live == 0, session.live == 1);
        let joiner = if alone {
            std::mem::take(&mut session.joiner)
        } else {
            TaskId::NONE
        };
        (joiner, ended && self.tasks[p.index()].session == MEASURED)
    }

    /// Whether the task must wait for others of its session to end; if so, it will be woken.
    pub(super) fn joins(&mut self, p: TaskId) -> bool {
        let session = self.session_of(p);
        let waits = session.live > 1;
        if waits {
            session.joiner = p;
        }
        waits
    }

    /// The task gives its session the go.
    pub(super) fn start_session(&mut self, p: TaskId) {
        let session = self.tasks[p.index()].session;
        if self.start == Start::Spread {
            self.spread(session);
        }
        if session == MEASURED {
            self.start_measuring();
        }
    }

    /// What waits for a CPU when the measured part begins counts from there. In the measured session
    /// it counts whole.
    pub(super) fn others_wait_from_here(&mut self) {
        let now = self.now;
        for task in &mut self.tasks {
            if task.session != MEASURED {
                task.placed.queued_at = now;
            }
        }
    }

    /// The task's session is stopped at a time, by the timer of no task.
    pub(super) fn stop_session_at(&mut self, p: TaskId, at: u64) {
        self.session_of(p).stop_at = at;
        self.arm_timer(TaskId::NONE, at);
    }

    /// The time of a session is up.
    pub(super) fn stop_sessions(&mut self) {
        for number in 0..self.sessions.len() {
            let session = &mut self.sessions[number];
            if session.stop_at > self.now {
                continue;
            }
            session.stop_at = NEVER;
            if number == usize::from(MEASURED) {
                return self.finish();
            }
            session.joiner = TaskId::NONE;
            self.work.stopped(number as u16);
            for index in 0..self.tasks.len() {
                if usize::from(self.tasks[index].session) == number {
                    self.signal(TaskId::from_index(index));
                }
            }
        }
    }

    /// A signal that ends a task, which the workload does when it is asked for the next operation: at
    /// once if it computes, when it runs again if it sleeps, else at the end of its system call.
    fn signal(&mut self, p: TaskId) {
        let task = &mut self.tasks[p.index()];
        match task.waits {
            // Nobody leaves the queue of a mutex.
            Waits::ForLock(_) => return,
            Waits::ToRead(chan) | Waits::ToWrite(chan) => {
                let waiting = &mut self.chans[chan.index()].waiting;
                waiting.readers.retain(|&other| other != p);
                waiting.writers.retain(|&other| other != p);
                waiting.pollers.retain(|&other| other != p);
            }
            Waits::ForMutex(_) | Waits::ForSignal(_) | Waits::ForPost(_) => self.sync.forget(p),
            Waits::ForTimer | Waits::ForUnpark | Waits::ForOthers => {}
            Waits::Nothing => return self.cut_short(p),
        }
        self.tasks[p.index()].stage = Stage::Next;
        self.wake_from_interrupt(p);
    }

    /// Ends what a task does in its own code.
    fn cut_short(&mut self, p: TaskId) {
        self.cpu_locks.stop_spinning(p);
        let stage = &mut self.tasks[p.index()].stage;
        if matches!(
            stage,
            Stage::Compute(_) | Stage::Work(_) | Stage::SpinUntil(_) | Stage::LockCpu(_)
        ) {
            *stage = Stage::Next;
        }
        let cpu = self.sched.tasks[p.index()].cpu;
        if self.sched.rq(cpu).curr == p && self.in_own_code(cpu) {
            self.resume_at(cpu, self.now + self.prices.ipi_receive);
        }
    }

    /// Whether nothing can wake any task of the measured session, while others go on for ever.
    pub(super) fn measured_sleeps_for_ever(&self) -> bool {
        let measured = &self.sessions[usize::from(MEASURED)];
        if self.sessions.len() == 1 || measured.live == 0 || measured.stop_at != NEVER {
            return false;
        }
        let mut tasks = self.tasks.iter().zip(&self.sched.tasks);
        let awake = tasks.any(|(task, state)| {
            let alive = task.session == MEASURED && !state.exiting;
            alive && matches!(task.waits, Waits::Nothing | Waits::ForTimer)
        });
        !awake
    }

    /// The run ends here. What waits for a CPU has waited until now.
    pub(super) fn finish(&mut self) {
        for index in 0..self.tasks.len() {
            let p = TaskId::from_index(index);
            let task = &self.sched.tasks[index];
            let waits = task.on_rq && self.sched.rq(task.cpu).curr != p;
            if waits && !self.sched.is_delayed(p) {
                self.stats.rq_wait += self.now - self.tasks[index].placed.queued_at;
            }
        }
        self.ended_at = self.now;
        self.over = true;
    }
}
