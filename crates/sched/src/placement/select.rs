//! The walk up the domains that leads to the fast or the slow path.

use super::decision::{AffinePath, Decision, Reason};
use super::mutation::{Mutation, broken};
use super::sibling::select_idle_sibling;
use super::slow::find_idlest_cpu;
use super::view::View;
use super::wake_affine::{stays_with_waker, wake_affine, wake_cap, wake_wide};
use super::wf;
use crate::features::Feat;
use wakelab_machine::CpuId;
use wakelab_machine::domains::sd;

/// The CPU for a task that wakes up, was forked, or execs (kernel `sched/fair.c`,
/// `select_task_rq_fair()`, without energy-aware placement). The result may be a CPU on which the
/// task may not run any more; `select_task_rq` puts that right.
pub fn select_task_rq_fair<V: View>(v: &mut V, prev: CpuId, wake_flags: u32) -> Decision {
    let this = v.this_cpu();
    let sync =
        wake_flags & wf::SYNC != 0 && (!v.curr_is_exiting() || broken(v, Mutation::SyncOfExiting));
    let mut wide = None;
    let mut want_affine = false;
    if wake_flags & wf::TTWU != 0 {
        if !broken(v, Mutation::RecordWakeeLate) {
            v.record_wakee();
        }
        if wake_flags & wf::CURRENT_CPU != 0 && v.allowed(this) {
            return Decision::plain(this, Reason::CurrentCpu);
        }
        wide = Some(wake_wide(v));
        let allowed = v.allowed(this) || broken(v, Mutation::AffineNotAllowed);
        want_affine = wide == Some(false) && !wake_cap(v, prev) && allowed;
        if want_affine && v.feat(Feat::MIGRATION_RATELIMIT) && !v.should_migrate_task() {
            return Decision {
                wake_wide: wide,
                ..Decision::plain(prev, Reason::RateLimit)
            };
        }
    }
    let mut decision = match walk(v, prev, wake_flags & wf::SD_FLAGS, want_affine) {
        Walk::Balance(level) => {
            let cpu = find_idlest_cpu(v, level, prev, wake_flags & wf::SD_FLAGS);
            Decision::plain(cpu, Reason::SlowPath)
        }
        Walk::Affine(_) if stays_with_waker(v, sync) => Decision::plain(this, Reason::Sync),
        Walk::Affine(pct) => fast_path(v, prev, Some(pct), sync),
        Walk::End if wake_flags & wf::TTWU != 0 => fast_path(v, prev, None, sync),
        Walk::End => Decision::plain(prev, Reason::NoDomain),
    };
    if want_affine && decision.sis.is_some() && v.rules().recent_cpu_of_waker {
        v.note_cpu_of_waker();
    }
    decision.wake_wide = wide;
    decision
}

/// Where the walk up the domains ends.
enum Walk {
    /// At a domain that is affine for both CPUs, of this `imbalance_pct`.
    Affine(u32),
    /// Above the domain at this level, the highest to balance in.
    Balance(usize),
    /// Nowhere.
    End,
}

/// From the lowest domain of this CPU upwards: an affine domain that has the previous CPU wins;
/// domains with the flag asked for are remembered, and the first without ends the walk unless an
/// affine one is still wanted.
fn walk<V: View>(v: &V, prev: CpuId, sd_flag: u32, want_affine: bool) -> Walk {
    let mut balance = None;
    for (level, domain) in v.topo().domains[v.this_cpu().index()].iter().enumerate() {
        let balances = domain.flags & sd_flag != 0;
        if want_affine
            && domain.flags & sd::WAKE_AFFINE != 0
            && (domain.span.contains(prev) || broken(v, Mutation::WalkWithoutPrev))
            && !(balances && broken(v, Mutation::WalkBalanceFirst))
        {
            return Walk::Affine(domain.imbalance_pct);
        }
        if balances {
            let kept = balance.filter(|_| broken(v, Mutation::WalkLowest));
            balance = kept.or(Some(level));
        } else if !want_affine && !broken(v, Mutation::WalkGoesOn) {
            break;
        }
    }
    balance.map_or(Walk::End, Walk::Balance)
}

/// Chooses the target between waking and previous CPU, and an idle CPU near it.
fn fast_path<V: View>(v: &mut V, prev: CpuId, affine: Option<u32>, sync: bool) -> Decision {
    let this = v.this_cpu();
    let wake_affine = affine
        .filter(|_| this != prev || broken(v, Mutation::AffineOfOneCpu))
        .map(|pct| wake_affine(v, pct, prev, sync));
    let target = wake_affine.map_or(prev, |wa| wa.target);
    let sibling = select_idle_sibling(v, prev, target);
    let mut reason = sibling.reason;
    let by_sync = wake_affine.is_some_and(|wa| wa.path == AffinePath::Sync);
    if by_sync && matches!(reason, Reason::NoIdleCpu | Reason::ScanLimit) {
        reason = Reason::Sync;
    }
    Decision {
        cpu: sibling.cpu,
        reason,
        wake_wide: None,
        wake_affine,
        sis: Some(sibling.path),
        searched: sibling.searched,
    }
}
