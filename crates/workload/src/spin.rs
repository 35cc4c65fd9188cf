//! Tasks that never sleep: `stress-ng --cpu N` and plain `while(1)` loops.
//!
//! *Measures* how busy CPUs are shared and balanced. *Does not measure* wake-ups: there are none.
//!
//! The tasks have no end, so the run has one: it stops after the time that `-t` says, as `stress-ng`
//! and `timeout` stop their children.

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::main_task::MainTask;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::printed;
use crate::quantity::{Written, seconds};
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Op, Outcome, Workload};

/// Which program the command line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `stress-ng --cpu N -t TIME`.
    StressNg,
    /// `spin -n N -t TIME`: `while(1)` loops.
    Spin,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinners {
    /// The program.
    pub program: Program,
    /// Processes; 0 is one for each CPU.
    pub tasks: u32,
    /// How long; none is for ever, for what runs beside another workload.
    pub time: Option<Ns>,
}

/// What is given so far.
#[derive(Default)]
struct Given {
    tasks: Option<u32>,
    time: Option<Ns>,
}

const TASKS: Takes<Given> = Takes::Number {
    low: 0,
    high: MAX_TASKS,
    set: |given, n| given.tasks = Some(n as u32),
};
const TIMEOUT: Opt<Given> = Opt {
    short: 't',
    long: "timeout",
    takes: Takes::Text {
        expected: crate::TIMEOUT_EXPECTED,
        set: |given, text| {
            given.time = Some(seconds(text)?);
            Some(())
        },
    },
};

const STRESS_NG: Grammar<Given> = Grammar {
    benchmark: "stress-ng",
    expected: "expected -c/--cpu N (0 for one a CPU) and -t/--timeout TIME",
    options: &[
        Opt {
            short: 'c',
            long: "cpu",
            takes: TASKS,
        },
        TIMEOUT,
    ],
};

const SPIN: Grammar<Given> = Grammar {
    benchmark: "spin",
    expected: "expected -n/--tasks N (0 for one a CPU) and -t/--timeout TIME",
    options: &[
        Opt {
            short: 'n',
            long: "tasks",
            takes: TASKS,
        },
        TIMEOUT,
    ],
};

impl Program {
    fn grammar(self) -> &'static Grammar<Given> {
        match self {
            Program::StressNg => &STRESS_NG,
            Program::Spin => &SPIN,
        }
    }

    fn tasks_option(self) -> &'static str {
        match self {
            Program::StressNg => "--cpu",
            Program::Spin => "-n",
        }
    }
}

impl Spinners {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Unknown, missing or valueless options, values out of range.
    pub fn parse<'a>(
        program: Program,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Spinners, WorkloadError> {
        let grammar = program.grammar();
        let benchmark = grammar.benchmark;
        let given = grammar.read(Given::default(), words)?;
        let tasks = given.tasks.ok_or(WorkloadError::MissingOption {
            benchmark,
            option: program.tasks_option(),
            why: "how many tasks spin (0: one a CPU)",
        })?;
        check_tasks(benchmark, tasks.into())?;
        Ok(Spinners {
            program,
            tasks,
            time: given.time,
        })
    }
}

impl Benchmark for Spinners {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Spinners {
            time: self.time.map(|time| crate::scaled_time(time, factor)),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let mut line = format!(
            "{} {} {}",
            self.program.grammar().benchmark,
            self.program.tasks_option(),
            self.tasks
        );
        if let Some(time) = self.time {
            line.push_str(&format!(" -t {}", Written(time)));
        }
        line
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        crate::lacks_timeout(self.program.grammar().benchmark, self.time)
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine.ncpu()))
    }

    /// stress-ng 0.15 says what it did; a loop prints nothing.
    fn printed(&self, outcome: &Outcome) -> String {
        if self.program == Program::Spin {
            return String::new();
        }
        // With the number of the main task in place of its process ID.
        let info = "stress-ng: info:  [1]";
        let hogs = printed::log(outcome);
        let time = printed::metric(outcome, "time_s");
        format!(
            "{info} setting to a {} run per stressor\n{info} dispatching hogs: {} cpu\n\
             {info} successful run completed in {}\n",
            self.time.map_or_else(String::new, length),
            hogs.trim_end(),
            took(time)
        )
    }
}

