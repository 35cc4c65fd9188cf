//! `hload`: a task's part of its CPU's load, through the groups above it.

use super::{Kind, TOPOLOGY};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Flag, from_line};
use serde::Deserialize;
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::state::Policy;
use wakelab_sched::{CfsId, Cookie, Features, Release, Rules, Sched, TaskId, TgId, Tunables};

pub(super) const KIND: Kind = Kind {
    name: "hload",
    function: "task_h_load",
    check,
};

/// Groups nest by mounting one in another; nobody goes so deep.
const MAX_LEVELS: usize = 64;

#[derive(Deserialize)]
struct Record {
    j: u64,
    pl: Amount,
    ch: Vec<Level>,
    h1: Vec<u64>,
    r: u64,
    racy: Flag,
}

/// Group, last update in jiffies, h_load, load_avg of the run queue, of the group's entity.
type Level = (i64, u64, Amount, Amount, Amount);

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    if !(1..=MAX_LEVELS).contains(&r.ch.len()) {
        let expected = format!("1 to {MAX_LEVELS} levels");
        return Err(Problem::value("ch", r.ch.len(), expected));
    }
    let mut sched = nested(header.release, r.ch.len() - 1);
    let jiffies = sched.jiffies(CpuId(0));
    let entity = sched.tasks[0].se;
    sched.se[entity.index()].avg.load_avg = r.pl.0;
    let mut chain: Vec<CfsId> = Vec::new();
    let mut queue = sched.se[entity.index()].cfs_rq;
    for (_, updated, h_load, load_avg, entity_load_avg) in &r.ch {
        chain.push(queue);
        let cfs = &mut sched.cfs[queue.index()];
        cfs.last_h_load_update = if *updated == r.j { jiffies } else { 0 };
        cfs.h_load = h_load.0;
        cfs.avg.load_avg = load_avg.0;
        if cfs.owner.is_some() {
            let owner = &mut sched.se[cfs.owner.index()];
            owner.avg.load_avg = entity_load_avg.0;
            queue = owner.cfs_rq;
        }
    }
    let h_load = sched.task_h_load(TaskId(0));
    let cached: Vec<u64> = chain
        .iter()
        .map(|cfs| sched.cfs[cfs.index()].h_load)
        .collect();
    let compared = Comparison::new().same("h_load of each level", &r.h1, &cached);
    Ok(compared
        .same("task_h_load", &vec![r.r], &vec![h_load])
        .outcome_if_racy(r.racy.0))
}

/// A scheduler with one task below so many nested groups.
fn nested(release: Release, depth: usize) -> Sched {
    let tun = Tunables::for_machine(1, 250);
    let rules = Rules::of(release);
    let mut sched = Sched::new(Arc::clone(&TOPOLOGY), rules, Features(0), tun);
    sched.update_rq_clock(CpuId(0), Ns(1_000_000_000));
    let tg = (0..depth).fold(TgId::ROOT, |parent, _| {
        sched.add_group("group", parent, 1024)
    });
    sched.new_task(&TaskSpec {
        tg,
        mm: 0,
        policy: Policy::Normal,
        nice: 0,
        cpus: CpuMask::first_n(1),
        cpu: CpuId(0),
        kthread: false,
        cookie: Cookie::NONE,
    });
    sched
}
