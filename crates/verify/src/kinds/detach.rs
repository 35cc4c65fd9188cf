//! `detach`: an entity's averages leave those of a run queue.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::fair::average::detach_entity_load_avg;
use wakelab_sched::weight::scale_load_down;

pub(super) const KIND: Kind = Kind {
    name: "detach",
    function: "detach_entity_load_avg",
    check,
};

#[derive(Deserialize)]
struct Record {
    w: Amount,
    p0: i64,
    p1: i64,
    e0: Avg,
    c0: Avg,
    c1: Avg,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut queue = r.c0.0;
    let sum = detach_entity_load_avg(&mut queue, &r.e0.0, scale_load_down(r.w.0));
    Ok(Comparison::new()
        .same("run queue's averages", r.c1.0, queue)
        .same("prop_runnable_sum", r.p1, r.p0.wrapping_add(sum))
        .outcome())
}
