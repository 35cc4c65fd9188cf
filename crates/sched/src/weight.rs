//! Load weights and the fixed-point division by them (kernel `sched/fair.c`, `__calc_delta()`).

/// Weight of a nice-0 task, unscaled (`NICE_0_LOAD`): 1024 scaled up by 1024.
pub const NICE_0_LOAD: u64 = 1 << 20;

/// Weight of a SCHED_IDLE task before scaling up (`WEIGHT_IDLEPRIO`).
pub const WEIGHT_IDLEPRIO: u64 = 3;

/// 2^32 / 3, the inverse of [`WEIGHT_IDLEPRIO`] (`WMULT_IDLEPRIO`).
pub const WMULT_IDLEPRIO: u32 = 1_431_655_765;

/// `sched_prio_to_weight`, from nice -20 to 19: each step is about a tenth of the CPU.
#[rustfmt::skip]
const PRIO_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// `sched_prio_to_wmult`: 2^32 over the weight, rounded (which a division does not give for all).
#[rustfmt::skip]
const PRIO_TO_WMULT: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437,
    449829, 563644, 704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326,
    4194304, 5237765, 6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740, 31350126,
    39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// A weight and its inverse (`struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    /// The weight, unscaled.
    pub weight: u64,
    /// 2^32 over the scaled-down weight, 0 while not computed.
    pub inv_weight: u32,
}

impl LoadWeight {
    /// The weight of a nice level; levels outside -20 ..= 19 are taken as the nearest one.
    pub fn of_nice(nice: i8) -> LoadWeight {
        let prio = usize::from((nice.clamp(-20, 19) + 20) as u8);
        LoadWeight {
            weight: scale_load(u64::from(PRIO_TO_WEIGHT[prio])),
            inv_weight: PRIO_TO_WMULT[prio],
        }
    }

    /// The weight of a SCHED_IDLE task.
    pub fn of_idle_policy() -> LoadWeight {
        LoadWeight {
            weight: scale_load(WEIGHT_IDLEPRIO),
            inv_weight: WMULT_IDLEPRIO,
        }
    }
}

/// `scale_load`: from what users see to the internal resolution.
#[inline(always)]
pub const fn scale_load(weight: u64) -> u64 {
    weight << 10
}

/// `scale_load_down`: back, but never below 2 for a weight that is not 0.
#[inline(always)]
pub const fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 {
        0
    } else if weight >> 10 < 2 {
        2
    } else {
        weight >> 10
    }
}

/// The inverse of a weight (`__update_inv_weight`).
#[inline]
pub fn inverse(weight: u64) -> u32 {
    match scale_load_down(weight) {
        0 => u32::MAX,
        down if down >= u64::from(u32::MAX) => 1,
        down => u32::MAX / down as u32,
    }
}

/// `delta * weight / lw` in 32-bit fixed point (`__calc_delta`). `inv` is the cached inverse of
/// `lw`, filled in if it is 0.
#[inline]
pub fn calc_delta(delta: u64, weight: u64, lw: u64, inv: &mut u32) -> u64 {
    if *inv == 0 {
        *inv = inverse(lw);
    }
    let mut shift = 32;
    let fact = narrow(scale_load_down(weight), &mut shift);
    let fact = narrow(fact * u64::from(*inv), &mut shift);
    ((u128::from(delta) * u128::from(fact)) >> shift) as u64
}

/// Shifts a factor down until it fits 32 bits, and `shift` with it.
#[inline(always)]
fn narrow(fact: u64, shift: &mut u32) -> u64 {
    let over = u64::BITS - (fact >> 32).leading_zeros();
    *shift -= over;
    fact >> over
}

/// `calc_delta_fair`: how much virtual time so much run time is.
#[inline]
pub fn calc_delta_fair(delta: u64, weight: u64, inv: &mut u32) -> u64 {
    if weight == NICE_0_LOAD {
        delta
    } else {
        calc_delta(delta, NICE_0_LOAD, weight, inv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_nice_level_is_a_tenth_of_the_cpu_between_two_tasks() {
        for nice in -20..19 {
            let high = LoadWeight::of_nice(nice).weight as f64;
            let low = LoadWeight::of_nice(nice + 1).weight as f64;
            let shift = high / (high + low) - 0.5;
            assert!((0.04..0.07).contains(&shift), "nice {nice}: {shift}");
        }
    }

    #[test]
    fn inverses_agree_with_weights() {
        for nice in -20..20 {
            let lw = LoadWeight::of_nice(nice);
            let exact = (1u64 << 32) as f64 / scale_load_down(lw.weight) as f64;
            assert!(
                (f64::from(lw.inv_weight) - exact).abs() < 1.0,
                "nice {nice}"
            );
        }
    }

    #[test]
    fn virtual_time_of_a_nice_0_task_is_real_time_and_scales_with_weight() {
        let mut inv = 0;
        assert_eq!(calc_delta_fair(1_000_003, NICE_0_LOAD, &mut inv), 1_000_003);
        let double = calc_delta_fair(1_000_000, NICE_0_LOAD * 2, &mut inv);
        assert!(double.abs_diff(500_000) < 2, "{double}");
        assert_eq!(inv, u32::MAX / 2048);
    }

    #[test]
    fn tiny_weights_count_as_two() {
        assert_eq!(scale_load_down(0), 0);
        assert_eq!(scale_load_down(1), 2);
        assert_eq!(scale_load_down(4096), 4);
    }
}
