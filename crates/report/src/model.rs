//! A report as a value: variants with their metrics, the changes between them, and what was
//! published, ready for every renderer.

use crate::factorial::Factorial;
use crate::forced_idle::{self, ForcedIdleTotal};
use crate::precision::Precision;
use crate::published::Published;
use crate::sensitivity::Sensitivity;
use crate::stats::{Change, Summary};
use crate::totals::{self, AuditTotal, LineTotal};
use serde::{Serialize, Serializer};
use wakelab_sim::{HostCost, Outcome};

/// What was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The experiment's name; of a comparison, `compare`.
    pub experiment: String,
    /// One line of what it is.
    pub title: String,
    /// The machine's name.
    pub machine: String,
    /// The kernel release, such as `6.5`.
    pub kernel: String,
    /// How tasks are grouped: `autogroup`, `root`, `cgroup shares 1024`.
    pub grouping: String,
    /// Feature words of every variant, the baseline's too.
    pub features: Vec<String>,
    /// Settings of scheduling domains of every variant, such as `MC:cache_nice_tries=3`.
    pub domains: Vec<String>,
    /// The workload's command line at full length.
    pub workload: String,
    /// What the loops were multiplied by.
    pub scale: f64,
    /// Runs asked for of each variant.
    pub runs_asked: usize,
    /// The seed.
    pub seed: u64,
    /// The metrics that the conclusion is about, the first of them before the others.
    pub main_metrics: Vec<&'static str>,
    /// The version of the program.
    pub version: String,
}

/// The runs of one variant, in the order of their seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantRuns {
    /// Its feature words, or `baseline`.
    pub name: String,
    /// Its feature words.
    pub features: Vec<String>,
    /// Its own settings of scheduling domains, such as `MC:cache_nice_tries=3`.
    pub domains: Vec<String>,
    /// Its workload's command line at full length, if it is not the experiment's.
    pub workload: Option<String>,
    /// What each run gave.
    pub outcomes: Vec<Outcome>,
}

impl VariantRuns {
    /// The metrics of its runs, in the order of tables.
    pub fn metric_names(&self) -> Vec<&'static str> {
        let first = self.outcomes.first();
        let names = first.map(|outcome| outcome.metrics.iter().map(|metric| metric.name).collect());
        names.unwrap_or_default()
    }

    /// The metric's value in each run; none unless every run gave it.
    pub fn values(&self, name: &str) -> Option<Vec<f64>> {
        let value_in = |outcome: &Outcome| {
            let mut metrics = outcome.metrics.iter();
            metrics.find(|metric| metric.name == name).map(|m| m.value)
        };
        self.outcomes.iter().map(value_in).collect()
    }
}

/// One variant, reduced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantReport {
    /// Its feature words, or `baseline`.
    pub name: String,
    /// Its feature words.
    pub features: Vec<String>,
    /// Its own settings of scheduling domains, such as `MC:cache_nice_tries=3`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Its workload's command line at full length, if it is not the experiment's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Each metric over the runs, in the order of tables.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Summary)>,
    /// The decision audit, summed over the runs.
    pub audit: Vec<AuditTotal>,
    /// How busy the shared cache lines were, by kind.
    pub lines: Vec<LineTotal>,
    /// Forced idle, if tasks had core-scheduling cookies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_idle: Option<ForcedIdleTotal>,
}

fn as_map<S: Serializer>(metrics: &[(&'static str, Summary)], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(metrics.iter().map(|(name, summary)| (name, summary)))
}

impl VariantReport {
    /// The metric's mean and spread, if the runs gave it.
    pub fn metric(&self, name: &str) -> Option<Summary> {
        self.metrics
            .iter()
            .find(|(metric, _)| *metric == name)
            .map(|(_, summary)| *summary)
    }
}

/// The change at both ends of the machine's cost ranges, in per cent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BandChange {
    /// With every cost at its low (cheap) end.
    pub low: Option<f64>,
    /// With every cost at its value.
    pub nominal: Option<f64>,
    /// With every cost at its high (dear) end.
    pub high: Option<f64>,
}

/// How one metric of one variant changed against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The variant's name.
    pub variant: String,
    /// The metric's name.
    pub metric: &'static str,
    /// The change of the mean, in per cent; none if the baseline's is zero.
    pub change_pct: Option<f64>,
    /// Its 95 % interval; none for a single run, or if all pairs of runs but one are zeros.
    pub ci95: Option<[f64; 2]>,
    /// The published change, in per cent.
    pub published_pct: Option<f64>,
    /// The change over the machine's cost ranges, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band_pct: Option<BandChange>,
}

impl Comparison {
    /// The change with its interval.
    pub fn change(&self) -> Option<Change> {
        self.change_pct.map(|pct| Change {
            pct,
            ci95: self.ci95,
        })
    }

