//! How long an entity that begins to run is protected from others with earlier deadlines
//! (RUN_TO_PARITY).
//!
//! Until 6.16 it is protected to its deadline, which `vlag` keeps meanwhile; to cancel that changes
//! `vlag`. From 6.17 on `vlag` keeps the virtual time at which the protection ends (`vprot`).

use crate::fair::timeline::before;
use crate::features::Feat;
use crate::ids::{CfsId, SeId};
use crate::rules::NORMALIZED_BASE_SLICE;
use crate::state::Sched;

impl Sched {
    /// `set_protect_slice`: an entity of this level begins to run. It is off the tree by now, and not
    /// yet the level's current one.
    #[inline(always)]
    pub(crate) fn set_protect_slice(&mut self, cfs_id: CfsId, se_id: SeId) {
        let mut until = self.se[se_id.index()].deadline;
        if self.rules.protect_min_slice {
            let slice = if self.feat.has(Feat::RUN_TO_PARITY) {
                self.cfs_rq_min_slice(cfs_id)
            } else {
                NORMALIZED_BASE_SLICE.0
            };
            if slice < self.se[se_id.index()].slice {
                until = self.earlier_after(until, slice, se_id);
            }
        }
        self.se[se_id.index()].vlag = until as i64;
    }

    /// `update_protect_slice`: one with a shorter slice was queued and did not preempt.
    pub(crate) fn update_protect_slice(&mut self, cfs_id: CfsId, se_id: SeId) {
        let slice = self.cfs_rq_min_slice(cfs_id);
        let until = self.se[se_id.index()].vlag as u64;
        self.se[se_id.index()].vlag = self.earlier_after(until, slice, se_id) as i64;
    }

    /// The earlier of a virtual time and the one that an entity reaches after so many ns.
    fn earlier_after(&mut self, until: u64, ns: u64, se_id: SeId) -> u64 {
        let vslice = self.delta_fair(ns, se_id);
        let reached = self.se[se_id.index()].vruntime.wrapping_add(vslice);
        if before(reached, until) {
            reached
        } else {
            until
        }
    }

    /// `protect_slice`.
    #[inline(always)]
    pub(crate) fn protect_slice(&self, se_id: SeId) -> bool {
        let se = &self.se[se_id.index()];
        if self.rules.protect_min_slice {
            before(se.vruntime, se.vlag as u64)
        } else {
            se.vlag == se.deadline as i64
        }
    }

    /// `cancel_protect_slice`.
    pub(crate) fn cancel_protect_slice(&mut self, se_id: SeId) {
        if self.protect_slice(se_id) {
            let se = &mut self.se[se_id.index()];
            se.vlag = if self.rules.protect_min_slice {
                se.vruntime as i64
            } else {
                (se.deadline as i64).wrapping_add(1)
            };
        }
    }
}
