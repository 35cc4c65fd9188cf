//! Picking the next task, and switching to it.

use super::flags::UPDATE_TG;
use super::timeline::before;
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::Sched;
use wakelab_machine::CpuId;

impl Sched {
    /// `pick_next_entity`: the leftmost entity, unless a buddy may go first without being unfair.
    /// `curr` is the running entity if it is still queued.
    #[inline]
    fn pick_next_entity(&mut self, cfs_id: CfsId, curr: SeId) -> SeId {
        let cfs = &self.cfs[cfs_id.index()];
        let first = cfs.first_entity();
        let curr_vruntime = if curr.is_some() {
            self.se[curr.index()].vruntime
        } else {
            0
        };
        let left = match first {
            Some(key) if curr.is_none() || !before(curr_vruntime, key.vruntime) => key.se,
            _ => curr,
        };
        let (next, last, skip) = (cfs.next, cfs.last, cfs.skip);
        let mut pick = left;
        if skip.is_some() && skip == left {
            let second = self.second_entity(cfs_id, curr, left);
            if second.is_some() && self.may_go_before(second, left) {
                pick = second;
            }
        }
        if next.is_some() && self.may_go_before(next, left) {
            pick = next;
        } else if last.is_some() && self.may_go_before(last, left) {
            pick = last;
        }
        pick
    }

    /// Whether `se` is behind the leftmost by no more than the wake-up granularity.
    fn may_go_before(&mut self, se: SeId, left: SeId) -> bool {
        self.wakeup_preempt_entity(self.se[se.index()].vruntime, left) < 1
    }

    /// The entity after the leftmost, which is to be passed over.
    fn second_entity(&self, cfs_id: CfsId, curr: SeId, left: SeId) -> SeId {
        let tree = &self.cfs[cfs_id.index()].tree;
        if left == curr {
            return tree.last().map_or(SeId::NONE, |key| key.se);
        }
        let second = tree.len().checked_sub(2).map(|at| tree[at]);
        match second {
            Some(key) if curr.is_none() => key.se,
            Some(key) if !before(self.se[curr.index()].vruntime, key.vruntime) => key.se,
            _ => curr,
        }
    }

    /// `set_next_entity`: an entity begins to run at its level.
    #[inline]
    fn set_next_entity(&mut self, cfs_id: CfsId, se_id: SeId) {
        self.clear_buddies(cfs_id, se_id);
        if self.se[se_id.index()].on_rq {
            let cfs = &mut self.cfs[cfs_id.index()];
            if self.rules.eevdf {
                cfs.timeline_sub(&mut self.se, se_id);
                self.set_protect_slice(cfs_id, se_id);
            } else {
                cfs.tree_remove(se_id);
            }
            self.update_load_avg(cfs_id, se_id, UPDATE_TG);
        }
        let cfs = &mut self.cfs[cfs_id.index()];
        let se = &mut self.se[se_id.index()];
        se.exec_start = self.rqs[cfs.cpu.index()].clock_task;
        cfs.curr = se_id;
        se.prev_sum_exec_runtime = se.sum_exec_runtime;
    }

    /// `put_prev_entity`: an entity stops running at its level.
    #[inline]
    fn put_prev_entity(&mut self, cfs_id: CfsId, se_id: SeId) {
        if self.se[se_id.index()].on_rq {
            self.update_curr(cfs_id);
            let cfs = &mut self.cfs[cfs_id.index()];
            if self.rules.eevdf {
                cfs.timeline_add(&mut self.se, se_id);
            } else {
                cfs.tree_insert(se_id, self.se[se_id.index()].vruntime);
            }
            self.update_load_avg(cfs_id, se_id, 0);
        }
        self.cfs[cfs_id.index()].curr = SeId::NONE;
    }

    /// `pick_task_fair`: the task that should run on the CPU by the fair class, none if nothing is
    /// queued. Charges the running task; switches nothing and does not look at other CPUs. Takes
    /// tasks off the queue whose dequeueing was delayed until now.
    pub fn pick_next_task_fair(&mut self, cpu: CpuId) -> TaskId {
        if self.rules.eevdf {
            return self.pick_task_eevdf(cpu);
        }
        let mut cfs_id = self.root_cfs(cpu);
        if self.cfs[cfs_id.index()].nr_running == 0 {
            return TaskId::NONE;
        }
        loop {
            let mut curr = self.cfs[cfs_id.index()].curr;
            if curr.is_some() {
                if self.se[curr.index()].on_rq {
                    self.update_curr(cfs_id);
                } else {
                    curr = SeId::NONE;
                }
            }
            let picked = self.pick_next_entity(cfs_id, curr);
            let se = &self.se[picked.index()];
            if se.my_q.is_none() {
                return se.task;
            }
            cfs_id = se.my_q;
        }
    }

