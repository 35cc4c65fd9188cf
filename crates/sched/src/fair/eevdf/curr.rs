//! Accounting of the running entity, and yielding.

use crate::features::Feat;
use crate::ids::{CfsId, SeId};
use crate::state::Sched;
use crate::weight::calc_delta_fair;
use wakelab_machine::CpuId;

impl Sched {
    /// `update_curr`: charges the running entity of a level. If its request is served, or it was let
    /// run without protection and is not owed service any more, another may be better.
    #[inline]
    pub(crate) fn update_curr_eevdf(&mut self, cfs_id: CfsId) {
        let cfs = &self.cfs[cfs_id.index()];
        let (curr, cpu) = (cfs.curr, cfs.cpu);
        if curr.is_none() {
            return;
        }
        let now = self.rqs[cpu.index()].clock_task;
        let se = &mut self.se[curr.index()];
        let delta = now.wrapping_sub(se.exec_start);
        if delta as i64 <= 0 {
            return;
        }
        se.exec_start = now;
        se.sum_exec_runtime = se.sum_exec_runtime.wrapping_add(delta);
        let vdelta = calc_delta_fair(delta, se.weight, &mut se.inv_weight);
        se.vruntime = se.vruntime.wrapping_add(vdelta);
        let served = self.update_deadline(cfs_id, curr);
        if self.cfs[cfs_id.index()].nr_running == 1 {
            return;
        }
        if served || self.unprotected(cfs_id, curr) {
            self.rqs[cpu.index()].need_resched = true;
            self.clear_buddies(cfs_id, curr);
        }
    }

    /// Whether the running entity's time is over before its request is served: its protection is
    /// over, or until 6.16 (`did_preempt_short`) it lost that and is not eligible any more.
    fn unprotected(&self, cfs_id: CfsId, curr: SeId) -> bool {
        if self.rules.protect_min_slice {
            return !self.protect_slice(curr);
        }
        self.feat.has(Feat::PREEMPT_SHORT)
            && !self.protect_slice(curr)
            && !self.entity_eligible(cfs_id, curr)
    }

    /// `yield_task_fair`: the running task gives up what is left of its request, if it is eligible;
    /// otherwise it could run away from the others by yielding. In 6.6 it asks for a slice more.
    pub(crate) fn yield_task_eevdf(&mut self, cpu: CpuId) {
        let se_id = self.tasks[self.rqs[cpu.index()].curr.index()].se;
        let cfs_id = self.se[se_id.index()].cfs_rq;
        self.clear_buddies(cfs_id, se_id);
        self.update_curr(cfs_id);
        if self.rules.yield_extends_deadline {
            let slice = self.se[se_id.index()].slice;
            let vslice = self.delta_fair(slice, se_id);
            let se = &mut self.se[se_id.index()];
            se.deadline = se.deadline.wrapping_add(vslice);
            return;
        }
        if self.entity_eligible(cfs_id, se_id) {
            let se = &mut self.se[se_id.index()];
            se.vruntime = se.deadline;
            self.update_deadline(cfs_id, se_id);
        }
    }
}
