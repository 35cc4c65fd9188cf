//! What `cyclictest` prints at the end.

use super::Histogram;
use std::fmt::Write;
use wakelab_sched::TaskId;

/// What the threads recorded.
#[derive(Clone, Debug)]
pub(super) struct Record {
    threads: Vec<ThreadRecord>,
    histogram: Option<Histogram>,
    latency_us: Option<u64>,
    /// A thread has done all its intervals.
    pub ended: bool,
}

#[derive(Clone, Debug)]
struct ThreadRecord {
    task: TaskId,
    interval_us: u64,
    cycles: u64,
    min: u32,
    max: u32,
    last: u32,
    sum: u64,
    /// By latency in us.
    histogram: Vec<u64>,
    overflows: u64,
    /// The intervals in which the first of them were.
    overflow_cycles: Vec<u64>,
}

/// The smallest latency before there is any, us.
const NO_MIN: u32 = 1_000_000;

impl Record {
    pub fn new(
        intervals_us: Vec<u64>,
        histogram: Option<Histogram>,
        latency_us: Option<u64>,
    ) -> Record {
        let buckets = histogram.map_or(0, |histogram| histogram.limit_us as usize);
        let thread = |interval_us: u64| ThreadRecord {
            task: TaskId::NONE,
            interval_us,
            cycles: 0,
            min: NO_MIN,
            max: 0,
            last: 0,
            sum: 0,
            histogram: vec![0; buckets],
            overflows: 0,
            overflow_cycles: Vec::new(),
        };
        Record {
            threads: intervals_us.into_iter().map(thread).collect(),
            histogram,
            latency_us,
            ended: false,
        }
    }

    pub fn spawned(&mut self, number: usize, task: TaskId) {
        self.threads[number].task = task;
    }

    /// A thread was so late. Returns how many intervals it has done.
    pub fn add(&mut self, number: usize, late: u32) -> u64 {
        let thread = &mut self.threads[number];
        thread.min = thread.min.min(late);
        thread.max = thread.max.max(late);
        thread.last = late;
        thread.sum += u64::from(late);
        match thread.histogram.get_mut(late as usize) {
            Some(bucket) => *bucket += 1,
            None if self.histogram.is_some() => {
                thread.overflows += 1;
                if thread.overflow_cycles.len() < thread.histogram.len() {
                    thread.overflow_cycles.push(thread.cycles);
                }
            }
            None => {}
        }
        thread.cycles += 1;
        thread.cycles
    }

    /// The smallest latency of all threads, us.
    pub fn min(&self) -> u32 {
        let mins = self.threads.iter().map(|thread| thread.min);
        mins.min().unwrap_or(NO_MIN)
    }

    /// The mean of all latencies, us.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.threads.iter().map(|thread| thread.sum).sum();
        let count: u64 = self.threads.iter().map(|thread| thread.cycles).sum();
        sum as f64 / count.max(1) as f64
    }

    /// The text that the program prints at its end with `-q`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(us) = self.latency_us {
            push(
                &mut text,
                format_args!("# /dev/cpu_dma_latency set to {us}us\n"),
            );
        }
        match self.histogram {
            Some(histogram) => self.print_histogram(&mut text, histogram),
            None => self.print_threads(&mut text),
        }
        text
    }

    fn print_threads(&self, text: &mut String) {
        for (number, thread) in self.threads.iter().enumerate() {
            push(
                text,
                format_args!(
                    "T:{number:2} ({:5}) P: 0 I:{} C:{:7} Min:{:7} Act:{:5} Avg:{:5} Max:{:8}\n",
                    thread.task.0,
                    thread.interval_us,
                    thread.cycles,
                    thread.min,
                    thread.last,
                    thread.mean(),
                    thread.max
                ),
            );
        }
    }

    fn print_histogram(&self, text: &mut String, histogram: Histogram) {
        let sums = histogram.of_all && self.threads.len() > 1;
        text.push_str("# Histogram\n");
        for latency in 0..histogram.limit_us as usize {
            let counts = self.threads.iter().map(|thread| thread.histogram[latency]);
            let mut columns: Vec<u64> = counts.collect();
            if sums {
                columns.push(columns.iter().sum());
            }
            let columns: Vec<String> = columns.iter().map(|n| format!("{n:06}")).collect();
            push(text, format_args!("{latency:06} {}\n", columns.join("\t")));
        }
        let totals = |thread: &ThreadRecord| thread.histogram.iter().sum();
        self.print_row(text, "Total", 9, sums.then_some(Sum::Of), totals);
        self.print_row(text, "Min Latencies", 5, None, |thread| thread.min.into());
        self.print_row(text, "Avg Latencies", 5, None, ThreadRecord::mean);
        let max = sums.then_some(Sum::Largest);
        self.print_row(text, "Max Latencies", 5, max, |thread| thread.max.into());
        let sum = sums.then_some(Sum::Of);
        self.print_row(text, "Histogram Overflows", 5, sum, |thread| {
            thread.overflows
        });
        text.push_str("# Histogram Overflow at cycle number:\n");
        for (number, thread) in self.threads.iter().enumerate() {
            push(text, format_args!("# Thread {number}:"));
            for cycle in &thread.overflow_cycles {
                push(text, format_args!(" {cycle:05}"));
            }
            let told = thread.overflow_cycles.len() as u64;
            if told < thread.overflows {
                push(
                    text,
                    format_args!(" # {:05} others", thread.overflows - told),
                );
            }
            text.push('\n');
        }
        text.push('\n');
    }

    fn print_row(
        &self,
        text: &mut String,
        label: &str,
        width: usize,
        sum: Option<Sum>,
        of: impl Fn(&ThreadRecord) -> u64,
    ) {
        push(text, format_args!("# {label}:"));
        let values: Vec<u64> = self.threads.iter().map(of).collect();
        let last = match sum {
            Some(Sum::Of) => Some(values.iter().sum()),
            Some(Sum::Largest) => values.iter().max().copied(),
            None => None,
        };
        for value in values.iter().copied().chain(last) {
            push(text, format_args!(" {value:0width$}"));
        }
        text.push('\n');
    }
}

/// What the last column of `-H` holds.
#[derive(Clone, Copy, Debug)]
enum Sum {
    Of,
    Largest,
}

impl ThreadRecord {
    /// In whole us, rounded down.
    fn mean(&self) -> u64 {
        self.sum / self.cycles.max(1)
    }
}

fn push(text: &mut String, what: std::fmt::Arguments) {
    text.write_fmt(what).expect("a string takes everything");
}
