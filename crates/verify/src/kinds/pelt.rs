//! `pelt`: one step of the averages of an entity, a run queue, or a blocked entity.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Avg, Flag, from_line};
use serde::Deserialize;
use wakelab_sched::pelt;

pub(super) const KIND: Kind = Kind {
    name: "pelt",
    function: "__update_load_avg_{se,cfs_rq,blocked_se}",
    check,
};

#[derive(Deserialize)]
struct Record {
    s: usize,
    /// 0 entity, 1 run queue, 2 blocked entity.
    v: u8,
    now: u64,
    ld: Amount,
    rn: Amount,
    ru: Flag,
    w: Amount,
    a0: Avg,
    a1: Avg,
    r: Flag,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut avg = r.a0.0;
    let decayed = match r.v {
        0 => pelt::update_se(r.now, &mut avg, r.w.0, r.ld.0 != 0, r.rn.0, r.ru.0),
        1 => pelt::update_cfs_rq(r.now, &mut avg, r.ld.0, r.rn.0, r.ru.0),
        2 => pelt::update_blocked_se(r.now, &mut avg, r.w.0),
        other => return Err(Problem::value("v", other, "0, 1 or 2")),
    };
    let mut kernel = r.a1.0;
    if !header.feature(r.s, "UTIL_EST")? {
        // The flag stays as it was when the feature was turned off.
        kernel.util_est = avg.util_est;
    }
    let compared = Comparison::new().same("averages", kernel, avg);
    Ok(compared.same("periods passed", r.r.0, decayed).outcome())
}
