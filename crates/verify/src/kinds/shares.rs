//! `shares`: the weight of a group's entity.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::from_line;
use serde::Deserialize;
use wakelab_sched::fair::group::calc_group_shares;

pub(super) const KIND: Kind = Kind {
    name: "shares",
    function: "calc_group_shares",
    check,
};

#[derive(Deserialize)]
struct Record {
    sh: u64,
    lw: u64,
    la: u64,
    tla: u64,
    con: u64,
    r: u64,
    tla1: u64,
}

fn check(_: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let of = |total: u64| calc_group_shares(r.sh, r.lw, r.la, total, r.con);
    // Another CPU may have changed the group's load during the call.
    let racy = r.tla != r.tla1;
    let total = if racy && of(r.tla1) == r.r {
        r.tla1
    } else {
        r.tla
    };
    let compared = Comparison::new().same("weight", r.r, of(total));
    Ok(compared.outcome_if_racy(racy))
}