    /// By how many per cent points the predicted change misses the published one.
    pub fn error_points(&self) -> Option<f64> {
        Some(self.change_pct? - self.published_pct?)
    }
}

/// What the simulation cost the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Wall-clock time, s.
    pub wall_s: f64,
    /// CPU time of the process, s; 0 where the system does not tell.
    pub cpu_s: f64,
    /// Events handled.
    pub events: u64,
    /// Simulated context switches.
    pub switches: u64,
    /// Simulated time of all runs, s.
    pub simulated_s: f64,
}

impl Host {
    /// Adds what one run cost.
    pub fn add(&mut self, cost: &HostCost) {
        self.events += cost.events;
        self.switches += cost.switches;
        self.simulated_s += cost.simulated.as_secs_f64();
    }

    /// Simulated context switches per second of the host's CPU time, if that is known.
    pub fn switches_per_cpu_s(&self) -> Option<f64> {
        (self.cpu_s > 0.0).then(|| self.switches as f64 / self.cpu_s)
    }
}

/// Everything that the renderers need.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was run.
    pub setup: Setup,
    /// How many runs of each variant are in it; fewer than asked for if it was interrupted.
    pub runs: usize,
    /// The variants, the baseline first.
    pub variants: Vec<VariantReport>,
    /// Every metric of every variant but the first against the first.
    pub comparisons: Vec<Comparison>,
    /// What features do alone and together, if every combination of them was run.
    pub factorial: Option<Factorial>,
    /// How near the runs came to what was asked for, if it was.
    pub precision: Option<Precision>,
    /// What the changes become when single costs of the machine are others, if asked for.
    pub sensitivity: Option<Sensitivity>,
    /// What was published.
    pub published: Published,
    /// What it cost the host.
    pub host: Host,
}

impl Report {
    /// Reduces and compares runs. The first variant is the baseline; run r of every variant had the
    /// same seed.
    ///
    /// # Panics
    /// If there is no variant or if the variants differ in their number of runs.
    pub fn new(setup: Setup, runs: &[VariantRuns], published: Published, host: Host) -> Report {
        let (baseline, others) = runs.split_first().expect("a report has a baseline");
        let comparisons = others
            .iter()
            .flat_map(|variant| compare(baseline, variant, &published))
            .collect();
        Report {
            setup,
            runs: baseline.outcomes.len(),
            variants: runs.iter().map(reduce).collect(),
            comparisons,
            factorial: Factorial::of(runs),
            precision: None,
            sensitivity: None,
            published,
            host,
        }
    }

    /// Whether it holds fewer runs than were asked for.
    pub fn is_partial(&self) -> bool {
        self.runs < self.setup.runs_asked
    }

    /// The comparisons of one variant, in the order of metrics.
    pub fn comparisons_of<'a>(&'a self, variant: &'a str) -> impl Iterator<Item = &'a Comparison> {
        self.comparisons
            .iter()
            .filter(move |comparison| comparison.variant == variant)
    }

    /// Joins the changes that came out at the ends of the machine's cost ranges.
    pub fn set_band(&mut self, low: &Report, high: &Report) {
        let pct_in = |report: &Report, of: &Comparison| {
            let same =
                |other: &&Comparison| other.variant == of.variant && other.metric == of.metric;
            report
                .comparisons
                .iter()
                .find(same)
                .and_then(|other| other.change_pct)
        };
        for comparison in &mut self.comparisons {
            comparison.band_pct = Some(BandChange {
                low: pct_in(low, comparison),
                nominal: comparison.change_pct,
                high: pct_in(high, comparison),
            });
        }
    }
}

fn reduce(runs: &VariantRuns) -> VariantReport {
    let summarise = |name: &'static str| Some((name, Summary::of(&runs.values(name)?)?));
    VariantReport {
        name: runs.name.clone(),
        features: runs.features.clone(),
        domains: runs.domains.clone(),
        workload: runs.workload.clone(),
        metrics: runs
            .metric_names()
            .into_iter()
            .filter_map(summarise)
            .collect(),
        audit: totals::audit(&runs.outcomes),
        lines: totals::lines(&runs.outcomes),
        forced_idle: forced_idle::total(&runs.outcomes),
    }
}

fn compare(
    baseline: &VariantRuns,
    variant: &VariantRuns,
    published: &Published,
) -> Vec<Comparison> {
    let compare_one = |metric: &'static str| {
        let change = Change::paired(&baseline.values(metric)?, &variant.values(metric)?);
        Some(Comparison {
            variant: variant.name.clone(),
            metric,
            change_pct: change.map(|change| change.pct),
            ci95: change.and_then(|change| change.ci95),
            published_pct: published.change_pct(&baseline.name, &variant.name, metric),
            band_pct: None,
        })
    };
    baseline
        .metric_names()
        .into_iter()
        .filter_map(compare_one)
        .collect()
}