    /// `put_prev_task_fair`: the task stops running. None is the idle task, which has nothing to put.
    pub fn put_prev_task(&mut self, cpu: CpuId, prev: TaskId) {
        debug_assert!(prev.is_none() || self.tasks[prev.index()].cpu == cpu);
        if prev.is_none() {
            return;
        }
        let mut walk = self.tasks[prev.index()].se;
        while walk.is_some() {
            let cfs_id = self.se[walk.index()].cfs_rq;
            self.put_prev_entity(cfs_id, walk);
            walk = self.se[walk.index()].parent;
        }
    }

    /// `set_next_task_fair`: the task begins to run; none lets the CPU idle.
    pub fn set_next_task(&mut self, cpu: CpuId, p: TaskId) {
        if p.is_some() {
            let mut walk = self.tasks[p.index()].se;
            while walk.is_some() {
                let cfs_id = self.se[walk.index()].cfs_rq;
                self.set_next_entity(cfs_id, walk);
                walk = self.se[walk.index()].parent;
            }
        }
        self.make_current(cpu, p);
    }

    /// Switches to the task that should run next and gives it; none if the CPU idles. Clears
    /// `need_resched`. Levels that the old and the new task share are left alone, as
    /// `pick_next_task_fair` does.
    pub fn switch_task(&mut self, cpu: CpuId) -> TaskId {
        if self.core.enabled {
            return self.switch_task_core(cpu);
        }
        let prev = self.rqs[cpu.index()].curr;
        let next = self.pick_next_task_fair(cpu);
        if next == prev {
            if prev.is_none() {
                self.sync_idle(cpu);
            } else {
                self.make_current(cpu, next);
            }
        } else if prev.is_none() || next.is_none() {
            self.put_prev_task(cpu, prev);
            self.set_next_task(cpu, next);
        } else {
            self.switch_entities(prev, next);
            self.make_current(cpu, next);
        }
        // Not before: charging what stops running may ask for it once more.
        self.rqs[cpu.index()].need_resched = false;
        next
    }

    /// Puts one task's entities and sets another's, up to the level that they share.
    fn switch_entities(&mut self, prev: TaskId, next: TaskId) {
        let (mut se, mut pse) = (self.tasks[next.index()].se, self.tasks[prev.index()].se);
        while self.se[se.index()].cfs_rq != self.se[pse.index()].cfs_rq {
            let (depth, pdepth) = (self.se[se.index()].depth, self.se[pse.index()].depth);
            if depth <= pdepth {
                self.put_prev_entity(self.se[pse.index()].cfs_rq, pse);
                pse = self.se[pse.index()].parent;
            }
            if depth >= pdepth {
                self.set_next_entity(self.se[se.index()].cfs_rq, se);
                se = self.se[se.index()].parent;
            }
        }
        let cfs_id = self.se[se.index()].cfs_rq;
        self.put_prev_entity(cfs_id, pse);
        self.set_next_entity(cfs_id, se);
    }

    /// What of a switch is not fair accounting: `curr`, `on_cpu`, the order of `cfs_tasks`.
    fn make_current(&mut self, cpu: CpuId, next: TaskId) {
        let rq = &mut self.rqs[cpu.index()];
        let prev = std::mem::replace(&mut rq.curr, next);
        if prev.is_some() {
            self.tasks[prev.index()].on_cpu = false;
        }
        if next.is_none() {
            let util_sum = self.cfs[cpu.index()].avg.util_sum;
            rq.update_idle_rq_clock_pelt(util_sum);
            rq.misfit_task_load = 0;
        } else {
            self.tasks[next.index()].on_cpu = true;
            if rq.cfs_tasks.last() != Some(&next)
                && let Some(at) = rq.cfs_tasks.iter().rposition(|&p| p == next)
            {
                rq.cfs_tasks[at..].rotate_left(1);
            }
            self.update_misfit_status(cpu, next);
        }
        self.sync_idle(cpu);
    }
}
