//! Reading back what [`crate::json`] wrote, as far as a document of published against predicted needs it.

use crate::metric::{self, MetricInfo};
use crate::stats::Change;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A result, as its file says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredResult {
    /// The experiment's name.
    pub experiment: String,
    /// The machine's name.
    pub machine: String,
    /// The kernel release.
    pub kernel: String,
    /// How tasks were grouped.
    pub grouping: String,
    /// Feature words of every variant.
    #[serde(default)]
    pub features: Vec<String>,
    /// The workload's command line at full length.
    pub workload: String,
    /// What the loops were multiplied by.
    pub scale: f64,
    /// Runs of each variant.
    pub runs: usize,
    /// Runs that were asked for, if it was interrupted.
    pub runs_asked: Option<usize>,
    /// The seed.
    pub seed: u64,
    /// The metrics that the conclusion is about.
    pub main_metrics: Vec<String>,
    /// The version of the program that made it.
    pub version: String,
    /// The variants, the baseline first; at least one.
    pub variants: Vec<StoredVariant>,
    /// Every metric of every variant but the first against the first.
    pub comparisons: Vec<StoredComparison>,
    /// What features do alone and together.
    pub factorial: Option<StoredFactorial>,
    /// The precision, if it was asked for.
    pub precision: Option<StoredPrecision>,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredVariant {
    /// Its name.
    pub name: String,
    /// Its feature words.
    pub features: Vec<String>,
    /// Its workload, if it has one of its own.
    pub workload: Option<String>,
    /// Its metrics by name.
    pub metrics: BTreeMap<String, StoredSummary>,
}

/// A metric over runs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct StoredSummary {
    /// The mean; none if it was no number.
    pub mean: Option<f64>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredComparison {
    /// The variant.
    pub variant: String,
    /// The metric.
    pub metric: String,
    /// The change in per cent.
    pub change_pct: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
}

impl StoredComparison {
    /// The change with its interval.
    pub fn change(&self) -> Option<Change> {
        let (pct, ci95) = (self.change_pct?, self.ci95);
        Some(Change { pct, ci95 })
    }
}

/// The effects of a full factorial.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredFactorial {
    /// The effects by metric.
    pub effects: Vec<StoredEffect>,
}

/// One effect.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StoredEffect {
    /// The features.
    pub of: Vec<String>,
    /// The metric.
    pub metric: String,
    /// The effect in per cent.
    pub effect_pct: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
}

/// The precision that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct StoredPrecision {
    /// Half of an interval's width, per cent points.
    pub asked_pp: f64,
    /// The most runs.
    pub max_runs: usize,
}

/// Why a text is no result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// It is not JSON of this form; the error tells line and column.
    #[error("not a result of wakelab: {0}")]
    Json(#[from] serde_json::Error),
    /// It was interrupted.
    #[error("the run was interrupted: {runs} of {asked} runs are complete")]
    Interrupted {
        /// Complete runs.
        runs: usize,
        /// Runs asked for.
        asked: usize,
    },
    /// There is nothing in it.
    #[error("no run is in it")]
    Empty,
    /// A metric that no table knows.
    #[error("there is no metric '{0}'")]
    Metric(String),
}

impl StoredResult {
    /// Reads a result that is complete.
    ///
    /// # Errors
    /// If it is of another form, of an interrupted run, or names what is not known.
    pub fn read(json: &str) -> Result<StoredResult, ResultError> {
        let result: StoredResult = serde_json::from_str(json)?;
        if let Some(asked) = result.runs_asked {
            let runs = result.runs;
            return Err(ResultError::Interrupted { runs, asked });
        }
        if result.runs == 0 || result.variants.is_empty() || result.scale <= 0.0 {
            return Err(ResultError::Empty);
        }
        let of_comparisons = result.comparisons.iter().map(|of| &of.metric);
        for name in result.main_metrics.iter().chain(of_comparisons) {
            metric::find(name).ok_or_else(|| ResultError::Metric(name.clone()))?;
        }
        Ok(result)
    }

    /// The metrics of the comparisons, in the order of tables.
    pub fn metrics(&self) -> Vec<MetricInfo> {
        let mut metrics: Vec<MetricInfo> = Vec::new();
        for comparison in &self.comparisons {
            let info = metric::find(&comparison.metric);
            metrics.extend(info.filter(|info| !metrics.contains(info)));
        }
        metrics
    }

    /// The change of a variant's metric.
    pub fn change(&self, variant: &str, metric: &str) -> Option<Change> {
        let same = |of: &&StoredComparison| of.variant == variant && of.metric == metric;
        self.comparisons.iter().find(same)?.change()
    }

    /// The mean of a variant's metric.
    pub fn mean(&self, variant: &str, metric: &str) -> Option<f64> {
        let variant = self.variants.iter().find(|of| of.name == variant)?;
        variant.metrics.get(metric)?.mean
    }

    /// Whether the conclusion is about this metric.
    pub fn is_main(&self, metric: &str) -> bool {
        self.main_metrics.iter().any(|main| main == metric)
    }
}
