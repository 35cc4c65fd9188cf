//! The matrix as text and as CSV.

use super::cell::Better;
use super::results::{CellResult, Matrix, Verdict};
use std::fmt::Write as _;
use wakelab_report::number;
use wakelab_report::stats::Change;
use wakelab_report::table::{Align, Table};

impl Matrix {
    /// For people: a row a machine and workload, a column a load, then what it comes to.
    pub fn to_text(&self) -> String {
        let of = &self.conditions;
        let mut text = format!(
            "{} on kernel {}, {}, scale {}, {} paired runs a cell, seed {}\n\n",
            of.features.join(" "),
            of.kernel,
            of.grouping,
            of.scale,
            of.runs,
            of.seed
        );
        text += &self.table();
        text += &self.metrics();
        text += &self.summary();
        text
    }

    fn loads(&self) -> Vec<u32> {
        let mut loads: Vec<u32> = self.cells.iter().map(|of| of.cell.load_pct).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    fn table(&self) -> String {
        let loads = self.loads();
        let heads: Vec<String> = loads.iter().map(|load| format!("{load} %")).collect();
        let mut columns = vec![("machine", Align::Left), ("workload", Align::Left)];
        columns.extend(heads.iter().map(|head| (head.as_str(), Align::Left)));
        let mut table = Table::new(&columns);
        let same_row = |a: &CellResult, b: &CellResult| {
            (&a.cell.machine, a.cell.kind) == (&b.cell.machine, b.cell.kind)
        };
        for row in self.cells.chunk_by(same_row) {
            let entry = |load: &u32| {
                let mut row = row.iter();
                row.find(|of| of.cell.load_pct == *load)
                    .map_or(String::new(), entry)
            };
            let mut cells = vec![
                row[0].cell.machine.clone(),
                row[0].cell.kind.name().to_owned(),
            ];
            cells.extend(loads.iter().map(entry));
            table.row(cells);
        }
        table.render()
    }

    /// What the figures are of.
    fn metrics(&self) -> String {
        let mut text = "\nThe change of ".to_owned();
        let mut kinds: Vec<_> = self.cells.iter().map(|of| of.cell.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let names = kinds.iter().map(|kind| {
            let (metric, better) = kind.metric();
            let better = match better {
                Better::Lower => "less is better",
                Better::Higher => "more is better",
            };
            format!("{} ({}, {better})", metric, kind.name())
        });
        text += &names.collect::<Vec<_>>().join(", ");
        text + ",\nwith the half width of its 95 % interval; ~: nothing can be said; =: no run differs; -: the \
                workload does not come in this size.\n"
    }

    fn summary(&self) -> String {
        let count = |verdict| self.count(verdict);
        let (helps, hurts) = (count(Verdict::Helps), count(Verdict::Hurts));
        let tested = helps + hurts + count(Verdict::Unclear);
        let mut text = format!(
            "\nIt helps in {helps} cells, hurts in {hurts}, changes nothing in {}, and nothing can be said in {}.\n",
            count(Verdict::Same),
            count(Verdict::Unclear),
        );
        // A 95 % interval leaves out the truth in one of 20 cases, half of them on either side.
        let chance = tested as f64 * 0.025;
        let _ = writeln!(
            text,
            "If it did nothing at all, about {chance:.1} cells would seem to help and as many to hurt, by chance."
        );
        for (what, verdict) in [
            ("Helps most", Verdict::Helps),
            ("Hurts most", Verdict::Hurts),
        ] {
            text += &self.extremes(what, verdict);
        }
        if self.cells.len() < self.cells_asked {
            let (done, asked) = (self.cells.len(), self.cells_asked);
            let _ = writeln!(text, "Not all is done: {done} of {asked} cells.");
        }
        text
    }

    /// The cells with the largest changes of a verdict.
    fn extremes(&self, what: &str, verdict: Verdict) -> String {
        const SHOWN: usize = 5;
        let mut cells: Vec<&CellResult> = self
            .cells
            .iter()
            .filter(|of| of.verdict == verdict)
            .collect();
        let size = |of: &&CellResult| of.change_pct.unwrap_or(0.0).abs();
        cells.sort_by(|a, b| size(b).total_cmp(&size(a)));
        cells.truncate(SHOWN);
        if cells.is_empty() {
            return String::new();
        }
        let mut text = format!("{what}:\n");
        for of in cells {
            let _ = writeln!(text, "  {} {}", entry(of), command(of));
        }
        text
    }

    /// One line a cell.
    pub fn to_csv(&self) -> String {
        let mut text =
            "machine,workload,load_pct,command_line,metric,better,baseline,changed,change_pct,\
                        ci95_low,ci95_high,verdict\n"
                .to_owned();
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for of in &self.cells {
            let better = match of.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
            };
            let _ = writeln!(
                text,
                "{},{},{},{},{},{better},{},{},{},{},{},{}",
                of.cell.machine,
                of.cell.kind.name(),
                of.cell.load_pct,
                of.workload.as_deref().unwrap_or_default(),
                of.metric,
                number(of.baseline),
                number(of.changed),
                number(of.change_pct),
                number(of.ci95.map(|ends| ends[0])),
                number(of.ci95.map(|ends| ends[1])),
                word(of.verdict),
            );
        }
        text
    }
}

fn command(of: &CellResult) -> String {
    format!(
        "--machine {} --workload '{}'",
        of.cell.machine,
        of.workload.as_deref().unwrap_or_default()
    )
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Helps => "helps",
        Verdict::Hurts => "hurts",
        Verdict::Same => "same",
        Verdict::Unclear => "unclear",
        Verdict::Unfit => "unfit",
    }
}

/// `helps -34.1 % ±2.3`.
fn entry(of: &CellResult) -> String {
    let change = of.change_pct.map(|pct| Change { pct, ci95: of.ci95 });
    match (of.verdict, change) {
        (Verdict::Same, _) => "=".to_owned(),
        (Verdict::Unfit, _) => "-".to_owned(),
        (Verdict::Unclear, Some(change)) => number::change(&change),
        (Verdict::Unclear, None) => "~".to_owned(),
        (verdict, Some(change)) => format!("{} {}", word(verdict), number::change(&change)),
        (verdict, None) => word(verdict).to_owned(),
    }
}
