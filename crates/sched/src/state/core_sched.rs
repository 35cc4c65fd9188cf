//! What core scheduling keeps (kernel 6.12 `sched/sched.h`, CONFIG_SCHED_CORE).

use super::Mover;
use crate::ids::{Cookie, TaskId};
use std::collections::BTreeMap;
use wakelab_machine::CpuId;

/// What a pick chose for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The idle task.
    Idle,
    /// A fair task.
    Task(TaskId),
    /// The stopper, which comes before all others and has no cookie.
    Stop,
}

/// The core-scheduling part of `struct rq`. What a core shares is in the record of its leader.
#[derive(Clone, Debug, Default)]
pub struct CoreRq {
    /// The CPU whose record holds what the core shares (`rq->core`): its lowest one.
    pub leader: CpuId,
    /// What a pick of a sibling chose for this CPU, until it has switched to that (`core_pick`).
    pub core_pick: Option<Pick>,
    /// `core_sched_seq`: the core-wide pick that this CPU has followed.
    pub core_sched_seq: u64,
    /// `core_tree`: queued tasks that have a cookie, by cookie and then by what was their priority
    /// when they were queued.
    pub core_tree: Vec<TaskId>,
    /// `core_occupation` of the idle task.
    pub idle_occupation: u32,
    /// The stopper is queued.
    pub stop: bool,
    /// While it is forced idle, the cookie of the task that it would run by itself.
    pub blocked: Option<Cookie>,
    /// Time for which it has been forced idle, ns.
    pub forceidle_sum: u64,
    /// Of the leader: the core's CPUs, ascending.
    pub members: Vec<CpuId>,
    /// Of the leader: `core_task_seq`, which counts changes of what is queued, and picks.
    pub core_task_seq: u64,
    /// Of the leader: `core_pick_seq`, the `core_task_seq` of the last core-wide pick.
    pub core_pick_seq: u64,
    /// Of the leader: `core_cookie`, what the core may run.
    pub core_cookie: Cookie,
    /// Of the leader: `core_forceidle_count`, CPUs that are forced idle.
    pub core_forceidle_count: u32,
    /// Of the leader: `core_forceidle_seq`, which counts the times that force idle began.
    pub core_forceidle_seq: u32,
    /// Of the leader: `core_forceidle_occupation`, CPUs that run something meanwhile.
    pub core_forceidle_occupation: u32,
    /// Of the leader: `core_forceidle_start`, since when it is not accounted, ns, 0 if none is.
    pub core_forceidle_start: u64,
}

/// A CPU that a pick forces idle and that was not so before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The CPU.
    pub cpu: CpuId,
    /// The task that it would run by itself.
    pub blocked: TaskId,
    /// What has a higher priority on the core.
    pub by: Pick,
}

/// Cookies that some task has: `struct sched_core_cookie` with its `refcnt`, which lives as long as it
/// is counted.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    held: BTreeMap<Cookie, u32>,
    /// The highest that was made, or that may be given by number: none is given twice, as if no freed
    /// address came again.
    last: u64,
}

impl Cookies {
    /// Those up to this one are given by number: what the kernel makes comes after them.
    pub fn reserve(&mut self, highest: Cookie) {
        self.last = self.last.max(highest.0);
    }

    /// A cookie that nobody has, had or will be given by number (`sched_core_alloc_cookie`).
    pub fn unused(&self) -> Cookie {
        Cookie(self.last + 1)
    }

    /// One task more has it (`sched_core_get_cookie`).
    pub fn get(&mut self, cookie: Cookie) {
        if cookie.is_some() {
            *self.held.entry(cookie).or_default() += 1;
            self.last = self.last.max(cookie.0);
        }
    }

    /// One task less has it (`sched_core_put_cookie`); the last one frees it.
    pub fn put(&mut self, cookie: Cookie) {
        if let Some(count) = self.held.get_mut(&cookie) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&cookie);
            }
        }
    }

    /// The cookies, with the number of tasks that have each.
    pub fn held(&self) -> impl Iterator<Item = (Cookie, u32)> + '_ {
        self.held.iter().map(|(&cookie, &count)| (cookie, count))
    }
}

/// Moves between cores that left or met a running task with the same cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveCounts {
    /// Tasks that went from a core where one ran.
    pub split: u64,
    /// Tasks that came to a core where one ran.
    pub joined: u64,
}

/// These by what moved the task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// By placements.
    pub placement: MoveCounts,
    by_mover: [MoveCounts; Mover::ALL.len()],
}

impl Moves {
    /// Those by a mover, or by placements.
    pub fn of_mut(&mut self, mover: Option<Mover>) -> &mut MoveCounts {
        match mover {
            None => &mut self.placement,
            Some(mover) => &mut self.by_mover[mover as usize],
        }
    }

    /// All of them by the name of what moved.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, MoveCounts)> + '_ {
        let movers = Mover::ALL.iter().map(|mover| mover.name());
        let movers = movers.zip(self.by_mover.iter().copied());
        std::iter::once(("placement", self.placement)).chain(movers)
    }
}

/// Core scheduling, for the whole machine.
#[derive(Clone, Debug, Default)]
pub struct CoreSched {
    /// `__sched_core_enabled`: some task has, or had, a cookie.
    pub enabled: bool,
    /// The cookies that there are.
    pub cookies: Cookies,
    /// By CPU.
    pub rqs: Vec<CoreRq>,
    /// Forced-idle time by the cookie that the core ran and the one that it kept waiting, ns of a CPU.
    pub pairs: BTreeMap<(Cookie, Cookie), u64>,
    /// Force idle that has begun with the pick under way.
    pub begun: Vec<Begun>,
    /// Tasks that `sched_core_balance` pulled.
    pub stolen: u64,
    /// Tasks that FORCE_IDLE_PUSH sent away.
    pub pushed: u64,
    /// Tasks that FORCE_IDLE_LB took from CPUs that were forced idle.
    pub pulled: u64,
    /// Pairs that moves split and joined.
    pub moves: Moves,
}

impl CoreSched {
    /// All CPUs at rest, each core led by its lowest CPU.
    pub fn new(cores: impl Iterator<Item = Vec<CpuId>>) -> CoreSched {
        let mut core = CoreSched::default();
        for members in cores {
            for &cpu in &members {
                let leader = members[0];
                let rqs = &mut core.rqs;
                rqs.resize_with(rqs.len().max(cpu.index() + 1), CoreRq::default);
                rqs[cpu.index()].leader = leader;
            }
            if let Some(leader) = members.first().copied() {
                core.rqs[leader.index()].members = members;
            }
        }
        core
    }

    /// What a CPU's core shares (`rq->core`).
    #[inline(always)]
    pub fn of(&self, cpu: CpuId) -> &CoreRq {
        &self.rqs[self.rqs[cpu.index()].leader.index()]
    }

    /// What a CPU's core shares, to change.
    #[inline(always)]
    pub fn of_mut(&mut self, cpu: CpuId) -> &mut CoreRq {
        let leader = self.rqs[cpu.index()].leader;
        &mut self.rqs[leader.index()]
    }

    /// The cookie of a CPU's core as of its last pick.
    #[inline(always)]
    pub fn cookie(&self, cpu: CpuId) -> Cookie {
        self.of(cpu).core_cookie
    }
}
