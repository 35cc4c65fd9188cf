//! A report as CSV: one line a variant and metric, always the same columns.

use crate::model::{Comparison, Report, VariantReport};
use crate::stats::Summary;

const COLUMNS: &str = "variant,metric,mean,sd,n,change_pct,ci95_low,ci95_high,published,published_pct,band_low_pct,band_high_pct";

/// The report as CSV with a header line. A cell is empty where there is nothing to say; numbers have
/// all their digits.
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
    text
}

fn line(
    report: &Report,
    variant: &VariantReport,
    metric: &str,
    summary: &Summary,
    comparison: Option<&Comparison>,
) -> Vec<String> {
    let interval = comparison.and_then(|comparison| comparison.ci95);
    let band = comparison.and_then(|comparison| comparison.band_pct);
    let published = report.published.value(&variant.name, metric);
    vec![
        quote(&variant.name),
        metric.to_owned(),
        number(Some(summary.mean)),
        number(summary.sd),
        summary.n.to_string(),
        number(comparison.and_then(|comparison| comparison.change_pct)),
        number(interval.map(|[low, _]| low)),
        number(interval.map(|[_, high]| high)),
        number(published.map(|figure| figure.middle())),
        number(comparison.and_then(|comparison| comparison.published_pct)),
        number(band.and_then(|band| band.low)),
        number(band.and_then(|band| band.high)),
    ]
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
