//! sysbench's `cpu` and `memory`: threads that do the same over and over until the time is up.
//!
//! *Measures* how threads share CPUs, and what a busy SMT sibling takes from them. *Does not measure*
//! wake-ups: nobody waits for anybody; nor caches and memory: `memory` writes blocks that stay in the first
//! cache, and a machine has one factor for what siblings cost each other, whatever they do.
//!
//! `sysbench cpu --threads=4 --time=10 run`, `sysbench memory --threads=1 --time=10 run`.

mod latency;
mod options;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::gate::{self, GO, Gate};
use crate::printed;
use crate::quantity::in_seconds;
use latency::Latency;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Metric, Op, Outcome, Workload};

/// Which test, and what its events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `cpu`: an event looks for the primes below a limit.
    Cpu {
        /// `--cpu-max-prime`.
        max_prime: u32,
    },
    /// `memory`: an event writes a block, up to a sum of bytes.
    Memory {
        /// `--memory-block-size`, bytes.
        block: u64,
        /// `--memory-total-size`, bytes.
        total: u64,
    },
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysbench {
    /// The test.
    pub test: Test,
    /// `--threads`.
    pub threads: u32,
    /// `--time`.
    pub time: Ns,
}

/// One division of the search for primes, ps: sysbench 1.0.20's shortest event of 0.43 ms has 117,526 of
/// them, on a Xeon of 2023 (`sysbench cpu run`). How fast a division is belongs to a processor, and no
/// machine's file has it: levels are those of that Xeon, ratios do not depend on it.
const DIVISION_PS: u64 = 3_660;

/// What an event of `memory` takes beside its block (a lock, two looks at the clock), and each KiB of the
/// block, ns: the same Xeon, 1 KiB and 1 MiB blocks.
const MEMORY_EVENT_NS: u64 = 330;
const MEMORY_KIB_NS: u64 = 49;

/// Events shorter than this are simulated several at a time.
const BATCH_NS: u64 = 100_000;

impl Sysbench {
    /// Reads the words after `sysbench`.
    ///
    /// # Errors
    /// Unknown options, tests or commands, values out of range.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Sysbench, WorkloadError> {
        options::parse(words)
    }

    /// How long an event takes on a CPU at full speed, ns.
    fn event_ns(&self) -> u64 {
        let ns = match self.test {
            Test::Cpu { max_prime } => divisions(max_prime) * DIVISION_PS / 1000,
            Test::Memory { block, .. } => MEMORY_EVENT_NS + block * MEMORY_KIB_NS / 1024,
        };
        ns.max(1)
    }
}

/// Divisions until every number from 3 up to below the limit is known to be prime or not.
fn divisions(max_prime: u32) -> u64 {
    let of = |number: u64| {
        let root = number.isqrt();
        let divisor = (2..=root).find(|divisor| number.is_multiple_of(*divisor));
        divisor.unwrap_or(root).saturating_sub(1)
    };
    (3..u64::from(max_prime)).map(of).sum()
}

impl Benchmark for Sysbench {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Sysbench {
            time: crate::scaled_time(self.time, factor),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let common = format!(
            "--threads={} --time={}",
            self.threads,
            in_seconds(self.time)
        );
        match self.test {
            Test::Cpu { max_prime } => {
                format!("sysbench cpu --cpu-max-prime={max_prime} {common} run")
            }
            Test::Memory { block, total } => format!(
                "sysbench memory --memory-block-size={block} --memory-total-size={total} {common} run"
            ),
        }
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    fn printed(&self, outcome: &Outcome) -> String {
        printed::log(outcome)
    }
}

/// Their names and what they mean.
pub(crate) const METRICS: &[(&str, &str)] =
    &[("events_per_s", "events of all threads together, a second")];

/// A thread.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// When it was given the go, and when its last event ended.
    began: Option<Ns>,
    ended: Ns,
    events: u64,
    /// Events under way.
    batch: u64,
}

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    Main,
    AwaitGo,
    Clock,
    Event,
}

/// A run of sysbench.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Sysbench,
    event_ns: u64,
    /// Events that a thread does at a time.
    batch: u64,
    /// Events left, of a test that has a limit.
    left: u64,
    gate: Gate,
    joined: bool,
    states: Vec<State>,
    threads: Vec<Thread>,
    latency: Latency,
}

impl Run {
    /// A run from its start.
    pub fn new(spec: &Sysbench) -> Run {
        let event_ns = spec.event_ns();
        Run {
            spec: *spec,
            event_ns,
            batch: BATCH_NS.div_ceil(event_ns),
            left: match spec.test {
                Test::Cpu { .. } => u64::MAX,
                Test::Memory { block, total } => total.div_ceil(block),
            },
            gate: Gate::new(spec.threads, true),
            joined: false,
            states: Vec::new(),
            threads: vec![Thread::default(); spec.threads as usize],
            latency: Latency::new(),
        }
    }

    fn main_op(&mut self) -> Op {
        if let Some(op) = self.gate.next_op() {
            return op;
        }
        if std::mem::replace(&mut self.joined, true) {
            return Op::Exit;
        }
        Op::Join
    }

