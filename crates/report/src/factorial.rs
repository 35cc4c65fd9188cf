//! Main effects and interactions of features whose every combination was run: what each does whatever
//! the others are, and what they do together beyond that.
//!
//! Effects are of the logarithm of a metric, so that they multiply: two features that each take a third
//! of the time leave 4/9 of it if they do not interact. The main effect of a feature is the mean over all
//! settings of the others; the interaction of two is the factor by which the effect of one is multiplied
//! when the other is on, and so on for more (Box, Hunter and Hunter, Statistics for Experimenters, 5;
//! there an interaction is half of this, so that its spread is that of a main effect). Each seed gives
//! one contrast of all its runs, and Student's t over the seeds the interval.

use crate::metric;
use crate::model::VariantRuns;
use crate::number;
use crate::stats::{Change, mean_and_half};
use crate::table::{Align, Table};
use serde::Serialize;
use std::cmp::Reverse;

/// The effects of a full factorial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Factorial {
    /// The features, each with its words.
    pub factors: Vec<String>,
    /// The effects of each metric: single features, then pairs, and so on.
    pub effects: Vec<Effect>,
}

/// What one feature, or several together, do to a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The features: one for a main effect, several for an interaction.
    pub of: Vec<String>,
    /// The metric.
    pub metric: &'static str,
    /// The effect in per cent; none where a run's value is not above zero.
    pub effect_pct: Option<f64>,
    /// Its 95 % interval; none for a single run.
    pub ci95: Option<[f64; 2]>,
}

impl Effect {
    /// `A`, or `A x B` of an interaction.
    pub fn name(&self) -> String {
        self.of.join(" x ")
    }

    /// The effect with its interval.
    pub fn change(&self) -> Option<Change> {
        let pct = self.effect_pct?;
        let ci95 = self.ci95;
        Some(Change { pct, ci95 })
    }
}

/// Where each combination of factors was run: `cells[s]` is the variant with the factors whose bits are
/// set in s.
struct Design {
    factors: Vec<Vec<String>>,
    cells: Vec<usize>,
}

impl Factorial {
    /// The effects, if the variants are all combinations of two or more sets of feature words, and nothing
    /// but these differs between them.
    pub fn of(runs: &[VariantRuns]) -> Option<Factorial> {
        let design = Design::of(runs)?;
        if runs[0].outcomes.is_empty() {
            return None;
        }
        let metrics = runs[0].metric_names();
        let subsets = design.subsets();
        let effects = metrics.iter().flat_map(|metric| {
            let logs = design.logarithms(runs, metric);
            let effect = |subset: &usize| design.effect(*subset, metric, logs.as_deref());
            subsets.iter().map(effect).collect::<Vec<_>>()
        });
        Some(Factorial {
            effects: effects.collect(),
            factors: design.factors.iter().map(|words| words.join(" ")).collect(),
        })
    }

    /// The effects of one metric.
    pub fn of_metric<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Effect> {
        self.effects
            .iter()
            .filter(move |effect| effect.metric == metric)
    }
}

impl Design {
    fn of(runs: &[VariantRuns]) -> Option<Design> {
        if runs.iter().any(|variant| variant.workload.is_some()) {
            return None;
        }
        let words: Vec<&[String]> = runs.iter().map(|variant| &variant.features[..]).collect();
        let factors = factors(&words)?;
        let cell_of = |subset: usize| {
            let of_factor = factors.iter().enumerate();
            let chosen = of_factor.filter(|(factor, _)| subset >> factor & 1 == 1);
            let chosen: Vec<&String> = chosen.flat_map(|(_, words)| words).collect();
            words.iter().position(|words| {
                words.len() == chosen.len() && chosen.iter().all(|word| words.contains(word))
            })
        };
        let cells = (0..1usize << factors.len()).map(cell_of);
        let cells = cells.collect::<Option<Vec<usize>>>()?;
        Some(Design { factors, cells })
    }

    /// The sets of factors that have an effect, the smaller first, then in the order of factors.
    fn subsets(&self) -> Vec<usize> {
        let mut subsets: Vec<usize> = (1..self.cells.len()).collect();
        // Reversed, the bit of the first factor weighs most.
        subsets.sort_by_key(|subset| (subset.count_ones(), Reverse(subset.reverse_bits())));
        subsets
    }

