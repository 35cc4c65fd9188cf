//! Who runs: the benchmarks that scheduler people use, each by its own command line.

pub mod background;
mod benchmark;
mod command;
mod command_line;
pub mod context_switch;
pub mod cyclictest;
mod gate;
pub mod hackbench;
mod main_task;
pub mod netperf;
mod options;
pub mod perf;
mod prefix;
mod printed;
pub mod quantity;
pub mod rtapp;
pub mod schbench;
pub mod spin;
pub mod sysbench;
pub mod tbench;
pub mod vms;
pub mod worksleep;

use command::Command;
pub use command::Companion;
pub use command_line::WorkloadError;
use std::path::Path;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::{Release, Rules};
use wakelab_sim::{Engine, Metric, Outcome};
pub use wakelab_sim::{Grouping, RunConfig, RunError, Start};

/// A workload: a measured command and those that run beside it, as their command lines say.
#[derive(Clone, Debug)]
pub struct Workload {
    measured: Command,
    beside: Vec<Companion>,
}

/// Two workloads are the same if their command lines say the same.
impl PartialEq for Workload {
    fn eq(&self, other: &Workload) -> bool {
        self.command_line() == other.command_line()
    }
}

impl Eq for Workload {}

/// The metrics that workloads add to those of every run, with what they mean.
pub fn metrics() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    [
        vms::METRICS,
        rtapp::METRICS,
        perf::pipe::METRICS,
        netperf::METRICS,
        tbench::METRICS,
        context_switch::METRICS,
        sysbench::METRICS,
        schbench::old::METRICS,
        schbench::new::METRICS,
        cyclictest::METRICS,
    ]
    .into_iter()
    .flatten()
}

/// The most commands that run beside a measured one.
pub const MAX_COMPANIONS: usize = 64;

impl Workload {
    /// Reads a benchmark's command line, such as `hackbench -g 32 -f 20 --threads --pipe -l 480000`,
    /// with what may stand before it: `taskset -c 0-7`, `nice -n 5`, `chrt --batch 0`, `numactl
    /// --cpunodebind=0`, `coresched new --`.
    ///
    /// # Errors
    /// If the benchmark or an option is not known, a value is no number or out of range, or the
    /// benchmark would never end.
    pub fn parse(command_line: &str) -> Result<Workload, WorkloadError> {
        Workload::parse_in(command_line, Path::new(""))
    }

    /// The same with files that it names relative to a directory.
    ///
    /// # Errors
    /// As [`Workload::parse`].
    pub fn parse_in(command_line: &str, directory: &Path) -> Result<Workload, WorkloadError> {
        let measured = Command::parse(command_line, directory)?;
        match measured.benchmark.lacks_end() {
            Some(error) => Err(error),
            None => Ok(Workload {
                measured,
                beside: Vec::new(),
            }),
        }
    }

    /// The same with more commands beside it.
    ///
    /// # Errors
    /// If there are too many.
    pub fn with(&self, companions: &[Companion]) -> Result<Workload, WorkloadError> {
        let beside = [&self.beside, companions].concat();
        if beside.len() > MAX_COMPANIONS {
            return Err(WorkloadError::Companions(beside.len(), MAX_COMPANIONS));
        }
        Ok(Workload {
            measured: self.measured.clone(),
            beside,
        })
    }

    /// Whether it can run on a machine.
    ///
    /// # Errors
    /// If a command is bound to CPUs that the machine has not.
    pub fn check(&self, machine: &Machine) -> Result<(), WorkloadError> {
        let beside = self.beside.iter().map(|companion| &companion.0);
        let mut commands = std::iter::once(&self.measured).chain(beside);
        commands.try_for_each(|command| command.check(machine))
    }

