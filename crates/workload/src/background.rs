//! What a system does beside the workload: `kworkers`, a few kernel threads bound to each CPU, and
//! `daemons`, a few tasks that run now and then.
//!
//! *Measures* nothing by itself: it disturbs what it runs beside. *Does not measure* what such tasks
//! do for others: they wake nobody.

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::main_task::MainTask;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes};
use crate::quantity::{Uniform, Written, below, seconds};
use crate::worksleep::TIMER_SLACK;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Op, Outcome, Workload};

/// Which tasks the command line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `kworkers`: kernel threads, each on its CPU alone.
    Kworkers,
    /// `daemons`.
    Daemons,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Which tasks.
    pub kind: Kind,
    /// `-n`: tasks, of `kworkers` for each CPU.
    pub tasks: u32,
    /// `-r`: CPU time for which one runs when it is woken.
    pub run: Uniform,
    /// `-s`: how long it sleeps then.
    pub sleep: Uniform,
    /// `-t`: how long; none is for ever.
    pub time: Option<Ns>,
}

const US: u64 = 1_000;
const S: u64 = 1_000_000_000;

const fn uniform(low: u64, high: u64) -> Uniform {
    Uniform {
        low: Ns(low),
        high: Ns(high),
    }
}

/// The most kworkers of a CPU.
const MAX_PER_CPU: u64 = 64;
const RANGE: &str = "a time such as 10us or a range such as 10us-1ms";

const fn number(high: u64) -> Opt<Background> {
    Opt {
        short: 'n',
        long: "tasks",
        takes: Takes::Number {
            low: 1,
            high,
            set: |background, n| background.tasks = n as u32,
        },
    }
}

const fn text(
    short: char,
    long: &'static str,
    expected: &'static str,
    set: fn(&mut Background, &str) -> Option<()>,
) -> Opt<Background> {
    let takes = Takes::Text { expected, set };
    Opt { short, long, takes }
}

const RUN: Opt<Background> = text('r', "run", RANGE, |background, text| {
    background.run = Uniform::read(text)?;
    Some(())
});
const SLEEP: Opt<Background> = text('s', "sleep", RANGE, |background, text| {
    // Tasks that never sleep are spinners.
    background.sleep = Uniform::read(text).filter(|sleep| sleep.low.0 > 0)?;
    Some(())
});
const TIMEOUT: Opt<Background> = text(
    't',
    "timeout",
    crate::TIMEOUT_EXPECTED,
    |background, text| {
        background.time = Some(seconds(text)?);
        Some(())
    },
);

const KWORKERS: Grammar<Background> = Grammar {
    benchmark: "kworkers",
    expected: "expected -n/--tasks N for each CPU, -r/--run RANGE, -s/--sleep RANGE or -t/--timeout TIME",
    options: &[number(MAX_PER_CPU), RUN, SLEEP, TIMEOUT],
};

const DAEMONS: Grammar<Background> = Grammar {
    benchmark: "daemons",
    expected: "expected -n/--tasks N, -r/--run RANGE, -s/--sleep RANGE or -t/--timeout TIME",
    options: &[number(MAX_TASKS), RUN, SLEEP, TIMEOUT],
};

impl Kind {
    fn grammar(self) -> &'static Grammar<Background> {
        match self {
            Kind::Kworkers => &KWORKERS,
            Kind::Daemons => &DAEMONS,
        }
    }

    /// The period of `kworkers` is that of the statistics of virtual memory, which each CPU's kworker
    /// brings up to date every second (`vm.stat_interval`, Documentation/admin-guide/sysctl/vm.rst).
    /// All else is a stand-in.
    fn defaults(self) -> Background {
        let (tasks, run, sleep) = match self {
            Kind::Kworkers => (1, uniform(2 * US, 10 * US), uniform(S, S)),
            Kind::Daemons => (4, uniform(10 * US, 100 * US), uniform(S / 100, S / 5)),
        };
        Background {
            kind: self,
            tasks,
            run,
            sleep,
            time: None,
        }
    }
}

impl Background {
    /// Reads the words after the name.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range.
    pub fn parse<'a>(
        kind: Kind,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Background, WorkloadError> {
        kind.grammar().read(kind.defaults(), words)
    }
}

impl Benchmark for Background {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Background {
            time: self.time.map(|time| crate::scaled_time(time, factor)),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let (name, run, sleep) = (self.kind.grammar().benchmark, self.run, self.sleep);
        let mut line = format!("{name} -n {} --run {run} --sleep {sleep}", self.tasks);
        if let Some(time) = self.time {
            line.push_str(&format!(" -t {}", Written(time)));
        }
        line
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        crate::lacks_timeout(self.kind.grammar().benchmark, self.time)
    }

