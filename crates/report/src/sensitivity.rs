//! What a change becomes when a single cost of the machine is half or double of what it is said to be:
//! on which figures the conclusion depends, and whether one of them turns it round.
//!
//! All is run with the seeds of the runs that it is compared with, so what a figure does to a change is
//! seen pair by pair: its interval comes from the differences of the pairs' residuals. As there are many
//! figures, some would pass any single test by luck; those that are called beyond noise are chosen by
//! the procedure of Benjamini and Hochberg (1995), which keeps the share of lucky ones among them at
//! [`FALSE_SHARE`] on average.

use crate::model::VariantRuns;
use crate::quantile::{t_two_sided, t_within};
use crate::stats::{CONFIDENCE, Change, degrees};
use serde::Serialize;

mod text;

pub use text::render;

/// What a figure is multiplied by.
pub const FACTORS: [f64; 2] = [0.5, 2.0];

/// The share of figures called beyond noise by luck alone, among all that are.
pub const FALSE_SHARE: f64 = 0.05;

/// A cost of the machine, and the runs in which it was another.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedCost {
    /// The figure's name.
    pub name: String,
    /// Its value, in the unit that its name tells.
    pub value: f64,
    /// Whether nothing was published for this machine, and another figure stands in.
    pub stand_in: bool,
    /// Where it comes from.
    pub source: String,
    /// The runs at each of [`FACTORS`], with the same variants and seeds as the others.
    pub runs: [Vec<VariantRuns>; 2],
}

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// How many figures were to be moved; more than there are if it was interrupted.
    pub figures_asked: usize,
    /// What each change becomes, and what follows.
    pub conclusions: Vec<Conclusion>,
    /// The figures that were moved.
    pub figures: Vec<MovedFigure>,
}

/// What a variant does to a metric, and on which figures that depends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: &'static str,
    /// The change at the machine's own figures, in per cent.
    pub change_pct: f64,
    /// Its 95 % interval; none for a single run.
    pub ci95: Option<[f64; 2]>,
    /// The lowest and the highest change at any figure's half or double.
    pub range_pct: [f64; 2],
    /// The figures that move the change beyond noise.
    pub depends_on: Vec<String>,
    /// The figures at whose half or double the change clearly has the other sign.
    pub sign_flips_at: Vec<String>,
    /// Those at which it has the other sign, but with an interval that includes zero.
    pub other_sign_at: Vec<String>,
    /// The figures at whose half or double a change that is clear otherwise is none, or the opposite.
    pub hangs_on: Vec<String>,
}

/// One figure, and the changes with it at half and double.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedFigure {
    /// Its name.
    pub figure: String,
    /// Its value.
    pub value: f64,
    /// Whether it stands in for one that was not published.
    pub stand_in: bool,
    /// Where it comes from.
    pub source: String,
    /// Whether it does anything: false if all runs are the same at half and at double.
    pub acts: bool,
    /// The changes, by conclusion in their order and by factor.
    pub changes: Vec<MovedChange>,
}

/// A change with one figure moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedChange {
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: &'static str,
    /// What the figure was multiplied by.
    pub factor: f64,
    /// The change, in per cent.
    pub change_pct: f64,
    /// Its 95 % interval; none for a single run.
    pub ci95: Option<[f64; 2]>,
    /// By how many per cent points it differs from the change at the machine's own figures.
    pub delta_pp: f64,
    /// The 95 % interval of that; none for a single run.
    pub delta_ci95: Option<[f64; 2]>,
    /// Whether that is more than luck, all figures considered.
    pub beyond_noise: bool,
    /// The chance of a difference as large by luck alone.
    #[serde(skip)]
    p_value: f64,
}

impl MovedChange {
    /// The change with its interval.
    pub fn change(&self) -> Change {
        Change {
            pct: self.change_pct,
            ci95: self.ci95,
        }
    }
}

impl Conclusion {
    /// The change at the machine's own figures.
    pub fn change(&self) -> Change {
        Change {
            pct: self.change_pct,
            ci95: self.ci95,
        }
    }
}

