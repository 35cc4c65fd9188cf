//! Reading an experiment's file.

use super::error::{ExperimentError, Place};
use super::{DEFAULT_METRIC, Experiment, Variant, check_scale, domains, variants};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use toml::{Spanned, Value};
use wakelab_report::{Figure, Published};
use wakelab_sched::features::FeatureSet;
use wakelab_sched::rules::Release;
use wakelab_workload::{Companion, Grouping, Workload, WorkloadError};

/// Figures by variant and metric, as they stand in the file.
type Figures = BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, Spanned<Value>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Spanned<String>,
    source: String,
    #[serde(default)]
    notes: String,
    metric: Option<Spanned<String>>,
    machine: Spanned<String>,
    kernel: Spanned<String>,
    grouping: Spanned<Value>,
    features: Option<Spanned<String>>,
    #[serde(default)]
    domains: domains::Tables,
    workload: Spanned<String>,
    #[serde(default)]
    with: Vec<Spanned<String>>,
    smt: Option<Spanned<String>>,
    variants: variants::List,
    #[serde(default = "default_runs")]
    runs: Spanned<u32>,
    #[serde(default = "full_scale")]
    scale: Spanned<f64>,
    #[serde(default)]
    published: PublishedFile,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedFile {
    source: Option<String>,
    #[serde(default)]
    figures: Figures,
    #[serde(default)]
    changes_pct: Figures,
}

fn default_runs() -> Spanned<u32> {
    Spanned::new(0..0, 5)
}

fn full_scale() -> Spanned<f64> {
    Spanned::new(0..0, 1.0)
}

/// The most runs of a variant.
const MAX_RUNS: u32 = 10_000;

pub fn read(name: &str, text: &str, file: &str) -> Result<Experiment, ExperimentError> {
    let place = Place { file, text };
    let file: File = toml::from_str(text).map_err(|error| place.toml_error(&error))?;
    let release = place.check(&file.kernel, |name| release(name))?;
    let words = file.features.as_ref().map_or("", |words| words.get_ref());
    let words: Vec<&str> = words.split_whitespace().collect();
    let base = match &file.features {
        None => FeatureSet::defaults(release),
        Some(given) => place.check(given, |_| FeatureSet::parse_words(release, &words))?,
    };
    let variants = variants::read(place, release, base, &file.variants)?;
    let runs = *file.runs.get_ref();
    if !(1..=MAX_RUNS).contains(&runs) {
        return Err(place.error(
            file.runs.span(),
            format!("expected from 1 to {MAX_RUNS} runs"),
        ));
    }
    let published = read_published(place, &file, &variants)?;
    let main_metric = match &file.metric {
        None => DEFAULT_METRIC,
        Some(name) => place.check(name, |name| metric(name).ok_or(NO_SUCH_METRIC))?,
    };
    Ok(Experiment {
        name: name.to_owned(),
        title: place.check(&file.title, |title| one_line(title))?,
        source: file.source,
        notes: file.notes,
        metric: main_metric,
        machine_at: place.name(&file.machine.span()),
        machine: file.machine.into_inner(),
        release,
        words: words.into_iter().map(str::to_owned).collect(),
        domains: domains::read(place, &file.domains)?,
        workload: place.check(&file.workload, |line| place.workload(line))?,
        with: place.companions(&file.with)?,
        smt: place.smt(&file.smt)?.unwrap_or(true),
        grouping: place.check(&file.grouping, grouping)?,
        runs,
        scale: place.check(&file.scale, |scale| check_scale(*scale))?,
        variants,
        published,
    })
}

impl<'a> Place<'a> {
    /// A workload, of which files are looked for beside the experiment's own.
    pub(super) fn workload(self, line: &str) -> Result<Workload, WorkloadError> {
        Workload::parse_in(line, self.directory())
    }

    fn directory(self) -> &'a Path {
        Path::new(self.file).parent().unwrap_or(Path::new(""))
    }

    /// A value of the file through a check whose error then has the value's place.
    pub(super) fn check<T, V, E: Display>(
        self,
        value: &Spanned<T>,
        check: impl FnOnce(&T) -> Result<V, E>,
    ) -> Result<V, ExperimentError> {
        check(value.get_ref()).map_err(|error| self.error(value.span(), error.to_string()))
    }

    /// Whether SMT is on, if it is told.
    pub(super) fn smt(
        self,
        word: &Option<Spanned<String>>,
    ) -> Result<Option<bool>, ExperimentError> {
        let read = |word: &String| match word.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err("expected \"on\" or \"off\""),
        };
        word.as_ref().map(|word| self.check(word, read)).transpose()
    }

    /// The commands that run beside a workload.
    pub(super) fn companions(
        self,
        lines: &[Spanned<String>],
    ) -> Result<Vec<Companion>, ExperimentError> {
        let read = |line: &Spanned<String>| {
            self.check(line, |line| Companion::parse_in(line, self.directory()))
        };
        lines.iter().map(read).collect()
    }
}

