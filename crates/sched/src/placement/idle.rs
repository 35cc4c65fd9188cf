//! Whether a CPU is idle enough for the task, asked at all steps of the fast path in one place.

use super::mutation::{Mutation as M, broken};
use super::view::{View, core_cookie_match, cpu_cookie_match};
use crate::features::Feat;
use wakelab_machine::CpuId;

/// The step that asks. Which check of the cookie stands where, and why, is in docs/patches.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Of one CPU without a search: the target, the previous or the recent CPU.
    Single,
    /// Of a sibling in `select_idle_smt`.
    Smt,
    /// Of each CPU in `select_idle_cpu`.
    Scan,
    /// Of what a search falls back to or takes by other virtues than its cookie: an idle CPU met by
    /// `select_idle_core`, one of `select_idle_capacity`.
    Unmatched,
}

/// `__is_idle_cpu`, the helper that the review of SIS_COOKIE asks for: idle or with SCHED_IDLE tasks
/// only, and of a core that the task's cookie fits.
#[inline(always)]
pub(super) fn is_idle_cpu<V: View>(v: &V, cpu: CpuId, at: At) -> bool {
    let sched_idle = v.sched_idle_cpu(cpu) && !(at == At::Single && broken(v, M::SchedIdleIgnored));
    (v.idle_cpu(cpu) || sched_idle) && cookie_fits(v, cpu, at)
}

/// The half of [`is_idle_cpu`] that is about the cookie, for CPUs that are known to be idle enough.
#[inline(always)]
pub(super) fn cookie_fits<V: View>(v: &V, cpu: CpuId, at: At) -> bool {
    match at {
        At::Single => {
            !v.feat(Feat::SIS_COOKIE) || core_cookie_match(v, cpu) || broken(v, M::CookieIgnored)
        }
        At::Smt => {
            !v.feat(Feat::SIS_COOKIE) || cpu_cookie_match(v, cpu) || broken(v, M::SmtCookieIgnored)
        }
        At::Scan => cpu_cookie_match(v, cpu) || broken(v, M::ScanCookieIgnored),
        At::Unmatched => true,
    }
}
