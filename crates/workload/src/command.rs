//! A command: a benchmark's own command line with the words before it, to be measured or to run beside.
//! `sleep TIME &&` before all of them lets the shell wait.

use crate::benchmark::{self, BENCHMARKS, Benchmark, Words};
use crate::command_line::WorkloadError;
use crate::prefix::{self, Prefix};
use crate::quantity::{Written, seconds};
use std::fmt;
use std::iter::Peekable;
use std::path::Path;
use std::str::SplitWhitespace;
use std::sync::Arc;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sim::{Combined, RunError};

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// How long the shell sleeps before it.
    after: Ns,
    prefixes: Vec<Prefix>,
    pub benchmark: Arc<dyn Benchmark>,
}

impl Command {
    /// Reads a command line; files that it names are relative to a directory.
    pub fn parse(line: &str, directory: &Path) -> Result<Command, WorkloadError> {
        let mut words = line.split_whitespace().peekable();
        let after = take_sleep(&mut words)?;
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
            after,
            prefixes,
            benchmark: (row.parse)(words)?.into(),
        })
    }

    /// The same shortened or lengthened by a factor.
    pub fn scaled(&self, factor: f64) -> Command {
        Command {
            after: self.after,
            prefixes: self.prefixes.clone(),
            benchmark: self.benchmark.scaled(factor).into(),
        }
    }

    /// The same with all that it would log.
    pub fn logged(self) -> Command {
        match self.benchmark.logged() {
            Some(logged) => Command {
                after: self.after,
                prefixes: self.prefixes,
                benchmark: logged.into(),
            },
            None => self,
        }
    }

    /// Whether it is its benchmark alone, as any command is made.
    pub fn is_plain(&self) -> bool {
        self.after == Ns(0) && self.prefixes.is_empty() && !self.benchmark.kernel()
    }

    /// The words that give its tasks cookies, if they have some.
    pub fn cookies(&self) -> Option<String> {
        prefix::cookies(&self.prefixes).or_else(|| self.benchmark.cookies())
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
            after: self.after,
        }
    }
}

/// Takes `sleep TIME &&` at the beginning of a command line off it; seconds if the time has no unit.
fn take_sleep(words: &mut Peekable<SplitWhitespace>) -> Result<Ns, WorkloadError> {
    if words.next_if_eq(&"sleep").is_none() {
        return Ok(Ns(0));
    }
    let expected = "expected sleep TIME && and a command";
    let wrong = |word: Option<&str>| match word {
        None => WorkloadError::NoCommand("sleep"),
        Some(word) => WorkloadError::Option {
            benchmark: "sleep",
            word: word.to_owned(),
            expected,
        },
    };
    let word = words.next();
    let time = word.and_then(seconds).ok_or_else(|| wrong(word))?;
    match words.next() {
        Some("&&") if words.peek().is_some() => Ok(time),
        Some("&&") | None => Err(wrong(None)),
        word => Err(wrong(word)),
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after > Ns(0) {
            write!(f, "sleep {} && ", Written(self.after))?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_before_a_command_is_read_as_it_is_typed() {
        let read = |line: &str| Command::parse(line, Path::new(""));
        for (line, printed) in [
            ("sleep 20 && spin -n 4", "sleep 20s && spin -n 4"),
            (
                "sleep 0.5s && nice -n 5 spin -n 4",
                "sleep 500ms && nice -n 5 spin -n 4",
            ),
            ("sleep 1m && spin -n 4", "sleep 60s && spin -n 4"),
        ] {
            let command = read(line).expect("a command");
            assert!(!command.is_plain());
            assert_eq!(command.to_string(), printed);
            assert_eq!(read(printed).expect("read again").to_string(), printed);
            assert_eq!(command.scaled(0.1).after, command.after);
        }
        for (line, word) in [
            ("sleep", "no command after 'sleep'"),
            ("sleep 20", "no command after 'sleep'"),
            ("sleep 20 &&", "no command after 'sleep'"),
            ("sleep 20 spin -n 4", "'spin'"),
            ("sleep x && spin -n 4", "'x'"),
            ("sleep 0 && spin -n 4", "'0'"),
            ("nice sleep 20 && spin -n 4", "'sleep'"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
