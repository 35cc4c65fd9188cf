//! `tgla`: a run queue's part in its group's load.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::from_line;
use serde::Deserialize;
use wakelab_sched::fair::group::{tg_load_change, tg_update_due};

pub(super) const KIND: Kind = Kind {
    name: "tgla",
    function: "update_tg_load_avg",
    check,
};

#[derive(Deserialize)]
struct Record {
    now: u64,
    l0: u64,
    l1: u64,
    la: u64,
    con0: u64,
    con1: u64,
    tla0: i64,
    tla1: i64,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let due = tg_update_due(r.now.wrapping_sub(r.l0));
    let change = tg_load_change(r.la, r.con0).filter(|_| due);
    let (contrib, last) = match change {
        Some(_) => (r.la, r.now),
        None => (r.con0, r.l0),
    };
    let total = r.tla0.wrapping_add(change.unwrap_or(0));
    Ok(Comparison::new()
        .same("tg_load_avg_contrib", r.con1, contrib)
        .same("last update", r.l1, last)
        .same("group's load_avg", r.tla1, total)
        .outcome())
}
