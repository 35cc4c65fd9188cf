//! Preemption: by a wake-up and by the tick; and yielding.

use super::flags::{UPDATE_TG, WF_FORK};
use crate::features::Feat;
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::{Policy, Sched};
use wakelab_machine::CpuId;

impl Sched {
    /// `check_preempt_curr`: a task was queued on the CPU; sets `need_resched` if it shall run at
    /// once. An idle CPU is always told to.
    pub fn check_preempt_curr(&mut self, cpu: CpuId, p: TaskId, wake_flags: u32) {
        let curr = self.rqs[cpu.index()].curr;
        if curr.is_none() {
            self.rqs[cpu.index()].need_resched = true;
        } else if curr == p {
            // Nothing to decide.
        } else if self.rules.eevdf {
            self.check_preempt_wakeup_fair(cpu, curr, p, wake_flags);
        } else {
            self.check_preempt_wakeup(cpu, curr, p, wake_flags);
        }
    }

    /// `check_preempt_wakeup`.
    fn check_preempt_wakeup(&mut self, cpu: CpuId, curr: TaskId, p: TaskId, wake_flags: u32) {
        let (mut se, mut pse) = (self.tasks[curr.index()].se, self.tasks[p.index()].se);
        let nr_running = self.cfs[self.se[se.index()].cfs_rq.index()].nr_running;
        let scale = nr_running >= self.tun.nr_latency;
        let mark_next = self.feat.has(Feat::NEXT_BUDDY) && scale && wake_flags & WF_FORK == 0;
        if mark_next {
            self.set_next_buddy(pse);
        }
        if self.rqs[cpu.index()].need_resched {
            return;
        }
        let policy = self.tasks[p.index()].policy;
        if self.tasks[curr.index()].policy == Policy::Idle && policy != Policy::Idle {
            return self.preempt(cpu, se, scale);
        }
        if policy != Policy::Normal || !self.feat.has(Feat::WAKEUP_PREEMPTION) {
            return;
        }
        (se, pse) = self.find_matching_se(se, pse);
        let (idle, p_idle) = (self.se[se.index()].idle, self.se[pse.index()].idle);
        if idle != p_idle {
            if idle {
                self.preempt(cpu, se, scale);
            }
            return;
        }
        self.update_curr(self.se[se.index()].cfs_rq);
        if self.wakeup_preempt_entity(self.se[se.index()].vruntime, pse) == 1 {
            if !mark_next {
                self.set_next_buddy(pse);
            }
            self.preempt(cpu, se, scale);
        }
    }

    /// Preempts the running task; it may become the buddy that runs again after the waking task.
    fn preempt(&mut self, cpu: CpuId, se_id: SeId, scale: bool) {
        self.rqs[cpu.index()].need_resched = true;
        let se = &self.se[se_id.index()];
        if se.on_rq && self.feat.has(Feat::LAST_BUDDY) && scale && se.task.is_some() {
            self.set_last_buddy(se_id);
        }
    }

    /// `wakeup_preempt_entity`: -1 if `curr` is not behind `se`, 1 if by more than the wake-up
    /// granularity, else 0. `vruntime` is that of `curr`.
    #[inline]
    pub(crate) fn wakeup_preempt_entity(&mut self, vruntime: u64, se: SeId) -> i32 {
        let lead = vruntime.wrapping_sub(self.se[se.index()].vruntime) as i64;
        if lead <= 0 {
            return -1;
        }
        let gran = self.delta_fair(self.tun.wakeup_granularity.0, se) as i64;
        i32::from(lead > gran)
    }

    /// `find_matching_se`: the ancestors of two entities that are on the same run queue.
    pub(crate) fn find_matching_se(&self, mut a: SeId, mut b: SeId) -> (SeId, SeId) {
        while self.se[a.index()].depth > self.se[b.index()].depth {
            a = self.se[a.index()].parent;
        }
        while self.se[b.index()].depth > self.se[a.index()].depth {
            b = self.se[b.index()].parent;
        }
        while self.se[a.index()].cfs_rq != self.se[b.index()].cfs_rq {
            a = self.se[a.index()].parent;
            b = self.se[b.index()].parent;
        }
        (a, b)
    }

    /// `task_tick_fair`: the periodic tick on a CPU; on an idle one the fair class has nothing to do.
    pub fn task_tick(&mut self, cpu: CpuId) {
        let curr = self.rqs[cpu.index()].curr;
        if curr.is_none() {
            return;
        }
        let mut walk = self.tasks[curr.index()].se;
        while walk.is_some() {
            self.entity_tick(cpu, self.se[walk.index()].cfs_rq, walk);
            walk = self.se[walk.index()].parent;
        }
        self.update_misfit_status(cpu, curr);
        if self.core.enabled {
            self.task_tick_core(cpu, curr);
        }
    }

    /// `entity_tick`.
    fn entity_tick(&mut self, cpu: CpuId, cfs_id: CfsId, curr: SeId) {
        self.update_curr(cfs_id);
        self.update_load_avg(cfs_id, curr, UPDATE_TG);
        self.update_cfs_group(curr);
        // With EEVDF, accounting has told already whether the slice is used up.
        if !self.rules.eevdf && self.cfs[cfs_id.index()].nr_running > 1 {
            self.check_preempt_tick(cpu, cfs_id, curr);
        }
    }

    /// `check_preempt_tick`: the slice, at most the latency, is used up, or the leftmost entity is a
    /// whole slice behind.
    fn check_preempt_tick(&mut self, cpu: CpuId, cfs_id: CfsId, curr: SeId) {
        let slice = self.sched_slice(cfs_id, curr).min(self.tun.latency.0);
        let se = &self.se[curr.index()];
        let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
        if ran > slice {
            self.rqs[cpu.index()].need_resched = true;
            // It must not be picked again as a buddy right away.
            self.clear_buddies(cfs_id, curr);
            return;
        }
        if ran < self.tun.min_granularity.0 {
            return;
        }
        if let Some(first) = self.cfs[cfs_id.index()].first_entity() {
            let lead = se.vruntime.wrapping_sub(first.vruntime) as i64;
            if lead >= 0 && lead as u64 > slice {
                self.rqs[cpu.index()].need_resched = true;
            }
        }
    }

    /// `yield_task_fair`: the running task lets others go first. The caller then has the CPU
    /// switch tasks, as `sched_yield` does.
    pub fn yield_task(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu.index()];
        let curr = rq.curr;
        if curr.is_none() || rq.nr_running == 1 {
            return;
        }
        if self.rules.eevdf {
            return self.yield_task_eevdf(cpu);
        }
        let task = &self.tasks[curr.index()];
        let (se_id, batch) = (task.se, task.policy == Policy::Batch);
        let cfs_id = self.se[se_id.index()].cfs_rq;
        self.clear_buddies(cfs_id, se_id);
        if !batch {
            self.update_curr(cfs_id);
        }
        self.set_skip_buddy(se_id);
    }
}
