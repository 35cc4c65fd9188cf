//! Per-entity load tracking (kernel `sched/pelt.c`): sums that halve every 32 periods of 1024 us,
//! in the kernel's integer arithmetic, as functions of a [`SchedAvg`] and a time.

use crate::state::{Rq, SchedAvg};

/// `UTIL_AVG_UNCHANGED`: this bit of `util_est.enqueued` says that utilisation has not been
/// updated since the estimate was taken.
pub const UTIL_AVG_UNCHANGED: u32 = 0x8000_0000;

/// The largest sum: always running, all periods full (`LOAD_AVG_MAX`).
pub const LOAD_AVG_MAX: u32 = 47742;

/// `PELT_MIN_DIVIDER`: the largest sum at the start of a period.
pub const PELT_MIN_DIVIDER: u32 = LOAD_AVG_MAX - 1024;

/// Periods in which a sum halves (`LOAD_AVG_PERIOD`).
const HALF_LIFE: u64 = 32;

/// 2^32 * y^n with y^32 = 1/2 (`runnable_avg_yN_inv`).
#[rustfmt::skip]
const Y_POWERS: [u32; 32] = [
    0xffff_ffff, 0xfa83_b2da, 0xf525_7d14, 0xefe4_b99a, 0xeac0_c6e6, 0xe5b9_06e6, 0xe0cc_deeb, 0xdbfb_b796,
    0xd744_fcc9, 0xd2a8_1d91, 0xce24_8c14, 0xc9b9_bd85, 0xc567_2a10, 0xc12c_4cc9, 0xbd08_a39e, 0xb8fb_af46,
    0xb504_f333, 0xb123_f581, 0xad58_3ee9, 0xa9a1_5ab4, 0xa5fe_d6a9, 0xa270_4302, 0x9ef5_325f, 0x9b8d_39b9,
    0x9837_f050, 0x94f4_efa8, 0x91c3_d373, 0x8ea4_398a, 0x8b95_c1e3, 0x8898_0e80, 0x85aa_c367, 0x82cd_8698,
];

/// A sum after so many whole periods (`decay_load`).
#[inline]
pub fn decay_load(sum: u64, periods: u64) -> u64 {
    if periods > HALF_LIFE * 63 {
        return 0;
    }
    let power = u64::from(Y_POWERS[(periods % HALF_LIFE) as usize]);
    let sum = sum >> (periods / HALF_LIFE);
    if sum >> 32 == 0 {
        (sum * power) >> 32
    } else {
        ((u128::from(sum) * u128::from(power)) >> 32) as u64
    }
}

/// What a stretch adds to a sum that spans `periods` borders (`__accumulate_pelt_segments`):
/// `head` us to the first border, whole periods, and `tail` us since the last border.
#[inline]
pub fn accumulate_segments(periods: u64, head: u32, tail: u32) -> u32 {
    let first = decay_load(u64::from(head), periods) as u32;
    let whole = LOAD_AVG_MAX - decay_load(u64::from(LOAD_AVG_MAX), periods) as u32 - 1024;
    first.wrapping_add(whole).wrapping_add(tail)
}

/// The largest sum at the average's place in its period (`get_pelt_divider`).
#[inline(always)]
pub fn divider(avg: &SchedAvg) -> u32 {
    PELT_MIN_DIVIDER + avg.period_contrib
}

/// Brings the sums up to `now` (`___update_load_sum`). True if a period ended, so that the
/// averages are due.
#[inline]
pub fn update_load_sum(
    now: u64,
    avg: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    load_sum::<10>(now, avg, load, runnable, running)
}

/// `SHIFT`: by how many bits the runnable sum is scaled up; 10, and 0 where it is one of load.
#[inline(always)]
fn load_sum<const SHIFT: u32>(
    now: u64,
    avg: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    let delta = now.wrapping_sub(avg.last_update_time);
    if (delta as i64) < 0 {
        avg.last_update_time = now;
        return false;
    }
    let delta = delta >> 10;
    if delta == 0 {
        return false;
    }
    avg.last_update_time += delta << 10;
    // With no load nothing can be runnable or running: `curr` may outlive its dequeueing.
    if load == 0 {
        accumulate::<SHIFT>(delta, avg, 0, 0, false)
    } else {
        accumulate::<SHIFT>(delta, avg, load, runnable, running)
    }
}

