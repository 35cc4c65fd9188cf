//! rt-app: threads that run, sleep, wait for timers and for each other, as a file says.
//!
//! *Measures* how a load of known shape is served: whether periods are kept, and how late timers wake
//! their threads. *Does not measure* real-time scheduling: everything runs in the fair class.
//!
//! The grammar is that of rt-app 1.0 (Debian's package) and of its sources of May 2026, with the keys
//! that occur twice in one object, which rt-app itself needs `workgen` for. docs/guide.md says what of it
//! is modelled and how.

mod fields;
mod file;
mod json;
mod read;
mod run;
mod source;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::options::{Grammar, Opt, Takes};
use crate::printed;
use crate::quantity::{self, MAX_NS, Written};
use file::{File, Loops};
use run::Run;
use source::Source;
use std::path::Path;
use std::sync::Arc;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sim::{Outcome, RunError, Workload};

/// The metrics that a run adds.
pub const METRICS: &[(&str, &str)] = run::METRICS;

/// Checks what a file says, without running it. Gives what the user should know about it.
///
/// # Errors
/// As for a workload that names the file.
pub fn check(name: &str, text: &[u8]) -> Result<Vec<String>, WorkloadError> {
    Ok(Source::of(name, text).read()?.warnings)
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct RtApp {
    options: Options,
    /// The file's name as errors and the command line repeat it.
    name: String,
    /// What it says.
    said: Arc<File>,
    /// The same with the options applied.
    file: Arc<File>,
    /// Whether its logs are written.
    logs: bool,
}

/// The options, of which rt-app has only the first.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// `-l`: how much rt-app tells, which is nothing here.
    level: Option<u64>,
    /// `-t`: ends the run, instead of the file's `duration`.
    time: Option<Ns>,
    /// `--scale`: what loops and the time are multiplied by.
    scale: f64,
}

const NAME: &str = "rt-app";
const LEVELS: [u64; 4] = [10, 50, 75, 100];
const EXPECTED: &str =
    "expected a file, and -l 10|50|75|100, -t/--timeout TIME or -s/--scale FACTOR";

const GRAMMAR: Grammar<Options> = Grammar {
    benchmark: NAME,
    expected: EXPECTED,
    options: &[
        Opt {
            short: 'l',
            long: "log-level",
            takes: Takes::Text {
                expected: "10, 50, 75 or 100",
                set: |options, text| {
                    let level = text.parse().ok().filter(|level| LEVELS.contains(level));
                    options.level = Some(level?);
                    Some(())
                },
            },
        },
        Opt {
            short: 't',
            long: "timeout",
            takes: Takes::Text {
                expected: crate::TIMEOUT_EXPECTED,
                set: |options, text| {
                    options.time = Some(quantity::seconds(text)?);
                    Some(())
                },
            },
        },
        Opt {
            short: 's',
            long: "scale",
            takes: Takes::Text {
                expected: "a factor above 0",
                set: |options, text| {
                    let factor = text.parse().ok().filter(|factor: &f64| is_factor(*factor));
                    options.scale = factor?;
                    Some(())
                },
            },
        },
    ],
};

fn is_factor(factor: f64) -> bool {
    factor.is_finite() && factor > 0.0
}

impl RtApp {
    /// Reads the words after `rt-app`, and the file, which is looked for in a directory.
    ///
    /// # Errors
    /// Unknown or valueless options; a file that cannot be read, or that says what rt-app would refuse.
    pub fn parse<'a>(
        words: impl Iterator<Item = &'a str>,
        directory: &Path,
    ) -> Result<RtApp, WorkloadError> {
        let (mut options, mut names) = (Vec::new(), Vec::new());
        let mut is_value = false;
        for word in words {
            let is_option = word.len() > 1 && word.starts_with('-');
            if is_option || is_value {
                options.push(word);
            } else {
                names.push(word);
            }
            // The options' values are words of their own, unless they are joined.
            let alone = ["-l", "-t", "-s", "--log-level", "--timeout", "--scale"];
            is_value = !is_value && alone.contains(&word);
        }
        let defaults = Options {
            level: None,
            time: None,
            scale: 1.0,
        };
        let options = GRAMMAR.read(defaults, options.into_iter())?;
        let name = match names[..] {
            [name] => name,
            [_, word, ..] => return Err(unexpected(word)),
            [] => {
                return Err(WorkloadError::MissingOption {
                    benchmark: NAME,
                    option: "FILE",
                    why: "the tasks are what a file says, such as load.json",
                });
            }
        };
        let source = Source::open(name, directory)?;
        let said = Arc::new(source.read()?);
        Ok(RtApp {
            options,
            name: source.name,
            file: Arc::new(applied(&said, options)),
            said,
            logs: false,
        })
    }
}

