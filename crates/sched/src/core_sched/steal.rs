//! Stealing: a CPU that is forced idle looks on other CPUs for a task that fits its core.

use crate::ids::TaskId;
use crate::state::{Mover, Pick, Sched};
use crate::touch::Line;
use std::sync::Arc;
use wakelab_machine::{CpuId, Ns};

/// What came out of [`Sched::try_steal_cookie`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// The core has no cookie.
    NoCookie,
    /// The CPU has something to run by now.
    NotIdle,
    /// The other CPU has no task with the cookie.
    NoCandidate,
    /// It has, but none that may be taken.
    NoneSuitable,
    /// The task was moved here.
    Moved(TaskId),
}

impl Sched {
    /// Whether a CPU that has just switched to its idle task is to look for a task to steal
    /// (`queue_core_balance`).
    pub fn needs_core_balance(&self, cpu: CpuId) -> bool {
        let core = self.core.of(cpu);
        core.core_forceidle_count != 0
            && core.core_cookie.is_some()
            && self.rq(cpu).curr.is_none()
            && self.rq(cpu).nr_running != 0
    }

    /// `sched_core_balance`: looks at the CPUs of every domain, the nearest first, and takes the
    /// first task that fits. If there is none, FORCE_IDLE_PUSH has its turn. CPUs that must
    /// reschedule for what moves are left in `lb.arrivals`.
    pub fn sched_core_balance(&mut self, cpu: CpuId, now: Ns) -> Option<TaskId> {
        self.lb.arrivals.clear();
        let topo = Arc::clone(&self.topo);
        for domain in &topo.domains[cpu.index()] {
            let others = domain.span.iter_wrap(cpu.index() + 1);
            for other in others.filter(|&other| other != cpu) {
                if let Steal::Moved(p) = self.try_steal_cookie(cpu, other, now) {
                    return Some(p);
                }
            }
        }
        self.push_blocked(cpu, now);
        None
    }

    /// `try_steal_cookie`: takes a task with the core's cookie off another CPU's queue, unless it is
    /// about to run there or shares a fuller core than it would here.
    pub fn try_steal_cookie(&mut self, dst: CpuId, src: CpuId, now: Ns) -> Steal {
        self.touch.write(Line::Rq(src));
        let cookie = self.core.cookie(dst);
        if !cookie.is_some() {
            return Steal::NoCookie;
        }
        if self.rq(dst).curr.is_some() {
            return Steal::NotIdle;
        }
        let occupation = self.core.rqs[dst.index()].idle_occupation;
        let mut outcome = Steal::NoCandidate;
        for p in self.core_matching(src, cookie) {
            let task = &self.tasks[p.index()];
            let runs = self.core.rqs[src.index()].core_pick == Some(Pick::Task(p))
                || self.rq(src).curr == p;
            if !runs && task.cpus.contains(dst) && task.core_occupation <= occupation {
                outcome = Steal::Moved(p);
                break;
            }
            outcome = Steal::NoneSuitable;
        }
        if let Steal::Moved(p) = outcome {
            self.steal(dst, src, p, now);
        }
        outcome
    }

    fn steal(&mut self, dst: CpuId, src: CpuId, p: TaskId, now: Ns) {
        let told = self.rq(src).need_resched;
        self.update_rq_clock(src, now);
        self.deactivate_task(src, p, 0);
        if !told && self.rq(src).need_resched {
            self.lb.arrivals.push(src);
        }
        self.set_task_cpu(p, dst);
        self.tasks[p.index()].moved_by = Some(Mover::Stealing);
        self.update_rq_clock(dst, now);
        self.activate_task(dst, p, 0);
        self.rq_mut(dst).need_resched = true;
        self.core.stolen += 1;
    }
}
