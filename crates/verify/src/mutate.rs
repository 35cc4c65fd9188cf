//! How sure can one be: breaks one rule of wake-up placement at a time, and tells which of them the
//! recorded decisions notice. A rule that can be broken unnoticed is one that they do not cover.

use crate::decisions::{Machine, Record, compare};
use crate::error::{Problem, ReadError};
use crate::outcome::Outcome;
use crate::recording::{Body, DECISIONS, Line, Recording};
use crate::wire::from_line;
use std::path::{Path, PathBuf};
use wakelab_sched::placement::{Mutation, Recorded};

/// What a recording noticed of a broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutated {
    /// The rule.
    pub mutation: Mutation,
    /// Records that agree with the rule and do not without.
    pub caught: u64,
    /// The first of them.
    pub first: Option<Catch>,
}

/// A record that notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catch {
    /// Its file.
    pub file: PathBuf,
    /// Its running number.
    pub record: u64,
    /// The first step that differs.
    pub step: &'static str,
}

/// What a recording noticed of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noticed {
    /// Decisions made again: all but the racy, and those that the whole rules get wrong.
    pub decisions: u64,
    /// A row for each mutation, in the order of [`Mutation::all`].
    pub rows: Vec<Mutated>,
}

impl Noticed {
    /// Nothing yet.
    pub fn none() -> Noticed {
        let row = |mutation| Mutated {
            mutation,
            caught: 0,
            first: None,
        };
        Noticed {
            decisions: 0,
            rows: Mutation::all().map(row).collect(),
        }
    }

    /// Adds what a later recording noticed.
    pub fn merge(&mut self, later: Noticed) {
        self.decisions += later.decisions;
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            row.caught += later.caught;
            row.first = row.first.take().or(later.first);
        }
    }
}

/// Makes every decision again under each mutation. None if `stop` said so.
///
/// # Errors
/// If a line cannot be read, or the recording has no decisions.
pub fn mutate(
    mut recording: Recording,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Noticed>, ReadError> {
    let file = recording.file().to_owned();
    if recording.kind() != DECISIONS {
        let expected = "recorded decisions, to break rules of";
        return Err(ReadError {
            problem: Problem::value("kind", format!("'{}'", recording.kind()), expected),
            file,
            line: 1,
        });
    }
    let mut noticed = Noticed::none();
    let complete = recording.each(stop, |body, line| match body {
        Body::Decisions(machine) => noticed.add(machine, &line, &file),
        Body::Arithmetic(..) => Ok(()),
    })?;
    Ok(complete.then_some(noticed))
}

impl Noticed {
    fn add(&mut self, machine: &Machine, line: &Line<'_>, file: &Path) -> Result<(), Problem> {
        let record: Record = from_line(line.text)?;
        let call = record.inputs(machine)?;
        let outcome = |mutation: Option<Mutation>| {
            let mut view = Recorded::new(&machine.machine, &call);
            view.mutation = mutation;
            compare(&record, &call, &mut view).outcome
        };
        if outcome(None) != Outcome::Agree {
            return Ok(());
        }
        self.decisions += 1;
        for row in &mut self.rows {
            if let Outcome::Differ(difference) = outcome(Some(row.mutation)) {
                row.caught += 1;
                row.first.get_or_insert_with(|| Catch {
                    file: file.to_owned(),
                    record: record.i,
                    step: difference.step,
                });
            }
        }
        Ok(())
    }
}
