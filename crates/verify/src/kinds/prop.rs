//! `prop`: a change of a group's run queue goes to its entity and on to the run queue above.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::fair::average::propagate;
use wakelab_sched::weight::scale_load_down;

pub(super) const KIND: Kind = Kind {
    name: "prop",
    function: "propagate_entity_load_avg",
    check,
};

#[derive(Deserialize)]
struct Record {
    w: Amount,
    gw: Amount,
    gp0: i64,
    gp1: i64,
    cp0: i64,
    cp1: i64,
    e0: Avg,
    e1: Avg,
    c0: Avg,
    c1: Avg,
    g: Avg,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let (mut entity, mut queue) = (r.e0.0, r.c0.0);
    let (weight, group_weight) = (scale_load_down(r.w.0), scale_load_down(r.gw.0));
    propagate(&mut queue, &mut entity, weight, &r.g.0, group_weight, r.gp0);
    Ok(Comparison::new()
        .same("entity's averages", r.e1.0, entity)
        .same("run queue's averages", r.c1.0, queue)
        .same("group's prop_runnable_sum", r.gp1, 0)
        .same("prop_runnable_sum", r.cp1, r.cp0.wrapping_add(r.gp0))
        .outcome())
}
