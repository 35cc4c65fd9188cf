//! `lb`: the busiest group of a domain, how much is to be moved, and its busiest run queue.

use super::{Kind, cpu_idle, migration_type};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Amount, Flag, cpu, from_line, mask};
use serde::Deserialize;
use wakelab_machine::GroupId;
use wakelab_sched::Rules;
use wakelab_sched::balance::LbEnv;
use wakelab_sched::balance::busiest::{find_busiest_group, update_sd_pick_busiest};
use wakelab_sched::balance::group::{
    GroupType, GroupView, SdStats, SgStats, group_classify, smt_balance,
};
use wakelab_sched::balance::queue::{Busiest, QueueView};

pub(super) const KIND: Kind = Kind {
    name: "lb",
    function: "sched_balance_find_src_{group,rq}",
    check,
};

#[derive(Deserialize)]
struct Record {
    sdf: u32,
    pct: u32,
    inn: u32,
    idle: usize,
    dst: u64,
    cpus: u64,
    nbf: u32,
    cnt: u32,
    g: Vec<Group>,
    ps: Flag,
    tl: u64,
    tc: u64,
    bg: u64,
    mt: usize,
    imb: i64,
    rq: Vec<Queue>,
    src: i64,
    #[serde(default)]
    racy: Flag,
}

/// A group, written as a list in this order.
#[derive(Deserialize)]
struct Group {
    mask: u64,
    flags: u32,
    weight: u32,
    cores: u32,
    imbalance: Flag,
    load: Amount,
    util: Amount,
    runnable: Amount,
    nr_running: u32,
    h_nr_running: u32,
    idle_cpus: u32,
    capacity: Amount,
    kind: u64,
    avg_load: u64,
    misfit: Amount,
    asym: Flag,
    smt_balance: Flag,
    local: Flag,
    picked: Flag,
    prefer_cpu: u64,
}

/// A run queue of the busiest group, written as a list in this order.
#[derive(Deserialize)]
struct Queue {
    cpu: u64,
    h_nr_running: u32,
    load: Amount,
    util: Amount,
    capacity: Amount,
    arch_capacity: Amount,
    _nr_running: u32,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let rules = Rules::of(header.release);
    let mut env = environment(header, &r)?;
    let mut compared = Comparison::new();
    let mut sds = SdStats {
        prefer_sibling: r.ps.0,
        ..SdStats::default()
    };
    for (place, group) in r.g.iter().enumerate() {
        compared = add_group(compared, (&env, &rules, header), &mut sds, place, group)?;
    }
    compared = compared.same("total load", r.tl, sds.total_load).same(
        "total capacity",
        r.tc,
        sds.total_capacity,
    );
    if sds.local.is_none() {
        return Err(Problem::value("g", "no local group", "one"));
    }
    let found = find_busiest_group(&mut env, &rules, &mut sds);
    let mask_of = |id: GroupId| r.g.get(id.index()).map_or(0, |group| group.mask);
    compared = compared.same("busiest group", r.bg, found.map_or(0, mask_of));
    if found.is_none() {
        return Ok(compared.same("busiest queue", r.src, -1).outcome());
    }
    compared = compared
        .same("migration type", migration_type(r.mt)?, env.migration_type)
        .same("imbalance", r.imb, env.imbalance);
    // If the queues were changing, all but the choice between them holds.
    if !r.racy.0 {
        compared = compared.same("busiest queue", r.src, busiest_queue(header, &env, &r)?);
    }
    Ok(compared.outcome())
}

fn environment(header: &Header, r: &Record) -> Result<LbEnv, Problem> {
    Ok(LbEnv {
        dst_cpu: cpu("dst", r.dst, header.ncpu)?,
        dst_capacity: 1024,
        sd_flags: r.sdf,
        imbalance_pct: r.pct,
        imb_numa_nr: r.inn,
        cache_nice_tries: r.cnt,
        nr_balance_failed: r.nbf,
        idle: cpu_idle(r.idle)?,
        cpus: mask("cpus", r.cpus, header.ncpu)?,
        trimmed: true,
        ..LbEnv::default()
    })
}

/// Classifies a group, compares, and keeps it if it is the local or the busiest so far.
fn add_group(
    compared: Comparison,
    (env, rules, header): (&LbEnv, &Rules, &Header),
    sds: &mut SdStats,
    place: usize,
    group: &Group,
) -> Result<Comparison, Problem> {
    let field = |name: &str| format!("g[{place}], {name}");
    if group.capacity.0 == 0 {
        return Err(Problem::value(field("capacity"), 0, "a capacity"));
    }
    let view = GroupView {
        id: GroupId(place as u32),
        flags: group.flags,
        cores: group.cores,
        asym_prefer_cpu: cpu(&field("asym_prefer_cpu"), group.prefer_cpu, header.ncpu)?,
        min_capacity: 1024,
        max_capacity: 1024,
    };
    let stats = group_stats(env, rules, group);
    let picked = !group.local.0 && update_sd_pick_busiest(env, rules, sds, &view, &stats);
    sds.total_load = sds.total_load.wrapping_add(stats.load);
    sds.total_capacity = sds.total_capacity.wrapping_add(stats.capacity);
    let compared = compared
        .same("group type", group.kind, stats.group_type as u64)
        .same("group's average load", group.avg_load, stats.avg_load)
        .same("smt_balance", group.smt_balance.0, stats.smt_balance)
        .same("busiest so far", group.picked.0, picked);
    if group.local.0 {
        (sds.local, sds.local_stat) = (Some(view), stats);
    } else if picked {
        (sds.busiest, sds.busiest_stat) = (Some(view), stats);
    }
    Ok(compared)
}

fn group_stats(env: &LbEnv, rules: &Rules, group: &Group) -> SgStats {
    let mut stats = SgStats {
        load: group.load.0,
        util: group.util.0,
        runnable: group.runnable.0,
        sum_nr_running: group.nr_running,
        sum_h_nr_running: group.h_nr_running,
        idle_cpus: group.idle_cpus,
        capacity: group.capacity.0,
        weight: group.weight,
        misfit_task_load: group.misfit.0,
        asym_packing: group.asym.0,
        ..SgStats::default()
    };
    if !group.local.0 {
        stats.smt_balance = smt_balance(rules, env, group.flags, &stats);
    }
    stats.group_type = group_classify(env.imbalance_pct, group.imbalance.0, &stats);
    if stats.group_type == GroupType::Overloaded {
        stats.avg_load = stats.load.wrapping_mul(1024) / stats.capacity;
    }
    stats
}

fn busiest_queue(header: &Header, env: &LbEnv, r: &Record) -> Result<i64, Problem> {
    let mut busiest = Busiest::default();
    for (place, queue) in r.rq.iter().enumerate() {
        let view = QueueView {
            cpu: cpu(&format!("rq[{place}], cpu"), queue.cpu, header.ncpu)?,
            h_nr_running: queue.h_nr_running,
            load: queue.load.0,
            util: queue.util.0,
            capacity: queue.capacity.0,
            arch_capacity: queue.arch_capacity.0,
            misfit_task_load: 0,
            asym_preferred: false,
        };
        if env.cpus.contains(view.cpu) {
            busiest.consider(env, &view);
        }
    }
    Ok(busiest.cpu.map_or(-1, |cpu| i64::from(cpu.0)))
}
