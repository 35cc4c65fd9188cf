//! The kinds of core scheduling: each call is played on a scheduler put into the state in which the
//! record begins.

mod compare;
mod pick;
mod scene;
mod steal;

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::from_line;
use serde_json::Value;

/// A comparison, if the record can be read.
type Checked = Result<Comparison, Problem>;

/// Compares what the model has with what the kernel had, by name.
fn of(compared: &[(&'static str, u64, u64)]) -> Comparison {
    let same = |all: Comparison, (name, model, kernel): &(&'static str, u64, u64)| {
        all.same(name, *kernel, *model)
    };
    compared.iter().fold(Comparison::new(), same)
}

fn play(
    header: &Header,
    line: &[u8],
    check: fn(&Header, &Value) -> Checked,
) -> Result<Outcome, Problem> {
    Ok(check(header, &from_line(line)?)?.outcome())
}

pub(super) const CLESS: Kind = Kind {
    name: "cless",
    function: "cfs_prio_less",
    check: |header, line| play(header, line, compare::cless),
};

pub(super) const CORE: Kind = Kind {
    name: "core",
    function: "pick_next_task",
    check: |header, line| play(header, line, pick::core),
};

pub(super) const STEAL: Kind = Kind {
    name: "steal",
    function: "try_steal_cookie",
    check: |header, line| play(header, line, steal::steal),
};
