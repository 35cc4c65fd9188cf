//! Buddies: entities to prefer or to pass over at the next pick.

use crate::ids::{CfsId, SeId};
use crate::state::Sched;

impl Sched {
    /// `set_next_buddy`: the task that was just woken, or the group that has more to run.
    pub(crate) fn set_next_buddy(&mut self, mut se_id: SeId) {
        while se_id.is_some() {
            let se = &self.se[se_id.index()];
            if !se.on_rq || se.idle {
                return;
            }
            self.cfs[se.cfs_rq.index()].next = se_id;
            se_id = se.parent;
        }
    }

    /// `set_last_buddy`: the task that was just preempted.
    pub(crate) fn set_last_buddy(&mut self, mut se_id: SeId) {
        while se_id.is_some() {
            let se = &self.se[se_id.index()];
            if !se.on_rq || se.idle {
                return;
            }
            self.cfs[se.cfs_rq.index()].last = se_id;
            se_id = se.parent;
        }
    }

    /// `set_skip_buddy`: the task that yielded.
    pub(crate) fn set_skip_buddy(&mut self, mut se_id: SeId) {
        while se_id.is_some() {
            let se = &self.se[se_id.index()];
            self.cfs[se.cfs_rq.index()].skip = se_id;
            se_id = se.parent;
        }
    }

    /// `clear_buddies`: at this level, and above as far as the entity's ancestors are buddies too.
    #[inline]
    pub(crate) fn clear_buddies(&mut self, cfs_id: CfsId, se_id: SeId) {
        let cfs = &self.cfs[cfs_id.index()];
        if cfs.last == se_id {
            self.clear_upwards(se_id, |cfs| &mut cfs.last);
        }
        if self.cfs[cfs_id.index()].next == se_id {
            self.clear_upwards(se_id, |cfs| &mut cfs.next);
        }
        if self.cfs[cfs_id.index()].skip == se_id {
            self.clear_upwards(se_id, |cfs| &mut cfs.skip);
        }
    }

    fn clear_upwards(&mut self, mut se_id: SeId, slot: fn(&mut crate::CfsRq) -> &mut SeId) {
        while se_id.is_some() {
            let se = &self.se[se_id.index()];
            let buddy = slot(&mut self.cfs[se.cfs_rq.index()]);
            if *buddy != se_id {
                return;
            }
            *buddy = SeId::NONE;
            se_id = se.parent;
        }
    }
}
