//! A report as text.

use crate::factorial;
use crate::forced_idle;
use crate::metric::{self, MetricInfo, Unit};
use crate::model::{Comparison, Report, VariantReport};
use crate::number;
use crate::precision::Precision;
use crate::sensitivity;
use crate::table::{Align, Table};
use std::fmt::Write as _;

/// What to print beside the comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Spread and percentiles of every metric.
    pub stats: bool,
    /// The decision audit of each variant.
    pub audit: bool,
}

/// The report as text: what was run, a table for each variant against the baseline, and what it
/// cost the host.
pub fn render(report: &Report, options: Options) -> String {
    let mut sections = vec![head(report)];
    if report.runs == 0 {
        sections.push("no run of every variant was complete\n".to_owned());
    } else if report.variants.len() == 1 {
        sections.push(alone(&report.variants[0]));
    } else {
        sections.extend(
            report.variants[1..]
                .iter()
                .map(|variant| against_baseline(report, variant)),
        );
    }
    if options.stats && report.runs > 0 {
        sections.extend(report.variants.iter().map(spread));
    }
    if let Some(factorial) = &report.factorial {
        let main = &report.setup.main_metrics;
        sections.push(factorial::render(factorial, main));
    }
    sections.extend(report.precision.as_ref().map(|of| precision(report, of)));
    if report
        .comparisons
        .iter()
        .any(|comparison| comparison.band_pct.is_some())
    {
        sections.push(band(report));
    }
    sections.extend(report.sensitivity.as_ref().map(sensitivity::render));
    if options.audit && report.runs > 0 {
        for variant in &report.variants {
            sections.push(audit(variant));
            sections.push(lines(variant));
            let forced = variant.forced_idle.as_ref();
            sections.extend(forced.map(|total| forced_idle::render(&variant.name, total)));
        }
    }
    sections.push(host(report));
    sections.join("\n")
}

fn head(report: &Report) -> String {
    let setup = &report.setup;
    let mut text = format!("{}: {}\n", setup.experiment, setup.title);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    line("machine", &setup.machine);
    line("kernel", &format!("{}, {}", setup.kernel, setup.grouping));
    if !setup.features.is_empty() {
        line("features", &setup.features.join(" "));
    }
    if !setup.domains.is_empty() {
        line("domains", &setup.domains.join(" "));
    }
    line("workload", &setup.workload);
    let runs = if report.is_partial() {
        format!("{} of {} (interrupted)", report.runs, setup.runs_asked)
    } else {
        report.runs.to_string()
    };
    line(
        "scale",
        &format!(
            "{}, runs {runs}, seed {}, wakelab {}",
            setup.scale, setup.seed, setup.version
        ),
    );
    if !report.published.source.is_empty() {
        line("published", &report.published.source);
    }
    if setup.scale != 1.0 {
        text.push_str(&scale_note(report));
    }
    text
}

fn scale_note(report: &Report) -> String {
    let scale = report.setup.scale;
    let mut note = format!(
        "  Loops ran at {scale} of full length: times and counts are those of the shorter run.\n"
    );
    if !report.published.source.is_empty() {
        note.push_str(
            "  For the errors against published figures they are divided by the scale.\n",
        );
    }
    note
}

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// A single variant has nothing to be compared with: its means and spreads.
fn alone(variant: &VariantReport) -> String {
    let mut table = Table::new(&[("metric", LEFT), ("mean", RIGHT), ("spread", RIGHT)]);
    for (name, summary) in &variant.metrics {
        let info = metric::of(name);
        let spread = summary
            .cv_pct
            .map(|cv| format!("{cv:.1} %"))
            .unwrap_or_default();
        table.row(vec![
            info.label.to_owned(),
            number::value(summary.mean, info.unit),
            spread,
        ]);
    }
    format!("{}\n{}", variant.name, table.render())
}

