//! What each metric is called in tables, its unit, and how it moves with the length of a run.

/// The unit of a metric, which decides how its values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// A number of things.
    Count,
    /// Thousands per second of CPU time.
    KPerCpuSecond,
    /// A number of CPUs.
    Cpus,
    /// Per cent.
    Percent,
    /// Microseconds.
    Micros,
    /// A number of things per second of time.
    PerSecond,
    /// Million bytes per second of time.
    MegabytesPerSecond,
}

/// How a metric is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Its name in JSON and CSV.
    pub name: &'static str,
    /// Its name in text, `perf stat`'s where it has one.
    pub label: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Whether it grows with the work done, so that a run at scale F shows about F of the whole.
    pub grows: bool,
}

const fn info(name: &'static str, label: &'static str, unit: Unit, grows: bool) -> MetricInfo {
    MetricInfo {
        name,
        label,
        unit,
        grows,
    }
}

const INFOS: &[MetricInfo] = &[
    info("usecs_per_op", "usecs/op", Unit::Micros, false),
    info("ops_per_s", "ops/sec", Unit::PerSecond, false),
    info("transactions_per_s", "transactions", Unit::PerSecond, false),
    info(
        "throughput_mb_per_s",
        "throughput",
        Unit::MegabytesPerSecond,
        false,
    ),
    info("requests_per_s", "requests", Unit::PerSecond, false),
    info(
        "request_latency_max_us",
        "request latency max",
        Unit::Micros,
        false,
    ),
    info("switches_per_s", "pipe switches", Unit::PerSecond, false),
    info("events_per_s", "events", Unit::PerSecond, false),
    info("noise_pct", "noise", Unit::Percent, false),
    info(
        "noise_max_pct",
        "noise, one gap a window",
        Unit::Percent,
        false,
    ),
    info(
        "window_run_delay_pct",
        "run delay in windows",
        Unit::Percent,
        false,
    ),
    info("hwlat_windows", "hwlat windows", Unit::Count, true),
    info("rtapp_loops", "rt-app loops", Unit::Count, true),
    info("rtapp_run_mean_us", "  run, mean", Unit::Micros, false),
    info(
        "rtapp_period_mean_us",
        "  period, mean",
        Unit::Micros,
        false,
    ),
    info("rtapp_slack_mean_us", "  slack, mean", Unit::Micros, false),
    info("rtapp_slack_min_us", "  slack, least", Unit::Micros, false),
    info("rtapp_wu_lat_p50_us", "  wu_lat p50", Unit::Micros, false),
    info("rtapp_wu_lat_p95_us", "  wu_lat p95", Unit::Micros, false),
    info("rtapp_wu_lat_p99_us", "  wu_lat p99", Unit::Micros, false),
    info("rtapp_wu_lat_max_us", "  wu_lat max", Unit::Micros, false),
    info("rtapp_missed", "  timers missed", Unit::Count, true),
    info("cores_pair", "cores with a pair", Unit::Cpus, false),
    info("cores_single", "cores with a single", Unit::Cpus, false),
    info("cores_none", "cores with none", Unit::Cpus, false),
    info("schbench_p50_us", "schbench p50", Unit::Micros, false),
    info("schbench_p75_us", "schbench p75", Unit::Micros, false),
    info("schbench_p90_us", "schbench p90", Unit::Micros, false),
    info("schbench_p95_us", "schbench p95", Unit::Micros, false),
    info("schbench_p99_us", "schbench p99", Unit::Micros, false),
    info("schbench_p99_5_us", "schbench p99.5", Unit::Micros, false),
    info("schbench_p99_9_us", "schbench p99.9", Unit::Micros, false),
    info("schbench_max_us", "schbench max", Unit::Micros, false),
    info("schbench_samples", "schbench samples", Unit::Count, true),
    info(
        "schbench_wakeup_p50_us",
        "schbench wake-up p50",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_wakeup_p90_us",
        "schbench wake-up p90",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_wakeup_p99_us",
        "schbench wake-up p99",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_wakeup_p99_9_us",
        "schbench wake-up p99.9",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_wakeup_max_us",
        "schbench wake-up max",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_request_p50_us",
        "schbench request p50",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_request_p90_us",
        "schbench request p90",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_request_p99_us",
        "schbench request p99",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_request_p99_9_us",
        "schbench request p99.9",
        Unit::Micros,
        false,
    ),
    info(
        "schbench_request_max_us",
        "schbench request max",
        Unit::Micros,
        false,
    ),
    info("schbench_rps_p20", "schbench RPS p20", Unit::Count, false),
    info("schbench_rps_p50", "schbench RPS p50", Unit::Count, false),
    info("schbench_rps_p90", "schbench RPS p90", Unit::Count, false),
    info("schbench_rps", "schbench RPS", Unit::Count, false),
    info("cyclictest_min_us", "cyclictest min", Unit::Micros, false),
    info("cyclictest_avg_us", "cyclictest avg", Unit::Micros, false),
    info("cyclictest_p99_us", "cyclictest p99", Unit::Micros, false),
    info("cyclictest_max_us", "cyclictest max", Unit::Micros, false),
    info("cyclictest_cycles", "cyclictest cycles", Unit::Count, true),
    info("time_s", "time", Unit::Seconds, true),
    info("task_clock_s", "task-clock", Unit::Seconds, true),
    info("cpus_utilized", "CPUs utilized", Unit::Cpus, false),
    info("context_switches", "context-switches", Unit::Count, true),
    info(
        "context_switches_k_per_cpu_s",
        "  rate",
        Unit::KPerCpuSecond,
        false,
    ),
    info("cpu_migrations", "cpu-migrations", Unit::Count, true),
    info(
        "cpu_migrations_k_per_cpu_s",
        "  rate",
        Unit::KPerCpuSecond,
        false,
    ),
    info(
        "stalled_backend_pct",
        "stalled-cycles-backend",
        Unit::Percent,
        false,
    ),
    info(
        "wakeup_latency_p50_us",
        "wake-up latency p50",
        Unit::Micros,
        false,
    ),
    info(
        "wakeup_latency_p95_us",
        "wake-up latency p95",
        Unit::Micros,
        false,
    ),
    info(
        "wakeup_latency_p99_us",
        "wake-up latency p99",
        Unit::Micros,
        false,
    ),
    info(
        "wakeup_latency_max_us",
        "wake-up latency max",
        Unit::Micros,
        false,
    ),
    info("rq_wait_s", "run-queue wait", Unit::Seconds, true),
    info("idle_s", "idle time", Unit::Seconds, true),
    info("wakeups", "wake-ups", Unit::Count, true),
    info("searches", "searches", Unit::Count, true),
    info("search_fast_path_pct", "  fast path", Unit::Percent, false),
    info("search_cpus_scanned", "  CPUs scanned", Unit::Count, true),
    info(
        "search_efficiency_pct",
        "  efficiency",
        Unit::Percent,
        false,
    ),
    info(
        "search_llc_efficiency_pct",
        "  efficiency in LLC",
        Unit::Percent,
        false,
    ),
    info("search_success_pct", "  success", Unit::Percent, false),
    info("newidle_pulled", "newidle pulled", Unit::Count, true),
    info("balance_pulled", "balance pulled", Unit::Count, true),
    info("active_balanced", "active balanced", Unit::Count, true),
    info("preemptions", "preemptions", Unit::Count, true),
    info("lost_races", "idle CPUs lost", Unit::Count, true),
];

