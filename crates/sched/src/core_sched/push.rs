//! FORCE_IDLE_PUSH: a CPU that is forced idle, and that found nothing to steal, sends a task that its
//! core's cookie blocks to a CPU that can run it. The rules and their reasons are in docs/patches.md.

use crate::Feat;
use crate::ids::TaskId;
use crate::state::{Mover, Sched};
use crate::touch::Line;
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, Ns};

impl Sched {
    /// Pushes one of the tasks that the core's cookie blocks, if one of them can run at once
    /// elsewhere. CPUs that must reschedule for it are left in `lb.arrivals`.
    pub(super) fn push_blocked(&mut self, cpu: CpuId, now: Ns) -> Option<TaskId> {
        if !self.feat.has(Feat::FORCE_IDLE_PUSH) {
            return None;
        }
        let (p, dst) = self.find_push(cpu)?;
        self.push_to(cpu, dst, p, now);
        Some(p)
    }

    /// The first of the blocked tasks, the one that waits longest first, for which there is a place.
    fn find_push(&mut self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        let core_cookie = self.core.cookie(cpu);
        let seen = self.tun.nr_migrate.min(self.rq(cpu).nr_running);
        for place in 0..seen as usize {
            let p = self.rq(cpu).cfs_tasks[place];
            let task = &self.tasks[p.index()];
            // One with the core's cookie waits for its turn, not for another core.
            let blocked = task.cookie != core_cookie && !self.is_delayed(p);
            if !blocked || task.nr_cpus_allowed < 2 {
                continue;
            }
            if let Some(dst) = self.find_push_cpu(cpu, p) {
                return Some((p, dst));
            }
        }
        None
    }

    /// A CPU on which a task can run at once, in the nearest domain that has one.
    fn find_push_cpu(&mut self, cpu: CpuId, p: TaskId) -> Option<CpuId> {
        let topo = Arc::clone(&self.topo);
        topo.domains[cpu.index()].iter().find_map(|domain| {
            self.touch.scanned += domain.span.weight() as u32;
            self.push_cpu_in(&domain.span, cpu, p)
        })
    }

    /// An idle CPU of a core that runs the task's cookie, or else of a core that is idle.
    fn push_cpu_in(&self, span: &CpuMask, cpu: CpuId, p: TaskId) -> Option<CpuId> {
        let task = &self.tasks[p.index()];
        let mut idle_core = None;
        for dst in span.iter_wrap(cpu.index() + 1) {
            if !self.rq(dst).is_idle() || !task.cpus.contains(dst) {
                continue;
            }
            if self.core.cookie(dst) == task.cookie {
                return Some(dst);
            }
            if idle_core.is_none() && self.core_cookie_match(dst, p) {
                idle_core = Some(dst);
            }
        }
        idle_core
    }

    fn push_to(&mut self, src: CpuId, dst: CpuId, p: TaskId, now: Ns) {
        self.touch.write(Line::Rq(dst));
        self.deactivate_task(src, p, 0);
        self.note_core_move(p, src, dst, Some(Mover::Pushing));
        self.set_task_cpu(p, dst);
        self.tasks[p.index()].moved_by = Some(Mover::Pushing);
        self.update_rq_clock(dst, now);
        self.activate_task(dst, p, 0);
        self.rq_mut(dst).need_resched = true;
        self.lb.arrivals.push(dst);
        self.core.pushed += 1;
    }
}
