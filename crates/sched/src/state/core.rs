//! What core scheduling keeps (kernel 6.12 `sched/core.c`, CONFIG_SCHED_CORE).

use crate::ids::{Cookie, TaskId};
use wakelab_machine::CpuId;

/// The core-scheduling part of `struct rq`.
#[derive(Clone, Debug, Default)]
pub struct CoreRq {
    /// The CPU whose record holds what the core shares (`rq->core`): its lowest one.
    pub leader: CpuId,
    /// What a pick of a sibling chose for this CPU and it has not switched to yet.
    pub core_pick: Option<TaskId>,
    /// `core_sched_seq`: the core-wide pick that this CPU has followed.
    pub core_sched_seq: u64,
    /// Of the leader: `core_cookie`, what the core may run.
    pub core_cookie: Cookie,
}

/// Core scheduling, for the whole machine.
#[derive(Clone, Debug, Default)]
pub struct CoreSched {
    /// `__sched_core_enabled`: some task has, or had, a cookie.
    pub enabled: bool,
    /// By CPU.
    pub rqs: Vec<CoreRq>,
}

impl CoreSched {
    /// All CPUs at rest, each core led by its lowest CPU.
    pub fn new(leaders: impl Iterator<Item = CpuId>) -> CoreSched {
        let rq = |leader| CoreRq {
            leader,
            ..CoreRq::default()
        };
        CoreSched {
            enabled: false,
            rqs: leaders.map(rq).collect(),
        }
    }

    /// The cookie of a CPU's core as of its last pick.
    #[inline(always)]
    pub fn cookie(&self, cpu: CpuId) -> Cookie {
        let leader = self.rqs[cpu.index()].leader;
        self.rqs[leader.index()].core_cookie
    }
}
