//! The waking CPU or the previous one: from where the search for an idle CPU starts.

use super::decision::{AffinePath, WakeAffine};
use super::mutation::{Mutation as M, broken, shifted};
use super::view::{View, cpus_share_cache, fits_capacity};
use crate::features::Feat;
use wakelab_machine::CpuId;

/// Whether waker and woken task each deal with so many others that their tasks should spread
/// instead of gathering in one cache (kernel `sched/fair.c`, `wake_wide()`): the one that switches
/// partners less does so at least as often as the LLC has CPUs, the other that many times as often.
pub(super) fn wake_wide<V: View>(v: &V) -> bool {
    let (a, b) = (v.curr_wakee_flips(), v.wakee_flips());
    let (slave, master) = (a.min(b), a.max(b));
    let factor = v.topo().cpus[v.this_cpu().index()].llc_size;
    let least = shifted(v, factor.into(), M::WideSlaveUp, M::WideSlaveDown);
    let product = slave.wrapping_mul(factor);
    let most = shifted(v, product.into(), M::WideMasterUp, M::WideMasterDown);
    u64::from(slave) >= least && u64::from(master) >= most && !broken(v, M::WideSkipped)
}

/// WAKEUP_BIAS_PREV_IDLE: hardly any load on the CPU but the task's own.
#[inline]
pub(super) fn almost_idle_cpu<V: View>(v: &mut V, cpu: CpuId) -> bool {
    if !v.feat(Feat::WAKEUP_BIAS_PREV_IDLE) {
        return false;
    }
    let threshold = shifted(v, v.almost_idle_load(), M::AlmostIdleUp, M::AlmostIdleDown);
    if broken(v, M::AlmostIdleWithTask) {
        return v.cpu_load(cpu) <= threshold;
    }
    v.cpu_load_without(cpu) <= threshold
}

/// Whether a machine of unequal CPUs keeps a wake-up from being affine, since the task does not fit
/// both CPUs (kernel `sched/fair.c`, `wake_cap()`, before 5.7).
pub(super) fn wake_cap<V: View>(v: &mut V, prev: CpuId) -> bool {
    if v.rules().sis_by_capacity || !v.topo().asym_cpucap {
        return false;
    }
    let cpus = &v.topo().cpus;
    let least = cpus[prev.index()].capacity;
    let least = u64::from(least.min(cpus[v.this_cpu().index()].capacity));
    let most = u64::from(cpus.iter().map(|cpu| cpu.capacity).max().unwrap_or(0));
    if most - least < most >> 3 {
        return false;
    }
    v.sync_entity_load_avg();
    !fits_capacity(v.task_util_est(), least)
}

/// Where the idle search starts (kernel `sched/fair.c`, `wake_affine()`). `pct` is the
/// `imbalance_pct` of the lowest affine domain that has both CPUs.
pub(super) fn wake_affine<V: View>(v: &mut V, pct: u32, prev: CpuId, sync: bool) -> WakeAffine {
    let this = v.this_cpu();
    v.look_at(prev);
    let mut chosen = None;
    if v.feat(Feat::WA_IDLE) && !broken(v, M::AffineIdleSkipped) {
        chosen = wake_affine_idle(v, prev, sync).map(|(target, path)| WakeAffine {
            path,
            target,
            this_eff_load: 0,
            prev_eff_load: 0,
        });
    }
    if chosen.is_none() && v.feat(Feat::WA_WEIGHT) && !broken(v, M::AffineWeightSkipped) {
        chosen = Some(wake_affine_weight(v, pct, prev, sync));
    }
    chosen.unwrap_or(WakeAffine {
        path: AffinePath::Undecided,
        target: if prev == this { this } else { prev },
        this_eff_load: 0,
        prev_eff_load: 0,
    })
}