    /// Whether a kernel release has what it asks for.
    ///
    /// # Errors
    /// If it gives tasks cookies and the kernel has no core scheduling.
    pub fn check_release(&self, release: Release) -> Result<(), WorkloadError> {
        let beside = self.beside.iter().map(|companion| &companion.0);
        let mut commands = std::iter::once(&self.measured).chain(beside);
        match commands.find_map(Command::cookies) {
            Some(word) if !Rules::of(release).core_scheduling => {
                Err(WorkloadError::NoCoreScheduling {
                    word,
                    release: release.name(),
                })
            }
            _ => Ok(()),
        }
    }

    /// The same workload shortened (or lengthened) by a factor: the loops or cycles of the measured
    /// command, of which at least one is left, or the time for which it runs. Those beside it go on
    /// as they are.
    pub fn scaled(&self, factor: f64) -> Workload {
        Workload {
            measured: self.measured.scaled(factor),
            beside: self.beside.clone(),
        }
    }

    /// What the user should know before trusting the result.
    pub fn warnings(&self) -> Vec<String> {
        let beside = self.beside.iter().map(Companion::warnings);
        let all = std::iter::once(self.measured.benchmark.warnings()).chain(beside);
        all.flatten().cloned().collect()
    }

    /// The same with all that the benchmark would log, for [`Workload::printed`]: rt-app's logs are long.
    pub fn logged(self) -> Workload {
        Workload {
            measured: self.measured.logged(),
            beside: self.beside,
        }
    }

    /// What the benchmark itself would print at the end of a run, in its own format.
    pub fn printed(&self, outcome: &Outcome) -> String {
        self.measured.benchmark.printed(outcome)
    }

    /// The command line that says this workload, and what is given with it: `hackbench ... --with
    /// 'spin -n 44'`.
    pub fn command_line(&self) -> String {
        let add = |line, companion| format!("{line} --with '{companion}'");
        self.beside.iter().fold(self.measured.to_string(), add)
    }
}

/// Simulates a workload to the end of its measured command.
///
/// # Errors
/// If it can never end, the kernel or the machine has not what it asks for, or `cancelled` said to stop.
pub fn run(
    workload: &Workload,
    config: &RunConfig,
    cancelled: &dyn Fn() -> bool,
) -> Result<Outcome, RunError> {
    let has = workload.check_release(config.release);
    has.map_err(|error| RunError::Refused(error.to_string()))?;
    let Workload { measured, beside } = workload;
    measured.benchmark.fits(&config.machine)?;
    for companion in beside {
        companion.fits(&config.machine)?;
    }
    if beside.is_empty() && measured.is_plain() {
        return measured.benchmark.run(config, cancelled);
    }
    let combined = command::combined(measured, beside, &config.machine);
    let work: Box<dyn wakelab_sim::Workload> = Box::new(combined);
    Engine::new(config, work).run(cancelled)
}

/// Metrics with their names.
pub(crate) fn named<const N: usize>(
    metrics: &'static [(&'static str, &'static str)],
    values: [f64; N],
) -> Vec<Metric> {
    let named = metrics.iter().zip(values);
    named
        .map(|(&(name, _), value)| Metric { name, value })
        .collect()
}

/// Memory that a task keeps warm if it does next to nothing with it, KiB: two pages of kernel stack,
/// `task_struct` and its entity (about a page), a page of user stack.
pub(crate) const SMALL_TASK_KIB: u64 = 16;

/// What `-t` of the workloads that never end takes.
pub(crate) const TIMEOUT_EXPECTED: &str =
    "a time above 0, in seconds or with a unit, such as 10 or 500ms";

/// What measuring a benchmark of this time lacks, if it has none.
pub(crate) fn lacks_timeout(benchmark: &'static str, time: Option<Ns>) -> Option<WorkloadError> {
    time.is_none().then_some(WorkloadError::MissingOption {
        benchmark,
        option: "-t",
        why: "the tasks never end, so the run must",
    })
}

/// A run's time times a factor, at least a millisecond.
pub(crate) fn scaled_time(time: Ns, factor: f64) -> Ns {
    const LEAST: f64 = 1e6;
    Ns((time.0 as f64 * factor)
        .round()
        .max(LEAST)
        .min(quantity::MAX_NS as f64) as u64)
}
