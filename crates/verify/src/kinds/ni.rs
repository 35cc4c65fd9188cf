//! `ni`: newly idle balancing: whether it starts, what it may cost, and how it is accounted.

use super::Kind;
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Flag, from_line};
use serde::Deserialize;
use wakelab_sched::balance::cost::{
    newidle_dice, newidle_gated, newidle_too_dear, update_newidle_cost, update_newidle_stats,
};
use wakelab_sched::state::DomainState;

pub(super) const KIND: Kind = Kind {
    name: "ni",
    function: "sched_balance_newidle",
    check,
};

#[derive(Deserialize)]
struct Stage {
    st: u8,
}

/// Stage 0: whether there is any balancing.
#[derive(Deserialize)]
struct Gate {
    ovl: Flag,
    ai: u64,
    cost: u64,
    skip: Flag,
}

/// Stage 1: one domain.
#[derive(Deserialize)]
struct Domain {
    ai: u64,
    cc: Amount,
    n0: Costs,
    n1: Costs,
    /// 1 too dear, 2 dice lost, 3 balanced.
    res: u8,
    dice: u32,
    wt: u32,
    dc: Amount,
    pulled: i64,
    j: u64,
}

/// A list: max_newidle_lb_cost, last_decay_max_lb_cost, newidle_call, newidle_success, newidle_ratio.
#[derive(Clone, Copy, Deserialize)]
struct Costs(Amount, u64, u16, u16, u16);

impl Costs {
    fn state(self) -> DomainState {
        DomainState {
            max_newidle_lb_cost: self.0.0,
            last_decay_max_lb_cost: self.1,
            newidle_call: self.2.into(),
            newidle_success: self.3.into(),
            newidle_ratio: self.4.into(),
            ..DomainState::default()
        }
    }
}

/// What is recorded of a domain's state.
fn costs(state: &DomainState) -> (u64, u64, u32, u32, u32) {
    (
        state.max_newidle_lb_cost,
        state.last_decay_max_lb_cost,
        state.newidle_call,
        state.newidle_success,
        state.newidle_ratio,
    )
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    match from_line::<Stage>(line)?.st {
        0 => {
            let r: Gate = from_line(line)?;
            let gated = newidle_gated(r.ovl.0, r.ai, r.cost);
            Ok(Comparison::new().same("skipped", r.skip.0, gated).outcome())
        }
        1 => Ok(domain(&from_line(line)?, header.hz)),
        other => Err(Problem::value("st", other, "0 or 1")),
    }
}

fn domain(r: &Domain, hz: u64) -> Outcome {
    let mut state = r.n0.state();
    if newidle_too_dear(r.ai, r.cc.0, state.max_newidle_lb_cost) {
        return Comparison::new().same("result", r.res, 1).outcome();
    }
    let (result, weight) = match newidle_dice(&state, r.dice) {
        None => {
            update_newidle_stats(&mut state, 0);
            (2, r.wt)
        }
        Some(weight) => {
            let success = weight * u32::from(r.pulled != 0);
            update_newidle_cost(&mut state, r.dc.0, success, r.j, hz);
            (3, weight)
        }
    };
    Comparison::new()
        .same("result", r.res, result)
        .same("weight", r.wt, weight)
        .same("costs", costs(&r.n1.state()), costs(&state))
        .outcome()
}
