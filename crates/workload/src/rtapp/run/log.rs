//! rt-app's log, of which each line is one time that a thread went through a phase; here it becomes metrics,
//! and is written out if somebody asks for it.

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
    /// Loops of them.
    pub perf: u64,
    /// Time that they were to take.
    pub c_duration: Ns,
    /// Sum of the timers' periods.
    pub c_period: Ns,
    /// Time left at the last timer, or at all of them.
    pub slack: Option<i64>,
    /// Late by so much after the timers; none if none was waited for.
    pub late: Option<Ns>,
}

/// Lines that are written out; what comes later is only counted. rt-app itself stops at no number, but
/// has `log_size` for its memory.
const MAX_KEPT: usize = 1 << 20;

/// A whole line.
#[derive(Clone, Copy, Debug)]
struct Kept {
    thread: u32,
    line: Line,
    end: Ns,
}

/// All lines.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// To be written out, by their ends; none if nobody asks.
    kept: Option<Vec<Kept>>,
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
    pub fn new(timers: bool, keeps: bool) -> Log {
        Log {
            kept: keeps.then(Vec::new),
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

    /// A thread is through a phase.
    pub fn add(&mut self, thread: usize, line: &Line, end: Ns) {
        self.lines += 1;
        if let Some(kept) = &mut self.kept
            && kept.len() < MAX_KEPT
        {
            kept.push(Kept {
                thread: thread as u32,
                line: *line,
                end,
            });
        }
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

    /// The log of a thread as rt-app writes it, from its second line on: times are from the start of the
    /// simulation, and `rel_st` is from `zero`. Nothing if no log was asked for.
    pub fn written(&self, thread: usize, zero: Ns) -> Option<Vec<String>> {
        let kept = self.kept.as_ref()?;
        let head = format!(
            "{} {:>8} {:>8} {:>8} {:>15} {:>15} {:>15} {:>10} {:>10} {:>10} {:>10}",
            "#idx",
            "perf",
            "run",
            "period",
            "start",
            "end",
            "rel_st",
            "slack",
            "c_duration",
            "c_period",
            "wu_lat"
        );
        let own = kept.iter().filter(|kept| kept.thread as usize == thread);
        // The main task is the first.
        let lines = own.map(|kept| kept.written(thread - 1, zero));
        Some(std::iter::once(head).chain(lines).collect())
    }

    /// How many lines came after the last that is written out.
    pub fn left_out(&self) -> u64 {
        let kept = self
            .kept
            .as_ref()
            .map_or(self.lines, |kept| kept.len() as u64);
        self.lines - kept
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

impl Kept {
    fn written(&self, index: usize, zero: Ns) -> String {
        let Kept { line, end, .. } = self;
        let us = |ns: u64| (ns + 500) / 1000;
        let slack = (line.slack.unwrap_or(0) as f64 / 1e3).round() as i64;
        format!(
            "{index:>4} {:>8} {:>8} {:>8} {:>15} {:>15} {:>15} {slack:>10} {:>10} {:>10} {:>10}",
            line.perf,
            us(line.run.0),
            us(end.0 - line.start.0),
            us(line.start.0),
            us(end.0),
            us(line.start.0.saturating_sub(zero.0)),
            us(line.c_duration.0),
            us(line.c_period.0),
            us(line.late.unwrap_or_default().0),
        )
    }
}
