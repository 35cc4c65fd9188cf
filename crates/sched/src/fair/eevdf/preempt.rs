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
        let preempts = if self.rules.protect_min_slice {
            self.preempts_protected(cfs_id, pse, se)
        } else {
            if self.do_preempt_short(cfs_id, pse, se) {
                self.cancel_protect_slice(se);
            }
            self.pick_eevdf(cfs_id) == pse
        };
        if preempts {
            self.rqs[cpu.index()].need_resched = true;
        }
    }

    /// From 6.17 on a shorter slice disregards the protection, which ends if it preempts and is
    /// shortened if it does not.
    fn preempts_protected(&mut self, cfs_id: CfsId, pse: SeId, se: SeId) -> bool {
        let shorter = self.se[pse.index()].slice < self.se[se.index()].slice;
        let short = self.feat.has(Feat::PREEMPT_SHORT) && shorter;
        let preempts = self.pick_eevdf_protecting(cfs_id, !short) == pse;
        if short && preempts {
            self.cancel_protect_slice(se);
        } else if short && self.feat.has(Feat::RUN_TO_PARITY) {
            self.update_protect_slice(cfs_id, se);
        }
        preempts
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
