//! The averages before 5.7: a run queue knows the load of what is queued on it (`runnable_load_avg`)
//! apart from that of all that is attached, and no runnable average.
//!
//! A queued entity counts there with its runnable weight: a task's weight, a group's share as far as
//! its own queue's load is queued. `SchedAvg::runnable_sum` and `runnable_avg` are `runnable_load_sum`
//! and `runnable_load_avg` under this rule, and sums are not kept in step with averages.

use super::average::add_positive;
use crate::ids::{CfsId, SeId};
use crate::pelt::{LOAD_AVG_MAX, UTIL_AVG_UNCHANGED, divider, update_with_runnable_load};
use crate::state::{CfsRq, Removed, Sched, SchedAvg, SchedEntity};
use crate::weight::scale_load_down;

const MAX: u64 = LOAD_AVG_MAX as u64;

/// `calc_group_runnable`: the part of a group's `shares` that its run queue's queued load is of its
/// load. Weights are unscaled.
pub fn calc_group_runnable(avg: &SchedAvg, weight: u64, runnable_weight: u64, shares: u64) -> u64 {
    let load = avg.load_avg.max(scale_load_down(weight));
    let runnable = avg.runnable_avg.max(scale_load_down(runnable_weight));
    let part = runnable.wrapping_mul(shares);
    let part = part.checked_div(load).unwrap_or(part);
    part.min(shares).max(2)
}

/// `attach_entity_load_avg`. Gives the runnable sum to propagate.
pub fn attach(cfs: &mut SchedAvg, se: &mut SchedAvg, weight: u64) -> i64 {
    let divider = u64::from(divider(cfs));
    se.last_update_time = cfs.last_update_time;
    se.period_contrib = cfs.period_contrib;
    se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
    let load_sum = se.load_avg.wrapping_mul(divider).checked_div(weight);
    se.load_sum = load_sum.unwrap_or(divider);
    se.runnable_sum = se.load_sum;
    cfs.load_avg = cfs.load_avg.wrapping_add(se.load_avg);
    cfs.load_sum = cfs.load_sum.wrapping_add(weight.wrapping_mul(se.load_sum));
    cfs.util_avg = cfs.util_avg.wrapping_add(se.util_avg);
    cfs.util_sum = cfs.util_sum.wrapping_add(se.util_sum);
    se.load_sum as i64
}

/// `detach_entity_load_avg`. Gives the runnable sum to propagate.
pub fn detach(cfs: &mut SchedAvg, se: &SchedAvg, weight: u64) -> i64 {
    dequeue_load(cfs, se, weight);
    cfs.util_avg = cfs.util_avg.saturating_sub(se.util_avg);
    cfs.util_sum = cfs.util_sum.saturating_sub(se.util_sum);
    (se.load_sum as i64).wrapping_neg()
}

/// The part of `update_cfs_rq_load_avg` that takes off what left with tasks that migrated while
/// asleep: `removed.runnable_avg` is their `runnable_sum`. Gives the runnable sum to propagate.
pub fn take_removed(cfs: &mut SchedAvg, removed: &Removed) -> i64 {
    let divider = u64::from(divider(cfs));
    cfs.load_avg = cfs.load_avg.saturating_sub(removed.load_avg);
    let sum = removed.load_avg.wrapping_mul(divider);
    cfs.load_sum = cfs.load_sum.saturating_sub(sum);
    cfs.util_avg = cfs.util_avg.saturating_sub(removed.util_avg);
    let sum = removed.util_avg.wrapping_mul(divider) as u32;
    cfs.util_sum = cfs.util_sum.saturating_sub(sum);
    (removed.runnable_avg as i64).wrapping_neg()
}

fn dequeue_load(cfs: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs.load_avg = cfs.load_avg.saturating_sub(se.load_avg);
    let sum = weight.wrapping_mul(se.load_sum);
    cfs.load_sum = cfs.load_sum.saturating_sub(sum);
}

/// `enqueue_runnable_load_avg`.
fn enqueue_runnable(cfs: &mut CfsRq, se: &SchedEntity) {
    let weight = scale_load_down(se.runnable_weight);
    cfs.runnable_weight = cfs.runnable_weight.wrapping_add(se.runnable_weight);
    cfs.avg.runnable_avg = cfs.avg.runnable_avg.wrapping_add(se.avg.runnable_avg);
    let sum = weight.wrapping_mul(se.avg.runnable_sum);
    cfs.avg.runnable_sum = cfs.avg.runnable_sum.wrapping_add(sum);
}

/// `dequeue_runnable_load_avg`.
fn dequeue_runnable(cfs: &mut CfsRq, se: &SchedEntity) {
    let weight = scale_load_down(se.runnable_weight);
    cfs.runnable_weight = cfs.runnable_weight.wrapping_sub(se.runnable_weight);
    cfs.avg.runnable_avg = cfs.avg.runnable_avg.saturating_sub(se.avg.runnable_avg);
    let sum = weight.wrapping_mul(se.avg.runnable_sum);
    cfs.avg.runnable_sum = cfs.avg.runnable_sum.saturating_sub(sum);
}

