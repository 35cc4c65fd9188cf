//! Moving an entity's averages into and out of a run queue's (kernel `sched/fair.c`,
//! `attach_entity_load_avg()` and its like). Sums and averages are kept in step by hand, since both
//! round: a sum never falls below what its average needs.

use crate::pelt::{PELT_MIN_DIVIDER, divider};
use crate::state::{Removed, SchedAvg};

const MIN: u64 = PELT_MIN_DIVIDER as u64;

/// `max_t(u32, sum, avg * PELT_MIN_DIVIDER)`: the kernel cuts both to 32 bits.
#[inline(always)]
fn at_least(sum: u64, avg: u64) -> u64 {
    u64::from((sum as u32).max(avg.wrapping_mul(MIN) as u32))
}

/// `add_positive` of a signed change: stops at 0.
#[inline(always)]
pub(super) fn add_positive(value: u64, change: i64) -> u64 {
    let sum = value.wrapping_add(change as u64);
    if change < 0 && sum > value { 0 } else { sum }
}

/// `add_positive` of a 64-bit change to a 32-bit sum: compared as 64-bit numbers before the cut.
#[inline(always)]
fn add_positive_u32(value: u32, change: i64) -> u32 {
    let sum = i64::from(value).wrapping_add(change) as u32;
    if change < 0 && sum > value { 0 } else { sum }
}

/// `enqueue_load_avg`; `weight` is the entity's, scaled down, here and below.
#[inline]
pub fn enqueue_load_avg(cfs: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs.load_avg = cfs.load_avg.wrapping_add(se.load_avg);
    cfs.load_sum = cfs.load_sum.wrapping_add(weight.wrapping_mul(se.load_sum));
}

/// `dequeue_load_avg`.
#[inline]
pub fn dequeue_load_avg(cfs: &mut SchedAvg, se: &SchedAvg, weight: u64) {
    cfs.load_avg = cfs.load_avg.saturating_sub(se.load_avg);
    cfs.load_sum = cfs
        .load_sum
        .saturating_sub(weight.wrapping_mul(se.load_sum));
    cfs.load_sum = at_least(cfs.load_sum, cfs.load_avg);
}

/// `attach_entity_load_avg`: the entity takes the run queue's clock, its sums follow from its
/// averages. Gives the runnable sum to propagate.
#[inline]
pub fn attach_entity_load_avg(cfs: &mut SchedAvg, se: &mut SchedAvg, weight: u64) -> i64 {
    let divider = u64::from(divider(cfs));
    se.last_update_time = cfs.last_update_time;
    se.period_contrib = cfs.period_contrib;
    se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
    se.runnable_sum = se.runnable_avg.wrapping_mul(divider);
    se.load_sum = se.load_avg.wrapping_mul(divider);
    se.load_sum = if weight < se.load_sum {
        se.load_sum / weight.max(1)
    } else {
        1
    };
    enqueue_load_avg(cfs, se, weight);
    cfs.util_avg = cfs.util_avg.wrapping_add(se.util_avg);
    cfs.util_sum = cfs.util_sum.wrapping_add(se.util_sum);
    cfs.runnable_avg = cfs.runnable_avg.wrapping_add(se.runnable_avg);
    cfs.runnable_sum = cfs.runnable_sum.wrapping_add(se.runnable_sum);
    se.load_sum as i64
}

/// `detach_entity_load_avg`. Gives the runnable sum to propagate.
#[inline]
pub fn detach_entity_load_avg(cfs: &mut SchedAvg, se: &SchedAvg, weight: u64) -> i64 {
    dequeue_load_avg(cfs, se, weight);
    take_util(cfs, se.util_avg, se.util_sum);
    take_runnable(cfs, se.runnable_avg, se.runnable_sum);
    (se.load_sum as i64).wrapping_neg()
}

/// The part of `update_cfs_rq_load_avg` that takes off what left with tasks that migrated while
/// asleep. Gives the runnable sum to propagate.
pub fn take_removed(cfs: &mut SchedAvg, removed: &Removed) -> i64 {
    let divider = u64::from(divider(cfs));
    cfs.load_avg = cfs.load_avg.saturating_sub(removed.load_avg);
    cfs.load_sum = cfs
        .load_sum
        .saturating_sub(removed.load_avg.wrapping_mul(divider));
    cfs.load_sum = at_least(cfs.load_sum, cfs.load_avg);
    take_util(
        cfs,
        removed.util_avg,
        removed.util_avg.wrapping_mul(divider) as u32,
    );
    take_runnable(
        cfs,
        removed.runnable_avg,
        removed.runnable_avg.wrapping_mul(divider),
    );
    (removed.runnable_avg.wrapping_mul(divider) as i64).wrapping_neg() >> 10
}

