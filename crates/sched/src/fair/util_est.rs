//! Estimated utilisation: what a task needed when it last ran (kernel `sched/fair.c`,
//! `util_est_update()` and its like).

use crate::features::Feat;
use crate::ids::{CfsId, TaskId};
use crate::pelt::UTIL_AVG_UNCHANGED;
use crate::state::{Sched, UtilEst};

/// `UTIL_EST_MARGIN`: changes of less than 1 % of a CPU are left alone.
const UTIL_EST_MARGIN: i64 = 1024 / 100;

/// `UTIL_EST_WEIGHT_SHIFT`: a new sample counts for a quarter.
const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

impl UtilEst {
    /// `_task_util_est`: the larger of the last value and the moving average.
    #[inline(always)]
    pub fn value(self) -> u64 {
        u64::from((self.enqueued & !UTIL_AVG_UNCHANGED).max(self.ewma))
    }
}

/// Within +-(margin - 1) of zero (`within_margin`).
fn within_margin(diff: i64) -> bool {
    diff.abs() < UTIL_EST_MARGIN
}

/// The estimate of 6.5 after a task went to sleep with utilisation `util` on a CPU of capacity
/// `capacity`; none if it stays (`util_est_update`).
pub fn updated(old: UtilEst, util: u64, capacity: u64, fastup: bool) -> Option<UtilEst> {
    if old.enqueued & UTIL_AVG_UNCHANGED != 0 {
        return None;
    }
    let enqueued = util as u32;
    let done = |ewma| {
        Some(UtilEst {
            enqueued: enqueued | UTIL_AVG_UNCHANGED,
            ewma,
        })
    };
    if fastup && old.ewma < enqueued {
        return done(enqueued);
    }
    let diff = i64::from(enqueued) - i64::from(old.ewma);
    if within_margin(diff) {
        let moved = i64::from(old.enqueued) - i64::from(enqueued);
        return if within_margin(moved) {
            None
        } else {
            done(old.ewma)
        };
    }
    if util > capacity {
        return None;
    }
    let ewma = (i64::from(old.ewma) << UTIL_EST_WEIGHT_SHIFT) + diff;
    done((ewma >> UTIL_EST_WEIGHT_SHIFT) as u32)
}

/// The estimate as one number, as kept since 6.8; `runnable` is the task's runnable average.
pub fn updated_single(old: u32, util: u64, runnable: u64, capacity: u64) -> Option<u32> {
    if old & UTIL_AVG_UNCHANGED != 0 {
        return None;
    }
    let util32 = util as u32;
    if old <= util32 {
        return Some(util32 | UTIL_AVG_UNCHANGED);
    }
    let diff = i64::from(old - util32);
    if diff < UTIL_EST_MARGIN || util + (UTIL_EST_MARGIN as u64) < runnable {
        return Some(old | UTIL_AVG_UNCHANGED);
    }
    if util > capacity {
        return None;
    }
    let ewma = ((i64::from(old) << UTIL_EST_WEIGHT_SHIFT) - diff) >> UTIL_EST_WEIGHT_SHIFT;
    Some(ewma as u32 | UTIL_AVG_UNCHANGED)
}

impl Sched {
    /// `util_est_enqueue`: a task's estimate joins the CPU's.
    #[inline]
    pub(crate) fn util_est_enqueue(&mut self, root: CfsId, p: TaskId) {
        if self.feat.has(Feat::UTIL_EST) {
            let value = self.se[self.tasks[p.index()].se.index()]
                .avg
                .util_est
                .value() as u32;
            let avg = &mut self.cfs[root.index()].avg;
            avg.util_est.enqueued = avg.util_est.enqueued.wrapping_add(value);
        }
    }

    /// `util_est_dequeue`.
    #[inline]
    pub(crate) fn util_est_dequeue(&mut self, root: CfsId, p: TaskId) {
        if self.feat.has(Feat::UTIL_EST) {
            let value = self.se[self.tasks[p.index()].se.index()]
                .avg
                .util_est
                .value() as u32;
            let avg = &mut self.cfs[root.index()].avg;
            avg.util_est.enqueued = avg.util_est.enqueued.saturating_sub(value);
        }
    }

    /// `util_est_update`: a task that went to sleep leaves a new estimate.
    #[inline]
    pub(crate) fn util_est_update(&mut self, p: TaskId, sleep: bool) {
        if !sleep || !self.feat.has(Feat::UTIL_EST) {
            return;
        }
        let task = &self.tasks[p.index()];
        let capacity = self.rqs[task.cpu.index()].cpu_capacity_orig;
        let avg = &mut self.se[task.se.index()].avg;
        let old = avg.util_est;
        let new = if self.rules.util_est_single {
            updated_single(old.enqueued, avg.util_avg, avg.runnable_avg, capacity)
                .map(|enqueued| UtilEst { enqueued, ewma: 0 })
        } else {
            updated(
                old,
                avg.util_avg,
                capacity,
                self.feat.has(Feat::UTIL_EST_FASTUP),
            )
        };
        if let Some(new) = new {
            avg.util_est = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_rises_at_once_and_falls_by_quarters() {
        let old = UtilEst {
            enqueued: 100,
            ewma: 100,
        };
        let up = updated(old, 500, 1024, true).expect("it changes");
        assert_eq!((up.ewma, up.value()), (500, 500));
        let old = UtilEst {
            enqueued: 500,
            ewma: 500,
        };
        let down = updated(old, 100, 1024, true).expect("it changes");
        assert_eq!((down.ewma, down.value()), (400, 400));
        assert_eq!(
            updated(down, 50, 1024, true),
            None,
            "utilisation was not updated since"
        );
    }

    #[test]
    fn small_changes_are_ignored() {
        let old = UtilEst {
            enqueued: 500,
            ewma: 500,
        };
        assert_eq!(updated(old, 495, 1024, true), None);
        assert_eq!(
            updated_single(500, 495, 495, 1024),
            Some(500 | UTIL_AVG_UNCHANGED)
        );
        assert_eq!(
            updated_single(500, 100, 300, 1024),
            Some(500 | UTIL_AVG_UNCHANGED)
        );
        assert_eq!(
            updated_single(500, 100, 100, 1024),
            Some(400 | UTIL_AVG_UNCHANGED)
        );
    }
}
