//! Who runs: the benchmarks that scheduler people use, each by its own command line.

mod command_line;
pub mod hackbench;

pub use command_line::WorkloadError;
use hackbench::Hackbench;
use wakelab_sim::{Engine, Outcome};
pub use wakelab_sim::{Grouping, RunConfig, RunError, Start};

/// A workload, as its command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// rt-tests' hackbench.
    Hackbench(Hackbench),
}

impl Workload {
    /// Reads a benchmark's command line, such as `hackbench -g 32 -f 20 --threads --pipe -l 480000`.
    ///
    /// # Errors
    /// If the benchmark or an option is not known, or a value is no number or out of range.
    pub fn parse(command_line: &str) -> Result<Workload, WorkloadError> {
        let mut words = command_line.split_whitespace();
        match words.next() {
            Some("hackbench") => Ok(Workload::Hackbench(Hackbench::parse(words)?)),
            Some(other) => Err(WorkloadError::Benchmark(other.to_owned())),
            None => Err(WorkloadError::Empty),
        }
    }

    /// The same workload with its loops shortened (or lengthened) by a factor; at least one loop
    /// is left.
    pub fn scaled(&self, factor: f64) -> Workload {
        match self {
            Workload::Hackbench(hackbench) => Workload::Hackbench(hackbench.scaled(factor)),
        }
    }

    /// The command line that says this workload.
    pub fn command_line(&self) -> String {
        match self {
            Workload::Hackbench(hackbench) => hackbench.command_line(),
        }
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
    match workload {
        Workload::Hackbench(hackbench) => {
            Engine::new(config, hackbench::Run::new(hackbench)).run(cancelled)
        }
    }
}
