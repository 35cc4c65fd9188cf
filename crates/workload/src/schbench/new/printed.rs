//! What `schbench` from 2023 on records and prints.

use super::super::Samples;
use super::super::futex::micros;
use super::Schbench;
use crate::benchmark::Benchmark;
use std::fmt::Write;
use wakelab_machine::Ns;

/// The percentages that are looked for; of these a table shows some, one of them with a star.
const PERCENTS: [f64; 5] = [20.0, 50.0, 90.0, 99.0, 99.9];
const LATENCIES: Shown = Shown {
    from: 1,
    to: 5,
    star: 3,
};
const REQUESTS: Shown = Shown {
    from: 0,
    to: 3,
    star: 1,
};

#[derive(Clone, Copy, Debug)]
struct Shown {
    from: usize,
    to: usize,
    star: usize,
}

/// What was recorded, and what was printed on the way.
#[derive(Clone, Debug)]
pub(super) struct Report {
    spec: Schbench,
    machine: String,
    wakeups: Samples,
    requests: Samples,
    rps: Samples,
    /// Requests done.
    loops: u64,
    loops_before: u64,
    /// When it began, and when it did this or that last.
    begun: Option<Ns>,
    looked: Ns,
    printed: Ns,
    zeroed: Ns,
    warm: bool,
    delays: [u64; 2],
    text: String,
}

impl Report {
    pub fn new(spec: &Schbench, machine: &str, workers_each: u32) -> Report {
        let mut text = String::new();
        if spec.pins.auto {
            text.push_str("auto pinning message and worker threads\n");
        }
        if spec.workers == 0 {
            push(
                &mut text,
                format_args!("setting worker threads to {workers_each}\n"),
            );
        }
        Report {
            spec: spec.clone(),
            machine: machine.to_owned(),
            wakeups: Samples::default(),
            requests: Samples::default(),
            rps: Samples::default(),
            loops: 0,
            loops_before: 0,
            begun: None,
            looked: Ns(0),
            printed: Ns(0),
            zeroed: Ns(0),
            warm: false,
            delays: [0; 2],
            text,
        }
    }

    /// A worker ran so long after it was posted.
    pub fn woken(&mut self, us: u32) {
        if us > 0 {
            self.wakeups.add(us);
        }
    }

    /// A request took so long.
    pub fn served(&mut self, us: u32) {
        self.loops += 1;
        if us > 0 {
            self.requests.add(us);
        }
    }

    /// The main thread looks, each second. Returns how much of the run is left, or none.
    pub fn look(&mut self, now: Ns, delays: [u64; 2]) -> Option<Ns> {
        self.delays = delays;
        let begun = *self.begun.get_or_insert(now);
        if begun == now {
            (self.looked, self.printed, self.zeroed) = (now, now, now);
        }
        let run = Ns(now.0 - begun.0);
        let warms = self.spec.warmup.filter(|&time| run > time && !self.warm);
        if warms.is_some() && self.spec.rps == 0 {
            self.warm = true;
            self.text.push_str("warmup done, zeroing stats\n");
            self.forget(now);
        } else {
            self.count_requests(now);
            if now.0 - self.printed.0 >= self.spec.interval.0 {
                self.printed = now;
                self.print_tables(run);
                self.print_delays();
                let rps = self.rate(self.looked, now);
                push(&mut self.text, format_args!("current rps: {rps:.2}\n"));
            }
            (self.looked, self.loops_before) = (now, self.loops);
        }
        if let Some(zero) = self.spec.zero
            && now.0 - self.zeroed.0 > zero.0
        {
            self.forget(now);
        }
        let left = self.spec.time.0.saturating_sub(run.0);
        (left > 0).then_some(Ns(left))
    }

    fn forget(&mut self, now: Ns) {
        self.zeroed = now;
        self.wakeups = Samples::default();
        self.requests = Samples::default();
        self.rps = Samples::default();
    }

    fn rate(&self, since: Ns, now: Ns) -> f64 {
        match micros(since, now) {
            0 => 0.0,
            us => (self.loops - self.loops_before) as f64 * 1e6 / f64::from(us),
        }
    }

    /// The first look, at the very beginning, counts: as none a second.
    fn count_requests(&mut self, now: Ns) {
        self.rps.add(self.rate(self.looked, now) as u32);
    }

    fn average_rps(&self) -> f64 {
        self.loops as f64 / (self.spec.time.0 as f64 / 1e9)
    }

