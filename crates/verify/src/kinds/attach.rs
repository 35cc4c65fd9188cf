//! `attach`: an entity's averages join those of a run queue.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::fair::average::attach_entity_load_avg;
use wakelab_sched::weight::scale_load_down;

pub(super) const KIND: Kind = Kind {
    name: "attach",
    function: "attach_entity_load_avg",
    check,
};

#[derive(Deserialize)]
struct Record {
    w: Amount,
    p0: i64,
    p1: i64,
    e0: Avg,
    e1: Avg,
    c0: Avg,
    c1: Avg,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let (mut entity, mut queue) = (r.e0.0, r.c0.0);
    let sum = attach_entity_load_avg(&mut queue, &mut entity, scale_load_down(r.w.0));
    Ok(Comparison::new()
        .same("entity's averages", r.e1.0, entity)
        .same("run queue's averages", r.c1.0, queue)
        .same("prop_runnable_sum", r.p1, r.p0.wrapping_add(sum))
        .outcome())
}
