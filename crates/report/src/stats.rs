//! Means, spreads, and the change between two sets of runs that were paired by their seeds.

use crate::percentile::{Percentile, percentile};
use crate::quantile::t_two_sided;
use serde::Serialize;

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// One metric over runs: mean and spread, and percentiles for what is skewed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation (n - 1); none for a single run.
    pub sd: Option<f64>,
    /// How many runs.
    pub n: usize,
    /// The coefficient of variation, the deviation in per cent of the mean; none for a single run or a
    /// mean of zero.
    pub cv_pct: Option<f64>,
    /// The smallest run.
    pub min: f64,
    /// The 10th percentile of the runs.
    pub p10: f64,
    /// Its 95 % interval; none below 36 runs.
    pub p10_ci95: Option<[f64; 2]>,
    /// The median of the runs.
    pub median: f64,
    /// Its 95 % interval; none below 6 runs.
    pub median_ci95: Option<[f64; 2]>,
    /// The 90th percentile of the runs.
    pub p90: f64,
    /// Its 95 % interval; none below 36 runs.
    pub p90_ci95: Option<[f64; 2]>,
    /// The largest run.
    pub max: f64,
}

impl Summary {
    /// Of these values; none if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let n = values.len();
        let mut ascending = values.to_vec();
        ascending.sort_by(f64::total_cmp);
        let of = |share| percentile(&ascending, share);
        let [p10, median, p90]: [Percentile; 3] = [of(0.1)?, of(0.5)?, of(0.9)?];
        let mean = mean(values);
        let sd = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64).sqrt()
        });
        Some(Summary {
            mean,
            sd,
            n,
            cv_pct: sd.filter(|_| mean != 0.0).map(|sd| 100.0 * sd / mean.abs()),
            min: ascending[0],
            p10: p10.value,
            p10_ci95: p10.ci95,
            median: median.value,
            median_ci95: median.ci95,
            p90: p90.value,
            p90_ci95: p90.ci95,
            max: ascending[n - 1],
        })
    }
}

/// The arithmetic mean of differences that are each of one pair of runs, and half of its 95 % interval
/// by Student's t; no half for a single one.
///
/// # Panics
/// If there are none.
pub(crate) fn mean_and_half(values: &[f64]) -> (f64, Option<f64>) {
    assert!(!values.is_empty(), "a mean is of something");
    let n = values.len();
    let mean = mean(values);
    let half = (n > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (n - 1) as f64 / n as f64).sqrt() * t_two_sided(CONFIDENCE, degrees(n))
    });
    (mean, half)
}

/// The degrees of freedom that n runs leave.
pub(crate) fn degrees(n: usize) -> u32 {
    u32::try_from(n - 1).expect("runs are limited far below 2^32")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How a metric changed from the baseline's runs to a variant's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change of the mean in per cent of the baseline's mean.
    pub pct: f64,
    /// Its 95 % interval, in the same per cent; none for a single pair, or if all but one are zeros.
    pub ci95: Option<[f64; 2]>,
}

impl Change {
    /// The change between runs that are paired: run r of both had the same seed.
    ///
    /// The change is that of the means, so that a reader can recompute it from the table. Its interval
    /// is that of a ratio of paired means, by the residuals `variant - ratio * baseline` of the pairs
    /// and Student's t with n - 1 degrees of freedom (Cochran, Sampling Techniques, 6.4): what both
    /// runs of a pair share, a lucky seed for one, does not widen it.
    ///
    /// None if there are no pairs, if the baseline's mean is zero, or if a value is not a number.
    ///
    /// # Panics
    /// If the two do not have the same number of runs.
    pub fn paired(baseline: &[f64], variant: &[f64]) -> Option<Change> {
        assert_eq!(baseline.len(), variant.len(), "runs are paired");
        let n = baseline.len();
        if n == 0 {
            return None;
        }
        let base_mean = mean(baseline);
        let ratio = mean(variant) / base_mean;
        if !ratio.is_finite() {
            return None;
        }
        let pct = 100.0 * (ratio - 1.0);
        // A rare event that only one seed has seen: its pair is the ratio, and leaves no residual.
        let telling = baseline.iter().zip(variant);
        let telling = telling.filter(|(base, new)| **base != 0.0 || **new != 0.0);
        let ci95 = (telling.count() > 1).then(|| {
            let pairs = baseline.iter().zip(variant);
            let squares: f64 = pairs.map(|(base, new)| (new - ratio * base).powi(2)).sum();
            let error = (squares / (n - 1) as f64 / n as f64).sqrt() / base_mean.abs();
            let half = 100.0 * error * t_two_sided(CONFIDENCE, degrees(n));
            [pct - half, pct + half]
        });
        Some(Change { pct, ci95 })
    }

    /// Whether the runs leave open if there is a change at all: the interval includes zero. A single
    /// pair has no interval and claims nothing, so this is false for it.
    pub fn includes_zero(&self) -> bool {
        self.ci95
            .is_some_and(|[low, high]| low <= 0.0 && high >= 0.0)
    }

    /// What each pair adds to the change beyond the mean of all, in per cent: these sum to zero, and from
    /// their spread comes the interval. Differences between two changes over the same seeds are seen in
    /// the differences of these. None where there is no change.
    ///
    /// # Panics
    /// If the two do not have the same number of runs.
    pub fn residuals(baseline: &[f64], variant: &[f64]) -> Option<Vec<f64>> {
        let change = Change::paired(baseline, variant)?;
        let ratio = 1.0 + change.pct / 100.0;
        let base_mean = mean(baseline);
        let pairs = baseline.iter().zip(variant);
        Some(
            pairs
                .map(|(base, new)| 100.0 * (new - ratio * base) / base_mean)
                .collect(),
        )
    }

