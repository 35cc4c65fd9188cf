//! The average virtual time of a run queue, and who is owed service.
//!
//! Service is fair when all vruntimes equal their average by weight. The queue keeps the sum of
//! (vruntime - zero) * weight over its tree, so that products stay small, and moves its zero to the
//! average whenever it computes it.

use crate::ids::{CfsId, SeId};
use crate::state::{CfsRq, Sched, SchedEntity};
use crate::weight::scale_load_down;

/// The sum over a queue including what runs, as the test of eligibility needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eligibility {
    zero: u64,
    sum: i64,
    load: i64,
}

impl Eligibility {
    /// `vruntime_eligible`: at or before the average, without the rounding of a division.
    #[inline(always)]
    pub(crate) fn allows(&self, vruntime: u64) -> bool {
        let key = vruntime.wrapping_sub(self.zero) as i64;
        self.sum >= key.wrapping_mul(self.load)
    }
}

impl CfsRq {
    /// `entity_key` times weight: what an entity adds to the sum.
    #[inline(always)]
    fn weighted_key(&self, se: &SchedEntity, weight: i64) -> i64 {
        let key = se.vruntime.wrapping_sub(self.zero_vruntime) as i64;
        key.wrapping_mul(weight)
    }

    /// The running entity of this level, if it is still queued.
    #[inline(always)]
    fn queued_curr<'a>(&self, table: &'a [SchedEntity]) -> Option<&'a SchedEntity> {
        let curr = self.curr.is_some().then(|| &table[self.curr.index()]);
        curr.filter(|curr| curr.on_rq)
    }

    /// `avg_vruntime_add`.
    #[inline(always)]
    fn avg_vruntime_add(&mut self, se: &SchedEntity) {
        let weight = scale_load_down(se.weight);
        let part = self.weighted_key(se, weight as i64);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(part);
        self.avg_load = self.avg_load.wrapping_add(weight);
    }

    /// `avg_vruntime_sub`.
    #[inline(always)]
    fn avg_vruntime_sub(&mut self, se: &SchedEntity) {
        let weight = scale_load_down(se.weight);
        let part = self.weighted_key(se, weight as i64);
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(part);
        self.avg_load = self.avg_load.wrapping_sub(weight);
    }

    /// `__enqueue_entity`: into the tree and its sums.
    #[inline]
    pub fn timeline_add(&mut self, table: &mut [SchedEntity], se: SeId) {
        self.avg_vruntime_add(&table[se.index()]);
        self.timeline.insert(table, se);
    }

    /// `__dequeue_entity`.
    #[inline]
    pub fn timeline_sub(&mut self, table: &mut [SchedEntity], se: SeId) {
        self.timeline.remove(table, se);
        self.avg_vruntime_sub(&table[se.index()]);
    }

    /// `avg_vruntime`: moves the zero to the average, rounded down, and gives it.
    #[inline]
    fn move_zero_to_average(&mut self, table: &[SchedEntity]) -> u64 {
        let curr = self.queued_curr(table);
        let mut delta = 0;
        if self.avg_load != 0 {
            let (mut sum, mut load) = (self.avg_vruntime, self.avg_load as i64);
            if let Some(curr) = curr {
                let weight = scale_load_down(curr.weight) as i64;
                sum = sum.wrapping_add(self.weighted_key(curr, weight));
                load = load.wrapping_add(weight);
            }
            if sum < 0 {
                sum = sum.wrapping_sub(load.wrapping_sub(1));
            }
            delta = sum.wrapping_div(load.max(1));
        } else if let Some(curr) = curr {
            delta = curr.vruntime.wrapping_sub(self.zero_vruntime) as i64;
        }
        let moved = delta.wrapping_mul(self.avg_load as i64);
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(moved);
        self.zero_vruntime = self.zero_vruntime.wrapping_add_signed(delta);
        self.zero_vruntime
    }

    /// What tells who is eligible now.
    #[inline]
    pub(crate) fn eligibility(&self, table: &[SchedEntity]) -> Eligibility {
        let (mut sum, mut load) = (self.avg_vruntime, self.avg_load as i64);
        if let Some(curr) = self.queued_curr(table) {
            let weight = scale_load_down(curr.weight) as i64;
            sum = sum.wrapping_add(self.weighted_key(curr, weight));
            load = load.wrapping_add(weight);
        }
        Eligibility {
            zero: self.zero_vruntime,
            sum,
            load,
        }
    }

    /// The weight of all that is queued here, scaled down entity by entity.
    #[inline(always)]
    pub(crate) fn queued_load(&self, table: &[SchedEntity]) -> i64 {
        let curr = self.queued_curr(table);
        let running = curr.map_or(0, |curr| scale_load_down(curr.weight));
        self.avg_load.wrapping_add(running) as i64
    }
}

impl Sched {
    /// `avg_vruntime`: the average virtual time of a queue, which becomes its zero.
    #[inline]
    pub fn avg_vruntime(&mut self, cfs_id: CfsId) -> u64 {
        self.cfs[cfs_id.index()].move_zero_to_average(&self.se)
    }

    /// `vruntime_eligible`: whether an entity with this vruntime would be owed service.
    #[inline]
    pub fn vruntime_eligible(&self, cfs_id: CfsId, vruntime: u64) -> bool {
        let eligibility = self.cfs[cfs_id.index()].eligibility(&self.se);
        eligibility.allows(vruntime)
    }

    /// `entity_eligible`.
    #[inline]
    pub(crate) fn entity_eligible(&self, cfs_id: CfsId, se_id: SeId) -> bool {
        self.vruntime_eligible(cfs_id, self.se[se_id.index()].vruntime)
    }

    /// `entity_lag`: how far an entity is behind the average, at most two slices or a tick either
    /// way, in virtual time.
    #[inline]
    pub(crate) fn entity_lag(&mut self, average: u64, se_id: SeId) -> i64 {
        let se = &self.se[se_id.index()];
        let lag = average.wrapping_sub(se.vruntime) as i64;
        let limit = se.slice.wrapping_mul(2).max(self.tun.tick.0);
        let limit = self.delta_fair(limit, se_id) as i64;
        lag.min(limit).max(limit.wrapping_neg())
    }

    /// `update_entity_lag`: notes the lag of an entity that is about to leave the queue.
    #[inline]
    pub fn update_entity_lag(&mut self, cfs_id: CfsId, se_id: SeId) {
        let average = self.avg_vruntime(cfs_id);
        self.se[se_id.index()].vlag = self.entity_lag(average, se_id);
    }
}
