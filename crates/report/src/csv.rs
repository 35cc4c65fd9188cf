//! A report as CSV: one line a variant and metric, always the same columns.

use crate::factorial::Effect;
use crate::model::{Comparison, Report, VariantReport};
use crate::sensitivity::{Conclusion, MovedChange, MovedFigure, Sensitivity};
use crate::stats::Summary;

const COLUMNS: &str = "variant,metric,mean,sd,n,change_pct,ci95_low,ci95_high,published,published_pct,band_low_pct,band_high_pct,\
    cv_pct,min,p10,p10_ci95_low,p10_ci95_high,median,median_ci95_low,median_ci95_high,p90,p90_ci95_low,p90_ci95_high,max,row";

/// The cells between the interval and the last of a row that is no variant's.
const NOT_OF_EFFECTS: usize = 16;

/// The report as CSV with a header line: a row a variant and metric, then a row an effect of a factorial
/// and metric, as the last cell tells. A cell is empty where there is nothing to say; numbers have all
/// their digits.
pub fn render(report: &Report) -> String {
    let mut text = format!("{COLUMNS}\n");
    for variant in &report.variants {
        for (metric, summary) in &variant.metrics {
            let same = |comparison: &&Comparison| comparison.metric == *metric;
            let comparison = report.comparisons_of(&variant.name).find(same);
            text.push_str(&line(report, variant, metric, summary, comparison).join(","));
            text.push('\n');
        }
    }
    for effect in report.factorial.iter().flat_map(|found| &found.effects) {
        text.push_str(&effect_line(effect).join(","));
        text.push('\n');
    }
    text
}

fn effect_line(effect: &Effect) -> Vec<String> {
    let mut cells = vec![quote(&effect.name()), effect.metric.to_owned()];
    cells.resize(cells.len() + 3, String::new());
    cells.push(number(effect.effect_pct));
    cells.extend(interval(effect.ci95));
    cells.resize(cells.len() + NOT_OF_EFFECTS, String::new());
    cells.push("effect".to_owned());
    cells
}

const SENSITIVITY_COLUMNS: &str = "variant,metric,figure,value,stand_in,factor,change_pct,ci95_low,ci95_high,delta_pp,delta_ci95_low,delta_ci95_high,beyond_noise";

/// A sensitivity report as CSV with a header line: for each variant and metric a row of the change at the
/// machine's own figures, without a figure's name and with the factor 1, then two rows a figure.
pub fn sensitivity(sensitivity: &Sensitivity) -> String {
    let mut text = format!("{SENSITIVITY_COLUMNS}\n");
    for conclusion in &sensitivity.conclusions {
        text.push_str(&own_line(conclusion).join(","));
        text.push('\n');
        for figure in &sensitivity.figures {
            for change in figure.of(&conclusion.variant, conclusion.metric) {
                text.push_str(&moved_line(figure, change).join(","));
                text.push('\n');
            }
        }
    }
    text
}

fn own_line(of: &Conclusion) -> Vec<String> {
    let mut cells = vec![quote(&of.variant), of.metric.to_owned()];
    cells.resize(cells.len() + 3, String::new());
    cells.extend(["1".to_owned(), number(Some(of.change_pct))]);
    cells.extend(interval(of.ci95));
    cells.resize(cells.len() + 4, String::new());
    cells
}

fn moved_line(figure: &MovedFigure, change: &MovedChange) -> Vec<String> {
    let mut cells = vec![
        quote(&change.variant),
        change.metric.to_owned(),
        quote(&figure.figure),
        number(Some(figure.value)),
        figure.stand_in.to_string(),
        change.factor.to_string(),
        number(Some(change.change_pct)),
    ];
    cells.extend(interval(change.ci95));
    cells.push(number(Some(change.delta_pp)));
    cells.extend(interval(change.delta_ci95));
    cells.push(change.beyond_noise.to_string());
    cells
}

fn interval(ends: Option<[f64; 2]>) -> [String; 2] {
    [
        number(ends.map(|[low, _]| low)),
        number(ends.map(|[_, high]| high)),
    ]
}

fn line(
    report: &Report,
    variant: &VariantReport,
    metric: &str,
    summary: &Summary,
    comparison: Option<&Comparison>,
) -> Vec<String> {
    let change_ci95 = comparison.and_then(|comparison| comparison.ci95);
    let band = comparison.and_then(|comparison| comparison.band_pct);
    let published = report.published.value(&variant.name, metric);
    let mut cells = vec![
        quote(&variant.name),
        metric.to_owned(),
        number(Some(summary.mean)),
        number(summary.sd),
        summary.n.to_string(),
        number(comparison.and_then(|comparison| comparison.change_pct)),
    ];
    cells.extend(interval(change_ci95));
    cells.extend([
        number(published.map(|figure| figure.middle())),
        number(comparison.and_then(|comparison| comparison.published_pct)),
        number(band.and_then(|band| band.low)),
        number(band.and_then(|band| band.high)),
        number(summary.cv_pct),
        number(Some(summary.min)),
        number(Some(summary.p10)),
    ]);
    cells.extend(interval(summary.p10_ci95));
    cells.push(number(Some(summary.median)));
    cells.extend(interval(summary.median_ci95));
    cells.push(number(Some(summary.p90)));
    cells.extend(interval(summary.p90_ci95));
    cells.extend([number(Some(summary.max)), "variant".to_owned()]);
    cells
}

fn number(value: Option<f64>) -> String {
    value
        .filter(|value| value.is_finite())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

/// A cell, in quotes if it holds a separator (RFC 4180).
pub fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_quoted() {
        assert_eq!(quote("SIS_UTIL NO_SIS_PROP"), "SIS_UTIL NO_SIS_PROP");
        assert_eq!(quote("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
