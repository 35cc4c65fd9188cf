//! `det`: whether a task is taken off the busiest queue, and what is left of the imbalance.

use super::{Kind, cpu_idle, migration_type};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Flag, from_line};
use serde::Deserialize;
use wakelab_sched::balance::migrate::take_from_imbalance;
use wakelab_sched::balance::{LbEnv, MigrationType};

pub(super) const KIND: Kind = Kind {
    name: "det",
    function: "detach_tasks (one task)",
    check,
};

/// No load or number of tasks to move comes near.
const MAX_IMBALANCE: u64 = 1 << 40;

#[derive(Deserialize)]
struct Record {
    s: usize,
    idle: usize,
    mt: usize,
    imb0: i64,
    imb1: i64,
    nbf: u32,
    ld: Amount,
    ut: Amount,
    can: Flag,
    mv: Flag,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    if r.imb0.unsigned_abs() > MAX_IMBALANCE {
        let expected = format!("at most {MAX_IMBALANCE}");
        return Err(Problem::value("imb0", r.imb0, expected));
    }
    let mut env = LbEnv {
        idle: cpu_idle(r.idle)?,
        migration_type: migration_type(r.mt)?,
        imbalance: r.imb0,
        nr_balance_failed: r.nbf,
        ..LbEnv::default()
    };
    let size = match env.migration_type {
        MigrationType::Load => r.ld.0,
        _ => r.ut.0,
    };
    let lb_min = header.feature(r.s, "LB_MIN")?;
    let moves = r.can.0 && take_from_imbalance(&mut env, size, lb_min, false);
    Ok(Comparison::new()
        .same("moved", r.mv.0, moves)
        .same("imbalance", r.imb1, env.imbalance)
        .outcome())
}
