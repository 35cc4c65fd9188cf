//! The search before 5.12: an idle core, an idle CPU, an SMT sibling of the target, each in its turn.
//!
//! All start at the target itself. The core search is bounded by `has_idle_cores` alone, the CPU search
//! by SIS_AVG_CPU and SIS_PROP, which compare what such a search takes on average with how long this
//! CPU idles on average; the siblings are looked at whatever came before.

use super::decision::{Reason, SearchStats, SisPath};
use super::search::{Part, Space, scan_cores, scan_cpus};
use super::sibling::Sibling;
use super::view::View;
use crate::features::Feat;
use wakelab_machine::{CpuId, LlcId};

/// The searches of an LLC for the target (kernel 5.2 `sched/fair.c`, the end of
/// `select_idle_sibling()`).
pub(super) fn search_in_turns<V: View>(v: &mut V, target: CpuId, llc: LlcId) -> Sibling {
    let mut stats = SearchStats {
        called: true,
        ..Default::default()
    };
    let (cpu, reason, path) = take_turns(v, target, llc, &mut stats);
    v.note_scanned(stats.scanned);
    stats.success = path != SisPath::Nothing;
    Sibling {
        searched: stats,
        ..Sibling::slow(cpu, reason, path, false)
    }
}

fn take_turns<V: View>(
    v: &mut V,
    target: CpuId,
    llc: LlcId,
    stats: &mut SearchStats,
) -> (CpuId, Reason, SisPath) {
    if v.topo().smt_active
        && v.feat(Feat::SIS_CORE)
        && let Some(cpu) = select_idle_core(v, target, llc, stats)
    {
        return (cpu, Reason::IdleCore, SisPath::IdleCpu);
    }
    let failure = match select_idle_cpu(v, target, llc, stats) {
        Ok(cpu) => return (cpu, Reason::LlcScan, SisPath::IdleCpu),
        Err(failure) => failure,
    };
    if v.topo().smt_active
        && let Some(cpu) = select_idle_smt(v, target)
    {
        return (cpu, Reason::SmtSibling, SisPath::Smt);
    }
    (target, failure, SisPath::Nothing)
}

/// The first wholly idle core, if the LLC is said to have one; a failure takes that back (kernel 5.2
/// `sched/fair.c`, `select_idle_core()`).
fn select_idle_core<V: View>(
    v: &mut V,
    target: CpuId,
    llc: LlcId,
    stats: &mut SearchStats,
) -> Option<CpuId> {
    if !v.has_idle_cores(llc) {
        return None;
    }
    let space = Space {
        llc,
        start: v.ranks().rank(target),
        part: Part::Whole,
    };
    let scan = scan_cores(v, space);
    stats.scanned += scan.visited;
    if scan.found.is_none() {
        v.clear_idle_cores(llc);
        stats.cleared_idle_cores = true;
    }
    scan.found
}

/// The first idle CPU within the limit (kernel 5.2 `sched/fair.c`, `select_idle_cpu()`). What a search
/// took goes into the average, unless the limit cut it short.
fn select_idle_cpu<V: View>(
    v: &mut V,
    target: CpuId,
    llc: LlcId,
    stats: &mut SearchStats,
) -> Result<CpuId, Reason> {
    if v.topo().cpus[v.this_cpu().index()].sd_llc.is_none() {
        return Err(Reason::NoLlc);
    }
    let (idle, cost) = (v.wake_avg_idle(), v.avg_scan_cost() + 1);
    if v.feat(Feat::SIS_AVG_CPU) && idle < cost {
        return Err(Reason::ScanLimit);
    }
    let limit = match v.feat(Feat::SIS_PROP) {
        true => sis_prop_limit(v.topo().cpus[target.index()].llc_size, idle, cost),
        false => u32::MAX,
    };
    let space = Space {
        llc,
        start: v.ranks().rank(target),
        part: Part::Span,
    };
    let scan = scan_cpus(v, space, limit);
    stats.scanned += scan.visited;
    stats.limit_hit = scan.limited;
    if !scan.limited {
        v.charge_scan(scan.visited);
    }
    match scan.found {
        Some(cpu) => Ok(cpu),
        None if scan.limited => Err(Reason::ScanLimit),
        None => Err(Reason::NoIdleCpu),
    }
}

/// SIS_PROP: as many of the LLC's CPUs as an average search could look at in the idle time, of 4 one
/// less at the least, since the loop stops when its count comes to 0.
pub(super) fn sis_prop_limit(span: u32, avg_idle: u64, avg_cost: u64) -> u32 {
    let span_avg = u64::from(span).saturating_mul(avg_idle);
    let number = if span_avg > 4 * avg_cost {
        span_avg / avg_cost
    } else {
        4
    };
    u32::try_from(number - 1).unwrap_or(u32::MAX)
}

/// An idle SMT sibling of the target (kernel 5.2 `sched/fair.c`, `select_idle_smt()`).
fn select_idle_smt<V: View>(v: &V, target: CpuId) -> Option<CpuId> {
    let siblings = &v.topo().cpus[target.index()].smt;
    siblings
        .iter()
        .find(|&cpu| v.allowed(cpu) && v.idle_cpu(cpu))
}
