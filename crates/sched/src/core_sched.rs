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

    /// `sched_core_cookie_match`: the core runs the task's cookie, or the whole core is idle.
    #[inline]
    pub(crate) fn core_cookie_match(&self, cpu: CpuId, p: TaskId) -> bool {
        !self.core.enabled
            || self.core.cookie(cpu) == self.tasks[p.index()].cookie
            || (self.core.of(cpu).members.iter()).all(|&cpu| self.rq(cpu).is_idle())
    }
}