    /// A thread that has just looked at the clock does its next events, or ends.
    fn event(&mut self, number: usize) -> Op {
        let thread = &mut self.threads[number];
        let elapsed = thread.ended.0 - thread.began.unwrap_or_default().0;
        if elapsed >= self.spec.time.0 || self.left == 0 {
            return Op::Exit;
        }
        thread.batch = self.batch.min(self.left);
        self.left -= thread.batch;
        Op::Compute(Ns(thread.batch * self.event_ns))
    }

    fn events(&self) -> u64 {
        self.threads.iter().map(|thread| thread.events).sum()
    }

    /// What comes before the general statistics.
    fn head(&self, seconds: f64) -> Vec<String> {
        let events = self.events();
        let mut lines = vec![
            "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)".to_owned(),
            String::new(),
            "Running the test with following options:".to_owned(),
            format!("Number of threads: {}", self.spec.threads),
            "Initializing random number generator from current time".to_owned(),
            String::new(),
            String::new(),
        ];
        let started = [
            String::new(),
            "Initializing worker threads...".to_owned(),
            String::new(),
            "Threads started!".to_owned(),
            String::new(),
        ];
        match self.spec.test {
            Test::Cpu { max_prime } => {
                lines.push(format!("Prime numbers limit: {max_prime}"));
                lines.extend(started);
                lines.push("CPU speed:".to_owned());
                let rate = events as f64 / seconds;
                lines.push(format!("    events per second: {rate:>8.2}"));
            }
            Test::Memory { block, total } => {
                lines.push("Running memory speed test with the following options:".to_owned());
                lines.push(format!("  block size: {}KiB", block / 1024));
                lines.push(format!("  total size: {}MiB", total >> 20));
                lines.push("  operation: write".to_owned());
                lines.push("  scope: global".to_owned());
                lines.extend(started);
                let rate = events as f64 / seconds;
                let mib = (events * block) as f64 / f64::from(1 << 20);
                lines.push(format!(
                    "Total operations: {events} ({rate:>8.2} per second)"
                ));
                lines.push(String::new());
                lines.push(format!(
                    "{mib:.2} MiB transferred ({:.2} MiB/sec)",
                    mib / seconds
                ));
                lines.push(String::new());
            }
        }
        lines
    }

    /// Means and standard deviations over threads.
    fn fairness(&self) -> [String; 3] {
        let events: Vec<f64> = self.threads.iter().map(|t| t.events as f64).collect();
        let took = |t: &Thread| Ns(t.ended.0 - t.began.unwrap_or_default().0).as_secs_f64();
        let times: Vec<f64> = self.threads.iter().map(took).collect();
        let (events, times) = (mean_and_deviation(&events), mean_and_deviation(&times));
        [
            "Threads fairness:".to_owned(),
            format!(
                "    events (avg/stddev):           {:.4}/{:.2}",
                events.0, events.1
            ),
            format!(
                "    execution time (avg/stddev):   {:.4}/{:.2}",
                times.0, times.1
            ),
        ]
    }
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        gate::channels([])
    }

    fn max_tasks(&self) -> usize {
        self.spec.threads as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        match self.spec.test {
            Test::Cpu { .. } => crate::SMALL_TASK_KIB,
            // What a thread finds in its private caches again is bounded by them; 1 MiB is a big one.
            Test::Memory { block, .. } => crate::SMALL_TASK_KIB + (block / 1024).min(1024),
        }
    }

    fn spawned(&mut self, role: u32, _task: TaskId) {
        let main = role == 0;
        self.states
            .push(if main { State::Main } else { State::AwaitGo });
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let state = self.states[task.index()];
        let (op, next) = match state {
            State::Main => (self.main_op(), state),
            State::AwaitGo => (Op::Poll(GO), State::Clock),
            State::Clock => (Op::Time, State::Event),
            State::Event => (self.event(task.index() - 1), State::Clock),
        };
        self.states[task.index()] = next;
        op
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        let thread = &mut self.threads[task.index() - 1];
        if thread.began.is_none() {
            thread.began = Some(now);
        } else {
            self.latency
                .add(thread.batch, now.0 - thread.ended.0, self.event_ns);
            thread.events += thread.batch;
        }
        thread.ended = now;
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        crate::named(METRICS, [self.events() as f64 / time.as_secs_f64()])
    }

    fn log(&self, time: Ns) -> Vec<String> {
        let seconds = time.as_secs_f64();
        let mut lines = self.head(seconds);
        lines.extend([
            String::new(),
            "General statistics:".to_owned(),
            format!("    total time:                          {seconds:.4}s"),
            format!("    total number of events:              {}", self.events()),
            String::new(),
        ]);
        lines.extend(self.latency.lines());
        lines.push(String::new());
        lines.extend(self.fairness());
        lines.push(String::new());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted by running the program's loop.
    #[test]
    fn the_search_for_primes_below_10000_divides_117526_times() {
        assert_eq!(divisions(10_000), 117_526);
        assert_eq!(divisions(5), 1);
    }

    #[test]
    fn deviations_are_those_of_the_whole_population() {
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (2.0, 1.0));
    }
}
