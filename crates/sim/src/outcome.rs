//! What a run gives: metrics named as `perf stat` names them, the decision audit, and what it cost
//! the host.

use crate::forced_idle::ForcedIdle;
use wakelab_machine::Ns;

/// One metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name in JSON and CSV, with the unit as suffix: `time_s`, `cpu_migrations`.
    pub name: &'static str,
    /// The value.
    pub value: f64,
}

/// A row of the decision audit: what became of the placements with one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
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

/// How busy one kind of shared cache line was.
#[derive(Clone, Debug, PartialEq)]
pub struct LineRow {
    /// The kind of line.
    pub line: &'static str,
    /// Transfers from one CPU to another.
    pub transfers: u64,
    /// Time that CPUs waited for lines of this kind to become free, s.
    pub waited_s: f64,
    /// Time that lines of this kind were occupied, % of the run, all lines of the kind together:
    /// near 100 for a single line that saturates.
    pub occupied_pct: f64,
}

/// What a run cost the host; apart from wall time all of it is deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCost {
    /// Events handled.
    pub events: u64,
    /// Simulated context switches.
    pub switches: u64,
    /// Simulated time.
    pub simulated: Ns,
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Metrics in the order in which tables show them.
    pub metrics: Vec<Metric>,
    /// The decision audit, by reason.
    pub audit: Vec<AuditRow>,
    /// How busy the shared cache lines were, by kind.
    pub lines: Vec<LineRow>,
    /// Forced idle, if tasks had core-scheduling cookies.
    pub forced_idle: Option<ForcedIdle>,
    /// Lines that the program itself would have written.
    pub log: Vec<String>,
    /// What it cost the host.
    pub host: HostCost,
}

/// Every metric of a run in the order of tables, with what it means.
pub const METRICS: &[(&str, &str)] = &[
    ("time_s", "time from the go to the end of the last task, s"),
    (
        "task_clock_s",
        "CPU time of all tasks and of the kernel on their behalf, s",
    ),
    ("cpus_utilized", "task-clock over time"),
    ("context_switches", "context switches"),
    (
        "context_switches_k_per_cpu_s",
        "context switches, thousands per second of task-clock",
    ),
    ("cpu_migrations", "tasks that changed CPU"),
    (
        "cpu_migrations_k_per_cpu_s",
        "migrations, thousands per second of task-clock",
    ),
    (
        "stalled_backend_pct",
        "share of busy time spent waiting for cache lines, %",
    ),
    (
        "wakeup_latency_p50_us",
        "median time from wake-up to running, us",
    ),
    ("wakeup_latency_p95_us", "95th percentile of it, us"),
    ("wakeup_latency_p99_us", "99th percentile of it, us"),
    ("wakeup_latency_max_us", "longest, us"),
    ("rq_wait_s", "time runnable but not running, all tasks, s"),
    ("idle_s", "idle time of all CPUs, s"),
    ("wakeups", "wake-ups"),
    ("searches", "calls of select_idle_sibling"),
    (
        "search_fast_path_pct",
        "of these, decided without looking through an LLC, %",
    ),
    ("search_cpus_scanned", "CPUs looked at"),
    (
        "search_efficiency_pct",
        "searches by CPUs looked at, one for each that the fast path decided, at most 100 %",
    ),
    (
        "search_llc_efficiency_pct",
        "searches of an LLC by CPUs looked at there, at most 100 %",
    ),
    ("search_success_pct", "searches that found an idle CPU, %"),
    ("newidle_pulled", "tasks pulled by newly-idle balancing"),
    (
        "balance_pulled",
        "tasks pulled by periodic and NOHZ balancing",
    ),
    ("active_balanced", "running tasks moved by active balancing"),
    ("preemptions", "involuntary context switches"),
    (
        "lost_races",
        "wake-ups whose CPU was idle when it was chosen and no longer when the task was queued",
    ),
];