/// Decides by who is idle now (kernel `sched/fair.c`, `wake_affine_idle()`). An idle waking CPU
/// means that an interrupt wakes; it attracts the task only within its cache. Before 5.12 the
/// previous CPU is not looked at for its own sake.
fn wake_affine_idle<V: View>(v: &mut V, prev: CpuId, sync: bool) -> Option<(CpuId, AffinePath)> {
    let this = v.this_cpu();
    if v.idle_cpu(this)
        && (cpus_share_cache(v, this, prev) || broken(v, M::ThisIdleAnyCache))
        && !broken(v, M::ThisIdleSkipped)
    {
        return Some(if v.idle_cpu(prev) && !broken(v, M::BothIdleThis) {
            (prev, AffinePath::BothIdle)
        } else {
            (this, AffinePath::ThisIdle)
        });
    }
    if broken(v, M::PrevIdleFirst) && v.idle_cpu(prev) {
        return Some((prev, AffinePath::PrevIdle));
    }
    if sync && only_task(v, this) && !broken(v, M::SyncSkipped) {
        return Some((this, AffinePath::Sync));
    }
    let looks = v.rules().affine_looks_at_prev && !broken(v, M::PrevIdleSkipped);
    let idle = looks && v.idle_cpu(prev);
    if idle || almost_idle_cpu(v, prev) && !broken(v, M::AffineAlmostSkipped) {
        return Some((prev, AffinePath::PrevIdle));
    }
    None
}

/// SYNC_STAY: the waker, which says that it is about to sleep, is alone on its CPU, so that the woken task
/// will have that CPU to itself and need not look for another.
pub(super) fn stays_with_waker<V: View>(v: &V, sync: bool) -> bool {
    v.feat(Feat::SYNC_STAY) && sync && only_task(v, v.this_cpu())
}

/// Whether the waker is alone on its CPU, but for tasks that sleep already.
fn only_task<V: View>(v: &V, this: CpuId) -> bool {
    let delayed = match broken(v, M::SyncCountsDelayed) {
        true => 0,
        false => v.nr_delayed(this),
    };
    let others = u32::from(broken(v, M::SyncNrUp));
    v.nr_running(this).wrapping_sub(delayed) == 1 + others
}

/// Decides by load, with the task moved over and each side scaled by the other's capacity (kernel
/// `sched/fair.c`, `wake_affine_weight()`). WA_BIAS favours the waking CPU by half of what the
/// domain allows as imbalance.
fn wake_affine_weight<V: View>(v: &mut V, pct: u32, prev: CpuId, sync: bool) -> WakeAffine {
    let this = v.this_cpu();
    let mut result = WakeAffine {
        path: AffinePath::SyncLoad,
        target: this,
        this_eff_load: 0,
        prev_eff_load: 0,
    };
    let mut this_load = v.cpu_load(this) as i64;
    if sync {
        let current = v.curr_h_load();
        let heavier =
            current > this_load as u64 || broken(v, M::SyncLoadTie) && current == this_load as u64;
        if heavier && !broken(v, M::SyncLoadSkipped) {
            return result;
        }
        if !broken(v, M::WakerLoadKept) {
            this_load = this_load.wrapping_sub(current as i64);
        }
    }
    let task = v.task_h_load() as i64;
    let mut prev_load = v.cpu_load(prev) as i64;
    if !broken(v, M::TaskLoadKept) {
        prev_load = prev_load.wrapping_sub(task);
    }
    if !broken(v, M::TaskLoadNotAdded) {
        this_load = this_load.wrapping_add(task);
    }
    if v.feat(Feat::WA_BIAS) {
        this_load = this_load.wrapping_mul(100);
        let bias = u64::from(100 + pct.wrapping_sub(100) / 2);
        prev_load = prev_load.wrapping_mul(shifted(v, bias, M::BiasUp, M::BiasDown) as i64);
    }
    let (mut by_this, mut by_prev) = (v.capacity_of(prev), v.capacity_of(this));
    if broken(v, M::CapacitiesSwapped) {
        std::mem::swap(&mut by_this, &mut by_prev);
    }
    this_load = this_load.wrapping_mul(by_this as i64);
    prev_load = prev_load.wrapping_mul(by_prev as i64);
    if sync && !broken(v, M::SyncTieLost) {
        // Equal loads then stack the task on its waker, unless the search finds an idle CPU.
        prev_load = prev_load.wrapping_add(1);
    }
    let less = this_load < prev_load || broken(v, M::LoadTie) && this_load == prev_load;
    result.path = if less {
        AffinePath::LessLoad
    } else {
        AffinePath::NotLessLoad
    };
    result.target = if less { this } else { prev };
    result.this_eff_load = this_load;
    result.prev_eff_load = prev_load;
    result
}