/// Mean, spread and percentiles of every metric over a variant's runs.
fn spread(variant: &VariantReport) -> String {
    let columns = [
        "mean",
        "sd",
        "CV",
        "min",
        "p10",
        "median",
        "median's 95 %",
        "p90",
        "max",
    ];
    let columns = columns.map(|name| (name, RIGHT));
    let mut table = Table::new(&[&[("metric", LEFT)], &columns[..]].concat());
    for (name, summary) in &variant.metrics {
        let info = metric::of(name);
        let value = |value: f64| number::value(value, info.unit);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let interval = summary.median_ci95;
        let interval = interval.map(|[low, high]| format!("{} to {}", value(low), value(high)));
        table.row(vec![
            info.label.to_owned(),
            value(summary.mean),
            or_dash(summary.sd.map(value)),
            or_dash(summary.cv_pct.map(|cv| format!("{cv:.1} %"))),
            value(summary.min),
            value(summary.p10),
            value(summary.median),
            or_dash(interval),
            value(summary.p90),
            value(summary.max),
        ]);
    }
    format!("runs of {}\n{}", variant.name, table.render())
}

/// How near the runs came to the precision that was asked for.
fn precision(report: &Report, of: &Precision) -> String {
    let metrics: Vec<&str> = report
        .setup
        .main_metrics
        .iter()
        .copied()
        .map(metric::title)
        .collect();
    let asked = format!(
        "precision of {}: ±{} pp asked for",
        metrics.join(", "),
        of.asked_pp
    );
    let reached = match of.reached_pp {
        None => "there is a change without an interval".to_owned(),
        Some(half) if of.is_reached() => format!("±{half:.2} pp after {} runs", report.runs),
        Some(half) => format!(
            "NOT REACHED, ±{half:.2} pp after {} runs of at most {}",
            report.runs, of.max_runs
        ),
    };
    format!("{asked}, {reached}\n")
}

fn against_baseline(report: &Report, variant: &VariantReport) -> String {
    let any_published = report.variants.iter().any(|variant| {
        variant
            .metrics
            .iter()
            .any(|(name, _)| report.published.value(&variant.name, name).is_some())
    });
    let mut columns = vec![
        ("metric", LEFT),
        ("baseline", RIGHT),
        ("new", RIGHT),
        ("change", RIGHT),
    ];
    if any_published {
        let published = [
            "pub base",
            "pub new",
            "pub change",
            "err base",
            "err new",
            "err change",
        ];
        columns.extend(published.map(|name| (name, RIGHT)));
    }
    let mut table = Table::new(&columns);
    for comparison in report.comparisons_of(&variant.name) {
        let info = metric::of(comparison.metric);
        let mut cells = simulated_cells(report, variant, comparison, info);
        if any_published {
            cells.extend(published_cells(report, variant, comparison, info));
        }
        table.row(cells);
    }
    format!(
        "{} against {}\n{}{}",
        variant.name,
        report.variants[0].name,
        own(variant),
        table.render()
    )
}

/// What a variant has of its own beside features, a line each.
fn own(variant: &VariantReport) -> String {
    let mut lines = String::new();
    if !variant.domains.is_empty() {
        let _ = writeln!(lines, "  domains   {}", variant.domains.join(" "));
    }
    if let Some(workload) = &variant.workload {
        let _ = writeln!(lines, "  workload  {workload}");
    }
    lines
}

fn simulated_cells(
    report: &Report,
    variant: &VariantReport,
    of: &Comparison,
    info: MetricInfo,
) -> Vec<String> {
    let mean = |variant: &VariantReport| {
        let summary = variant.metric(of.metric);
        summary.map_or_else(
            || "-".to_owned(),
            |summary| number::value(summary.mean, info.unit),
        )
    };
    let change = of
        .change()
        .map_or_else(|| "-".to_owned(), |change| number::change(&change));
    vec![
        info.label.to_owned(),
        mean(&report.variants[0]),
        mean(variant),
        change,
    ]
}

