//! Machines whose CPUs differ in capacity.

use super::idle::{At, is_idle_cpu};
use super::view::{View, fits_capacity};
use wakelab_machine::CpuId;

/// Whether the task fits the CPU, on a machine where that is a question (kernel `sched/fair.c`,
/// `asym_fits_cpu()`, 5.7 on; the model has no utilisation clamps).
#[inline]
pub(super) fn asym_fits_cpu<V: View>(v: &V, util: u64, cpu: CpuId) -> bool {
    !v.topo().asym_cpucap || !v.rules().sis_by_capacity || fits_capacity(util, v.capacity_of(cpu))
}

/// The first idle CPU on which the task fits or, if there is none, the idle CPU of the most
/// capacity (kernel `sched/fair.c`, `select_idle_capacity()`). `level` is the target's domain of
/// all capacities; the search starts at the target itself. Also: how many CPUs it looked at.
pub(super) fn select_idle_capacity<V: View>(
    v: &V,
    level: usize,
    target: CpuId,
    util: u64,
) -> (Option<CpuId>, u32) {
    let span = v.topo().domains[target.index()][level].span;
    let mut best: Option<(u64, CpuId)> = None;
    let mut scanned = 0;
    let mut found = None;
    for cpu in span.iter_wrap(target.index()) {
        if !v.allowed(cpu) {
            continue;
        }
        scanned += 1;
        if !is_idle_cpu(v, cpu, At::Unmatched) {
            continue;
        }
        let capacity = v.capacity_of(cpu);
        if fits_capacity(util, capacity) {
            found = Some(cpu);
            break;
        }
        if best.map_or(capacity > 0, |(most, _)| capacity > most) {
            best = Some((capacity, cpu));
        }
    }
    (found.or(best.map(|(_, cpu)| cpu)), scanned)
}
