//! `init`: the utilisation of a new task.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, from_line};
use serde::Deserialize;
use wakelab_sched::fair::task::initial_util;
use wakelab_sched::weight::scale_load_down;

pub(super) const KIND: Kind = Kind {
    name: "init",
    function: "post_init_entity_util_avg",
    check,
};

#[derive(Deserialize)]
struct Record {
    cs: Amount,
    cu: Amount,
    cl: Amount,
    w: Amount,
    a0: Avg,
    ua: u64,
    ra: u64,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let util = initial_util(r.cs.0, r.cu.0, r.cl.0, scale_load_down(r.w.0));
    let util = util.unwrap_or(r.a0.0.util_avg);
    Ok(Comparison::new()
        .same("util_avg", r.ua, util)
        .same("runnable_avg", r.ra, util)
        .outcome())
}
