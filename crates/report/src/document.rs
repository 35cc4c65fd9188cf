//! The document of all experiments in Markdown: what was published against what is predicted.

use crate::metric::{self, MetricInfo};
use crate::number;
use crate::published::Published;
use crate::result::{StoredEffect, StoredResult};
use crate::stats::Change;
use std::fmt::Write as _;

/// One experiment of the document.
#[derive(Clone, Debug)]
pub struct Section {
    /// What came out.
    pub result: StoredResult,
    /// One line of what the experiment is.
    pub title: String,
    /// Where it was proposed.
    pub source: String,
    /// What readers should know of it, or nothing.
    pub notes: String,
    /// What was published.
    pub published: Published,
    /// The command that made the result.
    pub command: String,
}

const INTRODUCTION: &str = "\
# Experiments: published against predicted

This file is written by `wakelab document` from results of `wakelab run` ([CONTRIBUTING](../CONTRIBUTING.md) tells
how). It holds every experiment that has been run, whether the prediction is good or bad. Costs belong to machines
and none was fitted to an experiment. [model.md](model.md) says why some figures miss.

Predicted is the change of the means over paired runs in per cent of the baseline's, with half of its 95 % interval;
`~`: the interval includes zero. That interval covers the luck of the seeds, not the model's own error. An error is
predicted less published: of a change in per cent points, of a level in per cent of the published one, times and counts
brought to full length first. The verdict compares changes; the spread of published ones is seldom known, so that `same
sign` may be a miss by very little, which the error tells:

| verdict | means |
| --- | --- |
| within | the published change lies in the predicted interval, which excludes zero |
| same sign | both go the same way, and the published change lies outside the interval |
| open | the predicted interval includes zero: the runs do not show a change |
| **other sign** | the prediction clearly goes the other way |
";

/// The document, experiments in the order given. `missing` names experiments without a result.
pub fn render(sections: &[Section], missing: &[&str]) -> String {
    let mut text = INTRODUCTION.to_owned();
    text += "\n## In short\n\nThe main metrics of all experiments.\n\n";
    text += &overview(sections);
    if !missing.is_empty() {
        let _ = writeln!(text, "\nNot run: {}.", missing.join(", "));
    }
    for section in sections {
        text += &one(section);
    }
    text
}

fn overview(sections: &[Section]) -> String {
    let mut text = row(&[
        "experiment",
        "variant",
        "metric",
        "published",
        "predicted",
        "error",
        "verdict",
    ]);
    text += &row(&["---", "---", "---", "---:", "---:", "---:", "---"]);
    for section in sections {
        let result = &section.result;
        for variant in result.variants.iter().skip(1) {
            for info in result.metrics() {
                if result.is_main(info.name) {
                    text += &overview_row(section, &variant.name, info);
                }
            }
        }
    }
    text
}

fn overview_row(section: &Section, variant: &str, info: MetricInfo) -> String {
    let predicted = section.result.change(variant, info.name);
    let published = published_change(section, variant, info);
    let name = &section.result.experiment;
    row(&[
        &format!("[{name}](#{})", anchor(name)),
        variant,
        metric::title(info.name),
        &published.map_or_else(String::new, number::percent_change),
        &predicted.map_or_else(|| "-".to_owned(), |change| number::change(&change)),
        &error_points(predicted, published),
        verdict(predicted, published),
    ])
}

fn published_change(section: &Section, variant: &str, info: MetricInfo) -> Option<f64> {
    let baseline = &section.result.variants.first()?.name;
    section.published.change_pct(baseline, variant, info.name)
}

fn error_points(predicted: Option<Change>, published: Option<f64>) -> String {
    let error = predicted.zip(published);
    error.map_or_else(String::new, |(change, published)| {
        number::points(change.pct - published)
    })
}

/// How the predicted change stands to the published one.
fn verdict(predicted: Option<Change>, published: Option<f64>) -> &'static str {
    let Some((change, published)) = predicted.zip(published) else {
        return "";
    };
    let inside = change
        .ci95
        .is_some_and(|[low, high]| low <= published && published <= high);
    match (change.includes_zero(), inside, change.pct * published > 0.0) {
        (true, _, _) => "open",
        (false, true, _) => "within",
        (false, false, true) => "same sign",
        (false, false, false) => "**other sign**",
    }
}

fn one(section: &Section) -> String {
    let result = &section.result;
    let mut text = format!("\n## {}\n\n{}.\n\n", result.experiment, section.title);
    text += &set_up(section);
    let _ = write!(text, "\nMade by\n\n    {}\n", section.command);
    let notes = section.notes.trim();
    if !notes.is_empty() {
        let _ = write!(text, "\nNotes: {}\n", notes.replace('\n', " "));
    }
    for variant in result.variants.iter().skip(1) {
        text += &comparison(section, &variant.name, variant.workload.as_deref());
    }
    text += &together(section);
    text
}

fn set_up(section: &Section) -> String {
    let result = &section.result;
    let mut text = String::new();
    let mut item = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "- {name}: {value}");
        }
    };
    item("machine", &result.machine);
    item("kernel", &format!("{}, {}", result.kernel, result.grouping));
    item(
        "features of all variants",
        &code(&result.features.join(" ")),
    );
    item("workload", &code(&result.workload));
    item(
        "scale",
        &format!(
            "{}, {} runs, seed {}, wakelab {}",
            result.scale, result.runs, result.seed, result.version
        ),
    );
    item("proposed", &section.source);
    if section.published.source != section.source {
        item("published", &section.published.source);
    }
    text
}

fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("`{text}`")
}

/// The table of one variant: what was published for it or its baseline, and the main metrics.
fn comparison(section: &Section, variant: &str, workload: Option<&str>) -> String {
    let result = &section.result;
    let baseline = &result.variants[0].name;
    let mut text = format!("\n### {} of {}\n\n", escaped(variant), result.experiment);
    if let Some(workload) = workload {
        let _ = write!(text, "Its workload: {}\n\n", code(workload));
    }
    text += &row(&[
        "metric",
        "published baseline",
        "published new",
        "published change",
        "baseline",
        "new",
        "change",
        "error of baseline",
        "error of new",
        "error of change",
        "verdict",
    ]);
    text += &row(&[
        "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---:", "---",
    ]);
    for info in result.metrics() {
        let published = |variant: &str| section.published.value(variant, info.name);
        let change = published_change(section, variant, info);
        let any = published(baseline).is_some() || published(variant).is_some() || change.is_some();
        if any || result.is_main(info.name) {
            text += &comparison_row(section, variant, info);
        }
    }
    text
}

fn comparison_row(section: &Section, variant: &str, info: MetricInfo) -> String {
    let result = &section.result;
    let baseline = &result.variants[0].name;
    let published = |variant: &str| {
        let figure = section.published.value(variant, info.name);
        figure.map_or_else(String::new, |figure| figure.text(info.unit))
    };
    let mean = |variant: &str| {
        let mean = result.mean(variant, info.name);
        mean.map_or_else(|| "-".to_owned(), |mean| number::value(mean, info.unit))
    };
    let error = |variant: &str| {
        let mean = result.mean(variant, info.name);
        let error = mean.and_then(|mean| {
            let published = &section.published;
            published.error_pct(variant, info.name, mean, result.scale)
        });
        error.map_or_else(String::new, number::percent_change)
    };
    let change = result.change(variant, info.name);
    let of_source = published_change(section, variant, info);
    row(&[
        metric::title(info.name),
        &published(baseline),
        &published(variant),
        &of_source.map_or_else(String::new, number::percent_change),
        &mean(baseline),
        &mean(variant),
        &change.map_or_else(|| "-".to_owned(), |change| number::change(&change)),
        &error(baseline),
        &error(variant),
        &error_points(change, of_source),
        verdict(change, of_source),
    ])
}

/// What features do alone and together, where every combination was run: of the main metrics and of
/// those with published changes.
fn together(section: &Section) -> String {
    let Some(factorial) = &section.result.factorial else {
        return String::new();
    };
    let mut text = format!(
        "\n### Alone and together in {}\n\nMain effects over all settings of the others, and interactions: by what \
         the effect of one is multiplied where the other is on. Ratios of geometric means in per cent, with 95 % intervals.\n\n",
        section.result.experiment
    );
    text += &row(&["metric", "of", "effect"]);
    text += &row(&["---", "---", "---:"]);
    for info in section.result.metrics() {
        let mut variants = section.result.variants.iter().skip(1);
        let any = variants.any(|of| published_change(section, &of.name, info).is_some());
        if !any && !section.result.is_main(info.name) {
            continue;
        }
        let effects = factorial.effects.iter();
        for effect in effects.filter(|effect| effect.metric == info.name) {
            text += &row(&[
                metric::title(info.name),
                &effect.of.join(" x "),
                &effect_text(effect),
            ]);
        }
    }
    text
}

fn effect_text(effect: &StoredEffect) -> String {
    let change = effect.effect_pct.map(|pct| Change {
        pct,
        ci95: effect.ci95,
    });
    change.map_or_else(|| "-".to_owned(), |change| number::change_between(&change))
}

/// A row of a table.
fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// What would end a cell does not.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c))
        .map(|c| {
            if c == ' ' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_interval_and_the_sign() {
        let change = |low: f64, high: f64| {
            Some(Change {
                pct: (low + high) / 2.0,
                ci95: Some([low, high]),
            })
        };
        let cases = [
            (change(-40.0, -30.0), Some(-34.0), "within"),
            (change(-40.0, 1.0), Some(-34.0), "open"),
            (change(-60.0, -50.0), Some(-34.0), "same sign"),
            (change(-2.0, 1.0), Some(-34.0), "open"),
            (change(1.0, 3.0), Some(-34.0), "**other sign**"),
            (change(1.0, 3.0), None, ""),
            (None, Some(-34.0), ""),
        ];
        for (predicted, published, expected) in cases {
            assert_eq!(verdict(predicted, published), expected, "{predicted:?}");
        }
        let single = Change {
            pct: -20.0,
            ci95: None,
        };
        assert_eq!(verdict(Some(single), Some(-34.0)), "same sign");
    }

    #[test]
    fn cells_and_anchors_keep_to_their_syntax() {
        assert_eq!(row(&["a|b", "c\nd"]), "| a\\|b | c d |\n");
        assert_eq!(anchor("sis-cookie"), "sis-cookie");
        assert_eq!(anchor("My test.1"), "my-test1");
    }
}
