//! rt-app's log, of which each line is one time that a thread went through a phase; here it becomes metrics.

use wakelab_machine::Ns;
use wakelab_sim::Metric;
use wakelab_sim::histogram::Histogram;

/// What the run of a file adds to the metrics of every run; those of timers only if it has one.
pub const METRICS: &[(&str, &str)] = &[
    (
        "rtapp_loops",
        "times that threads went through a phase: lines of rt-app's logs",
    ),
    (
        "rtapp_run_mean_us",
        "mean of 'run', the time that the run events of a phase took, us",
    ),
    (
        "rtapp_period_mean_us",
        "mean of 'period', the time that a whole phase took, us",
    ),
    (
        "rtapp_slack_mean_us",
        "mean of 'slack', the time left when timers were set, us",
    ),
    (
        "rtapp_slack_min_us",
        "the least of it; negative: a timer was past, us",
    ),
    (
        "rtapp_wu_lat_p50_us",
        "median of 'wu_lat', the time from timers to the threads that they woke, us",
    ),
    ("rtapp_wu_lat_p95_us", "95th percentile of it, us"),
    ("rtapp_wu_lat_p99_us", "99th percentile of it, us"),
    ("rtapp_wu_lat_max_us", "longest, us"),
    (
        "rtapp_missed",
        "timers that were past when they were to be set",
    ),
];

/// Metrics before those of timers.
const WITHOUT_TIMERS: usize = 3;

/// A line as it grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub start: Ns,
    /// Time in `run` and `runtime`.
    pub run: Ns,
    /// Time left at the last timer, or at all of them.
    pub slack: Option<i64>,
    /// Late by so much after the timers; none if none was waited for.
    pub late: Option<Ns>,
}

/// All lines.
#[derive(Clone, Debug)]
pub(super) struct Log {
    timers: bool,
    lines: u64,
    run: u128,
    period: u128,
    slacks: u64,
    slack_sum: i128,
    slack_min: Option<i64>,
    late: Histogram,
    pub missed: u64,
}

impl Log {
    pub fn new(timers: bool) -> Log {
        Log {
            timers,
            lines: 0,
            run: 0,
            period: 0,
            slacks: 0,
            slack_sum: 0,
            slack_min: None,
            late: Histogram::default(),
            missed: 0,
        }
    }

    /// A phase is through.
    pub fn add(&mut self, line: &Line, end: Ns) {
        self.lines += 1;
        self.run += u128::from(line.run.0);
        self.period += u128::from(end.0 - line.start.0);
        if let Some(slack) = line.slack {
            self.slacks += 1;
            self.slack_sum += i128::from(slack);
            self.slack_min = Some(self.slack_min.map_or(slack, |least| least.min(slack)));
        }
        if let Some(late) = line.late {
            self.late.record(late.0);
        }
    }

    pub fn metrics(&self) -> Vec<Metric> {
        let mean = |sum: f64, count: u64| sum / count.max(1) as f64 / 1e3;
        let late = |percent: f64| self.late.percentile(percent) / 1e3;
        let values = [
            self.lines as f64,
            mean(self.run as f64, self.lines),
            mean(self.period as f64, self.lines),
            mean(self.slack_sum as f64, self.slacks),
            self.slack_min.unwrap_or_default() as f64 / 1e3,
            late(50.0),
            late(95.0),
            late(99.0),
            self.late.max() as f64 / 1e3,
            self.missed as f64,
        ];
        let count = if self.timers {
            values.len()
        } else {
            WITHOUT_TIMERS
        };
        let named = METRICS.iter().zip(values).take(count);
        named
            .map(|((name, _), value)| Metric { name, value })
            .collect()
    }
}