    /// Half the width of the interval in per cent points.
    pub fn half_width(&self) -> Option<f64> {
        self.ci95.map(|[low, high]| (high - low) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_summary_is_mean_and_sample_deviation() {
        let summary = Summary::of(&[24.653, 24.454, 24.586]).expect("three values");
        assert!((summary.mean - 24.564_333).abs() < 1e-6);
        assert!((summary.sd.expect("n > 1") - 0.101_253).abs() < 1e-6);
        assert!((summary.cv_pct.expect("n > 1") - 0.412_195).abs() < 1e-5);
        assert_eq!((summary.n, summary.median), (3, 24.586));
        assert_eq!((summary.min, summary.max), (24.454, 24.653));
        assert_eq!(summary.median_ci95, None, "three runs are too few");
    }

    #[test]
    fn a_single_run_has_no_spread_and_no_interval() {
        let summary = Summary::of(&[3.0]).expect("a value");
        assert_eq!((summary.mean, summary.median, summary.n), (3.0, 3.0, 1));
        assert_eq!((summary.sd, summary.cv_pct), (None, None));
        let change = Change::paired(&[4.0], &[3.0]).expect("a pair");
        assert_eq!(
            change,
            Change {
                pct: -25.0,
                ci95: None
            }
        );
        assert!(!change.includes_zero());
    }

    #[test]
    fn no_runs_and_a_zero_baseline_have_no_change() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[0.0, 0.0]).and_then(|of| of.cv_pct), None);
        assert_eq!(Change::paired(&[], &[]), None);
        assert_eq!(Change::paired(&[0.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(Change::paired(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    #[test]
    fn the_interval_is_students() {
        // Baseline without spread: the interval is the plain one of the variant's mean. Values 8, 9,
        // 10 have sd 1, standard error 1/sqrt(3), t(0.95, 2) = 4.30265; baseline 10.
        let change = Change::paired(&[10.0; 3], &[8.0, 9.0, 10.0]).expect("pairs");
        assert!((change.pct + 10.0).abs() < 1e-12);
        assert!(
            (change.half_width().expect("n > 1") - 10.0 * 4.302_653 / 3f64.sqrt()).abs() < 1e-5
        );
        assert!(change.includes_zero());
    }

    #[test]
    fn pairing_takes_the_seeds_luck_out() {
        // The runs differ much from seed to seed, but each pair by exactly a tenth.
        let change = Change::paired(&[10.0, 20.0, 40.0], &[9.0, 18.0, 36.0]).expect("pairs");
        assert!((change.pct + 10.0).abs() < 1e-12);
        assert!(change.half_width().expect("n > 1") < 1e-12);
        assert!(!change.includes_zero());
    }

    #[test]
    fn one_pair_that_is_not_zero_is_no_spread() {
        let change = Change::paired(&[0.0, 3.0, 0.0], &[0.0, 2.0, 0.0]).expect("pairs");
        assert_eq!(change.ci95, None);
        let change = Change::paired(&[0.0, 3.0, 0.0], &[0.0, 2.0, 1.0]).expect("pairs");
        assert!(change.ci95.is_some());
    }

    fn runs() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
        prop::collection::vec((0.1f64..1e6, 0.1f64..1e6), 2..12)
            .prop_map(|pairs| pairs.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn nothing_changes_against_itself((base, _) in runs()) {
            let change = Change::paired(&base, &base).expect("pairs");
            prop_assert!(change.pct.abs() < 1e-9 && change.includes_zero());
        }

        #[test]
        fn the_interval_encloses_the_change_and_units_do_not_matter((base, new) in runs(), unit in 1e-3f64..1e3) {
            let change = Change::paired(&base, &new).expect("pairs");
            let [low, high] = change.ci95.expect("n > 1");
            prop_assert!(low <= change.pct && change.pct <= high);
            let scale = |values: &[f64]| values.iter().map(|value| value * unit).collect::<Vec<_>>();
            let scaled = Change::paired(&scale(&base), &scale(&new)).expect("pairs");
            prop_assert!((scaled.pct - change.pct).abs() <= 1e-6 * (1.0 + change.pct.abs()));
        }

        #[test]
        fn the_order_of_pairs_does_not_matter((base, new) in runs()) {
            let change = Change::paired(&base, &new).expect("pairs");
            let reversed = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
            let other = Change::paired(&reversed(&base), &reversed(&new)).expect("pairs");
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + a.abs());
            prop_assert!(near(change.pct, other.pct));
            prop_assert!(near(change.half_width().expect("n > 1"), other.half_width().expect("n > 1")));
        }

        #[test]
        fn the_deviation_ignores_a_shift_and_is_never_negative((base, _) in runs(), shift in -1e3f64..1e3) {
            let moved: Vec<f64> = base.iter().map(|value| value + shift).collect();
            let (a, b) = (Summary::of(&base).expect("values"), Summary::of(&moved).expect("values"));
            let (a, b) = (a.sd.expect("n > 1"), b.sd.expect("n > 1"));
            prop_assert!(a >= 0.0 && (a - b).abs() <= 1e-6 * (1.0 + a));
        }
    }
}