/// Published baseline, variant and change, and by how much the simulation misses each.
fn published_cells(
    report: &Report,
    variant: &VariantReport,
    of: &Comparison,
    info: MetricInfo,
) -> Vec<String> {
    let baseline = &report.variants[0];
    let figure = |variant: &VariantReport| {
        let figure = report.published.value(&variant.name, of.metric);
        figure
            .map(|figure| figure.text(info.unit))
            .unwrap_or_default()
    };
    let error = |variant: &VariantReport| {
        let mean = variant.metric(of.metric)?.mean;
        let error =
            report
                .published
                .error_pct(&variant.name, of.metric, mean, report.setup.scale)?;
        Some(number::percent_change(error))
    };
    vec![
        figure(baseline),
        figure(variant),
        of.published_pct
            .map(number::percent_change)
            .unwrap_or_default(),
        error(baseline).unwrap_or_default(),
        error(variant).unwrap_or_default(),
        of.error_points().map(number::points).unwrap_or_default(),
    ]
}

fn band(report: &Report) -> String {
    let columns = [
        ("metric", LEFT),
        ("variant", LEFT),
        ("low", RIGHT),
        ("nominal", RIGHT),
        ("high", RIGHT),
        ("published", RIGHT),
    ];
    let mut table = Table::new(&columns);
    let text = |pct: Option<f64>| pct.map_or_else(|| "-".to_owned(), number::percent_change);
    for comparison in &report.comparisons {
        let Some(band) = comparison.band_pct else {
            continue;
        };
        table.row(vec![
            comparison.metric.to_owned(),
            comparison.variant.clone(),
            text(band.low),
            text(band.nominal),
            text(band.high),
            comparison
                .published_pct
                .map(number::percent_change)
                .unwrap_or_default(),
        ]);
    }
    format!(
        "change over the machine's cost ranges, all costs at their low ends, their values, their high ends\n{}",
        table.render()
    )
}

/// The decision audit of a variant: what became of its placements, by reason.
pub fn audit(variant: &VariantReport) -> String {
    let names = [
        "share",
        "decisions",
        "migrated",
        "scanned",
        "ran at once",
        "wait mean",
        "wait max",
        "moved again",
    ];
    let mut columns = vec![("reason", LEFT)];
    columns.extend(names.map(|name| (name, RIGHT)));
    let mut table = Table::new(&columns);
    let all: u64 = variant.audit.iter().map(|row| row.decisions).sum();
    for row in &variant.audit {
        let of_row = |part: u64| percent(part, row.decisions);
        table.row(vec![
            row.reason.to_owned(),
            percent(row.decisions, all),
            number::count(row.decisions as f64),
            of_row(row.migrations),
            number::count(row.scanned as f64),
            of_row(row.ran_at_once),
            format!("{:.2} us", row.wait_mean_ns / 1e3),
            format!("{:.2} us", row.wait_max_ns as f64 / 1e3),
            of_row(row.moved_again),
        ]);
    }
    format!(
        "decision audit of {}, all runs\n{}",
        variant.name,
        table.render()
    )
}

/// How busy the shared cache lines of a variant's runs were.
fn lines(variant: &VariantReport) -> String {
    let mut table = Table::new(&[
        ("line", LEFT),
        ("transfers", RIGHT),
        ("waited", RIGHT),
        ("occupied", RIGHT),
    ]);
    for row in &variant.lines {
        table.row(vec![
            row.line.to_owned(),
            number::count(row.transfers as f64),
            number::value(row.waited_s, Unit::Seconds),
            number::value(row.occupied_pct, Unit::Percent),
        ]);
    }
    format!(
        "shared cache lines of {}, all runs\n{}",
        variant.name,
        table.render()
    )
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.2} %", 100.0 * part as f64 / whole as f64)
    }
}

fn host(report: &Report) -> String {
    let host = &report.host;
    let speed = host
        .switches_per_cpu_s()
        .map(|speed| format!(", {} switches per host-CPU-second", number::count(speed)));
    format!(
        "host: {:.1} s wall, {:.1} s CPU, {:.3} s simulated, {} events, {} switches{}\n",
        host.wall_s,
        host.cpu_s,
        host.simulated_s,
        number::count(host.events as f64),
        number::count(host.switches as f64),
        speed.unwrap_or_default(),
    )
}