    fn kernel(&self) -> bool {
        self.kind == Kind::Kworkers
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine.ncpu()))
    }

    /// Nothing: they are there to be in the way.
    fn printed(&self, _outcome: &Outcome) -> String {
        String::new()
    }
}

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    /// At first a part of a sleep passes, so that tasks are not in step.
    Offset,
    Run,
    Sleep,
}

/// A run of such tasks.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Background,
    tasks: u32,
    main: MainTask,
    states: Vec<State>,
}

impl Run {
    /// A run from its start, on a machine of so many CPUs.
    pub fn new(spec: &Background, ncpu: usize) -> Run {
        let tasks = match spec.kind {
            Kind::Kworkers => spec.tasks * ncpu as u32,
            Kind::Daemons => spec.tasks,
        };
        Run {
            spec: *spec,
            tasks,
            main: MainTask::new(tasks, false).stopping_after(spec.time),
            states: Vec::new(),
        }
    }

    /// A timer of the kernel's own has no slack.
    fn slack(&self) -> u64 {
        match self.spec.kind {
            Kind::Kworkers => 0,
            Kind::Daemons => TIMER_SLACK.0,
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.tasks as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.states.push(State::Offset);
    }

    fn attributes(&self, role: u32) -> Attributes {
        let cpu = match self.spec.kind {
            Kind::Kworkers => Some(CpuId::from_index(((role - 1) / self.spec.tasks) as usize)),
            Kind::Daemons => None,
        };
        Attributes {
            cpus: cpu.map(CpuMask::single),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        if task.index() == 0 {
            return self.main.next_op();
        }
        let (op, next) = match self.states[task.index()] {
            State::Offset => {
                let part = below(rng, self.spec.sleep.high.0);
                (Op::Sleep(Ns(part)), State::Run)
            }
            State::Run => (Op::Work(self.spec.run.draw(rng)), State::Sleep),
            State::Sleep => {
                let sleep = self.spec.sleep.draw(rng).0 + self.slack();
                (Op::Sleep(Ns(sleep)), State::Run)
            }
        };
        self.states[task.index()] = next;
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Background, WorkloadError> {
        let mut words = line.split_whitespace();
        let kind = match words.next() {
            Some("kworkers") => Kind::Kworkers,
            _ => Kind::Daemons,
        };
        Background::parse(kind, words)
    }

    #[test]
    fn kworkers_are_bound_to_each_cpu_in_turn() {
        let spec = read("kworkers -n 2 --sleep 5ms").unwrap();
        let run = Run::new(&spec, 3);
        let cpus = |role| run.attributes(role).cpus.unwrap().to_string();
        assert_eq!(run.max_tasks(), 7);
        let of: Vec<String> = (1..=6).map(cpus).collect();
        assert_eq!(of, ["0", "0", "1", "1", "2", "2"]);
        let daemons = Run::new(&read("daemons").unwrap(), 3);
        assert_eq!((daemons.max_tasks(), daemons.attributes(1).cpus), (5, None));
    }

    #[test]
    fn defaults_are_printed() {
        for line in [
            "kworkers -n 1 --run 2us-10us --sleep 1s",
            "daemons -n 4 --run 10us-100us --sleep 10ms-200ms",
        ] {
            let (name, _) = line.split_once(' ').unwrap();
            assert_eq!(read(name).unwrap().command_line(), line);
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("kworkers -x", "kworkers: unknown option '-x'"),
            ("kworkers -n 65", "65 for '-n'"),
            ("kworkers -n 0", "0 for '-n'"),
            ("daemons -n 65537", "65537"),
            ("daemons --run 5", "'5' for '--run'"),
            ("daemons --sleep 0-5ms", "'0-5ms' for '--sleep'"),
            ("daemons -t 0", "'0' for '-t'"),
            ("daemons stray", "'stray'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
        let endless = read("kworkers").unwrap().lacks_end().unwrap().to_string();
        assert!(
            endless.contains("kworkers: option '-t' is needed"),
            "{endless}"
        );
    }

    proptest! {
        #[test]
        fn what_it_prints_it_reads(
            tasks in 1u32..64, run: u32, sleep: u32, time: Option<u32>, kworkers: bool,
        ) {
            let range = |ns: u32| uniform(u64::from(ns) / 3 + 1, u64::from(ns) + 1);
            let spec = Background {
                kind: if kworkers { Kind::Kworkers } else { Kind::Daemons },
                tasks,
                run: range(run),
                sleep: range(sleep),
                time: time.map(|ns| Ns(u64::from(ns) + 1)),
            };
            prop_assert_eq!(read(&spec.command_line()).unwrap(), spec);
        }
    }
}
