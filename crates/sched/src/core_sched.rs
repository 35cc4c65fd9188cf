//! Core scheduling: only tasks with the same cookie may run on a core at the same time, and the
//! siblings for which no such task is queued are forced idle (kernel 6.12 `sched/core.c`,
//! `sched/fair.c` and `sched/core_sched.c` under CONFIG_SCHED_CORE).
//!
//! Nothing of it is entered before some task has a cookie.

mod forceidle;
mod pick;
pub mod prctl;
mod prio;
mod push;
mod steal;
mod tree;

#[cfg(feature = "fault-injection")]
pub use pick::fault;
pub use steal::{Steal, StealSearch};

use crate::ids::{Cookie, TaskId};
use crate::state::{Mover, Sched};
use wakelab_machine::CpuId;

impl Sched {
    /// `sched_core_update_cookie`: gives a task another cookie, as `prctl(PR_SCHED_CORE)` does. A
    /// CPU that runs it must reschedule.
    pub fn set_cookie(&mut self, p: TaskId, cookie: Cookie) {
        self.core.enabled |= cookie.is_some();
        let (cpu, queued) = {
            let task = &self.tasks[p.index()];
            (task.cpu, task.on_rq)
        };
        if self.tasks[p.index()].core_queued {
            self.core_dequeue(cpu, p, crate::fair::flags::DEQUEUE_SAVE);
        }
        self.core.cookies.get(cookie);
        let old = std::mem::replace(&mut self.tasks[p.index()].cookie, cookie);
        self.core.cookies.put(old);
        if cookie.is_some() && queued {
            self.core_enqueue(cpu, p);
        }
        if queued {
            self.tasks[p.index()].arrived_at = self.now;
            self.tasks[p.index()].moved_by = Some(Mover::Cookie);
        }
        if self.rqs[cpu.index()].curr == p {
            self.rqs[cpu.index()].need_resched = true;
        }
    }

    /// With core scheduling, a task goes from a CPU to another: was there one with its cookie on the core that it
    /// leaves, or on the one that it comes to?
    #[inline]
    pub fn note_core_move(&mut self, p: TaskId, src: CpuId, dst: CpuId, mover: Option<Mover>) {
        if !self.core.enabled
            || self.core.rqs[src.index()].leader == self.core.rqs[dst.index()].leader
        {
            return;
        }
        let (left, met) = (self.mate_runs(p, src), self.mate_runs(p, dst));
        let counts = self.core.moves.of_mut(mover);
        counts.split += u64::from(left);
        counts.joined += u64::from(met);
    }

    /// Whether another task with the same cookie runs on the CPU's core.
    fn mate_runs(&self, p: TaskId, cpu: CpuId) -> bool {
        let cookie = self.tasks[p.index()].cookie;
        let is_mate = |other: TaskId| other != p && self.tasks[other.index()].cookie == cookie;
        let runs = |cpu: &CpuId| Some(self.rq(*cpu).curr).filter(|curr| curr.is_some());
        cookie.is_some()
            && (self.core.of(cpu).members.iter())
                .filter_map(runs)
                .any(is_mate)
    }

    /// `sched_core_cookie_match`: the core runs the task's cookie, or the whole core is idle.
    #[inline]
    pub(crate) fn core_cookie_match(&self, cpu: CpuId, p: TaskId) -> bool {
        !self.core.enabled
            || self.core.cookie(cpu) == self.tasks[p.index()].cookie
            || (self.core.of(cpu).members.iter()).all(|&cpu| self.rq(cpu).is_idle())
    }
}