#[inline(always)]
fn accumulate<const SHIFT: u32>(
    delta: u64,
    avg: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    let mut contrib = delta as u32;
    let total = delta + u64::from(avg.period_contrib);
    let periods = total / 1024;
    let tail = (total % 1024) as u32;
    if periods != 0 {
        avg.load_sum = decay_load(avg.load_sum, periods);
        avg.runnable_sum = decay_load(avg.runnable_sum, periods);
        avg.util_sum = decay_load(u64::from(avg.util_sum), periods) as u32;
        if load != 0 {
            contrib = accumulate_segments(periods, 1024 - avg.period_contrib, tail);
        }
    }
    avg.period_contrib = tail;
    avg.load_sum = avg
        .load_sum
        .wrapping_add(load.wrapping_mul(u64::from(contrib)));
    avg.runnable_sum = avg
        .runnable_sum
        .wrapping_add(runnable.wrapping_mul(u64::from(contrib)) << SHIFT);
    if running {
        avg.util_sum = avg.util_sum.wrapping_add(contrib << 10);
    }
    periods != 0
}

/// Sets the averages from the sums (`___update_load_avg`).
#[inline]
pub fn update_load_avg(avg: &mut SchedAvg, weight: u64) {
    let divider = divider(avg);
    avg.load_avg = weight.wrapping_mul(avg.load_sum) / u64::from(divider);
    avg.runnable_avg = avg.runnable_sum / u64::from(divider);
    avg.util_avg = u64::from(avg.util_sum / divider);
}

/// `__update_load_avg_se`: an entity's averages; `weight` is scaled down, `runnable` is 1 for a
/// queued task and a group's number of tasks.
#[inline]
pub fn update_se(
    now: u64,
    avg: &mut SchedAvg,
    weight: u64,
    on_rq: bool,
    runnable: u64,
    running: bool,
) -> bool {
    let decayed = update_load_sum(now, avg, u64::from(on_rq), runnable, running);
    if decayed {
        update_load_avg(avg, weight);
        avg.util_est.enqueued &= !UTIL_AVG_UNCHANGED;
    }
    decayed
}

/// `__update_load_avg_blocked_se`: of an entity that is not queued.
#[inline]
pub fn update_blocked_se(now: u64, avg: &mut SchedAvg, weight: u64) -> bool {
    let decayed = update_load_sum(now, avg, 0, 0, false);
    if decayed {
        update_load_avg(avg, weight);
    }
    decayed
}

/// `__update_load_avg_cfs_rq`: a run queue's averages; `load` is its weight, scaled down.
#[inline]
pub fn update_cfs_rq(
    now: u64,
    avg: &mut SchedAvg,
    load: u64,
    h_nr_running: u64,
    running: bool,
) -> bool {
    let decayed = update_load_sum(now, avg, load, h_nr_running, running);
    if decayed {
        update_load_avg(avg, 1);
    }
    decayed
}

/// The three above before 5.7: the runnable sum is one of load, of what is queued. `load` and
/// `runnable` are what the sums grow by (weights of a run queue, 1 of an entity), `weights` what they
/// count in the averages.
#[inline]
pub fn update_with_runnable_load(
    now: u64,
    avg: &mut SchedAvg,
    (load, runnable): (u64, u64),
    weights: (u64, u64),
    running: bool,
) -> bool {
    let decayed = load_sum::<0>(now, avg, load, runnable, running);
    if decayed {
        let divider = u64::from(divider(avg));
        avg.load_avg = weights.0.wrapping_mul(avg.load_sum) / divider;
        avg.runnable_avg = weights.1.wrapping_mul(avg.runnable_sum) / divider;
        avg.util_avg = u64::from(avg.util_sum) / divider;
    }
    decayed
}

/// `load_avg_is_decayed`: nothing is left.
#[inline]
pub fn is_decayed(avg: &SchedAvg) -> bool {
    avg.load_sum == 0 && avg.util_sum == 0 && avg.runnable_sum == 0
}

impl Rq {
    /// `rq_clock_pelt`: the clock of the averages, ns.
    #[inline(always)]
    pub fn rq_clock_pelt(&self) -> u64 {
        self.clock_pelt.wrapping_sub(self.lost_idle_time)
    }

    /// `update_rq_clock_pelt`: moves that clock by `delta` ns, slower on a smaller CPU. An idle
    /// CPU's follows `clock_task`.
    #[inline]
    pub(crate) fn update_rq_clock_pelt(&mut self, delta: u64) {
        if self.curr.is_none() {
            self.sync_idle_clock_pelt();
        } else {
            self.clock_pelt += (delta * self.cpu_capacity_orig) >> 10;
        }
    }

    /// `_update_idle_rq_clock_pelt`.
    fn sync_idle_clock_pelt(&mut self) {
        self.clock_pelt = self.clock_task;
        self.clock_idle = self.clock;
        self.clock_pelt_idle = self.rq_clock_pelt();
    }

