//! Experiments: one TOML file each, naming machine, kernel, workload and variants, and what was
//! published.
//!
//! An experiment cannot set costs: they belong to machines, so that no experiment is fitted.

mod domains;
mod error;
mod file;
mod library;
mod variants;

pub use domains::PlacedSetting;
pub use error::ExperimentError;
pub use file::{metric, release};
pub use library::{Source, find, names_and_texts};

use wakelab_report::Published;
use wakelab_sched::features::FeatureSet;
use wakelab_sched::rules::Release;
use wakelab_workload::{Companion, Grouping, Workload};

/// The metric that a conclusion is about unless an experiment or the command line says otherwise.
pub const DEFAULT_METRIC: &str = "time_s";

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its feature words, or `baseline`, or the name that the file gives it.
    pub name: String,
    /// Its feature words.
    pub words: Vec<String>,
    /// The kernel's features with the words applied.
    pub features: FeatureSet,
    /// Its own settings of scheduling domains.
    pub domains: Vec<PlacedSetting>,
    /// Its workload at full length, if it is not the experiment's.
    pub workload: Option<Workload>,
    /// What runs beside the workload, if it is not what the experiment says.
    pub with: Option<Vec<Companion>>,
    /// Whether SMT is on, if it is not what the experiment says.
    pub smt: Option<bool>,
}

/// The largest scale taken: a workload a thousand times its published length is a slip.
const MAX_SCALE: f64 = 1000.0;

/// The scale, if it can be one.
///
/// # Errors
/// What would be right.
pub fn check_scale(scale: f64) -> Result<f64, String> {
    if scale > 0.0 && scale <= MAX_SCALE {
        return Ok(scale);
    }
    Err(format!("expected a number above 0 and at most {MAX_SCALE}"))
}

/// The name of the variant without feature words.
pub const BASELINE: &str = "baseline";

impl Variant {
    /// The baseline, with these features.
    pub fn baseline(features: FeatureSet) -> Variant {
        Variant {
            name: BASELINE.to_owned(),
            words: Vec::new(),
            features,
            domains: Vec::new(),
            workload: None,
            with: None,
            smt: None,
        }
    }

    /// The variant with these words, separated by blanks, on top of the baseline's features; none or
    /// `baseline` is the baseline.
    ///
    /// # Errors
    /// If the release does not know a word.
    pub fn parse(
        release: Release,
        base: FeatureSet,
        words: &str,
    ) -> Result<Variant, wakelab_sched::features::FeatureError> {
        let words: Vec<&str> = words.split_whitespace().collect();
        if words.is_empty() || words == [BASELINE] {
            return Ok(Variant::baseline(base));
        }
        Ok(Variant {
            name: words.join(" "),
            features: with_words(release, base, &words)?,
            words: words.into_iter().map(str::to_owned).collect(),
            domains: Vec::new(),
            workload: None,
            with: None,
            smt: None,
        })
    }
}

/// The features with words applied.
fn with_words(
    release: Release,
    base: FeatureSet,
    words: &[&str],
) -> Result<FeatureSet, wakelab_sched::features::FeatureError> {
    let mut features = base;
    features.apply_together(release, words)?;
    Ok(features)
}

/// An experiment whose every word is known to be good, but for its machine, which is only named.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name: that of its file, without `.toml`.
    pub name: String,
    /// One line of what it is.
    pub title: String,
    /// Where it was proposed: a message-id or an address.
    pub source: String,
    /// What readers should know of how it was set up, or nothing.
    pub notes: String,
    /// The metric that its conclusion is about.
    pub metric: &'static str,
    /// The machine's name: a preset, `host` or a file.
    pub machine: String,
    /// Where that name stands, for errors.
    pub machine_at: String,
    /// The kernel release.
    pub release: Release,
    /// Feature words of every variant, the baseline's too.
    pub words: Vec<String>,
    /// Settings of scheduling domains of every variant, the baseline's too.
    pub domains: Vec<PlacedSetting>,
    /// The workload at full length, of variants without one of their own.
    pub workload: Workload,
    /// What runs beside it, in variants that do not say otherwise.
    pub with: Vec<Companion>,
    /// Whether SMT is on, in variants that do not say otherwise.
    pub smt: bool,
    /// How tasks are grouped.
    pub grouping: Grouping,
    /// The variants, the baseline first.
    pub variants: Vec<Variant>,
    /// Runs of each variant unless asked for otherwise.
    pub runs: u32,
    /// The scale unless asked for otherwise.
    pub scale: f64,
    /// What was published.
    pub published: Published,
}

impl Experiment {
    /// Reads the text of an experiment's file. `file` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn from_toml(name: &str, text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        file::read(name, text, file)
    }
}

#[cfg(test)]
mod tests;
