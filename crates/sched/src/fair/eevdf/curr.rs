//! Accounting of the running entity, its protection, and yielding.

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
        if served || self.did_preempt_short(cfs_id, curr) {
            self.rqs[cpu.index()].need_resched = true;
            self.clear_buddies(cfs_id, curr);
        }
    }

    /// `did_preempt_short`: the running entity lost its protection and is not eligible any more.
    fn did_preempt_short(&self, cfs_id: CfsId, curr: SeId) -> bool {
        self.feat.has(Feat::PREEMPT_SHORT)
            && !self.protect_slice(curr)
            && !self.entity_eligible(cfs_id, curr)
    }

    /// `set_protect_slice`: what begins to run may run to its deadline, as long as it is eligible.
    #[inline(always)]
    pub(crate) fn set_protect_slice(&mut self, se_id: SeId) {
        let se = &mut self.se[se_id.index()];
        se.vlag = se.deadline as i64;
    }

    /// `protect_slice`.
    #[inline(always)]
    pub(crate) fn protect_slice(&self, se_id: SeId) -> bool {
        let se = &self.se[se_id.index()];
        se.vlag == se.deadline as i64
    }

    /// `cancel_protect_slice`.
    pub(crate) fn cancel_protect_slice(&mut self, se_id: SeId) {
        if self.protect_slice(se_id) {
            let se = &mut self.se[se_id.index()];
            se.vlag = (se.deadline as i64).wrapping_add(1);
        }
    }

    /// `yield_task_fair`: the running task gives up what is left of its request, if it is eligible;
    /// otherwise it could run away from the others by yielding.
    pub(crate) fn yield_task_eevdf(&mut self, cpu: CpuId) {
        let se_id = self.tasks[self.rqs[cpu.index()].curr.index()].se;
        let cfs_id = self.se[se_id.index()].cfs_rq;
        self.clear_buddies(cfs_id, se_id);
        self.update_curr(cfs_id);
        if self.entity_eligible(cfs_id, se_id) {
            let se = &mut self.se[se_id.index()];
            se.vruntime = se.deadline;
            self.update_deadline(cfs_id, se_id);
        }
    }
}