/// A time as stress-ng announces it: `10 second`, `121 second (2 mins, 1.00 secs)`.
fn length(time: Ns) -> String {
    let seconds = time.as_secs_f64();
    format!("{} second{}", seconds.floor(), in_minutes(seconds))
}

/// A time as stress-ng reports it: `10.00s`, `121.00s (2 mins, 1.00 secs)`.
fn took(seconds: f64) -> String {
    format!("{seconds:.2}s{}", in_minutes(seconds))
}

fn in_minutes(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor();
    let plural = if minutes == 1.0 { "" } else { "s" };
    match minutes {
        0.0 => String::new(),
        _ => format!(
            " ({minutes} min{plural}, {:.2} secs)",
            seconds - 60.0 * minutes
        ),
    }
}

/// What a task that never sleeps does next: more of the same.
pub(crate) const FOR_EVER: Op = Op::Compute(Ns(1_000_000_000));

/// A run of spinners.
#[derive(Clone, Debug)]
pub struct Run {
    tasks: u32,
    main: MainTask,
}

impl Run {
    /// A run from its start, on a machine of so many CPUs.
    pub fn new(spinners: &Spinners, ncpu: usize) -> Run {
        let tasks = match spinners.tasks {
            0 => ncpu as u32,
            tasks => tasks,
        };
        Run {
            tasks,
            main: MainTask::new(tasks, false).stopping_after(spinners.time),
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

    fn spawned(&mut self, _role: u32, _task: TaskId) {}

    /// How many there are.
    fn log(&self, _time: Ns) -> Vec<String> {
        vec![self.tasks.to_string()]
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        if task.index() == 0 {
            self.main.next_op()
        } else {
            FOR_EVER
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Spinners, WorkloadError> {
        let (program, words) = match line.split_once(' ') {
            Some(("stress-ng", words)) => (Program::StressNg, words),
            Some((_, words)) => (Program::Spin, words),
            None => (Program::Spin, ""),
        };
        Spinners::parse(program, words.split_whitespace())
    }

    #[test]
    fn stress_ng_counts_seconds_and_zero_is_one_a_cpu() {
        let all = read("stress-ng --cpu 0 -t 60").unwrap();
        assert_eq!((all.tasks, all.time), (0, Some(Ns(60_000_000_000))));
        assert_eq!(Run::new(&all, 12).max_tasks(), 13);
        let four = read("stress-ng -c4 --timeout=1m").unwrap();
        assert_eq!(Run::new(&four, 12).max_tasks(), 5);
        let scaled = |factor| read(&all.scaled(factor).command_line()).unwrap().time;
        assert_eq!(scaled(0.1), Some(Ns(6_000_000_000)));
        assert_eq!(scaled(1e-12), Some(Ns(1_000_000)));
        let time = read("spin -n 44 -t 500ms").unwrap().time;
        assert_eq!(time, Some(Ns(500_000_000)));
        assert_eq!(
            read("spin -n 44").unwrap().scaled(0.1).command_line(),
            "spin -n 44"
        );
    }

    #[test]
    fn wrong_and_missing_words_are_named() {
        for (line, word) in [
            ("stress-ng -t 1", "'--cpu' is needed"),
            ("stress-ng --vm 1", "'--vm'"),
            ("stress-ng --cpu 99999 -t 1", "99999"),
            ("stress-ng --cpu 1 -t 0", "'0' for '-t'"),
            ("stress-ng --cpu 1 -t", "'-t' needs"),
            ("spin -t 1", "'-n' is needed"),
            ("spin --cpu 1", "'--cpu'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn times_are_written_as_stress_ng_writes_them() {
        assert_eq!(length(Ns(2_000_000_000)), "2 second");
        assert_eq!(
            length(Ns(121_000_000_000)),
            "121 second (2 mins, 1.00 secs)"
        );
        assert_eq!(took(121.03), "121.03s (2 mins, 1.03 secs)");
        assert_eq!(took(2.0), "2.00s");
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "(spin|stress-ng) [-=a-z0-9 .é]{0,40}") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(
            tasks in 0u32..65_536, ns in 1u64..1_000_000_000_000_000, ends: bool, spin: bool,
        ) {
            let program = if spin { Program::Spin } else { Program::StressNg };
            let spinners = Spinners { program, tasks, time: ends.then_some(Ns(ns)) };
            prop_assert_eq!(read(&spinners.command_line()).unwrap(), spinners);
        }
    }
}
