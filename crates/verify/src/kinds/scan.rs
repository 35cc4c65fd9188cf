//! `scan`: how many CPUs a search may look at, set by the periodic balance.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::from_line;
use serde::Deserialize;
use wakelab_sched::balance::scan::nr_idle_scan;

pub(super) const KIND: Kind = Kind {
    name: "scan",
    function: "update_idle_cpu_scan",
    check,
};

#[derive(Deserialize)]
struct Record {
    s: usize,
    su: u64,
    lw: u32,
    sw: u32,
    pct: u32,
    n0: i32,
    n1: i32,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    if r.lw == 0 {
        return Err(Problem::value("lw", 0, "CPUs of an LLC"));
    }
    let sets = r.sw == r.lw && header.feature(r.s, "SIS_UTIL")?;
    let new = if sets {
        nr_idle_scan(r.su, r.lw, r.pct)
    } else {
        r.n0
    };
    Ok(Comparison::new().same("nr_idle_scan", r.n1, new).outcome())
}