#[inline(always)]
fn take_util(cfs: &mut SchedAvg, avg: u64, sum: u32) {
    cfs.util_avg = cfs.util_avg.saturating_sub(avg);
    cfs.util_sum = cfs.util_sum.saturating_sub(sum);
    cfs.util_sum = at_least(u64::from(cfs.util_sum), cfs.util_avg) as u32;
}

#[inline(always)]
fn take_runnable(cfs: &mut SchedAvg, avg: u64, sum: u64) {
    cfs.runnable_avg = cfs.runnable_avg.saturating_sub(avg);
    cfs.runnable_sum = cfs.runnable_sum.saturating_sub(sum);
    cfs.runnable_sum = at_least(cfs.runnable_sum, cfs.runnable_avg);
}

/// `reweight_entity`, the part on averages: the entity's load follows its new weight. Both weights
/// are scaled down.
#[inline]
pub fn reweight_load_avg(cfs: &mut SchedAvg, se: &mut SchedAvg, old: u64, new: u64) {
    dequeue_load_avg(cfs, se, old);
    se.load_avg = new.wrapping_mul(se.load_sum) / u64::from(divider(se));
    enqueue_load_avg(cfs, se, new);
}

/// `update_tg_cfs_util`, `_runnable` and `_load`: a group's entity takes on what its run queue's
/// averages have become. `gweight` is the weight of the group's run queue, scaled down,
/// `runnable_sum` its `prop_runnable_sum`.
pub fn propagate(
    cfs: &mut SchedAvg,
    se: &mut SchedAvg,
    weight: u64,
    group: &SchedAvg,
    gweight: u64,
    runnable_sum: i64,
) {
    propagate_util(cfs, se, group);
    propagate_runnable(cfs, se, group);
    propagate_load(cfs, se, weight, group, gweight, runnable_sum);
}

fn propagate_util(cfs: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta = group.util_avg.wrapping_sub(se.util_avg) as i64;
    if delta == 0 {
        return;
    }
    se.util_avg = group.util_avg;
    let sum = se.util_avg.wrapping_mul(u64::from(divider(cfs))) as u32;
    let delta_sum = i64::from(sum) - i64::from(se.util_sum);
    se.util_sum = sum;
    cfs.util_avg = add_positive(cfs.util_avg, delta);
    cfs.util_sum = add_positive_u32(cfs.util_sum, delta_sum);
    cfs.util_sum = at_least(u64::from(cfs.util_sum), cfs.util_avg) as u32;
}

fn propagate_runnable(cfs: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
    let delta = group.runnable_avg.wrapping_sub(se.runnable_avg) as i64;
    if delta == 0 {
        return;
    }
    se.runnable_avg = group.runnable_avg;
    let sum = se.runnable_avg.wrapping_mul(u64::from(divider(cfs)));
    let delta_sum = sum.wrapping_sub(se.runnable_sum) as i64;
    se.runnable_sum = sum;
    cfs.runnable_avg = add_positive(cfs.runnable_avg, delta);
    cfs.runnable_sum = add_positive(cfs.runnable_sum, delta_sum);
    cfs.runnable_sum = at_least(cfs.runnable_sum, cfs.runnable_avg);
}

fn propagate_load(
    cfs: &mut SchedAvg,
    se: &mut SchedAvg,
    weight: u64,
    group: &SchedAvg,
    gweight: u64,
    runnable_sum: i64,
) {
    if runnable_sum == 0 {
        return;
    }
    let divider = u64::from(divider(cfs));
    let runnable = if runnable_sum >= 0 {
        // More runs than did: at most all the time.
        runnable_sum
            .wrapping_add(se.load_sum as i64)
            .min(divider as i64)
    } else {
        // Less: a task of the group was runnable for as long as the group's load says.
        se.load_sum
            .min(group.load_sum.checked_div(gweight).unwrap_or(0)) as i64
    };
    let runnable = runnable.max(i64::from(se.util_sum >> 10));
    let load_sum = weight.wrapping_mul(runnable as u64);
    let load_avg = load_sum / divider;
    let delta_avg = load_avg.wrapping_sub(se.load_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let delta_sum = load_sum.wrapping_sub(weight.wrapping_mul(se.load_sum)) as i64;
    se.load_sum = runnable as u64;
    se.load_avg = load_avg;
    cfs.load_avg = add_positive(cfs.load_avg, delta_avg);
    cfs.load_sum = add_positive(cfs.load_sum, delta_sum);
    cfs.load_sum = at_least(cfs.load_sum, cfs.load_avg);
}
