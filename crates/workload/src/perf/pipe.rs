//! `perf bench sched pipe`: two tasks send an int to and fro over two pipes.
//!
//! *Measures* a wake-up, a context switch and a pipe operation each way, alone or across CPUs as
//! placement has it. *Does not measure* the idle search of a busy machine: there are two tasks.

use super::Format;
use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::options::{Grammar, Opt, Takes};
use crate::printed;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Metric, Op, Outcome, Spawn, Workload};

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// `-l`: round trips.
    pub loops: u64,
    /// `-T`: two threads beside the main one, instead of the main process and a child.
    pub threaded: bool,
    format: Format,
}

const NAME: &str = "perf bench sched pipe";
const MAX_LOOPS: u64 = 1_000_000_000_000;

const GRAMMAR: Grammar<Pipe> = Grammar {
    benchmark: NAME,
    expected: "expected -l/--loop N or -T/--threaded",
    options: &[
        Opt {
            short: 'l',
            long: "loop",
            takes: Takes::Number {
                low: 1,
                high: MAX_LOOPS,
                set: |pipe, n| pipe.loops = n,
            },
        },
        Opt {
            short: 'T',
            long: "threaded",
            takes: Takes::Nothing(|pipe| pipe.threaded = true),
        },
    ],
};

impl Pipe {
    /// Reads the words after `pipe`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range.
    pub fn parse<'a>(
        format: Format,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Pipe, WorkloadError> {
        let default = Pipe {
            loops: 1_000_000,
            threaded: false,
            format,
        };
        GRAMMAR.read(default, words)
    }
}

impl Benchmark for Pipe {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        let loops = (self.loops as f64 * factor).round();
        Box::new(Pipe {
            loops: loops.clamp(1.0, MAX_LOOPS as f64) as u64,
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let threaded = if self.threaded { " -T" } else { "" };
        format!("{} pipe{threaded} -l {}", self.format.command(), self.loops)
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    fn printed(&self, outcome: &Outcome) -> String {
        let micros = printed::micros(outcome);
        let time = printed::seconds(micros);
        if self.format == Format::Simple {
            return format!("{time}\n");
        }
        let kind = if self.threaded {
            "threads"
        } else {
            "processes"
        };
        let micros_each = micros as f64 / self.loops as f64;
        let each_second = self.loops as f64 / (micros as f64 / 1e6);
        format!(
            "# Running 'sched/pipe' benchmark:\n\
             # Executed {} pipe operations between two {kind}\n\n \
             {:>14}: {time} [sec]\n\n \
             {micros_each:>14.6} usecs/op\n \
             {:>14} ops/sec\n",
            self.loops, "Total time", each_second as i64,
        )
    }
}

/// Their names and what they mean.
pub(crate) const METRICS: &[(&str, &str)] = &[
    ("usecs_per_op", "time of a round trip, us"),
    ("ops_per_s", "round trips a second"),
];

/// The pipe that the second task writes to.
const FORTH: ChanId = ChanId(0);
/// The pipe that the first one answers by.
const BACK: ChanId = ChanId(1);
/// `sizeof(int)`.
const INT: u32 = 4;

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The main task: starts the clock,
    Start,
    /// makes the first task and, if it is not the second one itself, that one,
    Fork(u32),
    /// and waits.
    Join,
    /// Reads first.
    Read {
        left: u64,
    },
    Answer {
        left: u64,
    },
    /// Writes first.
    Write {
        left: u64,
    },
    Await {
        left: u64,
    },
    End,
}

/// A run of the benchmark.
#[derive(Clone, Debug)]
pub struct Run {
    loops: u64,
    threaded: bool,
    states: Vec<State>,
}

impl Run {
    /// A run from its start.
    pub fn new(pipe: &Pipe) -> Run {
        Run {
            loops: pipe.loops,
            threaded: pipe.threaded,
            states: Vec::new(),
        }
    }

    fn step(&self, state: State) -> (Op, State) {
        let tasks = if self.threaded { 2 } else { 1 };
        match state {
            State::Start => (Op::Start, State::Fork(1)),
            State::Fork(role) => {
                let thread = self.threaded;
                let next = match role {
                    role if role < tasks => State::Fork(role + 1),
                    _ if self.threaded => State::Join,
                    _ => State::Write { left: self.loops },
                };
                (Op::Fork(Spawn { role, thread }), next)
            }
            State::Read { left: 0 } | State::End => (Op::Exit, State::End),
            State::Read { left } => (Op::Read(FORTH, INT), State::Answer { left }),
            State::Answer { left } => (Op::Write(BACK, INT), State::Read { left: left - 1 }),
            State::Write { left: 0 } if !self.threaded => self.step(State::Join),
            State::Write { left: 0 } => (Op::Exit, State::End),
            State::Write { left } => (Op::Write(FORTH, INT), State::Await { left }),
            State::Await { left } => (Op::Read(BACK, INT), State::Write { left: left - 1 }),
            State::Join => (Op::Join, State::End),
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        vec![Chan::pipe(), Chan::pipe()]
    }

    fn max_tasks(&self) -> usize {
        3
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, role: u32, _task: TaskId) {
        let left = self.loops;
        self.states.push(match role {
            0 => State::Start,
            1 => State::Read { left },
            _ => State::Write { left },
        });
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let (op, next) = self.step(self.states[task.index()]);
        self.states[task.index()] = next;
        op
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        let values = [
            time.0 as f64 / 1e3 / self.loops as f64,
            self.loops as f64 / time.as_secs_f64(),
        ];
        crate::named(METRICS, values)
    }
}
