//! What every benchmark can do, and the table of all of them.

use crate::WorkloadError;
use crate::background::{Background, Kind};
use crate::context_switch::{self, ContextSwitch};
use crate::cyclictest::Cyclictest;
use crate::hackbench::Hackbench;
use crate::netperf::Netperf;
use crate::perf;
use crate::rtapp::RtApp;
use crate::schbench;
use crate::spin::{Program, Spinners};
use crate::sysbench::Sysbench;
use crate::tbench::Tbench;
use crate::vms::Vms;
use crate::worksleep::WorkSleep;
use std::fmt::Debug;
use std::path::Path;
use wakelab_machine::topology::Machine;
use wakelab_sim::{Engine, Outcome, RunConfig, RunError};

/// A benchmark with its options, as its command line says.
pub(crate) trait Benchmark: Debug + Send + Sync {
    /// The same shortened (or lengthened) by a factor: its loops or cycles, of which at least one is
    /// left, or the time for which it runs.
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark>;

    /// The command line that says the same: two benchmarks are equal if theirs are.
    fn command_line(&self) -> String;

    /// What it lacks to be measured, if it never ends. Beside another it lacks nothing.
    fn lacks_end(&self) -> Option<WorkloadError> {
        None
    }

    /// Whether its tasks are kernel threads.
    fn kernel(&self) -> bool {
        false
    }

    /// The words that give its tasks cookies, if they have some.
    fn cookies(&self) -> Option<String> {
        None
    }

    /// What the user should know before trusting the result.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Whether it can be run on this machine.
    ///
    /// # Errors
    /// [`RunError::Refused`] if not.
    fn fits(&self, _machine: &Machine) -> Result<(), RunError> {
        Ok(())
    }

    /// What its tasks do on this machine, from the start.
    fn begin(&self, machine: &Machine) -> Box<dyn wakelab_sim::Workload>;

    /// The same with its log kept for [`Benchmark::printed`], if that is too long to be kept always.
    fn logged(&self) -> Option<Box<dyn Benchmark>> {
        None
    }

    /// What the program itself would print at the end of such a run, in its own format.
    fn printed(&self, outcome: &Outcome) -> String;

    /// Simulates it to its end. One whose operations are short and many has an engine of its own here;
    /// the others share one.
    ///
    /// # Errors
    /// If it can never end, or `cancelled` said to stop.
    fn run(&self, config: &RunConfig, cancelled: &dyn Fn() -> bool) -> Result<Outcome, RunError> {
        Engine::new(config, self.begin(&config.machine)).run(cancelled)
    }
}

/// The words of a command line.
pub(crate) struct Words<'a, 'b> {
    pub words: &'b mut dyn Iterator<Item = &'a str>,
    /// Where files that it names are looked for.
    pub directory: &'b Path,
}

impl<'a> Iterator for Words<'a, '_> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.words.next()
    }
}

type Parsed = Result<Box<dyn Benchmark>, WorkloadError>;

/// A benchmark's name and the reader of the words after it.
pub(crate) struct Row {
    pub name: &'static str,
    pub parse: fn(Words) -> Parsed,
}

/// Every benchmark that is known.
pub(crate) const BENCHMARKS: &[Row] = &[
    Row {
        name: "hackbench",
        parse: |words| boxed(Hackbench::parse(words)),
    },
    Row {
        name: "worksleep",
        parse: |words| boxed(WorkSleep::parse(words)),
    },
    Row {
        name: "stress-ng",
        parse: |words| boxed(Spinners::parse(Program::StressNg, words)),
    },
    Row {
        name: "spin",
        parse: |words| boxed(Spinners::parse(Program::Spin, words)),
    },
    Row {
        name: "vms",
        parse: |words| boxed(Vms::parse(words)),
    },
    Row {
        name: "rt-app",
        parse: |words| boxed(RtApp::parse(words.words, words.directory)),
    },
    Row {
        name: "perf",
        parse: |words| perf::parse(words.words),
    },
    Row {
        name: "netperf",
        parse: |words| boxed(Netperf::parse(words)),
    },
    Row {
        name: "tbench",
        parse: |words| boxed(Tbench::parse(words)),
    },
    Row {
        name: "context_switch1_processes",
        parse: |words| {
            boxed(ContextSwitch::parse(
                context_switch::Program::Processes,
                words,
            ))
        },
    },
    Row {
        name: "context_switch1_threads",
        parse: |words| {
            boxed(ContextSwitch::parse(
                context_switch::Program::Threads,
                words,
            ))
        },
    },
    Row {
        name: "sysbench",
        parse: |words| boxed(Sysbench::parse(words)),
    },
    Row {
        name: "schbench",
        parse: |words| boxed(schbench::new::Schbench::parse(words)),
    },
    Row {
        name: "schbench-2019",
        parse: |words| boxed(schbench::old::Schbench::parse(words)),
    },
    Row {
        name: "cyclictest",
        parse: |words| boxed(Cyclictest::parse(words)),
    },
    Row {
        name: "kworkers",
        parse: |words| boxed(Background::parse(Kind::Kworkers, words)),
    },
    Row {
        name: "daemons",
        parse: |words| boxed(Background::parse(Kind::Daemons, words)),
    },
];

fn boxed<B: Benchmark + 'static>(parsed: Result<B, WorkloadError>) -> Parsed {
    Ok(Box::new(parsed?))
}

/// The names of all, for errors.
pub(crate) fn names() -> String {
    let names: Vec<&str> = BENCHMARKS.iter().map(|row| row.name).collect();
    names.join(", ")
}
