//! A command: a benchmark's own command line with the words before it, to be measured or to run beside.

use crate::benchmark::{self, BENCHMARKS, Benchmark, Words};
use crate::command_line::WorkloadError;
use crate::prefix::{self, Prefix};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use wakelab_machine::topology::Machine;
use wakelab_sim::{Combined, RunError};

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    prefixes: Vec<Prefix>,
    pub benchmark: Arc<dyn Benchmark>,
}

impl Command {
    /// Reads a command line; files that it names are relative to a directory.
    pub fn parse(line: &str, directory: &Path) -> Result<Command, WorkloadError> {
        let mut words = line.split_whitespace().peekable();
        let prefixes = prefix::take(&mut words)?;
        let name = words.next().ok_or(WorkloadError::Empty)?;
        let row = BENCHMARKS.iter().find(|row| row.name == name);
        let row =
            row.ok_or_else(|| WorkloadError::Benchmark(name.to_owned(), benchmark::names()))?;
        let words = Words {
            words: &mut words,
            directory,
        };
        Ok(Command {
            prefixes,
            benchmark: (row.parse)(words)?.into(),
        })
    }

    /// The same shortened or lengthened by a factor.
    pub fn scaled(&self, factor: f64) -> Command {
        Command {
            prefixes: self.prefixes.clone(),
            benchmark: self.benchmark.scaled(factor).into(),
        }
    }

    /// Whether it is its benchmark alone, as any command is made.
    pub fn is_plain(&self) -> bool {
        self.prefixes.is_empty() && !self.benchmark.kernel()
    }

    /// Whether the machine has CPUs for it.
    pub fn check(&self, machine: &Machine) -> Result<(), WorkloadError> {
        prefix::check(&self.prefixes, machine)
    }

    /// What the engine runs.
    fn begin(&self, machine: &Machine) -> wakelab_sim::Command {
        wakelab_sim::Command {
            work: self.benchmark.begin(machine),
            attributes: prefix::attributes(&self.prefixes, machine),
            kernel: self.benchmark.kernel(),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for prefix in &self.prefixes {
            write!(f, "{prefix} ")?;
        }
        f.write_str(&self.benchmark.command_line())
    }
}

/// The measured command with those beside it, as the engine runs them.
pub(crate) fn combined(measured: &Command, beside: &[Companion], machine: &Machine) -> Combined {
    let beside = beside.iter().map(|companion| companion.0.begin(machine));
    Combined::new(measured.begin(machine), beside.collect())
}

/// A command that runs beside the measured one, which need not have an end of its own.
#[derive(Clone, Debug)]
pub struct Companion(pub(crate) Command);

impl Companion {
    /// Reads a command line, such as `spin -n 44`.
    ///
    /// # Errors
    /// As [`Workload::parse`](crate::Workload::parse), but for the end that may be missing.
    pub fn parse(command_line: &str) -> Result<Companion, WorkloadError> {
        Companion::parse_in(command_line, Path::new(""))
    }

    /// The same with files that it names relative to a directory.
    ///
    /// # Errors
    /// As [`Companion::parse`].
    pub fn parse_in(command_line: &str, directory: &Path) -> Result<Companion, WorkloadError> {
        Command::parse(command_line, directory).map(Companion)
    }

    pub(crate) fn fits(&self, machine: &Machine) -> Result<(), RunError> {
        self.0.benchmark.fits(machine)
    }

    pub(crate) fn warnings(&self) -> &[String] {
        self.0.benchmark.warnings()
    }
}

impl fmt::Display for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Two are the same if their command lines say the same.
impl PartialEq for Companion {
    fn eq(&self, other: &Companion) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Companion {}
