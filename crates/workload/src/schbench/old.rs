//! schbench as of 2019 (git.kernel.org, mason/schbench, before think time became requests).
//!
//! A worker spins for `-c` us of wall time, puts itself on its message thread's list, posts it, and
//! waits on its own futex. The message thread wakes all on its list, waits to be posted, and sleeps for
//! `-s` us and up to a quarter more. The latency counts from before the first wake of a round.

use super::Samples;
use super::futex::{Thread, Threads, micros};
use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::main_task::MainTask;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::{Written, below, seconds};
use crate::worksleep::TIMER_SLACK;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Metric, Op, Outcome, Spawn, Workload};

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schbench {
    /// `-m`: message threads.
    pub messengers: u32,
    /// `-t`: workers of each.
    pub workers: u32,
    /// `-r`: how long.
    pub time: Ns,
    /// `-s`: how long a message thread sleeps, us.
    pub sleep_us: u64,
    /// `-c`: how long a worker spins, us of wall time.
    pub think_us: u64,
}

impl Default for Schbench {
    fn default() -> Self {
        Schbench {
            messengers: 2,
            workers: 16,
            time: Ns(30_000_000_000),
            sleep_us: 30_000,
            think_us: 30_000,
        }
    }
}

/// What is given so far.
#[derive(Default)]
struct Given {
    spec: Schbench,
    refused: Option<&'static str>,
}

const NAME: &str = "schbench-2019";
/// About a quarter of an hour.
const MAX_US: u64 = 1_000_000_000;

const fn number(short: char, long: &'static str, low: u64, set: fn(&mut Given, u64)) -> Opt<Given> {
    let high = if low == 0 { MAX_US } else { MAX_TASKS };
    let takes = Takes::Number { low, high, set };
    Opt { short, long, takes }
}

const GRAMMAR: Grammar<Given> = Grammar {
    benchmark: NAME,
    expected: "expected -m/--message-threads N, -t/--threads N, -r/--runtime SECONDS, -s/--sleeptime US \
         or -c/--cputime US",
    options: &[
        number('m', "message-threads", 1, |g, n| {
            g.spec.messengers = n as u32;
        }),
        number('t', "threads", 1, |g, n| g.spec.workers = n as u32),
        number('s', "sleeptime", 0, |g, n| g.spec.sleep_us = n),
        number('c', "cputime", 0, |g, n| g.spec.think_us = n),
        Opt {
            short: 'r',
            long: "runtime",
            takes: Takes::Text {
                expected: crate::TIMEOUT_EXPECTED,
                set: |g, text| {
                    g.spec.time = seconds(text)?;
                    Some(())
                },
            },
        },
        number('p', "pipe", 0, |g, _| {
            g.refused = Some("'-p' is not modelled: it copies memory between threads");
        }),
        number('R', "rps", 0, |g, _| {
            g.refused = Some("'-R' is not modelled here: 'schbench' has it, as of 2023");
        }),
        Opt {
            short: 'a',
            long: "auto",
            takes: Takes::Nothing(|g| {
                g.refused =
                    Some("'-a' is not modelled: it repeats runs with more and more workers");
            }),
        },
    ],
};

impl Schbench {
    /// Reads the words after `schbench-2019`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, and modes that are not modelled.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Schbench, WorkloadError> {
        let given = GRAMMAR.read(Given::default(), words)?;
        if let Some(message) = given.refused {
            return Err(WorkloadError::Together {
                benchmark: NAME,
                message,
            });
        }
        let spec = given.spec;
        let each = 1 + u64::from(spec.workers);
        check_tasks(NAME, u64::from(spec.messengers) * each)?;
        Ok(spec)
    }
}

impl Benchmark for Schbench {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Schbench {
            time: crate::scaled_time(self.time, factor),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        format!(
            "{NAME} -m {} -t {} -r {} -s {} -c {}",
            self.messengers,
            self.workers,
            Written(self.time),
            self.sleep_us,
            self.think_us
        )
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    /// What it wrote itself.
    fn printed(&self, outcome: &Outcome) -> String {
        crate::printed::log(outcome)
    }
}

/// The percentages that it prints, one of them with a star.
const PERCENTS: [f64; 7] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9];
const STARRED: f64 = 99.0;

/// The metrics of a run.
pub const METRICS: &[(&str, &str)] = &[
    (
        "schbench_p50_us",
        "schbench's median latency, from the first wake of a round, us",
    ),
    ("schbench_p75_us", "75th percentile of it, us"),
    ("schbench_p90_us", "90th percentile of it, us"),
    ("schbench_p95_us", "95th percentile of it, us"),
    ("schbench_p99_us", "99th percentile of it, us"),
    ("schbench_p99_5_us", "99.5th percentile of it, us"),
    ("schbench_p99_9_us", "99.9th percentile of it, us"),
    ("schbench_max_us", "longest, us"),
    ("schbench_samples", "latencies of 1 us or more"),
];

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
    /// Sleeps a while.
    Sleep,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug)]
