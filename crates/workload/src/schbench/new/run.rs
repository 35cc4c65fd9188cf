//! A run of `schbench` from 2023 on: what its threads do.

use super::super::futex::{Thread, Threads, micros};
use super::printed::Report;
use super::{METRICS, Schbench};
use crate::worksleep::TIMER_SLACK;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Metric, Op, Spawn, Workload};

const SECOND_US: u32 = 1_000_000;
const SECOND: Ns = Ns(1_000_000_000);

/// A worker gets no more requests than these ahead; its message thread pauses for so long instead.
const MOST_PENDING: u32 = 128;
const PAUSE: Ns = Ns(100_000);

/// What the main thread does next.
#[derive(Clone, Copy, Debug)]
enum Main {
    Start,
    Make(u32),
    Look,
    Seen,
    Ended,
}

/// What a message thread does next.
#[derive(Clone, Copy, Debug)]
enum Messenger {
    /// Makes the worker with this number.
    Make(u32),
    /// Takes its list and the time.
    Round,
    /// Wakes those who were on it.
    Wake,
    /// Waits to be posted.
    Wait,
    /// With `-R`: looks when its second begins,
    Second,
    Began,
    /// takes the time for the next request,
    Next,
    /// gives it to a worker,
    Give,
    /// looks what is left of the second,
    Given,
    /// and sleeps it away.
    Rest,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug)]
enum Worker {
    /// Takes the time,
    Stamp,
    /// looks for requests, or joins its message thread's list, and posts it.
    Post,
    /// Waits to be posted.
    Wait,
    /// Has read the clock after it ran again.
    Woken,
    /// Begins a request: a nap and a look at the clock, in calibration the other way round.
    Serve,
    Time,
    Timed,
    Nap,
    /// Then the lock of its CPU, the work, and a look at the clock.
    Lock,
    Work,
    Unlock,
    Done,
    Record,
}

/// What a thread does next, with what it keeps.
#[derive(Clone, Debug)]
enum State {
    Messenger {
        next: Messenger,
        /// Workers that wait, the last of them first to be woken.
        list: Vec<Thread>,
        /// Of these, those of the round under way.
        round: Vec<Thread>,
        /// With `-R`: requests left of the second, and whose turn it is.
        left: u64,
        turn: u32,
        second: Ns,
    },
    Worker {
        next: Worker,
        /// When it was posted.
        stamp: Ns,
        /// Requests that its message thread counts as not begun.
        pending: u32,
        /// Requests on its list, and of those that it took from there.
        queued: u32,
        serving: u32,
        /// When the request began.
        began: Ns,
    },
}

/// A run of schbench from 2023 on.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Schbench,
    ncpu: usize,
    rps: u64,
    work: Ns,
    main: Main,
    main_now: Ns,
    threads: Threads,
    states: Vec<State>,
    /// Waiting in run queues, ns, and how often it ran, of each thread.
    waits: Vec<(u64, u64)>,
    report: Report,
}

impl Run {
    /// A run from its start on a machine.
    pub fn new(spec: &Schbench, machine: &Machine) -> Run {
        let ncpu = machine.ncpu();
        let threads = Threads::new(spec.messengers, spec.workers_each(ncpu));
        let state = |number: usize| match threads.is_messenger(Thread(number as u32)) {
            true => State::Messenger {
                next: Messenger::Make(0),
                list: Vec::new(),
                round: Vec::new(),
                left: 0,
                turn: 0,
                second: Ns(0),
            },
            false => State::Worker {
                next: Worker::Stamp,
                stamp: Ns(0),
                pending: 0,
                queued: 0,
                serving: 0,
                began: Ns(0),
            },
        };
        Run {
            ncpu,
            // Fewer than one for each message thread is none, which is as many as are done.
            rps: spec.rps / u64::from(spec.messengers),
            work: spec.work(),
            main: Main::Start,
            main_now: Ns(0),
            states: (0..threads.all()).map(state).collect(),
            waits: vec![(0, 0); threads.all()],
            report: Report::new(spec, &machine.name, threads.workers_each()),
            threads,
            spec: spec.clone(),
        }
    }

