//! The pick: the earliest deadline among those that are owed service.

use crate::fair::flags::{DEQUEUE_DELAYED, DEQUEUE_SLEEP};
use crate::fair::timeline::before;
use crate::features::Feat;
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::{CfsRq, Sched, SchedEntity};
use wakelab_machine::CpuId;

impl CfsRq {
    /// The first eligible entity of the tree by deadline: left subtrees come first, and one whose
    /// least vruntime is not eligible holds none.
    #[inline]
    fn first_eligible(&self, table: &[SchedEntity]) -> SeId {
        let eligibility = self.eligibility(table);
        let first = self.timeline.first();
        if first.is_some() && eligibility.allows(table[first.index()].vruntime) {
            return first;
        }
        let mut at = self.timeline.root;
        while at.is_some() {
            let se = &table[at.index()];
            let [left, right] = se.node.child;
            if left.is_some() && eligibility.allows(table[left.index()].node.min_vruntime) {
                at = left;
            } else if eligibility.allows(se.vruntime) {
                return at;
            } else {
                at = right;
            }
        }
        SeId::NONE
    }
}

impl Sched {
    /// `pick_eevdf`: the entity of a level that should run; none only if nothing is queued.
    #[inline]
    pub fn pick_eevdf(&self, cfs_id: CfsId) -> SeId {
        // From 6.17 on what protects knows of the feature.
        let protect = self.rules.protect_min_slice || self.feat.has(Feat::RUN_TO_PARITY);
        self.pick_eevdf_protecting(cfs_id, protect)
    }

    /// The same with or without regard for the running entity's protection.
    #[inline(always)]
    pub(crate) fn pick_eevdf_protecting(&self, cfs_id: CfsId, protect: bool) -> SeId {
        let cfs = &self.cfs[cfs_id.index()];
        let mut curr = cfs.curr;
        if curr.is_some() && !self.se[curr.index()].on_rq {
            curr = SeId::NONE;
        }
        if cfs.nr_running == 1 {
            return if curr.is_some() {
                curr
            } else {
                cfs.timeline.first()
            };
        }
        if curr.is_some() && !self.entity_eligible(cfs_id, curr) {
            curr = SeId::NONE;
        }
        if curr.is_some() && protect && self.protect_slice(curr) {
            return curr;
        }
        let best = cfs.first_eligible(&self.se);
        let deadline = |se: SeId| self.se[se.index()].deadline;
        if best.is_none() || curr.is_some() && before(deadline(curr), deadline(best)) {
            return curr;
        }
        best
    }

    /// `pick_next_entity`: a buddy that is owed service, or the pick. None if that only stayed to use
    /// up its lag: then it leaves the queue, and the pick starts over.
    fn pick_next_entity_eevdf(&mut self, cpu: CpuId, cfs_id: CfsId) -> SeId {
        let next = self.cfs[cfs_id.index()].next;
        let honoured = match self.rules.next_buddy_picks {
            true => Feat::NEXT_BUDDY,
            false => Feat::PICK_BUDDY,
        };
        if next.is_some() && self.feat.has(honoured) && self.entity_eligible(cfs_id, next) {
            return next;
        }
        let picked = self.pick_eevdf(cfs_id);
        if self.se[picked.index()].sched_delayed {
            self.dequeue_entities(cpu, picked, DEQUEUE_SLEEP | DEQUEUE_DELAYED);
            return SeId::NONE;
        }
        picked
    }

    /// `pick_task_fair`.
    pub(crate) fn pick_task_eevdf(&mut self, cpu: CpuId) -> TaskId {
        let mut cfs_id = self.root_cfs(cpu);
        while self.cfs[cfs_id.index()].nr_running != 0 {
            let curr = self.cfs[cfs_id.index()].curr;
            if curr.is_some() && self.se[curr.index()].on_rq {
                self.update_curr(cfs_id);
            }
            let picked = self.pick_next_entity_eevdf(cpu, cfs_id);
            if picked.is_none() {
                cfs_id = self.root_cfs(cpu);
                continue;
            }
            let se = &self.se[picked.index()];
            if se.my_q.is_none() {
                return se.task;
            }
            cfs_id = se.my_q;
        }
        // Only the root can be empty: a group without entities is delayed itself.
        TaskId::NONE
    }

    /// `cfs_rq_min_slice`: the least slice of a queue, as the tree's root has it.
    #[inline]
    pub fn cfs_rq_min_slice(&self, cfs_id: CfsId) -> u64 {
        let cfs = &self.cfs[cfs_id.index()];
        let mut slice = u64::MAX;
        if cfs.curr.is_some() && self.se[cfs.curr.index()].on_rq {
            slice = self.se[cfs.curr.index()].slice;
        }
        if cfs.timeline.root.is_some() {
            slice = slice.min(self.se[cfs.timeline.root.index()].node.min_slice);
        }
        slice
    }
}