    /// `update_idle_rq_clock_pelt`: on becoming idle. Of a CPU that was always busy, the time by
    /// which its clock lags counts as lost and is not taken for idle time.
    #[inline]
    pub(crate) fn update_idle_rq_clock_pelt(&mut self, util_sum: u32) {
        if util_sum >= (PELT_MIN_DIVIDER << 10) - LOAD_AVG_MAX {
            self.lost_idle_time += self.clock_task.wrapping_sub(self.clock_pelt);
        }
        self.sync_idle_clock_pelt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1024 * 1024;

    #[test]
    fn load_halves_in_32_periods() {
        let mut avg = SchedAvg {
            last_update_time: PERIOD,
            ..SchedAvg::default()
        };
        for period in 2..2000 {
            update_se(period * PERIOD, &mut avg, 1024, true, 1, true);
        }
        for full in [avg.load_avg, avg.util_avg, avg.runnable_avg] {
            assert!((1023..=1024).contains(&full), "{avg:?}");
        }
        let mut now = avg.last_update_time;
        for expected in [512u64, 256, 128, 64] {
            now += 32 * PERIOD;
            update_blocked_se(now, &mut avg, 1024);
            assert!(
                avg.load_avg.abs_diff(expected) <= 2,
                "{} for {expected}",
                avg.load_avg
            );
            assert!(avg.util_avg.abs_diff(expected) <= 2);
        }
    }

    #[test]
    fn a_half_busy_entity_averages_a_half() {
        let mut avg = SchedAvg {
            last_update_time: PERIOD,
            ..SchedAvg::default()
        };
        for step in 0..4000u64 {
            let now = PERIOD + (step + 1) * 512 * 1024;
            update_se(now, &mut avg, 1024, step % 2 == 0, step % 2, step % 2 == 0);
        }
        assert!(avg.load_avg.abs_diff(512) < 16, "{}", avg.load_avg);
        assert!(avg.util_avg.abs_diff(512) < 16, "{}", avg.util_avg);
    }

    #[test]
    fn runnable_load_is_that_of_the_time_queued() {
        let mut avg = SchedAvg {
            last_update_time: PERIOD,
            ..SchedAvg::default()
        };
        for period in 2..2000 {
            let weights = (2048, 1024);
            update_with_runnable_load(period * PERIOD, &mut avg, (1, 1), weights, false);
        }
        assert!(avg.load_avg.abs_diff(2048) <= 2, "{avg:?}");
        assert!(avg.runnable_avg.abs_diff(1024) <= 2, "{avg:?}");
        let now = avg.last_update_time + 32 * PERIOD;
        update_with_runnable_load(now, &mut avg, (0, 0), (2048, 1024), false);
        assert!(
            avg.runnable_avg.abs_diff(512) <= 2 && avg.util_avg == 0,
            "{avg:?}"
        );
    }

    #[test]
    fn nothing_moves_within_a_microsecond_and_time_may_step_back() {
        let mut avg = SchedAvg {
            last_update_time: 5000,
            ..SchedAvg::default()
        };
        assert!(!update_load_sum(5000 + 1023, &mut avg, 1, 1, true));
        assert_eq!(avg.last_update_time, 5000);
        assert!(!update_load_sum(100, &mut avg, 1, 1, true));
        assert_eq!((avg.last_update_time, avg.load_sum), (100, 0));
    }

    #[test]
    fn long_sleeps_leave_nothing() {
        assert_eq!(decay_load(u64::from(LOAD_AVG_MAX), 2017), 0);
        assert_eq!(
            decay_load(u64::MAX, 64),
            0x3fff_ffff_bfff_ffff_u64 & (u64::MAX >> 2)
        );
    }

    #[test]
    fn a_smaller_cpu_has_a_slower_clock_until_it_idles() {
        let mut rq = Rq {
            cpu_capacity_orig: 512,
            ..Rq::default()
        };
        rq.curr = crate::TaskId(0);
        rq.clock = 10_000;
        rq.clock_task = 10_000;
        rq.update_rq_clock_pelt(10_000);
        assert_eq!(rq.rq_clock_pelt(), 5_000);
        rq.curr = crate::TaskId::NONE;
        rq.update_idle_rq_clock_pelt(0);
        assert_eq!(rq.rq_clock_pelt(), 10_000);
        rq.clock_task = 12_000;
        rq.update_idle_rq_clock_pelt(PELT_MIN_DIVIDER << 10);
        assert_eq!((rq.lost_idle_time, rq.rq_clock_pelt()), (2_000, 10_000));
    }
}
