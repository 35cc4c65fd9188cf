//! will-it-scale's `context_switch1`: pairs of tasks that send a byte to and fro over two pipes.
//!
//! *Measures* how many wake-ups and context switches a machine does on all its cores at once. *Does not
//! measure* placement: the program gives each pair a core of its own, and both its tasks stay there.
//!
//! `context_switch1_processes -t 4 -s 5`: so many pairs, on the machine's cores in turn, for six seconds
//! of warm-up and then five that count.

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::gate::{self, GO, Gate};
use crate::options::{Grammar, Opt, Takes};
use crate::printed;
use crate::quantity::{Written, seconds};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::TaskId;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Metric, Op, Outcome, Spawn, Workload};

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `context_switch1_processes`.
    Processes,
    /// `context_switch1_threads`.
    Threads,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSwitch {
    /// The program.
    pub program: Program,
    /// `-t`: pairs.
    pub tasks: u32,
    /// `-s`: intervals that count; 0 if it goes on.
    pub samples: u32,
    /// `-m`: a CPU for each pair, instead of a core.
    pub smt_affinity: bool,
    /// `--interval`: how long an interval is; the program's is a second.
    pub interval: Ns,
}

const MAX_PAIRS: u64 = 1024;
const MAX_SAMPLES: u64 = 1_000_000;
const SECOND: Ns = Ns(1_000_000_000);
/// Intervals before those that count.
const WARMUP: u32 = 6;

const OPTIONS: &[Opt<ContextSwitch>] = &[
    Opt {
        short: 't',
        long: "",
        takes: Takes::Number {
            low: 1,
            high: MAX_PAIRS,
            set: |c, n| c.tasks = n as u32,
        },
    },
    Opt {
        short: 's',
        long: "",
        takes: Takes::Number {
            low: 1,
            high: MAX_SAMPLES,
            set: |c, n| c.samples = n as u32,
        },
    },
    Opt {
        short: 'm',
        long: "",
        takes: Takes::Nothing(|c| c.smt_affinity = true),
    },
    Opt {
        short: '\0',
        long: "interval",
        takes: Takes::Text {
            expected: "a time above 0, in seconds or with a unit",
            set: |c, text| {
                c.interval = seconds(text)?;
                Some(())
            },
        },
    },
];

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Processes => "context_switch1_processes",
            Program::Threads => "context_switch1_threads",
        }
    }
}

impl ContextSwitch {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range.
    pub fn parse<'a>(
        program: Program,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<ContextSwitch, WorkloadError> {
        let grammar = Grammar {
            benchmark: program.name(),
            expected: "expected -t TASKS, -s ITERATIONS, -m or --interval TIME",
            options: OPTIONS,
        };
        let default = ContextSwitch {
            program,
            tasks: 1,
            samples: 0,
            smt_affinity: false,
            interval: SECOND,
        };
        grammar.read(default, words)
    }

    /// Where each pair may run, for the pairs in turn.
    fn places(&self, machine: &Machine) -> Vec<CpuMask> {
        let cpus = (0..machine.ncpu()).map(CpuId::from_index);
        if self.smt_affinity {
            return cpus.map(CpuMask::single).collect();
        }
        let first = |&cpu: &CpuId| machine.siblings(cpu).first() == Some(cpu);
        cpus.filter(first)
            .map(|cpu| machine.siblings(cpu))
            .collect()
    }
}

impl Benchmark for ContextSwitch {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(ContextSwitch {
            interval: crate::scaled_time(self.interval, factor),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let mut line = format!("{} -t {}", self.program.name(), self.tasks);
        if self.samples > 0 {
            line.push_str(&format!(" -s {}", self.samples));
        }
        if self.smt_affinity {
            line.push_str(" -m");
        }
        if self.interval != SECOND {
            line.push_str(&format!(" --interval {}", Written(self.interval)));
        }
        line
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        (self.samples == 0).then(|| WorkloadError::MissingOption {
            benchmark: self.program.name(),
            option: "-s",
            why: "the tasks never end, so the run must",
        })
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine))
    }

    fn printed(&self, outcome: &Outcome) -> String {
        printed::log(outcome)
    }
}

/// Their names and what they mean.
pub(crate) const METRICS: &[(&str, &str)] = &[(
    "switches_per_s",
    "bytes that got to the other end, all pairs together, a second",
)];

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    Main,
    /// The first of a pair awaits the go,
    AwaitGo,
    /// makes the second,
    Fork,
    /// writes,
    Write,
    /// and reads the answer.
    Await,
    /// The second reads,
    Read,
    /// and answers.
    Answer,
}

/// A run of the benchmark.
#[derive(Clone, Debug)]
pub struct Run {
    spec: ContextSwitch,
    gate: Gate,
    places: Vec<CpuMask>,
    states: Vec<(State, u32)>,
    /// Iterations of each pair, and those at the end of the last interval.
    done: Vec<u64>,
    before: Vec<u64>,
    intervals: u32,
    step: MainStep,
    counted: u64,
    log: Vec<String>,
}

/// What the main task does once the go is given.
#[derive(Clone, Copy, Debug)]
enum MainStep {
    Sleep,
    Look,
    Stop,
}

