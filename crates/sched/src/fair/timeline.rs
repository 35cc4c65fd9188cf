//! The timeline of a fair run queue: its queued entities by vruntime, and `min_vruntime`.

use crate::ids::SeId;
use crate::state::{CfsRq, SchedEntity, TreeKey};

/// `max_vruntime`: the later of two virtual times, which wrap.
#[inline(always)]
pub(crate) fn max_vruntime(a: u64, b: u64) -> u64 {
    if b.wrapping_sub(a) as i64 > 0 { b } else { a }
}

/// `min_vruntime`: the earlier of two virtual times.
#[inline(always)]
pub(crate) fn min_vruntime(a: u64, b: u64) -> u64 {
    if (b.wrapping_sub(a) as i64) < 0 { b } else { a }
}

/// `entity_before`: whether virtual time `a` is earlier than `b`.
#[inline(always)]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

impl CfsRq {
    /// `__enqueue_entity`: after all entities with the same vruntime.
    #[inline]
    pub(crate) fn tree_insert(&mut self, se: SeId, vruntime: u64) {
        let mut at = self.tree.len();
        while at > 0 && !before(vruntime, self.tree[at - 1].vruntime) {
            at -= 1;
        }
        self.tree.insert(at, TreeKey { vruntime, se });
    }

    /// `__dequeue_entity`.
    #[inline]
    pub(crate) fn tree_remove(&mut self, se: SeId) {
        let at = self.tree.iter().rposition(|key| key.se == se);
        debug_assert!(at.is_some(), "a queued entity is in the timeline");
        if let Some(at) = at {
            self.tree.remove(at);
        }
    }

    /// `__pick_first_entity`: the leftmost.
    #[inline(always)]
    pub(crate) fn first_entity(&self) -> Option<TreeKey> {
        self.tree.last().copied()
    }

    /// `update_min_vruntime`: the earliest of the running and the leftmost entity, never back.
    #[inline]
    pub(crate) fn update_min_vruntime(&mut self, se: &[SchedEntity]) {
        let mut vruntime = self.min_vruntime;
        let curr = self
            .curr
            .is_some()
            .then(|| &se[self.curr.index()])
            .filter(|curr| curr.on_rq);
        if let Some(curr) = curr {
            vruntime = curr.vruntime;
        }
        if let Some(left) = self.first_entity() {
            vruntime = match curr {
                Some(_) => min_vruntime(vruntime, left.vruntime),
                None => left.vruntime,
            };
        }
        self.min_vruntime = max_vruntime(self.min_vruntime, vruntime);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leftmost_is_the_earliest_and_equals_leave_in_order_of_arrival() {
        let mut cfs = CfsRq::default();
        for (se, vruntime) in [(0, 50), (1, 10), (2, 50), (3, 10), (4, 90)] {
            cfs.tree_insert(SeId(se), vruntime);
        }
        let mut order = Vec::new();
        while let Some(key) = cfs.first_entity() {
            order.push(key.se.0);
            cfs.tree_remove(key.se);
        }
        assert_eq!(order, [1, 3, 0, 2, 4]);
    }

    #[test]
    fn virtual_times_may_wrap() {
        let mut cfs = CfsRq::default();
        cfs.tree_insert(SeId(0), 5);
        cfs.tree_insert(SeId(1), u64::MAX - 5);
        assert_eq!(cfs.first_entity().map(|key| key.se), Some(SeId(1)));
        assert_eq!(max_vruntime(u64::MAX - 5, 5), 5);
    }
}
