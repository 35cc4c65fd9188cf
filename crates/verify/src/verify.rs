//! Compares a recording, record by record.

use crate::decisions::{Machine, Record, Step, compare};
use crate::error::{Problem, ReadError};
use crate::header::Header;
use crate::kinds::{Kind, running_number};
use crate::outcome::{Difference, Outcome};
use crate::recording::{Body, Line, Recording};
use crate::wire::from_line;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wakelab_sched::placement::{Reason, Recorded};

/// How often something agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// It did.
    pub agree: u64,
    /// It did not.
    pub disagree: u64,
}

impl Count {
    /// One more.
    pub fn add(&mut self, agrees: bool) {
        self.agree += u64::from(agrees);
        self.disagree += u64::from(!agrees);
    }

    /// Those of another.
    pub fn merge(&mut self, other: Count) {
        self.agree += other.agree;
        self.disagree += other.disagree;
    }

    /// How many in all.
    pub fn all(self) -> u64 {
        self.agree + self.disagree
    }
}

/// A recording compared.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The file.
    pub file: PathBuf,
    /// `decisions`, or the kind of arithmetic.
    pub kind: &'static str,
    /// Records that can be told and are not racy.
    pub counted: Count,
    /// Records whose inputs changed while the call ran.
    pub racy: Count,
    /// Records that do not hold what it would take to tell, by what is missing.
    pub undetermined: BTreeMap<&'static str, u64>,
    /// The records counted, by step; empty but for decisions.
    pub by_step: Vec<(Step, Count)>,
    /// The same by the model's reason, or by the function of the kernel.
    pub by_reason: Vec<(&'static str, Count)>,
    /// The first disagreements.
    pub shown: Vec<Shown>,
}

/// A disagreement.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The record's running number.
    pub record: u64,
    /// Its line.
    pub line: u64,
    /// Where the two part.
    pub difference: Difference,
    /// What was chosen, if it is a decision.
    pub choice: Option<Choice>,
    /// All that the call looked at: the line itself.
    pub state: String,
}

/// The CPUs that a decision came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel's.
    pub kernel: u16,
    /// The model's.
    pub ours: u16,
    /// Why the model's.
    pub reason: Reason,
}

impl FileReport {
    fn new(recording: &Recording) -> FileReport {
        FileReport {
            file: recording.file().to_owned(),
            kind: recording.kind(),
            counted: Count::default(),
            racy: Count::default(),
            undetermined: BTreeMap::new(),
            by_step: Vec::new(),
            by_reason: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// Records of the file.
    pub fn records(&self) -> u64 {
        self.counted.all() + self.racy.all() + self.undetermined.values().sum::<u64>()
    }

    /// Counts an outcome; whether it was one of those that count.
    fn add(&mut self, outcome: &Outcome) -> Option<bool> {
        match outcome {
            Outcome::Agree => self.counted.add(true),
            Outcome::Differ(_) => self.counted.add(false),
            Outcome::Racy { agrees } => {
                self.racy.add(*agrees);
                return None;
            }
            Outcome::Undetermined(why) => {
                *self.undetermined.entry(why).or_default() += 1;
                return None;
            }
        }
        Some(*outcome == Outcome::Agree)
    }
}

/// Compares all records and keeps the first `show` disagreements. None if `stop` said so.
///
/// # Errors
/// If a line cannot be read as what it should be.
pub fn verify(
    mut recording: Recording,
    show: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Option<FileReport>, ReadError> {
    let mut tally = Tally {
        report: FileReport::new(&recording),
        show,
        steps: [Count::default(); Step::ALL.len()],
        reasons: BTreeMap::new(),
    };
    let complete = recording.each(stop, |body, line| match body {
        Body::Decisions(machine) => tally.decision(machine, &line),
        Body::Arithmetic(kind, header) => tally.arithmetic(kind, header, &line),
    })?;
    Ok(complete.then(|| tally.finish(&recording.body)))
}

struct Tally {
    report: FileReport,
    show: usize,
    steps: [Count; Step::ALL.len()],
    reasons: BTreeMap<Reason, Count>,
}

impl Tally {
    fn decision(&mut self, machine: &Machine, line: &Line<'_>) -> Result<(), Problem> {
        let record: Record = from_line(line.text)?;
        let call = record.inputs(machine)?;
        let compared = compare(&record, &call, &mut Recorded::new(&machine.machine, &call));
        let Some(agrees) = self.report.add(&compared.outcome) else {
            return Ok(());
        };
        self.reasons.entry(compared.reason).or_default().add(agrees);
        for (count, agrees) in self.steps.iter_mut().zip(compared.steps) {
            if let Some(agrees) = agrees {
                count.add(agrees);
            }
        }
        if let Outcome::Differ(difference) = compared.outcome {
            let choice = Choice {
                kernel: record.new,
                ours: compared.cpu,
                reason: compared.reason,
            };
            self.show(record.i, line, difference, Some(choice));
        }
        Ok(())
    }

    fn arithmetic(&mut self, kind: &Kind, header: &Header, line: &Line<'_>) -> Result<(), Problem> {
        let outcome = (kind.check)(header, line.text)?;
        self.report.add(&outcome);
        if let Outcome::Differ(difference) = outcome {
            self.show(running_number(line.text)?, line, difference, None);
        }
        Ok(())
    }

    fn show(
        &mut self,
        record: u64,
        line: &Line<'_>,
        difference: Difference,
        choice: Option<Choice>,
    ) {
        if self.report.shown.len() < self.show {
            self.report.shown.push(Shown {
                record,
                line: line.number,
                difference,
                choice,
                state: String::from_utf8_lossy(line.text).into_owned(),
            });
        }
    }

    fn finish(self, body: &Body) -> FileReport {
        let mut report = self.report;
        match body {
            Body::Decisions(_) => {
                report.by_step = Step::ALL.into_iter().zip(self.steps).collect();
                let reasons = self.reasons.into_iter();
                report.by_reason = reasons
                    .map(|(reason, count)| (reason.name(), count))
                    .collect();
            }
            Body::Arithmetic(kind, _) => report.by_reason = vec![(kind.function, report.counted)],
        }
        report
    }
}
