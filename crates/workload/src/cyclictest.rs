//! cyclictest: threads that sleep to a time, over and over, and tell how late they ran (rt-tests 2.4).
//!
//! *Measures* the way from a timer to the thread: the timer's slack, idle exits, the run queue. *Does not
//! measure* real-time scheduling: the threads are SCHED_OTHER, as without `-p`.
//!
//! `-p` above 0 is refused: SCHED_FIFO tasks take time from the fair class by rules of their own
//! (throttling, pushing and pulling, a fair server from 6.12 on), of which nothing is modelled.

mod options;
mod printed;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::quantity::Written;
use crate::schbench::Samples;
use crate::worksleep::TIMER_SLACK;
use printed::Record;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Metric, Op, Outcome, Spawn, Workload};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cyclictest {
    /// `-t`: threads; none is one for each CPU that they may use.
    pub threads: Option<u32>,
    /// `-i`: the first thread's interval, us.
    pub interval_us: u64,
    /// `-d`: how much longer each further thread's is, us. None with a histogram.
    pub distance_us: u64,
    /// `-l`: intervals after which a thread ends, and with it the test.
    pub loops: Option<u64>,
    /// `-D`: how long.
    pub time: Option<Ns>,
    /// `-a`: on which CPUs the threads are, each on one.
    pub affinity: Affinity,
    /// `-h`, `-H`: the histogram that is printed.
    pub histogram: Option<Histogram>,
    /// `--latency`: the longest exit of an idle state, us; none with `--default-system`.
    pub latency_us: Option<u64>,
}

/// Where threads run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Wherever the scheduler puts them.
    Free,
    /// Each on one of all CPUs in turn.
    All,
    /// Each on one of these in turn.
    Some(CpuMask),
}

/// A histogram to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Latencies from here on are overflows, us.
    pub limit_us: u32,
    /// Whether a column sums up all threads (`-H`).
    pub of_all: bool,
}

const NAME: &str = "cyclictest";

impl Cyclictest {
    /// Reads the words after `cyclictest`.
    ///
    /// # Errors
    /// Unknown, missing or valueless options, values out of range, and what is not modelled.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Cyclictest, WorkloadError> {
        options::parse(words)
    }

    fn interval(&self, number: u32) -> Ns {
        let distance = match self.histogram {
            Some(_) => 0,
            None => self.distance_us,
        };
        Ns((self.interval_us + distance * u64::from(number)) * 1000)
    }
}

impl Benchmark for Cyclictest {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        let loops = |loops: u64| (loops as f64 * factor).round().max(1.0) as u64;
        Box::new(Cyclictest {
            loops: self.loops.map(loops),
            time: self.time.map(|time| crate::scaled_time(time, factor)),
            ..self.clone()
        })
    }

    fn command_line(&self) -> String {
        let mut line = NAME.to_owned();
        match self.threads {
            Some(threads) => line.push_str(&format!(" -t{threads}")),
            None => line.push_str(" -t"),
        }
        match &self.affinity {
            Affinity::Free => {}
            Affinity::All => line.push_str(" -a"),
            Affinity::Some(cpus) => line.push_str(&format!(" -a{cpus}")),
        }
        line.push_str(&format!(" -i {} -d {}", self.interval_us, self.distance_us));
        if let Some(loops) = self.loops {
            line.push_str(&format!(" -l {loops}"));
        }
        if let Some(time) = self.time {
            line.push_str(&format!(" -D {}", Written(time)));
        }
        if let Some(histogram) = self.histogram {
            let option = if histogram.of_all { "-H" } else { "-h" };
            line.push_str(&format!(" {option} {}", histogram.limit_us));
        }
        match self.latency_us {
            Some(us) => line.push_str(&format!(" --latency={us}")),
            None => line.push_str(" --default-system"),
        }
        line
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        let endless = self.loops.is_none() && self.time.is_none();
        endless.then_some(WorkloadError::MissingOption {
            benchmark: NAME,
            option: "-D",
            why: "the threads never end, so the run must; or '-l' with the number of intervals",
        })
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine.ncpu()))
    }

    /// What it wrote itself.
    fn printed(&self, outcome: &Outcome) -> String {
        crate::printed::log(outcome)
    }
}

/// The metrics of a run.
pub const METRICS: &[(&str, &str)] = &[
    ("cyclictest_min_us", "smallest latency of all threads, us"),
    ("cyclictest_avg_us", "mean of all their latencies, us"),
    ("cyclictest_p99_us", "99th percentile of them, us"),
    ("cyclictest_max_us", "largest, us"),
    ("cyclictest_cycles", "intervals that ended, of all threads"),
];

/// How often the main thread looks whether a thread is done (and prints), and how long it waits for the
/// others then.
const LOOK: Ns = Ns(10_000_000);
const LAST_WAIT: Ns = Ns(50_000_000);

/// What the main thread does next.
#[derive(Clone, Copy, Debug)]
enum Main {
    Start,
    Make(u32),
    Look,
    Ends,
    Ended,
}

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Reads the clock for the first time,
    Begin,
    /// and takes its first interval from there.
    Begun,
    /// Sleeps to the end of its interval,
    Sleep,
    /// reads the clock,
    Woken,
    /// and records how late it is.
    Record,
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    step: Step,
    interval: Ns,
    now: Ns,
    /// The end of its interval.
    next: Ns,
    /// When its time is up.
    stop: Option<Ns>,
}

