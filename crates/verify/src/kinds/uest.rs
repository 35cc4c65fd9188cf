//! `uest`: the estimate of a task's utilisation, when it leaves its run queue.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Flag, from_line};
use serde::Deserialize;
use wakelab_sched::fair::util_est::updated_single;

pub(super) const KIND: Kind = Kind {
    name: "uest",
    function: "util_est_update",
    check,
};

#[derive(Deserialize)]
struct Record {
    s: usize,
    sleep: Flag,
    e0: u32,
    e1: u32,
    ut: Amount,
    rn: Amount,
    cap: Amount,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let updates = r.sleep.0 && header.feature(r.s, "UTIL_EST")?;
    let updated = || updated_single(r.e0, r.ut.0, r.rn.0, r.cap.0);
    let new = updates.then(updated).flatten().unwrap_or(r.e0);
    Ok(Comparison::new().same("util_est", r.e1, new).outcome())
}