    fn main(&mut self) -> Op {
        match self.main {
            Main::Start => {
                self.main = Main::Make(0);
                Op::Start
            }
            Main::Make(made) if made < self.spec.messengers => {
                self.main = Main::Make(made + 1);
                let role = Thread(made).role();
                Op::Fork(Spawn { role, thread: true })
            }
            Main::Make(_) | Main::Look => {
                self.main = Main::Seen;
                Op::Time
            }
            Main::Seen => match self.report.look(self.main_now, self.delays()) {
                Some(rest) => {
                    self.main = Main::Look;
                    Op::Sleep(rest.min(SECOND) + TIMER_SLACK)
                }
                None => {
                    self.main = Main::Ended;
                    Op::StopAfter(Ns(0))
                }
            },
            Main::Ended => Op::Park,
        }
    }

    /// The mean wait for a CPU of message threads and of workers, ns.
    fn delays(&self) -> [u64; 2] {
        let (messengers, workers) = self.waits.split_at(self.spec.messengers as usize);
        [messengers, workers].map(|waits| {
            let means = waits.iter().map(|&(sum, count)| sum / count.max(1));
            means.sum::<u64>() / waits.len().max(1) as u64
        })
    }

    /// What a message thread does next, or none if that takes no time.
    fn messenger(&mut self, thread: Thread) -> Option<Op> {
        let now = self.threads.now(thread);
        let State::Messenger {
            next,
            list,
            round,
            left,
            turn,
            second,
        } = &mut self.states[thread.index()]
        else {
            return None;
        };
        match *next {
            Messenger::Make(made) if made < self.threads.workers_each() => {
                *next = Messenger::Make(made + 1);
                let role = self.threads.worker(thread, made).role();
                return Some(Op::Fork(Spawn { role, thread: true }));
            }
            Messenger::Make(_) if self.rps > 0 => *next = Messenger::Second,
            Messenger::Make(_) => *next = Messenger::Round,
            Messenger::Round => {
                self.threads.block(thread);
                std::mem::swap(list, round);
                *next = Messenger::Wake;
                return Some(Op::Time);
            }
            Messenger::Wake => match round.pop() {
                Some(worker) => return self.wake(thread, worker),
                None => *next = Messenger::Wait,
            },
            Messenger::Wait => match self.threads.wait(thread) {
                None => *next = Messenger::Round,
                parks => return parks,
            },
            Messenger::Second => {
                *next = Messenger::Began;
                return Some(Op::Time);
            }
            Messenger::Began => (*next, *second, *left) = (Messenger::Next, now, self.rps),
            Messenger::Next if *left == 0 => {
                *next = Messenger::Given;
                return Some(Op::Time);
            }
            Messenger::Next => {
                *left -= 1;
                *next = Messenger::Give;
                return Some(Op::Time);
            }
            Messenger::Give => {
                *next = Messenger::Next;
                let worker = self.threads.worker(thread, *turn);
                *turn = (*turn + 1) % self.threads.workers_each();
                return self.give(thread, worker);
            }
            Messenger::Given => {
                let rest = SECOND_US.saturating_sub(micros(*second, now));
                *next = if rest == 0 {
                    Messenger::Second
                } else {
                    Messenger::Rest
                };
                if rest > 0 {
                    return Some(Op::Sleep(Ns(u64::from(rest) * 1000) + TIMER_SLACK));
                }
            }
            Messenger::Rest => {
                *next = Messenger::Given;
                return Some(Op::Time);
            }
        }
        None
    }

    fn wake(&mut self, messenger: Thread, worker: Thread) -> Option<Op> {
        let now = self.threads.now(messenger);
        if let State::Worker { stamp, .. } = &mut self.states[worker.index()] {
            *stamp = now;
        }
        self.threads.post(worker)
    }

    /// Puts a request on a worker's list, or pauses if that is long.
    fn give(&mut self, messenger: Thread, worker: Thread) -> Option<Op> {
        if let State::Worker {
            pending, queued, ..
        } = &mut self.states[worker.index()]
        {
            if *pending > MOST_PENDING {
                return Some(Op::Sleep(PAUSE + TIMER_SLACK));
            }
            *pending += 1;
            *queued += 1;
        }
        self.wake(messenger, worker)
    }