/// What a file says with the options applied.
fn applied(file: &File, options: Options) -> File {
    let mut file = file.clone();
    file.global.duration = options.time.or(file.global.duration);
    scale(&mut file, options.scale);
    file
}

fn unexpected(word: &str) -> WorkloadError {
    WorkloadError::Option {
        benchmark: NAME,
        word: word.to_owned(),
        expected: EXPECTED,
    }
}

/// Shortens (or lengthens) the time and what is repeated: the loops of a task or, as far as they are too
/// few for that, those of its phases. Of each one is left.
fn scale(file: &mut File, factor: f64) {
    if factor == 1.0 {
        return;
    }
    let duration = file.global.duration;
    file.global.duration = duration.map(|time| crate::scaled_time(time, factor));
    for task in &mut file.tasks {
        let before = task.loops.filter(|&loops| loops > 0);
        let Some(before) = before else {
            continue;
        };
        let after = scaled_loops(before, factor);
        task.loops = Some(after);
        let left = factor * before as f64 / after as f64;
        if factor < 1.0 && left < 1.0 {
            for phase in &mut task.phases {
                phase.loops = phase.loops.map(|loops| scaled_loops(loops, left));
            }
        }
    }
}

fn scaled_loops(loops: u64, factor: f64) -> u64 {
    (loops as f64 * factor).round().clamp(1.0, MAX_NS as f64) as u64
}

impl file::Task {
    /// Whether an instance of it would go on for ever.
    fn never_ends(&self) -> bool {
        let endless = |loops: Loops| loops.is_none();
        let runs = self.loops != Some(0);
        runs && (endless(self.loops) || self.phases.iter().any(|phase| endless(phase.loops)))
    }
}

#[cfg(test)]
mod tests;

impl Benchmark for RtApp {
    /// From what the file says: what was rounded once must not be rounded again.
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        let scale = (self.options.scale * factor).clamp(f64::MIN_POSITIVE, f64::MAX);
        let options = Options {
            scale,
            ..self.options
        };
        Box::new(RtApp {
            options,
            name: self.name.clone(),
            said: Arc::clone(&self.said),
            file: Arc::new(applied(&self.said, options)),
            logs: self.logs,
        })
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        let endless = self.file.tasks.iter().find(|task| task.never_ends())?;
        let lacks = self.file.global.duration.is_none();
        lacks.then(|| WorkloadError::NeverEnds {
            file: self.name.clone(),
            task: wakelab_machine::excerpt(&endless.name),
        })
    }

    fn command_line(&self) -> String {
        let Options { level, time, scale } = self.options;
        let mut line = NAME.to_owned();
        if let Some(level) = level {
            line += &format!(" -l {level}");
        }
        if let Some(time) = time {
            line += &format!(" -t {}", Written(time));
        }
        if scale != 1.0 {
            line += &format!(" --scale {scale}");
        }
        line + " " + &self.name
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(&self.file, machine, self.logs))
    }

    fn fits(&self, machine: &Machine) -> Result<(), RunError> {
        match &self.file.highest_cpu {
            Some((cpu, place)) if *cpu as usize >= machine.ncpu() => {
                let (name, last) = (&machine.name, machine.ncpu() - 1);
                Err(RunError::Refused(format!(
                    "{place}: CPU {cpu}: the last CPU of machine '{name}' is {last}"
                )))
            }
            _ => Ok(()),
        }
    }

    fn logged(&self) -> Option<Box<dyn Benchmark>> {
        Some(Box::new(RtApp {
            logs: true,
            ..self.clone()
        }))
    }

    /// What it writes to its logs, which are files; it prints nothing but how it is doing.
    fn printed(&self, outcome: &Outcome) -> String {
        printed::log(outcome)
    }

    fn warnings(&self) -> &[String] {
        &self.file.warnings
    }
}
