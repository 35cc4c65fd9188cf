//! `cdf`: a time scaled by weight.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, from_line};
use serde::Deserialize;
use wakelab_sched::weight::calc_delta;

pub(super) const KIND: Kind = Kind {
    name: "cdf",
    function: "__calc_delta",
    check,
};

#[derive(Deserialize)]
struct Record {
    d: u64,
    w: Amount,
    lw: Amount,
    i0: u32,
    i1: u32,
    r: u64,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut inv_weight = r.i0;
    let delta = calc_delta(r.d, r.w.0, r.lw.0, &mut inv_weight);
    let compared = Comparison::new().same("delta", r.r, delta);
    Ok(compared.same("inv_weight", r.i1, inv_weight).outcome())
}
