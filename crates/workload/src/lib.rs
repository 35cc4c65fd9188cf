//! Who runs: the benchmarks that scheduler people use, each by its own command line.

mod benchmark;
mod command_line;
pub mod hackbench;
mod main_task;
mod options;
pub mod quantity;
pub mod spin;
pub mod vms;
pub mod worksleep;

use benchmark::{BENCHMARKS, Benchmark};
pub use command_line::WorkloadError;
use std::sync::Arc;
use wakelab_machine::Ns;
use wakelab_sim::Outcome;
pub use wakelab_sim::{Grouping, RunConfig, RunError, Start};

/// A workload, as its command line says.
#[derive(Clone, Debug)]
pub struct Workload(Arc<dyn Benchmark>);

/// Two workloads are the same if their command lines say the same.
impl PartialEq for Workload {
    fn eq(&self, other: &Workload) -> bool {
        self.command_line() == other.command_line()
    }
}

impl Eq for Workload {}

/// The metrics that workloads add to those of every run, with what they mean.
pub fn metrics() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    [vms::METRICS].into_iter().flatten()
}

impl Workload {
    /// Reads a benchmark's command line, such as `hackbench -g 32 -f 20 --threads --pipe -l 480000`.
    ///
    /// # Errors
    /// If the benchmark or an option is not known, or a value is no number or out of range.
    pub fn parse(command_line: &str) -> Result<Workload, WorkloadError> {
        let mut words = command_line.split_whitespace();
        let name = words.next().ok_or(WorkloadError::Empty)?;
        let row = BENCHMARKS.iter().find(|row| row.name == name);
        let row =
            row.ok_or_else(|| WorkloadError::Benchmark(name.to_owned(), benchmark::names()))?;
        Ok(Workload((row.parse)(&mut words)?.into()))
    }

    /// The same workload shortened (or lengthened) by a factor: its loops or cycles, of which at least
    /// one is left, or the time for which it runs.
    pub fn scaled(&self, factor: f64) -> Workload {
        Workload(self.0.scaled(factor).into())
    }

    /// The command line that says this workload.
    pub fn command_line(&self) -> String {
        self.0.command_line()
    }
}

/// Simulates a workload to its end.
///
/// # Errors
/// If it can never end, or `cancelled` said to stop.
pub fn run(
    workload: &Workload,
    config: &RunConfig,
    cancelled: &dyn Fn() -> bool,
) -> Result<Outcome, RunError> {
    workload.0.run(config, cancelled)
}

/// Memory that a task keeps warm if it does next to nothing with it, KiB: two pages of kernel stack,
/// `task_struct` and its entity (about a page), a page of user stack.
pub(crate) const SMALL_TASK_KIB: u64 = 16;

/// What `-t` of the workloads that never end takes.
pub(crate) const TIMEOUT_EXPECTED: &str =
    "a time above 0, in seconds or with a unit, such as 10 or 500ms";

/// Why they need it.
pub(crate) const TIMEOUT_WHY: &str = "the tasks never end, so the run must";

/// A run's time times a factor, at least a millisecond.
pub(crate) fn scaled_time(time: Ns, factor: f64) -> Ns {
    const LEAST: f64 = 1e6;
    Ns((time.0 as f64 * factor)
        .round()
        .max(LEAST)
        .min(quantity::MAX_NS as f64) as u64)
}
