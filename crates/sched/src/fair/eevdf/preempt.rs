//! Preemption by a wake-up.

use crate::fair::flags::WF_FORK;
use crate::features::Feat;
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::{Policy, Sched};
use wakelab_machine::CpuId;

impl Sched {
    /// `check_preempt_wakeup_fair`: the woken task preempts if it is the pick. A shorter slice than
    /// the running entity's takes that one's protection away (PREEMPT_SHORT).
    pub(crate) fn check_preempt_wakeup_fair(
        &mut self,
        cpu: CpuId,
        curr: TaskId,
        p: TaskId,
        wake_flags: u32,
    ) {
        let (se, pse) = (self.tasks[curr.index()].se, self.tasks[p.index()].se);
        let buddy = self.feat.has(Feat::NEXT_BUDDY) && wake_flags & WF_FORK == 0;
        if buddy && !self.se[pse.index()].sched_delayed {
            self.set_next_buddy(pse);
        }
        if self.rqs[cpu.index()].need_resched || !self.feat.has(Feat::WAKEUP_PREEMPTION) {
            return;
        }
        let (se, pse) = self.find_matching_se(se, pse);
        let (idle, p_idle) = (self.se[se.index()].idle, self.se[pse.index()].idle);
        if idle && !p_idle {
            self.cancel_protect_slice(se);
            self.rqs[cpu.index()].need_resched = true;
            return;
        }
        if idle != p_idle || self.tasks[p.index()].policy != Policy::Normal {
            return;
        }
        let cfs_id = self.se[se.index()].cfs_rq;
        self.update_curr(cfs_id);
        if self.do_preempt_short(cfs_id, pse, se) {
            self.cancel_protect_slice(se);
        }
        if self.pick_eevdf(cfs_id) == pse {
            self.rqs[cpu.index()].need_resched = true;
        }
    }

    /// `do_preempt_short`.
    fn do_preempt_short(&self, cfs_id: CfsId, pse_id: SeId, se_id: SeId) -> bool {
        if !self.feat.has(Feat::PREEMPT_SHORT) {
            return false;
        }
        let (pse, se) = (&self.se[pse_id.index()], &self.se[se_id.index()]);
        let earlier = crate::fair::timeline::before(pse.deadline, se.deadline);
        pse.slice < se.slice
            && self.entity_eligible(cfs_id, pse_id)
            && (earlier || !self.entity_eligible(cfs_id, se_id))
    }
}