impl Sensitivity {
    /// Of the runs at the machine's own figures, and of those with one of them moved. Variants and metrics
    /// without a change, as one whose baseline is zero, are left out.
    pub fn of(
        own: &[VariantRuns],
        moved: &[MovedCost],
        metrics: &[&'static str],
        figures_asked: usize,
    ) -> Sensitivity {
        let mut figures: Vec<MovedFigure> = moved
            .iter()
            .map(|cost| moved_figure(own, cost, metrics))
            .collect();
        mark_beyond_noise(&mut figures);
        let pairs = own.iter().skip(1).flat_map(|variant| {
            let of_metric = move |metric: &&'static str| (variant, *metric);
            metrics.iter().map(of_metric)
        });
        let conclusions = pairs
            .filter_map(|(variant, metric)| conclusion(&own[0], variant, metric, &figures))
            .collect();
        Sensitivity {
            figures_asked,
            conclusions,
            figures,
        }
    }

    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<&MovedFigure> {
        self.figures.iter().find(|figure| figure.figure == name)
    }
}

impl MovedFigure {
    /// The changes of one variant and metric, by factor.
    pub fn of<'a>(
        &'a self,
        variant: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a MovedChange> {
        self.changes
            .iter()
            .filter(move |change| change.variant == variant && change.metric == metric)
    }
}

fn moved_figure(own: &[VariantRuns], cost: &MovedCost, metrics: &[&'static str]) -> MovedFigure {
    let mut changes = Vec::new();
    for variant in 1..own.len() {
        for metric in metrics {
            for (factor, runs) in FACTORS.into_iter().zip(&cost.runs) {
                changes.extend(moved_change(own, runs, variant, metric, factor));
            }
        }
    }
    let same = |runs: &Vec<VariantRuns>| {
        let mut pairs = own.iter().zip(runs);
        pairs.all(|(own, moved)| same_metrics(own, moved))
    };
    MovedFigure {
        figure: cost.name.clone(),
        value: cost.value,
        stand_in: cost.stand_in,
        source: cost.source.clone(),
        acts: !cost.runs.iter().all(same),
        changes,
    }
}

fn same_metrics(a: &VariantRuns, b: &VariantRuns) -> bool {
    let (a, b) = (a.outcomes.iter(), b.outcomes.iter());
    a.len() == b.len() && a.zip(b).all(|(a, b)| a.metrics == b.metrics)
}

fn moved_change(
    own: &[VariantRuns],
    moved: &[VariantRuns],
    variant: usize,
    metric: &'static str,
    factor: f64,
) -> Option<MovedChange> {
    let values =
        |runs: &[VariantRuns]| Some((runs[0].values(metric)?, runs[variant].values(metric)?));
    let ((own_base, own_new), (base, new)) = (values(own)?, values(moved)?);
    let before = Change::paired(&own_base, &own_new)?;
    let change = Change::paired(&base, &new)?;
    let residuals = Change::residuals(&own_base, &own_new)?;
    let differences: Vec<f64> = Change::residuals(&base, &new)?
        .iter()
        .zip(&residuals)
        .map(|(moved, own)| moved - own)
        .collect();
    let delta = change.pct - before.pct;
    let error = standard_error(&differences);
    Some(MovedChange {
        variant: own[variant].name.clone(),
        metric,
        factor,
        change_pct: change.pct,
        ci95: change.ci95,
        delta_pp: delta,
        delta_ci95: error.map(|error| {
            let half = error * t_two_sided(CONFIDENCE, degrees(differences.len()));
            [delta - half, delta + half]
        }),
        beyond_noise: false,
        p_value: error.map_or(1.0, |error| p_value(delta, error, differences.len())),
    })
}

/// Of the mean of differences that sum to zero; none for a single one.
fn standard_error(differences: &[f64]) -> Option<f64> {
    let n = differences.len();
    let squares: f64 = differences
        .iter()
        .map(|difference| difference.powi(2))
        .sum();
    (n > 1).then(|| (squares / (n - 1) as f64 / n as f64).sqrt())
}

/// The chance of a difference at least as large by luck alone.
fn p_value(delta: f64, error: f64, n: usize) -> f64 {
    match (delta == 0.0, error > 0.0) {
        (true, _) => 1.0,
        (false, true) => 1.0 - t_within((delta / error).abs(), degrees(n)),
        (false, false) => 0.0,
    }
}

/// Benjamini and Hochberg: of m tests in the order of their chances, all up to the last whose chance is
/// at most its rank's share of [`FALSE_SHARE`].
fn mark_beyond_noise(figures: &mut [MovedFigure]) {
    let mut changes: Vec<&mut MovedChange> = figures
        .iter_mut()
        .flat_map(|figure| &mut figure.changes)
        .collect();
    let tests = changes.len() as f64;
    changes.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    let passes = |(place, change): (usize, &&mut MovedChange)| {
        change.p_value <= (place + 1) as f64 / tests * FALSE_SHARE
    };
    let chosen = changes.iter().enumerate().rev().find(|test| passes(*test));
    let chosen = chosen.map_or(0, |(place, _)| place + 1);
    for change in &mut changes[..chosen] {
        change.beyond_noise = true;
    }
}

fn conclusion(
    baseline: &VariantRuns,
    variant: &VariantRuns,
    metric: &'static str,
    figures: &[MovedFigure],
) -> Option<Conclusion> {
    let own = Change::paired(&baseline.values(metric)?, &variant.values(metric)?)?;
    let named = |wanted: &dyn Fn(&MovedChange) -> bool| {
        let chosen = figures
            .iter()
            .filter(|figure| figure.of(&variant.name, metric).any(wanted));
        chosen.map(|figure| figure.figure.clone()).collect()
    };
    let all = figures
        .iter()
        .flat_map(|figure| figure.of(&variant.name, metric))
        .map(|change| change.change_pct);
    let range_pct = all.fold([own.pct; 2], |[low, high], pct| {
        [low.min(pct), high.max(pct)]
    });
    Some(Conclusion {
        variant: variant.name.clone(),
        metric,
        change_pct: own.pct,
        ci95: own.ci95,
        range_pct,
        depends_on: named(&|change| change.beyond_noise),
        sign_flips_at: named(&|change| flips(change, own.pct) && is_clear(&change.change())),
        other_sign_at: named(&|change| flips(change, own.pct) && !is_clear(&change.change())),
        hangs_on: named(&|change| {
            let kept = is_clear(&change.change()) && change.change_pct * own.pct > 0.0;
            is_clear(&own) && change.beyond_noise && !kept
        }),
    })
}

/// Whether the change has another sign than one of so many per cent.
fn flips(change: &MovedChange, own_pct: f64) -> bool {
    change.change_pct * own_pct < 0.0
}

/// Whether the runs show that there is a change.
fn is_clear(change: &Change) -> bool {
    change.ci95.is_some() && !change.includes_zero()
}

#[cfg(test)]
mod tests;
