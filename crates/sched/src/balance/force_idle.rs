//! FORCE_IDLE_LB: a task that its core's cookie keeps from running is worth a pull, also if it is the
//! only one of its CPU, by an idle CPU on which it can run. The rules are in docs/patches.md.

use super::env::{LbEnv, lbf};
use crate::{Cookie, Sched, TaskId};
use wakelab_machine::CpuId;

impl Sched {
    /// Whether a CPU has tasks, and its core's cookie lets none of them run.
    #[inline]
    pub(crate) fn is_force_idle(&self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        rq.nr_running > 0 && rq.curr.is_none() && self.core.rqs[cpu.index()].blocked.is_some()
    }

    /// Whether a task that waits could run on the destination of a pass: all that the siblings there
    /// have to run has its cookie. The core's own cookie does not tell yet if the destination is about
    /// to become idle: it is that of the pick before.
    fn could_run(&self, dst: CpuId, p: TaskId) -> bool {
        let task = &self.tasks[p.index()];
        let mut siblings = self.core.of(dst).members.iter().filter(|&&cpu| cpu != dst);
        task.cpus.contains(dst)
            && !self.is_delayed(p)
            && siblings.all(|&cpu| {
                self.first_cookie(cpu)
                    .is_none_or(|first| first == task.cookie)
            })
    }

    /// The cookie of what a CPU runs, or of what it would run if it were not forced idle.
    fn first_cookie(&self, cpu: CpuId) -> Option<Cookie> {
        let rq = self.rq(cpu);
        if rq.curr.is_some() {
            return Some(self.tasks[rq.curr.index()].cookie);
        }
        self.core.rqs[cpu.index()]
            .blocked
            .filter(|_| rq.nr_running > 0)
    }

    /// Whether a CPU is forced idle and has a task that could run on the destination, which is idle.
    #[inline(never)]
    pub(super) fn is_force_idle_source(&self, env: &LbEnv, cpu: CpuId) -> bool {
        env.idle.is_idle()
            && self.is_force_idle(cpu)
            && (self.rq(cpu).cfs_tasks.iter()).any(|&p| self.could_run(env.dst_cpu, p))
    }

    /// Whether a pass that takes a task from a CPU that is forced idle may take this one. How often
    /// the pass has failed does not count: a mismatch would only be forced idle elsewhere.
    pub(super) fn suits_force_idle_pass(&self, env: &LbEnv, p: TaskId) -> bool {
        !env.has(lbf::FORCE_IDLE) || self.could_run(env.dst_cpu, p)
    }

    /// Whether a CPU has a task to spare: one more than it runs, and that is none if it is forced idle.
    pub(super) fn has_to_spare(&self, env: &LbEnv, cpu: CpuId) -> bool {
        self.rq(cpu).nr_running > u32::from(!env.has(lbf::FORCE_IDLE))
    }

    /// Counts what a pass took that could not run where it was.
    pub(super) fn count_force_idle_pull(&mut self, env: &LbEnv, moved: u32) {
        if env.has(lbf::FORCE_IDLE) {
            self.core.pulled += u64::from(moved);
            let pass = self.lb.stats.pass(env.level, env.idle);
            pass.force_idle_pulled += u64::from(moved);
        }
    }
}
