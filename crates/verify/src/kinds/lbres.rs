//! `lbres`: the balance interval after a balance.

use super::{Kind, cpu_idle, migration_type};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Flag, from_line};
use serde::Deserialize;
use wakelab_sched::Rules;
use wakelab_sched::balance::env::lbf;
use wakelab_sched::balance::pass::{Outcome as Ended, interval_after};
use wakelab_sched::balance::{CpuIdle, LbEnv, MigrationType};

pub(super) const KIND: Kind = Kind {
    name: "lbres",
    function: "sched_balance_rq (end)",
    check,
};

#[derive(Deserialize)]
struct Record {
    idle: usize,
    src: i64,
    mv: u64,
    act: Flag,
    fl: u32,
    mt: usize,
    bi0: u32,
    bi1: u32,
    mini: u32,
    maxi: u32,
    nbf0: u64,
    nbf1: u64,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let env = LbEnv {
        idle: cpu_idle(r.idle)?,
        flags: r.fl,
        migration_type: migration_type(r.mt)?,
        ..LbEnv::default()
    };
    let Some(ended) = ended(&r, &env) else {
        return Ok(Outcome::Undetermined(
            "all tasks pinned, or the one to be pushed",
        ));
    };
    let rules = Rules::of(header.release);
    let interval = interval_after(&env, &rules, ended, r.bi0, (r.mini, r.maxi));
    Ok(Comparison::new()
        .same("balance_interval", r.bi1, interval)
        .outcome())
}

/// How the balance ended, by what the record has of it.
fn ended(r: &Record, env: &LbEnv) -> Option<Ended> {
    if r.mv > 0 {
        return Some(Ended::Moved);
    }
    if r.src < 0 {
        return Some(Ended::Balanced);
    }
    if r.act.0 {
        return Some(Ended::Failed);
    }
    // The running task is pushed only then, and may be the one that is pinned.
    let may_push = env.migration_type == MigrationType::Task && r.nbf1 > 2;
    let all_may_be_pinned = env.has(lbf::ALL_PINNED);
    if env.idle == CpuIdle::NewlyIdle {
        // Such a balance counts no failures.
        return (!may_push && !all_may_be_pinned).then_some(Ended::Failed);
    }
    match r.nbf1 {
        // Nothing moved and the count was set back: all were pinned.
        0 => Some(Ended::Balanced),
        after if after == r.nbf0.wrapping_add(1) && !may_push => Some(Ended::Failed),
        _ => None,
    }
}