impl Run {
    /// A run from its start on a machine.
    pub fn new(spec: &ContextSwitch, machine: &Machine) -> Run {
        let pairs = spec.tasks as usize;
        let log = ["testcase:Context switch via pipes", "warmup"];
        Run {
            spec: *spec,
            gate: Gate::new(spec.tasks, spec.program == Program::Threads),
            places: spec.places(machine),
            states: Vec::new(),
            done: vec![0; pairs],
            before: vec![0; pairs],
            intervals: 0,
            step: MainStep::Sleep,
            counted: 0,
            log: log.map(str::to_owned).to_vec(),
        }
    }

    fn main_op(&mut self) -> Op {
        if let Some(op) = self.gate.next_op() {
            return op;
        }
        match self.step {
            MainStep::Sleep => {
                self.step = MainStep::Look;
                Op::Sleep(self.spec.interval)
            }
            MainStep::Look => {
                self.look();
                self.step = MainStep::Sleep;
                if self.intervals == WARMUP {
                    self.log.push("measurement".to_owned());
                    return Op::Start;
                }
                if self.intervals == WARMUP + self.spec.samples {
                    let average = self.counted / u64::from(self.spec.samples);
                    self.log.push(format!("average:{average}"));
                    self.step = MainStep::Stop;
                    return Op::StopAfter(Ns(0));
                }
                self.main_op()
            }
            MainStep::Stop => Op::Join,
        }
    }

    /// An interval is over.
    fn look(&mut self) {
        let pairs = self.done.iter().zip(&mut self.before);
        let diffs = pairs.map(|(&done, before)| done - std::mem::replace(before, done));
        let (mut min, mut max, mut total) = (u64::MAX, 0, 0);
        for diff in diffs {
            min = min.min(diff);
            max = max.max(diff);
            total += diff;
        }
        self.log.push(format!("min:{min} max:{max} total:{total}"));
        self.intervals += 1;
        if self.intervals > WARMUP {
            self.counted += total;
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        gate::channels((0..2 * self.spec.tasks).map(|_| Chan::pipe()))
    }

    fn max_tasks(&self) -> usize {
        2 * self.spec.tasks as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    /// The first tasks of pairs are roles 1, 2, 3..., the second ones follow.
    fn spawned(&mut self, role: u32, _task: TaskId) {
        self.states.push(match role.checked_sub(1) {
            None => (State::Main, 0),
            Some(pair) if pair < self.spec.tasks => (State::AwaitGo, pair),
            Some(number) => (State::Read, number - self.spec.tasks),
        });
    }

    /// The second task of a pair has its maker's place.
    fn attributes(&self, role: u32) -> Attributes {
        let first = role.checked_sub(1).filter(|&pair| pair < self.spec.tasks);
        Attributes {
            cpus: first.map(|pair| self.places[pair as usize % self.places.len()]),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let (state, pair) = self.states[task.index()];
        let (forth, back) = (ChanId(1 + 2 * pair), ChanId(2 + 2 * pair));
        let (op, next) = match state {
            State::Main => (self.main_op(), state),
            State::AwaitGo => (Op::Poll(GO), State::Fork),
            State::Fork => {
                let spawn = Spawn {
                    role: self.spec.tasks + 1 + pair,
                    thread: self.spec.program == Program::Threads,
                };
                (Op::Fork(spawn), State::Write)
            }
            State::Write => (Op::Write(forth, 1), State::Await),
            State::Await => (Op::Read(back, 1), State::Write),
            State::Read => (Op::Read(forth, 1), State::Answer),
            State::Answer => {
                self.done[pair as usize] += 2;
                (Op::Write(back, 1), State::Read)
            }
        };
        self.states[task.index()].0 = next;
        op
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        crate::named(METRICS, [self.counted as f64 / time.as_secs_f64()])
    }

    fn log(&self, _time: Ns) -> Vec<String> {
        self.log.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn read(line: &str) -> Result<ContextSwitch, WorkloadError> {
        ContextSwitch::parse(Program::Threads, line.split_whitespace())
    }

    #[test]
    fn pairs_get_cores_in_turn_or_cpus_with_m() {
        let machine = Machine::preset("smt2-8").unwrap();
        let of = |line| {
            let places = read(line).unwrap().places(&machine);
            (
                places.len(),
                places[1].iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            )
        };
        assert_eq!(of("-t 2"), (4, vec![1, 5]));
        assert_eq!(of("-t 2 -m"), (8, vec![1]));
    }

    #[test]
    fn an_end_is_asked_for_where_there_must_be_one() {
        assert!(read("-t 4").unwrap().lacks_end().is_some());
        assert!(read("-t 4 -s 1").unwrap().lacks_end().is_none());
        for (line, word) in [
            ("-t 2000", "2000 for '-t'"),
            ("-s", "'-s' needs"),
            ("-n", "'-n'"),
            ("--", "'--'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "[-=a-z0-9 .é]{0,40}") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(tasks in 1u32..1024, samples in 0u32..99, smt_affinity: bool, ns in 1u64..1_000_000_000_000) {
            let program = Program::Threads;
            let spec = ContextSwitch { program, tasks, samples, smt_affinity, interval: Ns(ns) };
            let line = spec.command_line();
            prop_assert_eq!(read(line.strip_prefix("context_switch1_threads").unwrap()).unwrap(), spec);
        }
    }
}