/// Whether more of a metric is what one wants; none if it depends, as for counts of migrations.
pub fn more_is_better(name: &str) -> Option<bool> {
    const MORE: [&str; 6] = [
        "ops_per_s",
        "transactions_per_s",
        "throughput_mb_per_s",
        "requests_per_s",
        "switches_per_s",
        "events_per_s",
    ];
    const LESS: [&str; 7] = [
        "time_s",
        "usecs_per_op",
        "request_latency_max_us",
        "noise_pct",
        "noise_max_pct",
        "window_run_delay_pct",
        "rq_wait_s",
    ];
    let less = LESS.contains(&name) || name.starts_with("wakeup_latency_");
    (less || MORE.contains(&name)).then_some(!less)
}

/// How the metric with this name is shown. One that no table knows keeps its name, counts as a
/// number, and is never scaled.
pub fn of(name: &'static str) -> MetricInfo {
    let known = INFOS.iter().find(|info| info.name == name);
    known
        .copied()
        .unwrap_or(info(name, name, Unit::Count, false))
}

/// The metric of this name that some table knows.
pub fn find(name: &str) -> Option<MetricInfo> {
    INFOS.iter().find(|info| info.name == name).copied()
}

/// What a sentence calls the metric: its label, or its name where the label is only understood below another.
pub fn title(name: &'static str) -> &'static str {
    let label = of(name).label;
    if label.starts_with(' ') { name } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_a_run_is_described() {
        for (name, _) in wakelab_sim::METRICS {
            assert!(
                INFOS.iter().any(|info| info.name == *name),
                "{name} has no description"
            );
        }
    }

    #[test]
    fn every_metric_with_a_direction_is_described() {
        let directed = |info: &&MetricInfo| more_is_better(info.name).is_some();
        assert_eq!(INFOS.iter().filter(directed).count(), 17);
        assert_eq!(more_is_better("time_s"), Some(false));
        assert_eq!(more_is_better("events_per_s"), Some(true));
        assert_eq!(more_is_better("cpu_migrations"), None);
    }

    #[test]
    fn units_agree_with_the_suffixes_of_names() {
        let suffixes = [
            ("_mb_per_s", Unit::MegabytesPerSecond),
            ("_k_per_cpu_s", Unit::KPerCpuSecond),
            ("_per_s", Unit::PerSecond),
            ("_pct", Unit::Percent),
            ("_us", Unit::Micros),
            ("_s", Unit::Seconds),
        ];
        for info in INFOS {
            if let Some((_, unit)) = suffixes
                .iter()
                .find(|(suffix, _)| info.name.ends_with(suffix))
            {
                assert_eq!(info.unit, *unit, "{}", info.name);
            }
        }
    }
}
