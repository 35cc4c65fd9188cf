//! `canm`: whether a task may move.

use super::{Kind, cpu_idle};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Flag, cpu, from_line, mask};
use serde::Deserialize;
use wakelab_machine::CpuMask;
use wakelab_sched::balance::LbEnv;
use wakelab_sched::balance::env::lbf;
use wakelab_sched::balance::migrate::{Candidate, Destination, can_migrate_task};

pub(super) const KIND: Kind = Kind {
    name: "canm",
    function: "can_migrate_task",
    check,
};

#[derive(Deserialize)]
struct Record {
    s: usize,
    src: u64,
    dst: u64,
    idle: usize,
    fl0: u32,
    fl1: u32,
    mask: u64,
    thr: Flag,
    pck: Flag,
    run: Flag,
    fair: Flag,
    ipol: Flag,
    sdf: u32,
    dnr: u32,
    bud: Flag,
    mc: i64,
    ckm: Flag,
    now: u64,
    ex: u64,
    nbf: u32,
    cnt: u32,
    dgm: u64,
    cpus: u64,
    r: Flag,
    ndc: u64,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let mut env = LbEnv {
        dst_cpu: cpu("dst", r.dst, header.ncpu)?,
        src_cpu: cpu("src", r.src, header.ncpu)?,
        sd_flags: r.sdf,
        idle: cpu_idle(r.idle)?,
        flags: r.fl0,
        nr_balance_failed: r.nbf,
        cache_nice_tries: r.cnt,
        cpus: mask("cpus", r.cpus, header.ncpu)?,
        trimmed: true,
        ..LbEnv::default()
    };
    // The kernel's mask may have CPUs that the machine has not.
    let allowed = CpuMask::from_u64(r.mask).and(&CpuMask::first_n(header.ncpu));
    let group = mask("dgm", r.dgm, header.ncpu)?;
    let task = Candidate {
        throttled: r.thr.0,
        cpus: &allowed,
        per_cpu_kthread: r.pck.0,
        running: r.run.0,
        // A task of another class is never hot either.
        idle_policy: r.ipol.0 || !r.fair.0,
        buddy: r.bud.0,
        since_exec: r.now.wrapping_sub(r.ex) as i64,
        cookie_match: r.ckm.0,
        hot_between_siblings: false,
    };
    let destination = Destination {
        nr_running: r.dnr,
        group: &group,
        migration_cost: r.mc,
        cache_hot_buddy: header.feature(r.s, "CACHE_HOT_BUDDY")?,
    };
    let can = can_migrate_task(&mut env, &destination, &task);
    let mut compared = Comparison::new()
        .same("can migrate", r.r.0, can)
        .same("flags", r.fl1, env.flags);
    if env.has(lbf::DST_PINNED) && r.fl0 & lbf::DST_PINNED == 0 {
        compared = compared.same("new_dst_cpu", r.ndc, u64::from(env.new_dst_cpu.0));
    }
    Ok(compared.outcome())
}
