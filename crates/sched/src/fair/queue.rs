//! Putting entities on run queues and taking them off, level by level.

use super::flags::{
    DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, DO_ATTACH, DO_DETACH, ENQUEUE_MIGRATED,
    ENQUEUE_WAKEUP, UPDATE_TG,
};
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::{Policy, Sched};
use crate::touch::Line;
use wakelab_machine::CpuId;

impl Sched {
    /// `enqueue_entity`. The vruntime of an entity that comes from elsewhere is relative to
    /// `min_vruntime` and becomes absolute here.
    #[inline]
    fn enqueue_entity(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32) {
        let renorm = flags & ENQUEUE_WAKEUP == 0 || flags & ENQUEUE_MIGRATED != 0;
        let curr = self.cfs[cfs_id.index()].curr == se_id;
        if renorm && curr {
            self.renormalise(cfs_id, se_id);
        }
        self.update_curr(cfs_id);
        if renorm && !curr {
            self.renormalise(cfs_id, se_id);
        }
        self.update_load_avg(cfs_id, se_id, UPDATE_TG | DO_ATTACH);
        self.se_update_runnable(se_id);
        self.update_cfs_group(se_id);
        if self.rules.runnable_load {
            self.enqueue_runnable_load(cfs_id, se_id);
        }
        self.account_entity_enqueue(cfs_id, se_id);
        if flags & ENQUEUE_WAKEUP != 0 {
            self.place_entity(cfs_id, se_id, false);
        }
        let se = &mut self.se[se_id.index()];
        if flags & ENQUEUE_MIGRATED != 0 {
            se.exec_start = 0;
        }
        se.on_rq = true;
        let cfs = &mut self.cfs[cfs_id.index()];
        if !curr {
            cfs.tree_insert(se_id, se.vruntime);
        }
        if cfs.nr_running == 1 {
            self.list_add_leaf_cfs_rq(cfs_id);
        }
    }

    #[inline(always)]
    fn renormalise(&mut self, cfs_id: CfsId, se_id: SeId) {
        let se = &mut self.se[se_id.index()];
        se.vruntime = se
            .vruntime
            .wrapping_add(self.cfs[cfs_id.index()].min_vruntime);
    }

    /// `dequeue_entity`. `migrating`: the task takes its load along.
    #[inline]
    fn dequeue_entity(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32, migrating: bool) {
        self.update_curr(cfs_id);
        self.update_load_avg(
            cfs_id,
            se_id,
            if migrating {
                UPDATE_TG | DO_DETACH
            } else {
                UPDATE_TG
            },
        );
        if self.rules.runnable_load {
            self.dequeue_runnable_load(cfs_id, se_id);
        }
        self.se_update_runnable(se_id);
        self.clear_buddies(cfs_id, se_id);
        if self.cfs[cfs_id.index()].curr != se_id {
            self.cfs[cfs_id.index()].tree_remove(se_id);
        }
        self.account_entity_dequeue(cfs_id, se_id);
        let se = &mut self.se[se_id.index()];
        se.on_rq = false;
        if flags & DEQUEUE_SLEEP == 0 {
            se.vruntime = se
                .vruntime
                .wrapping_sub(self.cfs[cfs_id.index()].min_vruntime);
        }
        self.update_cfs_group(se_id);
        if flags & (DEQUEUE_SAVE | DEQUEUE_MOVE) != DEQUEUE_SAVE {
            self.cfs[cfs_id.index()].update_min_vruntime(&self.se);
        }
    }

    /// `se_update_runnable`: a group's entity counts as many runnable as its queue has tasks.
    #[inline(always)]
    pub(crate) fn se_update_runnable(&mut self, se_id: SeId) {
        let se = &mut self.se[se_id.index()];
        if se.my_q.is_some() && !self.rules.runnable_load {
            let gcfs = &self.cfs[se.my_q.index()];
            se.runnable_weight = u64::from(gcfs.h_nr_running.wrapping_sub(gcfs.h_nr_delayed));
        }
    }