    /// What a worker does next, or none if that takes no time.
    fn worker(&mut self, thread: Thread) -> Option<Op> {
        let now = self.threads.now(thread);
        let State::Worker {
            next,
            stamp,
            serving,
            began,
            ..
        } = &mut self.states[thread.index()]
        else {
            return None;
        };
        let calibrate = self.spec.calibrate;
        match next {
            Worker::Stamp => {
                *next = Worker::Post;
                self.threads.block(thread);
                return Some(Op::Time);
            }
            Worker::Post => return self.post(thread, now),
            Worker::Wait => match self.threads.wait(thread) {
                None => {
                    *next = Worker::Woken;
                    return Some(Op::Time);
                }
                parks => return parks,
            },
            Worker::Woken => {
                self.report.woken(micros(*stamp, now));
                (*next, *serving) = match self.rps {
                    0 => (Worker::Serve, 1),
                    _ => (Worker::Stamp, 0),
                };
            }
            Worker::Serve if calibrate => *next = Worker::Nap,
            Worker::Serve => *next = Worker::Time,
            Worker::Time => {
                *next = Worker::Timed;
                return Some(Op::Time);
            }
            Worker::Timed => {
                *began = now;
                *next = if calibrate { Worker::Lock } else { Worker::Nap };
            }
            Worker::Nap => {
                *next = if calibrate {
                    Worker::Time
                } else {
                    Worker::Lock
                };
                if self.spec.nap_us > 0 {
                    return Some(Op::Sleep(Ns(self.spec.nap_us * 1000) + TIMER_SLACK));
                }
            }
            Worker::Lock => {
                *next = Worker::Work;
                if self.spec.locks {
                    return Some(Op::LockCpu);
                }
            }
            Worker::Work => {
                *next = Worker::Unlock;
                if self.work.0 > 0 {
                    return Some(Op::Compute(self.work));
                }
            }
            Worker::Unlock => {
                *next = Worker::Done;
                if self.spec.locks {
                    return Some(Op::UnlockCpu);
                }
            }
            Worker::Done => {
                *next = Worker::Record;
                return Some(Op::Time);
            }
            Worker::Record => {
                *serving -= 1;
                *next = match *serving {
                    0 => Worker::Stamp,
                    _ => Worker::Serve,
                };
                self.report.served(micros(*began, now));
            }
        }
        None
    }

    /// A worker looks for requests, or for somebody to give it some.
    fn post(&mut self, thread: Thread, now: Ns) -> Option<Op> {
        let messenger = self.threads.messenger_of(thread);
        let State::Worker {
            next,
            stamp,
            pending,
            queued,
            serving,
            ..
        } = &mut self.states[thread.index()]
        else {
            return None;
        };
        *stamp = now;
        *pending = 0;
        if *queued > 0 {
            *serving = std::mem::take(queued);
            *next = Worker::Serve;
            self.threads.run_on(thread);
            return None;
        }
        *next = Worker::Wait;
        if self.rps == 0
            && let State::Messenger { list, .. } = &mut self.states[messenger.index()]
        {
            list.push(thread);
        }
        self.threads.post(messenger)
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.threads.all() + 1
    }

    fn working_set_kib(&self) -> u64 {
        self.spec.footprint_kib.max(crate::SMALL_TASK_KIB)
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        self.threads.spawned(role, task);
    }

    fn attributes(&self, role: u32) -> Attributes {
        Attributes {
            cpus: role
                .checked_sub(1)
                .map(|number| self.spec.cpus(number, self.ncpu)),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let Some(thread) = self.threads.of(task) else {
            return self.main();
        };
        loop {
            let op = match self.threads.is_messenger(thread) {
                true => self.messenger(thread),
                false => self.worker(thread),
            };
            if let Some(op) = op {
                return op;
            }
        }
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        match self.threads.of(task) {
            Some(thread) => self.threads.set_now(thread, now),
            None => self.main_now = now,
        }
    }

    fn waited(&mut self, task: TaskId, wait: Ns) {
        if let Some(thread) = self.threads.of(task) {
            let (sum, count) = &mut self.waits[thread.index()];
            *sum += wait.0;
            *count += 1;
        }
    }

    fn metrics(&self, _time: Ns) -> Vec<Metric> {
        crate::named(METRICS, self.report.values())
    }

    fn log(&self, _time: Ns) -> Vec<String> {
        self.report.text().lines().map(str::to_owned).collect()
    }
}