enum Worker {
    /// Looks when its think time begins.
    Begin,
    /// Spins.
    Spin,
    /// Takes the time,
    Stamp,
    /// joins its message thread's list, and posts it.
    Post,
    /// Waits to be posted.
    Wait,
    /// Has read the clock after it ran again.
    Woken,
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
    },
    Worker {
        next: Worker,
        /// When the message thread began the round that woke it.
        stamp: Ns,
    },
}

/// A run of schbench as of 2019.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Schbench,
    main: MainTask,
    threads: Threads,
    states: Vec<State>,
    latencies: Samples,
}

impl Run {
    /// A run from its start.
    pub fn new(spec: &Schbench) -> Run {
        let threads = Threads::new(spec.messengers, spec.workers);
        let state = |number: usize| match threads.is_messenger(Thread(number as u32)) {
            true => State::Messenger {
                next: Messenger::Make(0),
                list: Vec::new(),
                round: Vec::new(),
            },
            false => State::Worker {
                next: Worker::Begin,
                stamp: Ns(0),
            },
        };
        Run {
            spec: *spec,
            main: MainTask::new(spec.messengers, true).stopping_after(spec.time),
            states: (0..threads.all()).map(state).collect(),
            threads,
            latencies: Samples::default(),
        }
    }

    /// What a message thread does next, or none if that takes no time.
    fn messenger(&mut self, thread: Thread, rng: &mut Rng) -> Option<Op> {
        let State::Messenger { next, list, round } = &mut self.states[thread.index()] else {
            return None;
        };
        match *next {
            Messenger::Make(made) if made < self.threads.workers_each() => {
                *next = Messenger::Make(made + 1);
                let role = self.threads.worker(thread, made).role();
                return Some(Op::Fork(Spawn { role, thread: true }));
            }
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
                None => *next = Messenger::Sleep,
                parks => return parks,
            },
            Messenger::Sleep => {
                *next = Messenger::Round;
                if self.spec.sleep_us > 0 {
                    let jitter = below(rng, (self.spec.sleep_us / 4).max(1));
                    let us = self.spec.sleep_us + jitter;
                    return Some(Op::Sleep(Ns(us * 1000 + TIMER_SLACK.0)));
                }
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

    /// What a worker does next, or none if that takes no time.
    fn worker(&mut self, thread: Thread) -> Option<Op> {
        let now = self.threads.now(thread);
        let State::Worker { next, stamp } = &mut self.states[thread.index()] else {
            return None;
        };
        match next {
            Worker::Begin if self.spec.think_us == 0 => *next = Worker::Stamp,
            Worker::Begin => {
                *next = Worker::Spin;
                return Some(Op::Time);
            }
            Worker::Spin => {
                *next = Worker::Stamp;
                // Until the clock, which it reads in whole us, is more than that ahead.
                let end = (now.0 / 1000 + self.spec.think_us + 1) * 1000;
                return Some(Op::SpinFor(Ns(end - now.0)));
            }
            Worker::Stamp => {
                *next = Worker::Post;
                self.threads.block(thread);
                return Some(Op::Time);
            }
            Worker::Post => {
                (*next, *stamp) = (Worker::Wait, now);
                let messenger = self.threads.messenger_of(thread);
                if let State::Messenger { list, .. } = &mut self.states[messenger.index()] {
                    list.push(thread);
                }
                return self.threads.post(messenger);
            }
            Worker::Wait => match self.threads.wait(thread) {
                None => {
                    *next = Worker::Woken;
                    return Some(Op::Time);
                }
                parks => return parks,
            },
            Worker::Woken => {
                *next = Worker::Begin;
                // One below 1 us is not recorded.
                match micros(*stamp, now) {
                    0 => {}
                    us => self.latencies.add(us),
                }
            }
        }
        None
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
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        self.threads.spawned(role, task);
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        let Some(thread) = self.threads.of(task) else {
            return self.main.next_op();
        };
        loop {
            let op = match self.threads.is_messenger(thread) {
                true => self.messenger(thread, rng),
                false => self.worker(thread),
            };
            if let Some(op) = op {
                return op;
            }
        }
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        if let Some(thread) = self.threads.of(task) {
            self.threads.set_now(thread, now);
        }
    }

    fn metrics(&self, _time: Ns) -> Vec<Metric> {
        let found = self.latencies.percentiles(&PERCENTS);
        let [p50, p75, p90, p95, p99, p99_5, p99_9] =
            std::array::from_fn(|index| f64::from(found[index].0));
        let max = f64::from(self.latencies.max());
        let count = self.latencies.count() as f64;
        let values = [p50, p75, p90, p95, p99, p99_5, p99_9, max, count];
        crate::named(METRICS, values)
    }

    fn log(&self, _time: Ns) -> Vec<String> {
        let mut log = vec!["Latency percentiles (usec)".to_owned()];
        let found = self.latencies.percentiles(&PERCENTS);
        for (percent, (us, _)) in PERCENTS.iter().zip(found) {
            let star = if *percent == STARRED { "*" } else { "" };
            log.push(format!("\t{star}{percent:2.4}th: {us}"));
        }
        // Its smallest starts at 0, and stays there.
        log.push(format!("\tmin=0, max={}", self.latencies.max()));
        log
    }
}

#[cfg(test)]
mod tests;
