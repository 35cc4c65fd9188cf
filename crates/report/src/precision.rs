//! More runs until the change is known closely enough.
//!
//! Runs are added in batches, and the rule looks only at whole batches, so the number of runs does not
//! depend on how many are made at the same time. It looks at the width of the intervals and never at the
//! change itself, so it does not stop at a change because it is large. What is left of the bias of optional
//! stopping is that it stops a little more often where the spread was underrated by luck: intervals that
//! promise 95 % then hold somewhat less. [`FIRST_RUNS`] and the growth of batches keep that small, as a test
//! of this module measures (Chow and Robbins, 1965, on intervals of fixed width; Stein, 1945).

use crate::model::VariantRuns;
use crate::stats::Change;
use serde::Serialize;

/// So many runs come before the first look at the width: the spread of fewer is too rough.
pub const FIRST_RUNS: usize = 10;

/// How near the runs came to what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// Half of the interval's width that was asked for, in per cent points.
    pub asked_pp: f64,
    /// Half of the width of the widest interval of a main metric; none if there is a main metric without
    /// a change, as one has whose baseline is zero.
    pub reached_pp: Option<f64>,
    /// The most runs that were allowed.
    pub max_runs: usize,
}

impl Precision {
    /// Of these runs.
    pub fn of(runs: &[VariantRuns], metrics: &[&str], asked_pp: f64, max_runs: usize) -> Precision {
        Precision {
            asked_pp,
            reached_pp: widest_pp(runs, metrics),
            max_runs,
        }
    }

    /// Whether every interval is narrow enough.
    pub fn is_reached(&self) -> bool {
        self.reached_pp.is_some_and(|half| half <= self.asked_pp)
    }
}

/// How many runs come next to so many: half as many again, but for the cap.
pub fn next_runs(runs: usize, max_runs: usize) -> usize {
    (runs + runs.div_ceil(2)).min(max_runs)
}

/// Half of the width of the widest interval of these metrics of any variant, in per cent points.
fn widest_pp(runs: &[VariantRuns], metrics: &[&str]) -> Option<f64> {
    let (baseline, others) = runs.split_first()?;
    let mut widest: f64 = 0.0;
    for variant in others {
        for metric in metrics {
            let change = Change::paired(&baseline.values(metric)?, &variant.values(metric)?)?;
            widest = widest.max(change.half_width()?);
        }
    }
    Some(widest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::normal;

    #[test]
    fn batches_grow_by_half_up_to_the_cap() {
        let mut runs = vec![FIRST_RUNS];
        while let Some(last) = runs.last().copied().filter(|last| *last < 100) {
            runs.push(next_runs(last, 100));
        }
        assert_eq!(runs, [10, 15, 23, 35, 53, 80, 100]);
        assert_eq!((next_runs(1, 100), next_runs(7, 7)), (2, 7));
    }

    /// Uniform numbers of SplitMix64, and from them normal ones.
    struct Luck(u64);

    impl Luck {
        fn normal(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            normal((((word ^ (word >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64)
        }
    }

    /// The share of experiments whose interval holds the true change of -20 % when they stop at
    /// +-`asked` points, and their mean number of runs, with a spread of 10 % or a skewed one of 25 %.
    fn coverage(asked: f64, skewed: bool) -> (f64, f64) {
        let mut luck = Luck(7);
        let mut value = |level: f64| match skewed {
            true => level * (0.25 * luck.normal()).exp(),
            false => level * (1.0 + 0.1 * luck.normal()),
        };
        let experiments = 2000;
        let (mut held, mut runs) = (0, 0);
        for _ in 0..experiments {
            let (mut base, mut new, mut wanted) = (Vec::new(), Vec::new(), FIRST_RUNS);
            loop {
                while base.len() < wanted {
                    base.push(value(1.0));
                    new.push(value(0.8));
                }
                let change = Change::paired(&base, &new).expect("the baseline is above zero");
                let half = change.half_width().expect("several runs");
                if half <= asked {
                    held += usize::from((change.pct + 20.0).abs() <= half);
                    runs += wanted;
                    break;
                }
                wanted = next_runs(wanted, 1000);
            }
        }
        (
            held as f64 / experiments as f64,
            runs as f64 / experiments as f64,
        )
    }

    #[test]
    fn stopping_at_a_width_costs_little_of_the_intervals_promise() {
        for (asked, skewed) in [
            (10.0, false),
            (6.0, false),
            (4.0, false),
            (10.0, true),
            (6.0, true),
        ] {
            let (held, runs) = coverage(asked, skewed);
            assert!(
                (0.92..0.97).contains(&held),
                "{held} at {asked}, {runs} runs"
            );
        }
        let (_, wide) = coverage(6.0, false);
        let (_, narrow) = coverage(3.0, false);
        assert!((3.0..5.0).contains(&(narrow / wide)), "{wide} {narrow}");
    }
}
