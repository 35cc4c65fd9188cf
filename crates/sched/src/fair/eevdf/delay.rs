//! Delayed dequeueing: a task that goes to sleep while it has had more than its share stays queued
//! until it is picked, and so pays for it (DELAY_DEQUEUE). It counts in `nr_running`, but neither in
//! the runnable averages nor, for `wake_affine`, as running.

use crate::fair::flags::DEQUEUE_SLEEP;
use crate::features::Feat;
use crate::ids::{SeId, TaskId};
use crate::state::Sched;
use wakelab_machine::CpuId;

impl Sched {
    /// Whether the task sleeps but is still queued (`p->se.sched_delayed`).
    #[inline]
    pub fn is_delayed(&self, p: TaskId) -> bool {
        self.se[self.tasks[p.index()].se.index()].sched_delayed
    }

    /// Whether all that the CPU has queued are tasks that sleep: the next pick will take them off.
    #[inline]
    pub fn only_delayed(&self, cpu: CpuId) -> bool {
        let root = &self.cfs[cpu.index()];
        root.nr_running != 0 && root.h_nr_running == root.h_nr_delayed
    }

    /// `set_delayed`. A group's entity that is delayed has no tasks to count.
    pub(crate) fn set_delayed(&mut self, se_id: SeId) {
        self.se[se_id.index()].sched_delayed = true;
        self.count_delayed(se_id, 1);
    }

    /// `clear_delayed`.
    pub(crate) fn clear_delayed(&mut self, se_id: SeId) {
        self.se[se_id.index()].sched_delayed = false;
        self.count_delayed(se_id, -1);
    }

    fn count_delayed(&mut self, se_id: SeId, change: i32) {
        if self.se[se_id.index()].task.is_none() {
            return;
        }
        let mut walk = se_id;
        while walk.is_some() {
            let se = &self.se[walk.index()];
            let cfs = &mut self.cfs[se.cfs_rq.index()];
            cfs.h_nr_delayed = cfs.h_nr_delayed.wrapping_add_signed(change);
            walk = se.parent;
        }
    }

    /// `finish_delayed_dequeue_entity`: service that it is owed by now is forgotten (DELAY_ZERO).
    pub(crate) fn finish_delayed_dequeue_entity(&mut self, se_id: SeId) {
        self.clear_delayed(se_id);
        let se = &mut self.se[se_id.index()];
        if self.feat.has(Feat::DELAY_ZERO) && se.vlag > 0 {
            se.vlag = 0;
        }
    }

    /// `requeue_delayed_entity`: it is woken while still queued. If it is owed service by now, it
    /// joins anew at the average (DELAY_ZERO).
    pub fn requeue_delayed_entity(&mut self, se_id: SeId) {
        let cfs_id = self.se[se_id.index()].cfs_rq;
        if self.feat.has(Feat::DELAY_ZERO) {
            self.update_entity_lag(cfs_id, se_id);
            if self.se[se_id.index()].vlag > 0 {
                self.place_anew(se_id);
            }
        }
        self.update_load_avg(cfs_id, se_id, 0);
        self.clear_delayed(se_id);
    }

    fn place_anew(&mut self, se_id: SeId) {
        let cfs_id = self.se[se_id.index()].cfs_rq;
        let cfs = &mut self.cfs[cfs_id.index()];
        let running = cfs.curr == se_id;
        cfs.nr_running -= 1;
        if !running {
            cfs.timeline_sub(&mut self.se, se_id);
        }
        self.se[se_id.index()].vlag = 0;
        self.place_entity_eevdf(cfs_id, se_id, 0);
        let cfs = &mut self.cfs[cfs_id.index()];
        if !running {
            cfs.timeline_add(&mut self.se, se_id);
        }
        cfs.nr_running += 1;
    }

    /// Completes the dequeueing of a task if it is delayed, without waiting for its turn, as
    /// `wait_task_inactive` does. The CPU's clock must be up to date.
    pub fn finish_delayed(&mut self, p: TaskId) {
        let task = &self.tasks[p.index()];
        let (cpu, se_id) = (task.cpu, task.se);
        if self.se[se_id.index()].sched_delayed {
            let flags = DEQUEUE_SLEEP | crate::fair::flags::DEQUEUE_DELAYED;
            self.dequeue_entities(cpu, se_id, flags);
        }
    }
}
