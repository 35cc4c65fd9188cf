//! `swb`: whether this CPU is the one to balance for its group.

use super::{Kind, cpu_idle};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::{Comparison, Outcome};
use crate::wire::{Flag, cpu, from_line, mask};
use serde::Deserialize;
use wakelab_machine::CpuId;
use wakelab_sched::Rules;
use wakelab_sched::balance::LbEnv;
use wakelab_sched::balance::should::{Asked, should_we_balance};

pub(super) const KIND: Kind = Kind {
    name: "swb",
    function: "should_we_balance",
    check,
};

#[derive(Deserialize)]
struct Record {
    dst: u64,
    idle: usize,
    sdf: u32,
    bm: u64,
    cpus: u64,
    ic: u64,
    co: u64,
    nr: u32,
    tp: Flag,
    r: Flag,
    racy: Flag,
}

fn check(header: &Header, line: &[u8]) -> Result<Outcome, Problem> {
    let r: Record = from_line(line)?;
    let sets = |field: &str, bits: u64| mask(field, bits, header.ncpu);
    let balance_cpus: Vec<CpuId> = sets("bm", r.bm)?.iter().collect();
    let (idle_cpus, idle_cores) = (sets("ic", r.ic)?, sets("co", r.co)?);
    let env = LbEnv {
        dst_cpu: cpu("dst", r.dst, header.ncpu)?,
        idle: cpu_idle(r.idle)?,
        sd_flags: r.sdf,
        cpus: sets("cpus", r.cpus)?,
        trimmed: true,
        ..LbEnv::default()
    };
    let asked = Asked {
        balance_cpus: &balance_cpus,
        dst_nr_running: r.nr,
        dst_ttwu_pending: r.tp.0,
        always_newly_idle: false,
    };
    let ours = should_we_balance(
        &env,
        &asked,
        Rules::of(header.release).smt_balance,
        |cpu| idle_cpus.contains(cpu),
        |cpu| !idle_cores.contains(cpu),
    );
    let compared = Comparison::new().same("should balance", r.r.0, ours);
    Ok(compared.outcome_if_racy(r.racy.0))
}