/// A run of cyclictest.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Cyclictest,
    main: Main,
    /// The CPU of each, if it is kept on one.
    cpus: Vec<Option<CpuId>>,
    threads: Vec<Thread>,
    /// Thread number of each task; the main task has none.
    numbers: Vec<Option<usize>>,
    over: bool,
    record: Record,
    latencies: Samples,
}

impl Run {
    /// A run from its start on a machine of so many CPUs.
    pub fn new(spec: &Cyclictest, ncpu: usize) -> Run {
        let all = CpuMask::first_n(ncpu);
        let usable = match &spec.affinity {
            Affinity::Some(cpus) => cpus.and(&all),
            _ => all,
        };
        let usable: Vec<CpuId> = usable.iter().collect();
        let threads = match spec.threads {
            Some(threads) => threads as usize,
            None => usable.len().max(1),
        };
        let pinned = spec.affinity != Affinity::Free && !usable.is_empty();
        let cpu = |number: usize| pinned.then(|| usable[number % usable.len()]);
        let thread = |number: usize| Thread {
            step: Step::Begin,
            interval: spec.interval(number as u32),
            now: Ns(0),
            next: Ns(0),
            stop: None,
        };
        let interval = |number: usize| spec.interval(number as u32).0 / 1000;
        let intervals = (0..threads).map(interval).collect();
        Run {
            main: Main::Start,
            cpus: (0..threads).map(cpu).collect(),
            threads: (0..threads).map(thread).collect(),
            numbers: Vec::new(),
            over: false,
            record: Record::new(intervals, spec.histogram, spec.latency_us),
            latencies: Samples::default(),
            spec: spec.clone(),
        }
    }

    fn main(&mut self) -> Op {
        match self.main {
            Main::Start => {
                self.main = Main::Make(0);
                Op::Start
            }
            Main::Make(made) if (made as usize) < self.threads.len() => {
                self.main = Main::Make(made + 1);
                Op::Fork(Spawn {
                    role: made + 1,
                    thread: true,
                })
            }
            Main::Make(_) => {
                self.main = Main::Look;
                Op::Sleep(Ns(LOOK.0 + TIMER_SLACK.0))
            }
            Main::Look if self.over => {
                self.main = Main::Ends;
                Op::Sleep(Ns(LAST_WAIT.0 + TIMER_SLACK.0))
            }
            Main::Look => Op::Sleep(Ns(LOOK.0 + TIMER_SLACK.0)),
            Main::Ends => {
                self.main = Main::Ended;
                Op::StopAfter(Ns(0))
            }
            Main::Ended => Op::Exit,
        }
    }

    /// What a thread does next, or none if that takes no time.
    fn thread(&mut self, number: usize) -> Option<Op> {
        let thread = &mut self.threads[number];
        match thread.step {
            Step::Begin => {
                thread.step = Step::Begun;
                return Some(Op::Time);
            }
            Step::Begun => {
                thread.step = Step::Sleep;
                thread.next = thread.now + thread.interval;
                thread.stop = self.spec.time.map(|time| thread.now + time);
            }
            Step::Sleep if self.over => thread.step = Step::Done,
            Step::Sleep => {
                thread.step = Step::Woken;
                return Some(Op::SleepUntil(thread.next + TIMER_SLACK));
            }
            Step::Woken => {
                thread.step = Step::Record;
                return Some(Op::Time);
            }
            Step::Record => self.recorded(number),
            Step::Done => return Some(Op::Exit),
        }
        None
    }

    fn recorded(&mut self, number: usize) {
        let thread = &mut self.threads[number];
        let late = ((thread.now.0 - thread.next.0) / 1000) as u32;
        self.latencies.add(late);
        let cycles = self.record.add(number, late);
        thread.next += thread.interval;
        while thread.now > thread.next {
            thread.next += thread.interval;
        }
        thread.step = Step::Sleep;
        let enough = self.spec.loops == Some(cycles);
        if enough {
            thread.step = Step::Done;
        }
        let late = thread.stop.is_some_and(|stop| thread.now >= stop);
        // With `-l` the main thread is the one to see it, at its next look; until then others go on.
        self.over |= late;
        self.record.ended |= enough;
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.threads.len() + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(task.index(), self.numbers.len());
        let number = role.checked_sub(1).map(|number| number as usize);
        if let Some(number) = number {
            self.record.spawned(number, task);
        }
        self.numbers.push(number);
    }

    fn attributes(&self, role: u32) -> Attributes {
        let number = role.checked_sub(1).map(|number| number as usize);
        let cpu = number.and_then(|number| self.cpus[number]);
        Attributes {
            cpus: cpu.map(|cpu| std::iter::once(cpu).collect()),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let Some(number) = self.numbers[task.index()] else {
            self.over |= self.record.ended;
            return self.main();
        };
        loop {
            if let Some(op) = self.thread(number) {
                return op;
            }
        }
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        if let Some(number) = self.numbers[task.index()] {
            self.threads[number].now = now;
        }
    }

    fn idle_exit_limit(&self) -> Option<Ns> {
        self.spec.latency_us.map(|us| Ns(us * 1000))
    }

    fn metrics(&self, _time: Ns) -> Vec<Metric> {
        let p99 = self.latencies.percentiles(&[99.0])[0].0;
        let values = [
            f64::from(self.record.min()),
            self.record.mean(),
            f64::from(p99),
            f64::from(self.latencies.max()),
            self.latencies.count() as f64,
        ];
        crate::named(METRICS, values)
    }

    fn log(&self, _time: Ns) -> Vec<String> {
        self.record.text().lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests;