/// `update_tg_cfs_util` and `update_tg_cfs_runnable`: a group's entity takes on what its run queue's
/// averages have become. `gweight` is the weight of that queue, scaled down, `runnable_sum` its
/// `prop_runnable_sum`.
pub fn propagate(
    cfs: &mut SchedAvg,
    se: &mut SchedEntity,
    group: &SchedAvg,
    gweight: u64,
    runnable_sum: i64,
) {
    propagate_util(cfs, &mut se.avg, group);
    if runnable_sum == 0 {
        return;
    }
    let avg = &mut se.avg;
    let runnable = if runnable_sum >= 0 {
        runnable_sum
            .wrapping_add(avg.load_sum as i64)
            .min(MAX as i64)
    } else {
        let each = group.load_sum.checked_div(gweight).unwrap_or(0);
        avg.load_sum.min(each) as i64
    };
    let runnable = runnable.max(i64::from(avg.util_sum >> 10)) as u64;
    let weight = scale_load_down(se.weight);
    let sum = weight.wrapping_mul(runnable);
    let delta_sum = sum.wrapping_sub(weight.wrapping_mul(avg.load_sum)) as i64;
    let delta_avg = (sum / MAX).wrapping_sub(avg.load_avg) as i64;
    (avg.load_sum, avg.load_avg) = (runnable, sum / MAX);
    cfs.load_avg = add_positive(cfs.load_avg, delta_avg);
    cfs.load_sum = add_positive(cfs.load_sum, delta_sum);

    let sum = scale_load_down(se.runnable_weight).wrapping_mul(runnable);
    // The old part by the whole weight, as the kernel has it.
    let delta_sum = sum.wrapping_sub(weight.wrapping_mul(avg.runnable_sum)) as i64;
    let delta_avg = (sum / MAX).wrapping_sub(avg.runnable_avg) as i64;
    (avg.runnable_sum, avg.runnable_avg) = (runnable, sum / MAX);
    if se.on_rq {
        cfs.runnable_avg = add_positive(cfs.runnable_avg, delta_avg);
        cfs.runnable_sum = add_positive(cfs.runnable_sum, delta_sum);
    }
}

fn propagate_util(cfs: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta = group.util_avg.wrapping_sub(se.util_avg) as i64;
    if delta != 0 {
        se.util_avg = group.util_avg;
        se.util_sum = se.util_avg.wrapping_mul(MAX) as u32;
        cfs.util_avg = add_positive(cfs.util_avg, delta);
        cfs.util_sum = cfs.util_avg.wrapping_mul(MAX) as u32;
    }
}

impl SchedEntity {
    /// `__update_load_avg_se`.
    pub(crate) fn update_runnable_load(&mut self, now: u64, running: bool) {
        if self.bring_up_to(now, u64::from(self.on_rq), running) {
            self.avg.util_est.enqueued &= !UTIL_AVG_UNCHANGED;
        }
    }

    /// `__update_load_avg_blocked_se`.
    pub(crate) fn update_blocked_runnable_load(&mut self, now: u64) {
        self.bring_up_to(now, 0, false);
    }

    fn bring_up_to(&mut self, now: u64, queued: u64, running: bool) -> bool {
        if self.task.is_some() {
            self.runnable_weight = self.weight;
        }
        let weights = (
            scale_load_down(self.weight),
            scale_load_down(self.runnable_weight),
        );
        update_with_runnable_load(now, &mut self.avg, (queued, queued), weights, running)
    }
}

impl Sched {
    /// The entity's load joins that of what is queued.
    pub(crate) fn enqueue_runnable_load(&mut self, cfs_id: CfsId, se_id: SeId) {
        enqueue_runnable(&mut self.cfs[cfs_id.index()], &self.se[se_id.index()]);
    }

    /// And leaves it.
    pub(crate) fn dequeue_runnable_load(&mut self, cfs_id: CfsId, se_id: SeId) {
        dequeue_runnable(&mut self.cfs[cfs_id.index()], &self.se[se_id.index()]);
    }

    /// `reweight_entity`, the part on averages: load and runnable load follow the new weights, which
    /// are unscaled; `old` is the weight before.
    pub(crate) fn reweight_runnable_load(
        &mut self,
        cfs_id: CfsId,
        se_id: SeId,
        old: u64,
        runnable: u64,
    ) {
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &mut self.se[se_id.index()]);
        if se.on_rq {
            dequeue_runnable(cfs, se);
        }
        dequeue_load(&mut cfs.avg, &se.avg, scale_load_down(old));
        se.runnable_weight = runnable;
        let divider = u64::from(divider(&se.avg));
        let weight = scale_load_down(se.weight);
        se.avg.load_avg = weight.wrapping_mul(se.avg.load_sum) / divider;
        se.avg.runnable_avg = scale_load_down(runnable).wrapping_mul(se.avg.runnable_sum) / divider;
        cfs.avg.load_avg = cfs.avg.load_avg.wrapping_add(se.avg.load_avg);
        let sum = weight.wrapping_mul(se.avg.load_sum);
        cfs.avg.load_sum = cfs.avg.load_sum.wrapping_add(sum);
        if se.on_rq {
            enqueue_runnable(cfs, se);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_groups_runnable_weight_is_its_queued_part() {
        let mut avg = SchedAvg {
            load_avg: 2048,
            runnable_avg: 1024,
            ..SchedAvg::default()
        };
        let one = 1 << 20;
        // Half of the load sleeps: half of the shares are runnable.
        assert_eq!(calc_group_runnable(&avg, one, one, one), one / 2);
        // Nothing queued: the least there is.
        avg.runnable_avg = 0;
        assert_eq!(calc_group_runnable(&avg, 0, 0, one), 2);
        // Just queued, averages still young: by weight.
        avg.load_avg = 0;
        assert_eq!(calc_group_runnable(&avg, one, one, one), one);
    }
}
