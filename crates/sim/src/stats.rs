//! Counters of a run, and the metrics and audit that they become.

use crate::forced_idle::Causes;
use crate::histogram::Histogram;
use crate::outcome::{AuditRow, Metric};
use wakelab_sched::placement::{Decision, Reason};

/// Counters of the measured part.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Context switches away from a task.
    pub switches: u64,
    /// Of these, of a task that would have gone on.
    pub preemptions: u64,
    /// Tasks that changed CPU.
    pub migrations: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Wake-ups whose CPU was idle when it was chosen, and no longer when the task was queued.
    pub lost_races: u64,
    /// Busy time spent waiting for cache lines, ns.
    pub stalled: u64,
    /// Time runnable and not running, all tasks, ns.
    pub rq_wait: u64,
    /// What force idle came from.
    pub(crate) forced: Causes,
    latency: Histogram,
    searches: Searches,
    audit: Vec<AuditCounts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Searches {
    calls: u64,
    fast_path: u64,
    scanned: u64,
    success: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct AuditCounts {
    decisions: u64,
    migrations: u64,
    scanned: u64,
    ran: u64,
    ran_at_once: u64,
    waited: u64,
    waited_max: u64,
    moved_again: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            switches: 0,
            preemptions: 0,
            migrations: 0,
            wakeups: 0,
            lost_races: 0,
            stalled: 0,
            rq_wait: 0,
            forced: Causes::default(),
            latency: Histogram::default(),
            searches: Searches::default(),
            audit: vec![AuditCounts::default(); Reason::ALL.len()],
        }
    }
}

impl Stats {
    /// A placement was decided.
    #[inline(always)]
    pub fn decided(&mut self, decision: &Decision, migrates: bool) {
        let search = &decision.searched;
        self.searches.calls += u64::from(search.called);
        self.searches.fast_path += u64::from(search.fast);
        self.searches.scanned += u64::from(search.scanned);
        self.searches.success += u64::from(search.success);
        let row = &mut self.audit[decision.reason as usize];
        row.decisions += 1;
        row.migrations += u64::from(migrates);
        row.scanned += u64::from(search.scanned);
    }

    /// A wake-up left its task where it was.
    pub fn left(&mut self, reason: Reason) {
        self.audit[reason as usize].decisions += 1;
    }

    /// A woken task runs.
    #[inline(always)]
    pub fn ran(&mut self, reason: Reason, latency: u64, placed_idle: bool, moved: bool) {
        self.latency.record(latency);
        let row = &mut self.audit[reason as usize];
        row.ran += 1;
        row.ran_at_once += u64::from(placed_idle && !moved);
        row.waited += latency;
        row.waited_max = row.waited_max.max(latency);
        row.moved_again += u64::from(moved);
    }

    /// The metrics of a run that took `time` ns, with `busy` ns in tasks on `ncpu` CPUs.
    pub fn metrics(&self, time: u64, busy: u64, ncpu: usize, balance: [u64; 3]) -> Vec<Metric> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let share = |part: u64, whole: u64| {
            if whole == 0 {
                0.0
            } else {
                part as f64 / whole as f64
            }
        };
        // A search may look at no CPU at all (SIS_UTIL, of an LLC in full use): more searches than CPUs
        // looked at are no better than one for each.
        let efficiency = |searches, looked_at| 100.0 * share(searches, looked_at).min(1.0);
        let per_cpu_second = |n: u64| share(n, busy) * 1e6;
        let search = &self.searches;
        let us = |percent: f64| self.latency.percentile(percent) / 1e3;
        let values = [
            ("time_s", seconds(time)),
            ("task_clock_s", seconds(busy)),
            ("cpus_utilized", share(busy, time)),
            ("context_switches", self.switches as f64),
            (
                "context_switches_k_per_cpu_s",
                per_cpu_second(self.switches),
            ),
            ("cpu_migrations", self.migrations as f64),
            (
                "cpu_migrations_k_per_cpu_s",
                per_cpu_second(self.migrations),
            ),
            ("stalled_backend_pct", 100.0 * share(self.stalled, busy)),
            ("wakeup_latency_p50_us", us(50.0)),
            ("wakeup_latency_p95_us", us(95.0)),
            ("wakeup_latency_p99_us", us(99.0)),
            ("wakeup_latency_max_us", self.latency.max() as f64 / 1e3),
            ("rq_wait_s", seconds(self.rq_wait)),
            ("idle_s", seconds((time * ncpu as u64).saturating_sub(busy))),
            ("wakeups", self.wakeups as f64),
            ("searches", search.calls as f64),
            (
                "search_fast_path_pct",
                100.0 * share(search.fast_path, search.calls),
            ),
            ("search_cpus_scanned", search.scanned as f64),
            (
                "search_efficiency_pct",
                efficiency(search.calls, search.fast_path + search.scanned),
            ),
            (
                "search_llc_efficiency_pct",
                efficiency(search.calls - search.fast_path, search.scanned),
            ),
            (
                "search_success_pct",
                100.0 * share(search.success, search.calls),
            ),
            ("newidle_pulled", balance[0] as f64),
            ("balance_pulled", balance[1] as f64),
            ("active_balanced", balance[2] as f64),
            ("preemptions", self.preemptions as f64),
            ("lost_races", self.lost_races as f64),
        ];
        values.map(|(name, value)| Metric { name, value }).to_vec()
    }

    /// The decision audit: the reasons that occurred.
    pub fn audit(&self) -> Vec<AuditRow> {
        let rows = Reason::ALL
            .iter()
            .zip(&self.audit)
            .filter(|(_, row)| row.decisions > 0);
        rows.map(|(reason, row)| AuditRow {
            reason: reason.name(),
            decisions: row.decisions,
            migrations: row.migrations,
            scanned: row.scanned,
            ran_at_once: row.ran_at_once,
            wait_mean_ns: if row.ran == 0 {
                0.0
            } else {
                row.waited as f64 / row.ran as f64
            },
            wait_max_ns: row.waited_max,
            moved_again: row.moved_again,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::METRICS;

    #[test]
    fn metrics_come_in_the_documented_order() {
        let names: Vec<&str> = Stats::default()
            .metrics(1, 1, 1, [0; 3])
            .iter()
            .map(|m| m.name)
            .collect();
        assert_eq!(names, METRICS.iter().map(|m| m.0).collect::<Vec<_>>());
    }
}