    /// `account_entity_enqueue`.
    #[inline]
    pub(crate) fn account_entity_enqueue(&mut self, cfs_id: CfsId, se_id: SeId) {
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &self.se[se_id.index()]);
        cfs.weight += se.weight;
        cfs.inv_weight = 0;
        cfs.nr_running += 1;
        cfs.idle_nr_running += u32::from(se.idle);
        if se.task.is_some() {
            self.rqs[cfs.cpu.index()].cfs_tasks.push(se.task);
        }
    }

    /// `account_entity_dequeue`.
    #[inline]
    pub(crate) fn account_entity_dequeue(&mut self, cfs_id: CfsId, se_id: SeId) {
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &self.se[se_id.index()]);
        cfs.weight -= se.weight;
        cfs.inv_weight = 0;
        cfs.nr_running -= 1;
        cfs.idle_nr_running -= u32::from(se.idle);
        if se.task.is_some() {
            let tasks = &mut self.rqs[cfs.cpu.index()].cfs_tasks;
            if let Some(at) = tasks.iter().rposition(|&p| p == se.task) {
                tasks.remove(at);
            }
        }
    }

    /// The part that a level has of queueing or dequeueing a task: the counts of tasks. Gives
    /// whether the levels above count the task as idle.
    #[inline(always)]
    fn count_tasks(&mut self, cfs_id: CfsId, change: i32, idle: bool) -> bool {
        let cfs = &mut self.cfs[cfs_id.index()];
        cfs.h_nr_running = cfs.h_nr_running.wrapping_add_signed(change);
        if idle {
            cfs.idle_h_nr_running = cfs.idle_h_nr_running.wrapping_add_signed(change);
        }
        idle || cfs.idle
    }

    /// The levels above the last one that was changed: averages, weights and counts.
    #[inline]
    fn update_upwards(&mut self, mut se_id: SeId, change: i32, mut idle: bool) {
        while se_id.is_some() {
            let cfs_id = self.se[se_id.index()].cfs_rq;
            self.update_load_avg(cfs_id, se_id, UPDATE_TG);
            self.se_update_runnable(se_id);
            self.update_cfs_group(se_id);
            idle = self.count_tasks(cfs_id, change, idle);
            se_id = self.se[se_id.index()].parent;
        }
    }

    /// `enqueue_task_fair`.
    pub(crate) fn enqueue_task_fair(&mut self, cpu: CpuId, p: TaskId, mut flags: u32) {
        if self.rules.eevdf {
            return self.enqueue_task_eevdf(cpu, p, flags);
        }
        self.util_est_enqueue(self.root_cfs(cpu), p);
        let task = &self.tasks[p.index()];
        let mut idle = task.policy == Policy::Idle;
        let mut walk = task.se;
        while walk.is_some() && !self.se[walk.index()].on_rq {
            let cfs_id = self.se[walk.index()].cfs_rq;
            self.enqueue_entity(cfs_id, walk, flags);
            idle = self.count_tasks(cfs_id, 1, idle);
            flags = ENQUEUE_WAKEUP;
            walk = self.se[walk.index()].parent;
        }
        self.update_upwards(walk, 1, idle);
        self.add_nr_running(cpu);
    }

    /// `add_nr_running`: a second task makes the machine one that may need balancing.
    #[inline]
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        rq.nr_running += 1;
        if rq.nr_running == 2 && !self.rd.overload {
            self.rd.overload = true;
            self.touch.write(Line::RdOverload);
        }
    }

    /// `dequeue_task_fair`. False if the task stays queued though it sleeps (DELAY_DEQUEUE).
    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, p: TaskId, mut flags: u32) -> bool {
        if self.rules.eevdf {
            return self.dequeue_task_eevdf(cpu, p, flags);
        }
        let sleep = flags & DEQUEUE_SLEEP != 0;
        let was_sched_idle = self.sched_idle_rq(cpu);
        self.util_est_dequeue(self.root_cfs(cpu), p);
        let task = &self.tasks[p.index()];
        let mut migrating = task.migrating;
        let mut idle = task.policy == Policy::Idle;
        let mut walk = task.se;
        while walk.is_some() {
            let cfs_id = self.se[walk.index()].cfs_rq;
            self.dequeue_entity(cfs_id, walk, flags, migrating);
            idle = self.count_tasks(cfs_id, -1, idle);
            walk = self.se[walk.index()].parent;
            if self.cfs[cfs_id.index()].weight != 0 {
                // The group has more to run: let it, if it is its turn.
                if sleep && walk.is_some() {
                    self.set_next_buddy(walk);
                }
                break;
            }
            flags |= DEQUEUE_SLEEP;
            migrating = false;
        }
        self.update_upwards(walk, -1, idle);
        self.rqs[cpu.index()].nr_running -= 1;
        if !was_sched_idle && self.sched_idle_rq(cpu) {
            self.rqs[cpu.index()].next_balance = self.jiffies(cpu);
        }
        self.util_est_update(p, sleep);
        true
    }

    /// `sched_idle_rq`: only SCHED_IDLE tasks are queued.
    #[inline(always)]
    pub(crate) fn sched_idle_rq(&self, cpu: CpuId) -> bool {
        let nr_running = self.rqs[cpu.index()].nr_running;
        nr_running != 0 && nr_running == self.cfs[cpu.index()].idle_h_nr_running
    }
}
