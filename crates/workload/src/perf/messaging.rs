//! `perf bench sched messaging`: hackbench as it was when perf took it over.

use super::Format;
use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::hackbench::{Hackbench, MAX_LOOPS, Run, Transport};
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::printed;
use wakelab_machine::topology::Machine;
use wakelab_sim::{Engine, Outcome, RunConfig, RunError, Workload};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messaging {
    /// What it comes to; 20 senders a group and 100 bytes a message are fixed.
    hackbench: Hackbench,
    format: Format,
}

const NAME: &str = "perf bench sched messaging";

const GRAMMAR: Grammar<Hackbench> = Grammar {
    benchmark: NAME,
    expected: "expected -g/--group N, -l/--nr_loops N, -p/--pipe or -t/--thread",
    options: &[
        Opt {
            short: 'g',
            long: "group",
            takes: Takes::Number {
                low: 1,
                high: MAX_TASKS,
                set: |h, n| h.groups = n as u32,
            },
        },
        Opt {
            short: 'l',
            long: "nr_loops",
            takes: Takes::Number {
                low: 1,
                high: MAX_LOOPS,
                set: |h, n| h.loops = n,
            },
        },
        Opt {
            short: 'p',
            long: "pipe",
            takes: Takes::Nothing(|h| h.transport = Transport::Pipe),
        },
        Opt {
            short: 't',
            long: "thread",
            takes: Takes::Nothing(|h| h.threads = true),
        },
    ],
};

impl Messaging {
    /// Reads the words after `messaging`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, more tasks than can be simulated.
    pub fn parse<'a>(
        format: Format,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Messaging, WorkloadError> {
        let hackbench = GRAMMAR.read(Hackbench::default(), words)?;
        check_tasks(NAME, hackbench.tasks())?;
        Ok(Messaging { hackbench, format })
    }
}

impl Benchmark for Messaging {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Messaging {
            hackbench: self.hackbench.times(factor),
            format: self.format,
        })
    }

    fn command_line(&self) -> String {
        let h = &self.hackbench;
        let pipe = match h.transport {
            Transport::Pipe => " -p",
            _ => "",
        };
        let thread = if h.threads { " -t" } else { "" };
        let command = self.format.command();
        format!(
            "{command} messaging -g {}{pipe}{thread} -l {}",
            h.groups, h.loops
        )
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(&self.hackbench))
    }

    fn run(&self, config: &RunConfig, cancelled: &dyn Fn() -> bool) -> Result<Outcome, RunError> {
        Engine::new(config, Run::new(&self.hackbench)).run(cancelled)
    }

    fn printed(&self, outcome: &Outcome) -> String {
        let time = printed::seconds(printed::micros(outcome));
        if self.format == Format::Simple {
            return format!("{time}\n");
        }
        let h = &self.hackbench;
        let kind = if h.threads { "threads" } else { "processes" };
        format!(
            "# Running 'sched/messaging' benchmark:\n\
             # {} sender and receiver {kind} per group\n\
             # {} groups == {} {kind} run\n\n \
             {:>14}: {time} [sec]\n",
            h.fds,
            h.groups,
            h.tasks(),
            "Total time",
        )
    }
}