    /// The values of the metrics.
    pub fn values(&self) -> [f64; 14] {
        let of = |samples: &Samples| {
            let found = samples.percentiles(&PERCENTS);
            let [p20, p50, p90, p99, p99_9] =
                std::array::from_fn(|index| f64::from(found[index].0));
            (p20, [p50, p90, p99, p99_9])
        };
        let (_, [w50, w90, w99, w99_9]) = of(&self.wakeups);
        let (_, [r50, r90, r99, r99_9]) = of(&self.requests);
        let (rps20, [rps50, rps90, ..]) = of(&self.rps);
        let (w_max, r_max) = (self.wakeups.max().into(), self.requests.max().into());
        let rps = self.average_rps();
        [
            w50, w90, w99, w99_9, w_max, r50, r90, r99, r99_9, r_max, rps20, rps50, rps90, rps,
        ]
    }

    /// All that the program prints, on the way and at its end.
    pub fn text(&self) -> String {
        let mut end = self.clone();
        if self.spec.json {
            end.print_json();
        }
        end.print_tables(self.spec.time);
        let rps = self.average_rps();
        push(&mut end.text, format_args!("average rps: {rps:.2}\n"));
        end.print_delays();
        end.text
    }

    fn print_tables(&mut self, run: Ns) {
        let seconds = run.0 / 1_000_000_000;
        let text = &mut self.text;
        let latencies = ("usec", LATENCIES);
        print_table(text, "Wakeup Latencies", latencies, seconds, &self.wakeups);
        print_table(
            text,
            "Request Latencies",
            latencies,
            seconds,
            &self.requests,
        );
        print_table(text, "RPS", ("requests", REQUESTS), seconds, &self.rps);
    }

    fn print_delays(&mut self) {
        let [message, worker] = self.delays.map(|ns| ns / 1000);
        push(
            &mut self.text,
            format_args!("sched delay: message {message} (usec) worker {worker} (usec)\n"),
        );
    }

    fn print_json(&mut self) {
        let text = &mut self.text;
        text.push_str("{\"normal\": {\"version\": \"wakelab\",");
        if let Some(job) = &self.spec.job {
            push(text, format_args!("\"jobname\": \"{}\",", escaped(job)));
        }
        push(
            text,
            format_args!(
                "\"hostname\": \"{}\",\"sched_ext\": \"disabled\",\"cmdline\": \"{}\"}},",
                escaped(&self.machine),
                escaped(&self.spec.command_line())
            ),
        );
        // The clock of the simulation starts at no date.
        text.push_str("\"int\": {\"time\": 0, ");
        print_json(text, "wakeup_latency", &self.wakeups);
        text.push_str(", ");
        print_json(text, "request_latency", &self.requests);
        text.push_str(", ");
        print_json(text, "rps", &self.rps);
        let seconds = self.spec.time.0 / 1_000_000_000;
        push(text, format_args!(", \"runtime\": {seconds}}}}}\n"));
    }
}

fn print_table(
    text: &mut String,
    label: &str,
    (unit, shown): (&str, Shown),
    seconds: u64,
    samples: &Samples,
) {
    push(
        text,
        format_args!(
            "{label} percentiles ({unit}) runtime {seconds} (s) ({} total samples)\n",
            samples.count()
        ),
    );
    let found = samples.percentiles(&PERCENTS);
    for index in shown.from..shown.to {
        let star = if index == shown.star { "* " } else { "  " };
        let (percent, (number, count)) = (PERCENTS[index], found[index]);
        push(
            text,
            format_args!("\t{star}{percent:2.1}th: {number:<10} ({count} samples)\n"),
        );
    }
    let (min, max) = (samples.min(), samples.max());
    push(text, format_args!("\t  min={min}, max={max}\n"));
}

fn print_json(text: &mut String, label: &str, samples: &Samples) {
    for (percent, (number, _)) in PERCENTS.iter().zip(samples.percentiles(&PERCENTS)) {
        push(
            text,
            format_args!("\"{label}_pct{percent:.1}\": {number}, "),
        );
    }
    let (min, max) = (samples.min(), samples.max());
    push(
        text,
        format_args!("\"{label}_min\": {min},\"{label}_max\": {max}"),
    );
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn push(text: &mut String, what: std::fmt::Arguments) {
    text.write_fmt(what).expect("a string takes everything");
}
