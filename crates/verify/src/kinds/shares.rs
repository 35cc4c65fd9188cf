//! `shares`: the weight of a group's entity.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, from_line};
use serde::Deserialize;
use wakelab_sched::fair::group::calc_group_shares;

pub(super) const KIND: Kind = Kind {
    name: "shares",
    function: "calc_group_shares",
    check,
};

#[derive(Deserialize)]
struct Record {
    sh: Amount,
    lw: Amount,
    la: Amount,
    tla: Amount,
    con: Amount,
    r: u64,
    tla1: Amount,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let of = |total: u64| calc_group_shares(r.sh.0, r.lw.0, r.la.0, total, r.con.0);
    // Another CPU may have changed the group's load during the call.
    let racy = r.tla.0 != r.tla1.0;
    let total = if racy && of(r.tla1.0) == r.r {
        r.tla1.0
    } else {
        r.tla.0
    };
    let compared = Comparison::new().same("weight", r.r, of(total));
    Ok(compared.outcome_if_racy(racy))
}
