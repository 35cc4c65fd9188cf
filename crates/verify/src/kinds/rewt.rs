//! `rewt`: the load of an entity and its run queue under a new weight. The record also has what the
//! weight does to lag and deadline; that is not compared.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::SchedAvg;
use wakelab_sched::fair::average::reweight_load_avg;
use wakelab_sched::weight::scale_load_down;

pub(super) const KIND: Kind = Kind {
    name: "rewt",
    function: "reweight_entity (load)",
    check,
};

#[derive(Deserialize)]
struct Record {
    w: Amount,
    e0: Entity,
    a0: Avg,
    a1: Avg,
    cl0: Amount,
    cs0: u64,
    cl1: u64,
    cs1: u64,
}

/// Id, vruntime, deadline, vlag, weight, inv_weight, slice, flags.
type Entity = (i64, u64, u64, i64, Amount, u32, u64, u32);

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut entity = r.a0.0;
    let mut queue = SchedAvg {
        load_avg: r.cl0.0,
        load_sum: r.cs0,
        ..SchedAvg::default()
    };
    let (old, new) = (scale_load_down(r.e0.4.0), scale_load_down(r.w.0));
    reweight_load_avg(&mut queue, &mut entity, old, new);
    Ok(Comparison::new()
        .same("entity's averages", r.a1.0, entity)
        .same("run queue's load_avg", r.cl1, queue.load_avg)
        .same("run queue's load_sum", r.cs1, queue.load_sum)
        .outcome())
}