/// Text that may stand in a report's line: it ends no line and tells a terminal nothing.
fn one_line(text: &str) -> Result<String, &'static str> {
    match text.contains(char::is_control) {
        true => Err("expected one line without control characters"),
        false => Ok(text.to_owned()),
    }
}

/// The release of this name.
///
/// # Errors
/// That it is not known, and which are.
pub fn release(name: &str) -> Result<Release, String> {
    Release::from_name(name).ok_or_else(|| {
        let known = Release::ALL.map(Release::name).join(", ");
        format!("kernel '{name}' is not known, expected one of {known}")
    })
}

fn grouping(value: &Value) -> Result<Grouping, String> {
    const EXPECTED: &str = "expected \"autogroup\", \"root\" or { cgroup_shares = 1024 }";
    match value {
        Value::String(word) if word == "autogroup" => Ok(Grouping::Autogroup),
        Value::String(word) if word == "root" => Ok(Grouping::Root),
        Value::Table(table) if table.len() == 1 => match table.get("cgroup_shares") {
            // MIN_SHARES and MAX_SHARES of kernel sched/sched.h.
            Some(Value::Integer(shares @ 2..=262_144)) => Ok(Grouping::Cgroup {
                shares: shares.unsigned_abs(),
            }),
            Some(_) => Err("expected cgroup_shares from 2 to 262144".to_owned()),
            None => Err(EXPECTED.to_owned()),
        },
        _ => Err(EXPECTED.to_owned()),
    }
}

fn read_published(
    place: Place<'_>,
    file: &File,
    variants: &[Variant],
) -> Result<Published, ExperimentError> {
    let source = file.published.source.as_ref().unwrap_or(&file.source);
    let mut published = Published::from_source(source);
    each_figure(
        place,
        &file.published.figures,
        variants,
        |variant, metric, figure| {
            published.add_value(variant, metric, figure);
        },
    )?;
    each_figure(
        place,
        &file.published.changes_pct,
        variants,
        |variant, metric, figure| {
            published.add_change(variant, metric, figure);
        },
    )?;
    Ok(published)
}

fn each_figure(
    place: Place<'_>,
    figures: &Figures,
    variants: &[Variant],
    mut add: impl FnMut(&str, &str, Figure),
) -> Result<(), ExperimentError> {
    for (variant, metrics) in figures {
        if !variants
            .iter()
            .any(|known| known.name == *variant.get_ref())
        {
            return Err(place.error(
                variant.span(),
                "published figures of a variant that is not in the list",
            ));
        }
        for (metric, value) in metrics {
            let metric = place.check(metric, |name| self::metric(name).ok_or(NO_SUCH_METRIC))?;
            add(variant.get_ref(), metric, place.check(value, figure)?);
        }
    }
    Ok(())
}

/// The metric of this name that runs can have.
pub fn metric(name: &str) -> Option<&'static str> {
    let mut known = wakelab_sim::METRICS
        .iter()
        .chain(wakelab_workload::metrics());
    known
        .find(|(known, _)| *known == name)
        .map(|(known, _)| *known)
}

const NO_SUCH_METRIC: &str = "there is no such metric";

/// `49`, `[48, 49]`, or `{ value = either, printed = "as in the source" }`.
fn figure(value: &Value) -> Result<Figure, String> {
    let expected =
        || "expected a number, [low, high] or { value = ..., printed = \"...\" }".to_owned();
    match value {
        Value::Table(table) => {
            let unknown = table
                .keys()
                .find(|key| !["value", "printed"].contains(&key.as_str()));
            if let Some(key) = unknown {
                return Err(format!("unknown key `{key}`, {}", expected()));
            }
            let printed = match table.get("printed") {
                None => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(_) => return Err(expected()),
            };
            let figure = range(table.get("value").ok_or_else(expected)?).ok_or_else(expected)?;
            Ok(Figure { printed, ..figure })
        }
        value => range(value).ok_or_else(expected),
    }
}

fn range(value: &Value) -> Option<Figure> {
    match value {
        Value::Array(ends) => match ends.as_slice() {
            [low, high] => {
                let (low, high) = (number(low)?, number(high)?);
                (low <= high).then_some(Figure {
                    low,
                    high,
                    printed: None,
                })
            }
            _ => None,
        },
        value => number(value).map(Figure::exact),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => number.is_finite().then_some(*number),
        _ => None,
    }
}
