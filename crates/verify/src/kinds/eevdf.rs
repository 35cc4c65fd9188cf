//! The kinds of EEVDF: each call is played on a scheduler of one run queue, put into the state in
//! which the record begins.

mod entity;
mod pick;
mod queue;
mod record;
mod scene;
mod vtime;

use super::{Kind, TOPOLOGY};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::Outcome;
use crate::wire::from_line;
use record::{Checked, Record};
use scene::Stage;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

static STAGE: LazyLock<Stage> = LazyLock::new(|| Stage::new(Arc::clone(&TOPOLOGY)));

fn play(
    header: &Header,
    line: &[u8],
    check: fn(&Stage, &Record<'_>) -> Checked,
) -> Result<Outcome, Problem> {
    let value: Value = from_line(line)?;
    let value = &value;
    Ok(check(&STAGE, &Record { header, value })?.outcome())
}

pub(super) const AVGV: Kind = Kind {
    name: "avgv",
    function: "avg_vruntime",
    check: |header, line| play(header, line, vtime::avgv),
};

pub(super) const CURR: Kind = Kind {
    name: "curr",
    function: "update_curr",
    check: |header, line| play(header, line, entity::curr),
};

pub(super) const DEQ: Kind = Kind {
    name: "deq",
    function: "dequeue_entity",
    check: |header, line| play(header, line, queue::deq),
};

pub(super) const ELIG: Kind = Kind {
    name: "elig",
    function: "vruntime_eligible",
    check: |header, line| play(header, line, vtime::elig),
};

pub(super) const LAG: Kind = Kind {
    name: "lag",
    function: "update_entity_lag",
    check: |header, line| play(header, line, vtime::lag),
};

pub(super) const MSL: Kind = Kind {
    name: "msl",
    function: "cfs_rq_min_slice",
    check: |header, line| play(header, line, vtime::msl),
};

pub(super) const PICK: Kind = Kind {
    name: "pick",
    function: "pick_eevdf",
    check: |header, line| play(header, line, pick::pick),
};

pub(super) const PLACE: Kind = Kind {
    name: "place",
    function: "place_entity",
    check: |header, line| play(header, line, entity::place),
};

pub(super) const PREEMPT: Kind = Kind {
    name: "preempt",
    function: "check_preempt_wakeup_fair",
    check: |header, line| play(header, line, pick::preempt),
};

pub(super) const REQD: Kind = Kind {
    name: "reqd",
    function: "requeue_delayed_entity",
    check: |header, line| play(header, line, queue::reqd),
};

pub(super) const REWT: Kind = Kind {
    name: "rewt",
    function: "reweight_entity",
    check: |header, line| play(header, line, entity::rewt),
};

pub(super) const UPDL: Kind = Kind {
    name: "updl",
    function: "update_deadline",
    check: |header, line| play(header, line, entity::updl),
};

pub(super) const YIELD: Kind = Kind {
    name: "yield",
    function: "yield_task_fair",
    check: |header, line| play(header, line, entity::yields),
};
