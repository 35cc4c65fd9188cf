//! How sure can one be: breaks one rule of wake-up placement at a time, and tells which of them the
//! recorded decisions notice. A rule that can be broken unnoticed is one that they do not cover.

use crate::decisions::{Record, compare};
use crate::error::{Problem, ReadError};
use crate::outcome::Outcome;
use crate::recording::{Body, Line, Recording};
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

impl Mutated {
    /// Adds what a later recording noticed of the same rule.
    pub fn merge(&mut self, later: Mutated) {
        self.caught += later.caught;
        self.first = self.first.take().or(later.first);
    }
}

/// Makes every decision again under each mutation: a row for each, in the order of
/// [`Mutation::all`]. None if `stop` said so. Racy records are left out, and those that the whole
/// rules get wrong.
///
/// # Errors
/// If a line cannot be read, or the recording has no decisions.
pub fn mutate(
    mut recording: Recording,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Vec<Mutated>>, ReadError> {
    let file = recording.file().to_owned();
    let row = |mutation| Mutated {
        mutation,
        caught: 0,
        first: None,
    };
    let mut rows: Vec<Mutated> = Mutation::all().map(row).collect();
    let complete = recording.each(stop, |body, line| add(body, &line, &file, &mut rows))?;
    Ok(complete.then_some(rows))
}

fn add(body: &Body, line: &Line<'_>, file: &Path, rows: &mut [Mutated]) -> Result<(), Problem> {
    let Body::Decisions(machine) = body else {
        return Err(Problem::value(
            "kind",
            "arithmetic",
            "recorded decisions, to break rules of",
        ));
    };
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
    for row in rows {
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
