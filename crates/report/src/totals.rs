//! The decision audit and the shared cache lines of a variant, over all its runs.

use serde::Serialize;
use wakelab_sim::{AuditRow, LineRow, Outcome};

/// A row of the decision audit, summed over the runs of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditTotal {
    /// The reason's name.
    pub reason: &'static str,
    /// Placements.
    pub decisions: u64,
    /// Of these, to another CPU than the previous one.
    pub migrations: u64,
    /// CPUs looked at in searches.
    pub scanned: u64,
    /// Placed on a CPU that was idle, so that the task ran at once.
    pub ran_at_once: u64,
    /// Mean time from the wake-up to running, ns.
    pub wait_mean_ns: f64,
    /// Longest time from the wake-up to running, ns.
    pub wait_max_ns: u64,
    /// Moved by load balancing before it ran.
    pub moved_again: u64,
}

impl AuditTotal {
    fn new(reason: &'static str) -> AuditTotal {
        AuditTotal {
            reason,
            decisions: 0,
            migrations: 0,
            scanned: 0,
            ran_at_once: 0,
            wait_mean_ns: 0.0,
            wait_max_ns: 0,
            moved_again: 0,
        }
    }

    fn add(&mut self, row: &AuditRow) {
        let wait_ns =
            self.wait_mean_ns * self.decisions as f64 + row.wait_mean_ns * row.decisions as f64;
        self.decisions += row.decisions;
        self.wait_mean_ns = if self.decisions == 0 {
            0.0
        } else {
            wait_ns / self.decisions as f64
        };
        self.wait_max_ns = self.wait_max_ns.max(row.wait_max_ns);
        self.migrations += row.migrations;
        self.scanned += row.scanned;
        self.ran_at_once += row.ran_at_once;
        self.moved_again += row.moved_again;
    }
}

/// One kind of shared cache line, over the runs of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineTotal {
    /// The kind of line.
    pub line: &'static str,
    /// Transfers from one CPU to another, all runs.
    pub transfers: u64,
    /// Time that CPUs waited for lines of this kind to become free, s, all runs.
    pub waited_s: f64,
    /// Share of a run in which lines of this kind were occupied, %, the mean of the runs.
    pub occupied_pct: f64,
}

impl LineTotal {
    fn new(line: &'static str) -> LineTotal {
        LineTotal {
            line,
            transfers: 0,
            waited_s: 0.0,
            occupied_pct: 0.0,
        }
    }

    fn add(&mut self, row: &LineRow, runs: usize) {
        self.transfers += row.transfers;
        self.waited_s += row.waited_s;
        self.occupied_pct += row.occupied_pct / runs as f64;
    }
}

/// The decision audit summed over runs, reasons in the order in which they first occur.
pub fn audit(outcomes: &[Outcome]) -> Vec<AuditTotal> {
    let mut totals: Vec<AuditTotal> = Vec::new();
    for row in outcomes.iter().flat_map(|outcome| &outcome.audit) {
        let place = totals
            .iter()
            .position(|total| total.reason == row.reason)
            .unwrap_or_else(|| {
                totals.push(AuditTotal::new(row.reason));
                totals.len() - 1
            });
        totals[place].add(row);
    }
    totals
}

/// The shared cache lines over runs, kinds in the order in which they first occur.
pub fn lines(outcomes: &[Outcome]) -> Vec<LineTotal> {
    let mut totals: Vec<LineTotal> = Vec::new();
    for row in outcomes.iter().flat_map(|outcome| &outcome.lines) {
        let place = totals
            .iter()
            .position(|total| total.line == row.line)
            .unwrap_or_else(|| {
                totals.push(LineTotal::new(row.line));
                totals.len() - 1
            });
        totals[place].add(row, outcomes.len());
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakelab_sim::HostCost;

    fn row(decisions: u64, wait_mean_ns: f64, wait_max_ns: u64) -> AuditRow {
        let (migrations, scanned, ran_at_once, moved_again) = (1, 2, 3, 4);
        AuditRow {
            reason: "prev idle",
            decisions,
            migrations,
            scanned,
            ran_at_once,
            wait_mean_ns,
            wait_max_ns,
            moved_again,
        }
    }

    fn of_line(transfers: u64, occupied_pct: f64) -> Outcome {
        let row = LineRow {
            line: "tg load_avg",
            transfers,
            waited_s: 0.5,
            occupied_pct,
        };
        Outcome {
            metrics: Vec::new(),
            audit: Vec::new(),
            lines: vec![row],
            forced_idle: None,
            log: Vec::new(),
            host: HostCost::default(),
        }
    }

    #[test]
    fn lines_add_up_and_their_occupation_is_the_mean() {
        let totals = lines(&[of_line(10, 90.0), of_line(30, 50.0)]);
        let expected = LineTotal {
            line: "tg load_avg",
            transfers: 40,
            waited_s: 1.0,
            occupied_pct: 70.0,
        };
        assert_eq!(totals, [expected]);
    }

    #[test]
    fn audits_add_up_and_weigh_the_waits_by_decisions() {
        let outcome = |row| Outcome {
            metrics: Vec::new(),
            audit: vec![row],
            lines: Vec::new(),
            forced_idle: None,
            log: Vec::new(),
            host: HostCost::default(),
        };
        let totals = audit(&[
            outcome(row(100, 10.0, 50)),
            outcome(row(300, 50.0, 40)),
            outcome(row(0, 0.0, 0)),
        ]);
        assert_eq!(totals.len(), 1);
        let total = &totals[0];
        assert_eq!(
            (total.decisions, total.migrations, total.scanned),
            (400, 3, 6)
        );
        assert_eq!(
            (total.wait_mean_ns, total.wait_max_ns, total.moved_again),
            (40.0, 50, 12)
        );
    }
}
