//! Who runs: the benchmarks that scheduler people use, each by its own command line.

mod command_line;
pub mod hackbench;
mod main_task;
mod options;
pub mod quantity;
pub mod spin;
pub mod vms;
pub mod worksleep;

pub use command_line::WorkloadError;
use hackbench::Hackbench;
use spin::{Program, Spinners};
use vms::Vms;
use wakelab_machine::Ns;
use wakelab_sim::{Engine, Outcome};
pub use wakelab_sim::{Grouping, RunConfig, RunError, Start};
use worksleep::WorkSleep;

/// A workload, as its command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// rt-tests' hackbench.
    Hackbench(Hackbench),
    /// Random work and sleep.
    WorkSleep(WorkSleep),
    /// `stress-ng --cpu` and `while(1)`.
    Spinners(Spinners),
    /// Virtual machines, with the hwlat tracer in one.
    Vms(Vms),
}

/// The metrics that workloads add to those of every run, with what they mean.
pub const METRICS: &[(&str, &str)] = vms::METRICS;

impl Workload {
    /// Reads a benchmark's command line, such as `hackbench -g 32 -f 20 --threads --pipe -l 480000`.
    ///
    /// # Errors
    /// If the benchmark or an option is not known, or a value is no number or out of range.
    pub fn parse(command_line: &str) -> Result<Workload, WorkloadError> {
        let mut words = command_line.split_whitespace();
        let spinners = |program, words| Spinners::parse(program, words).map(Workload::Spinners);
        match words.next() {
            Some("hackbench") => Ok(Workload::Hackbench(Hackbench::parse(words)?)),
            Some("worksleep") => Ok(Workload::WorkSleep(WorkSleep::parse(words)?)),
            Some("stress-ng") => spinners(Program::StressNg, words),
            Some("spin") => spinners(Program::Spin, words),
            Some("vms") => Ok(Workload::Vms(Vms::parse(words)?)),
            Some(other) => Err(WorkloadError::Benchmark(other.to_owned())),
            None => Err(WorkloadError::Empty),
        }
    }

    /// The same workload shortened (or lengthened) by a factor: its loops or cycles, of which at least
    /// one is left, or the time for which it runs.
    pub fn scaled(&self, factor: f64) -> Workload {
        match self {
            Workload::Hackbench(hackbench) => Workload::Hackbench(hackbench.scaled(factor)),
            Workload::WorkSleep(worksleep) => Workload::WorkSleep(worksleep.scaled(factor)),
            Workload::Spinners(spinners) => Workload::Spinners(spinners.scaled(factor)),
            Workload::Vms(vms) => Workload::Vms(vms.scaled(factor)),
        }
    }

    /// The command line that says this workload.
    pub fn command_line(&self) -> String {
        match self {
            Workload::Hackbench(hackbench) => hackbench.command_line(),
            Workload::WorkSleep(worksleep) => worksleep.command_line(),
            Workload::Spinners(spinners) => spinners.command_line(),
            Workload::Vms(vms) => vms.command_line(),
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
    let machine = &config.machine;
    // hackbench's operations are short and many, so that it has an engine of its own; the others
    // share one.
    let work: Box<dyn wakelab_sim::Workload> = match workload {
        Workload::Hackbench(hackbench) => {
            return Engine::new(config, hackbench::Run::new(hackbench)).run(cancelled);
        }
        Workload::WorkSleep(worksleep) => Box::new(worksleep::Run::new(worksleep)),
        Workload::Spinners(spinners) => Box::new(spin::Run::new(spinners, machine.ncpu())),
        Workload::Vms(vms) => Box::new(vms::Run::new(vms, machine)),
    };
    Engine::new(config, work).run(cancelled)
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
