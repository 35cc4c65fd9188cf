//! Stealing: a CPU that is forced idle looks on other CPUs for a task that fits its core.
//!
//! `sched_core_balance` lets interrupts in between two CPUs that it looks at, and stops when one of them
//! tells it to reschedule. So it is driven from outside: `next_to_steal_from` and `try_steal_cookie` in
//! turn, and `end_core_balance`.

use crate::ids::TaskId;
use crate::state::{Mover, Pick, Sched};
use crate::touch::Line;
use wakelab_machine::domains::SchedTopology;
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

/// How far `sched_core_balance` has got: through the CPUs of every domain, the nearest first, from the
/// next CPU on.
#[derive(Clone, Copy, Debug, Default)]
pub struct StealSearch {
    /// The CPU that is forced idle.
    cpu: CpuId,
    domain: usize,
    /// The CPU of this domain that was looked at last; the searching one if none was.
    at: CpuId,
}

impl StealSearch {
    /// A search that has not looked at any CPU.
    pub fn by(cpu: CpuId) -> StealSearch {
        StealSearch {
            cpu,
            domain: 0,
            at: cpu,
        }
    }

    /// The CPU that it is at; none before the first and after the last.
    pub fn at(&self) -> Option<CpuId> {
        (self.at != self.cpu).then_some(self.at)
    }

    fn advance(&mut self, topo: &SchedTopology) -> Option<CpuId> {
        while let Some(domain) = topo.domains[self.cpu.index()].get(self.domain) {
            let next = domain.span.next(self.at.index() + 1);
            self.at = next.or_else(|| domain.span.first()).unwrap_or(self.cpu);
            if self.at != self.cpu {
                return Some(self.at);
            }
            self.domain += 1;
        }
        None
    }
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

    /// The CPU that `sched_core_balance` looks at next, with both run queues' locks noted as touched; none
    /// if it has looked at all, or if the CPU must reschedule (`steal_cookie_task`). Interrupts are on
    /// between two looks, so that anything may have happened since the last one.
    pub fn next_to_steal_from(&mut self, search: &mut StealSearch) -> Option<CpuId> {
        if self.rq(search.cpu).need_resched {
            return None;
        }
        let src = search.advance(&self.topo)?;
        self.touch.write(Line::Rq(search.cpu));
        self.touch.write(Line::Rq(src));
        Some(src)
    }

    /// The end of `sched_core_balance`: if no CPU had a task to steal, and this one is still forced idle,
    /// FORCE_IDLE_PUSH has its turn. CPUs that must reschedule for it are left in `lb.arrivals`.
    pub fn end_core_balance(&mut self, cpu: CpuId, now: Ns) {
        self.lb.arrivals.clear();
        if !self.rq(cpu).need_resched && self.needs_core_balance(cpu) {
            self.push_blocked(cpu, now);
        }
    }

    /// `try_steal_cookie`: takes a task with the core's cookie off another CPU's queue, unless it is
    /// about to run there or shares a fuller core than it would here. CPUs that must reschedule for it
    /// are left in `lb.arrivals`.
    pub fn try_steal_cookie(&mut self, dst: CpuId, src: CpuId, now: Ns) -> Steal {
        self.lb.arrivals.clear();
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
        self.note_core_move(p, src, dst, Some(Mover::Stealing));
        self.set_task_cpu(p, dst);
        self.tasks[p.index()].moved_by = Some(Mover::Stealing);
        self.update_rq_clock(dst, now);
        self.activate_task(dst, p, 0);
        self.rq_mut(dst).need_resched = true;
        self.core.stolen += 1;
    }
}
