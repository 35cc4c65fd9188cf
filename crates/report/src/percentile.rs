//! Percentiles of a metric over runs, with intervals that ask nothing of its distribution.
//!
//! Latencies and counts of rare events are skewed: a single odd run moves their mean, and Student's
//! interval with it. A percentile's interval between two order statistics holds for any continuous
//! distribution (David and Nagaraja, Order Statistics, 3rd edition, 7.1): how many of n runs fall
//! below the percentile is binomial, whatever is measured.

/// A percentile over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// Its estimate: interpolated between the two nearest runs (definition 7 of Hyndman and Fan, 1996).
    pub value: f64,
    /// An interval between two runs that holds the true one with at least 95 %; none if there are too
    /// few runs for one. The median needs 6, the 10th and 90th percentile 36.
    pub ci95: Option<[f64; 2]>,
}

/// What may lie on either side of a 95 % interval.
const TAIL: f64 = 0.025;

/// The percentile below which a share of runs lies; none if there are no runs.
///
/// # Panics
/// Unless the share is above 0 and below 1, and the values ascend.
pub fn percentile(ascending: &[f64], share: f64) -> Option<Percentile> {
    assert!(share > 0.0 && share < 1.0, "{share} is no percentile");
    assert!(ascending.is_sorted_by(|a, b| a.total_cmp(b).is_le()));
    let n = ascending.len();
    let last = n.checked_sub(1)?;
    let place = share * last as f64;
    let below = ascending[place.floor() as usize];
    let above = ascending[place.ceil() as usize];
    let ci95 = ranks(n, share).map(|[low, high]| [ascending[low - 1], ascending[high - 1]]);
    Some(Percentile {
        value: below + (above - below) * place.fract(),
        ci95,
    })
}

/// The ranks, from 1, of the runs between which the percentile lies with at least 95 %, at most 2.5 % on
/// either side; none if even the smallest and the largest run are not far enough.
pub fn ranks(n: usize, share: f64) -> Option<[usize; 2]> {
    let low = lower_rank(n, share)?;
    // Counted from the largest run, the percentile is that of the rest.
    let high = n + 1 - lower_rank(n, 1.0 - share)?;
    Some([low, high])
}

/// The largest rank at or below which the percentile falls with no more than [`TAIL`]: the chance that
/// fewer runs than the rank are below it.
fn lower_rank(n: usize, share: f64) -> Option<usize> {
    // In logarithms, since 0.5^n leaves the range of numbers for n above 1074.
    let mut ln_chance = n as f64 * (1.0 - share).ln();
    let odds = (share / (1.0 - share)).ln();
    let (mut fewer, mut rank) = (ln_chance.exp(), 0);
    while rank < n && fewer <= TAIL {
        rank += 1;
        ln_chance += ((n - rank + 1) as f64 / rank as f64).ln() + odds;
        fewer += ln_chance.exp();
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_of_the_median_are_the_tabulated_ones() {
        // Of a table of distribution-free intervals of the median at 95 % (David and Nagaraja, 7.1).
        let table = [
            (6, [1, 6]),
            (7, [1, 7]),
            (8, [1, 8]),
            (9, [2, 8]),
            (10, [2, 9]),
            (11, [2, 10]),
            (12, [3, 10]),
            (15, [4, 12]),
            (20, [6, 15]),
            (25, [8, 18]),
            (30, [10, 21]),
            (50, [18, 33]),
            (100, [40, 61]),
        ];
        for (n, expected) in table {
            assert_eq!(ranks(n, 0.5), Some(expected), "{n} runs");
        }
        assert!((0..6).all(|n| ranks(n, 0.5).is_none()));
        // 0.9^35 = 0.0250, 0.9^36 = 0.0225.
        assert!(ranks(35, 0.9).is_none() && ranks(36, 0.9).is_some_and(|[_, high]| high == 36));
    }

    #[test]
    fn ten_thousand_runs_have_a_narrow_interval() {
        // The normal approximation: 5000 -+ 1.96 * 50.
        let [low, high] = ranks(10_000, 0.5).expect("there are enough");
        assert_eq!((low, high), (4902, 5099));
    }

    #[test]
    fn percentiles_interpolate_between_runs() {
        let of = |values: &[f64], share| percentile(values, share).expect("there are runs").value;
        assert_eq!(of(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(of(&[1.0, 2.0, 4.0, 8.0], 0.5), 3.0);
        // R: quantile(c(15, 20, 35, 40, 50), 0.4) is 29.
        assert!((of(&[15.0, 20.0, 35.0, 40.0, 50.0], 0.4) - 29.0).abs() < 1e-12);
        assert_eq!(of(&[7.0], 0.9), 7.0);
        assert_eq!(percentile(&[], 0.5), None);
    }

    proptest! {
        #[test]
        fn an_interval_encloses_its_percentile_and_narrows(n in 40usize..400, tenths in 1usize..10) {
            let share = tenths as f64 / 10.0;
            let runs = |n: usize| (0..n).map(|run| run as f64 / (n - 1) as f64).collect::<Vec<_>>();
            let of = |n: usize| {
                let found = percentile(&runs(n), share).expect("there are runs");
                let [low, high] = found.ci95.expect("there are enough");
                (found.value, low, high)
            };
            let (value, low, high) = of(n);
            prop_assert!(low <= value && value <= high);
            let (_, low4, high4) = of(4 * n);
            prop_assert!(high4 - low4 < high - low);
        }
    }
}