    /// The logarithm of the metric by cell and run; none if one has none.
    fn logarithms(&self, runs: &[VariantRuns], metric: &str) -> Option<Vec<Vec<f64>>> {
        let of_cell = |variant: &usize| {
            let values = runs[*variant].values(metric)?;
            let positive = values.iter().all(|value| *value > 0.0 && value.is_finite());
            positive.then(|| values.iter().map(|value| value.ln()).collect())
        };
        self.cells.iter().map(of_cell).collect()
    }

    fn effect(&self, subset: usize, metric: &'static str, logs: Option<&[Vec<f64>]>) -> Effect {
        let named = self.factors.iter().enumerate();
        let named = named.filter(|(factor, _)| subset >> factor & 1 == 1);
        let change = logs.map(|logs| as_change(&self.contrasts(subset, logs)));
        Effect {
            of: named.map(|(_, words)| words.join(" ")).collect(),
            metric,
            effect_pct: change.map(|change| change.pct),
            ci95: change.and_then(|change| change.ci95),
        }
    }

    /// The contrast of each run: the mean over all settings of the other factors.
    fn contrasts(&self, subset: usize, logs: &[Vec<f64>]) -> Vec<f64> {
        let settings = (self.cells.len() >> subset.count_ones()) as f64;
        let sign = |cell: usize| match (subset & !cell).count_ones() % 2 {
            0 => 1.0,
            _ => -1.0,
        };
        let of_run = |run: usize| {
            let signed = logs.iter().enumerate();
            signed
                .map(|(cell, logs)| sign(cell) * logs[run])
                .sum::<f64>()
                / settings
        };
        (0..logs[0].len()).map(of_run).collect()
    }
}

/// Differences of logarithms as a change in per cent.
fn as_change(logs: &[f64]) -> Change {
    let (mean, half) = mean_and_half(logs);
    let pct = |log: f64| 100.0 * log.exp_m1();
    Change {
        pct: pct(mean),
        ci95: half.map(|half| [pct(mean - half), pct(mean + half)]),
    }
}

/// The sets of words of which these are all the combinations: those that are no union of smaller ones.
/// None if there are not two or more such sets, or if two speak of the same feature.
fn factors(variants: &[&[String]]) -> Option<Vec<Vec<String>>> {
    let count = variants.len().checked_ilog2().filter(|count| *count >= 2)?;
    let mut by_size: Vec<&[String]> = variants.to_vec();
    by_size.sort_by_key(|words| words.len());
    let mut found: Vec<Vec<String>> = Vec::new();
    for words in by_size.into_iter().filter(|words| !words.is_empty()) {
        let within = |factor: &&Vec<String>| factor.iter().all(|word| words.contains(word));
        let covered: usize = found.iter().filter(within).map(Vec::len).sum();
        if covered < words.len() {
            found.push(words.to_vec());
        }
    }
    // In the order of the variants, which is the author's.
    found.sort_by_key(|factor| variants.iter().position(|words| *words == &factor[..]));
    let mut features: Vec<&str> = found.iter().flatten().map(|word| feature(word)).collect();
    features.sort_unstable();
    let twice = features.windows(2).any(|pair| pair[0] == pair[1]);
    let all = variants.len() == 1 << count && found.len() == count as usize;
    (all && !twice).then_some(found)
}

/// The feature of which a word speaks: `NO_X` and `X=5` speak of X.
fn feature(word: &str) -> &str {
    let name = word.split('=').next().unwrap_or(word);
    name.strip_prefix("NO_").unwrap_or(name)
}

/// The most factors whose effects have a column each: three have seven.
const MAX_COLUMNS_OF: usize = 3;

