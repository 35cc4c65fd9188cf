//! `removed`: load that tasks left behind elsewhere is taken off a run queue.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::fair::average::take_removed;
use wakelab_sched::state::Removed;

pub(super) const KIND: Kind = Kind {
    name: "removed",
    function: "update_cfs_rq_load_avg (removed)",
    check,
};

#[derive(Deserialize)]
struct Record {
    rl: Amount,
    ru: Amount,
    rr: Amount,
    p0: i64,
    p1: i64,
    c0: Avg,
    c1: Avg,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut queue = r.c0.0;
    let removed = Removed {
        nr: 1,
        load_avg: r.rl.0,
        util_avg: r.ru.0,
        runnable_avg: r.rr.0,
    };
    let sum = take_removed(&mut queue, &removed);
    Ok(Comparison::new()
        .same("run queue's averages", r.c1.0, queue)
        .same("prop_runnable_sum", r.p1, r.p0.wrapping_add(sum))
        .outcome())
}
