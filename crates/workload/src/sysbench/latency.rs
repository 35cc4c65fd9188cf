//! sysbench's account of how long events took (`sb_histogram.c`, `sb_timer.c`).

/// Buckets of the histogram.
const BUCKETS: usize = 1024;
/// The times of its first and last bucket, ms.
const FIRST: f64 = 0.001;
const LAST: f64 = 100_000.0;

/// Times of events: their extremes, their sum, and a histogram with buckets at equal distances of their
/// logarithm.
#[derive(Clone, Debug)]
pub struct Latency {
    counts: Vec<u64>,
    events: u64,
    min: u64,
    max: u64,
    sum: u64,
}

impl Latency {
    pub fn new() -> Latency {
        Latency {
            counts: vec![0; BUCKETS],
            events: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
        }
    }

    /// So many events took so long together, and all but one of them `each` at most.
    pub fn add(&mut self, events: u64, took: u64, each: u64) {
        let others = events - 1;
        let longest = took.saturating_sub(each * others);
        if others > 0 {
            self.counts[bucket(each)] += others;
        }
        self.counts[bucket(longest)] += 1;
        self.events += events;
        self.min = self
            .min
            .min(longest)
            .min(if others > 0 { each } else { longest });
        self.max = self.max.max(longest);
        self.sum += took;
    }

    /// The value of a bucket below which, or in which, so many per cent of the events are, ms.
    fn percentile(&self, percent: f64) -> f64 {
        let wanted = (self.events as f64 * percent / 100.0 + 0.5).floor() as u64;
        let mut seen = 0;
        let reached = |&count: &u64| {
            seen += count;
            seen >= wanted
        };
        let place = self.counts.iter().position(reached).unwrap_or(BUCKETS - 1);
        (place as f64 / scale() + FIRST.ln()).exp()
    }

    /// sysbench's lines.
    pub fn lines(&self) -> Vec<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let average = ms(self.sum) / self.events.max(1) as f64;
        let min = if self.events == 0 { 0 } else { self.min };
        let percentile = if self.events == 0 {
            0.0
        } else {
            self.percentile(95.0)
        };
        vec![
            "Latency (ms):".to_owned(),
            format!("         min: {:>39.2}", ms(min)),
            format!("         avg: {average:>39.2}"),
            format!("         max: {:>39.2}", ms(self.max)),
            format!("        {:>3}th percentile: {percentile:>27.2}", 95),
            format!("         sum: {:>39.2}", ms(self.sum)),
        ]
    }
}

/// Buckets for each step of the logarithm by one.
fn scale() -> f64 {
    (BUCKETS - 1) as f64 / (LAST.ln() - FIRST.ln())
}

fn bucket(ns: u64) -> usize {
    let place = ((ns as f64 / 1e6).ln() - FIRST.ln()) * scale();
    ((place + 0.5).floor().max(0.0) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_buckets() {
        let mut latency = Latency::new();
        for _ in 0..99 {
            latency.add(1, 700_000, 700_000);
        }
        latency.add(1, 9_000_000, 700_000);
        let lines = latency.lines();
        // 0.70 ms falls into the bucket that sysbench prints as 0.70; its neighbours are 0.69 and 0.72.
        let ends = ["0.70", "0.78", "9.00", "0.70", "78.30"];
        for (line, end) in lines[1..].iter().zip(ends) {
            assert!(line.ends_with(end), "{line}");
        }
    }

    #[test]
    fn events_of_a_batch_share_its_time_and_one_has_the_rest() {
        let mut latency = Latency::new();
        latency.add(10, 1_900_000, 100_000);
        assert_eq!((latency.min, latency.max), (100_000, 1_000_000));
        assert_eq!((latency.events, latency.sum), (10, 1_900_000));
    }
}