/// The effects as text: a table, and sentences on the interactions of the main metrics.
pub fn render(factorial: &Factorial, main_metrics: &[&'static str]) -> String {
    let mut text = String::from(
        "main effects and interactions, ratios of geometric means in per cent with 95 % intervals\n",
    );
    if factorial.factors.len() <= MAX_COLUMNS_OF {
        text += &by_metric(factorial);
    } else {
        text += &by_effect(factorial, main_metrics);
    }
    for sentence in sentences(factorial, main_metrics) {
        text += &sentence;
        text.push('\n');
    }
    text
}

fn cell(effect: &Effect) -> String {
    let change = effect.change();
    change.map_or_else(|| "-".to_owned(), |change| number::change_between(&change))
}

fn by_metric(factorial: &Factorial) -> String {
    let metrics = metrics(factorial);
    let names: Vec<String> = match metrics.first() {
        Some(first) => factorial.of_metric(first).map(Effect::name).collect(),
        None => Vec::new(),
    };
    let mut columns = vec![("metric", Align::Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&columns);
    for metric in metrics {
        let mut row = vec![metric::of(metric).label.to_owned()];
        row.extend(factorial.of_metric(metric).map(cell));
        table.row(row);
    }
    table.render()
}

fn by_effect(factorial: &Factorial, main_metrics: &[&'static str]) -> String {
    let labels: Vec<&str> = main_metrics.iter().map(|m| metric::of(m).label).collect();
    let mut columns = vec![("effect", Align::Left)];
    columns.extend(labels.iter().map(|label| (*label, Align::Right)));
    let mut table = Table::new(&columns);
    let Some(first) = main_metrics.first() else {
        return String::new();
    };
    for effect in factorial.of_metric(first) {
        let mut row = vec![effect.name()];
        let same = |metric: &&'static str| {
            let mut effects = factorial.of_metric(metric);
            effects.find(|other| other.of == effect.of).map(cell)
        };
        row.extend(main_metrics.iter().filter_map(same));
        table.row(row);
    }
    table.render()
}

fn metrics(factorial: &Factorial) -> Vec<&'static str> {
    let mut metrics: Vec<&'static str> = Vec::new();
    for effect in &factorial.effects {
        if !metrics.contains(&effect.metric) {
            metrics.push(effect.metric);
        }
    }
    metrics
}

/// What the interactions say in words: of each that is clear in a main metric, and where else pairs are.
pub fn sentences(factorial: &Factorial, main_metrics: &[&'static str]) -> Vec<String> {
    let is_main = |effect: &&Effect| main_metrics.contains(&effect.metric);
    let interactions = factorial
        .effects
        .iter()
        .filter(|effect| effect.of.len() > 1);
    let (main, other): (Vec<&Effect>, Vec<&Effect>) = interactions.partition(is_main);
    let mut lines: Vec<String> = main.iter().map(|effect| sentence(effect)).collect();
    let elsewhere = other.iter().filter(|effect| is_clear(effect));
    let elsewhere: Vec<String> = elsewhere
        .map(|effect| match factorial.factors.len() {
            2 => effect.metric.to_owned(),
            _ => format!("{} ({})", effect.metric, effect.name()),
        })
        .collect();
    if !elsewhere.is_empty() {
        lines.push(format!("Interactions also in: {}.", elsewhere.join(", ")));
    }
    lines
}

fn is_clear(effect: &Effect) -> bool {
    effect.ci95.is_some()
        && effect
            .change()
            .is_some_and(|change| !change.includes_zero())
}

fn sentence(effect: &Effect) -> String {
    let metric = metric::title(effect.metric);
    let names = effect.of.join(" and ");
    let Some((change, [low, high])) = effect.change().zip(effect.ci95) else {
        return format!("{metric}: whether {names} interact cannot be told.");
    };
    if change.includes_zero() {
        return format!(
            "{metric}: no sign that {names} interact (95 % interval {} to {}).",
            number::percent_change(low),
            number::percent_change(high)
        );
    }
    let than = match effect.of.len() {
        2 => "the product of their effects says",
        _ => "their own effects and those of smaller groups of them say",
    };
    let (size, way) = (
        change.pct.abs(),
        if change.pct < 0.0 { "less" } else { "more" },
    );
    format!(
        "{metric}: {names} interact; together they give {size:.1} % {way} than {than} (95 % interval {} to {}).",
        number::percent_change(low),
        number::percent_change(high)
    )
}

#[cfg(test)]
mod tests;
