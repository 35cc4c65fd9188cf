//! The hwlat tracer: what it is told to do, and the noise that it finds.

use crate::quantity::{Written, some_time, time};
use std::fmt;
use wakelab_machine::Ns;
use wakelab_sim::Metric;

/// The tracer's settings (kernel trace/trace_hwlat.c; the period is `window` there).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hwlat {
    /// How long it reads the clock in each period.
    pub width: Ns,
    /// From the start of one window to the next.
    pub period: Ns,
    /// A gap between two readings above this is a breach.
    pub threshold: Ns,
}

impl Default for Hwlat {
    /// The tracer's own defaults: 0.5 s of each second, 10 us.
    fn default() -> Self {
        Hwlat {
            width: Ns(500_000_000),
            period: Ns(1_000_000_000),
            threshold: Ns(10_000),
        }
    }
}

impl Hwlat {
    pub(super) const EXPECTED: &'static str =
        "width=100ms,period=300ms,threshold=100us, the width below the period";

    /// `width=100ms,period=300ms,threshold=100us`; what is not given is as by default.
    pub(super) fn read(text: &str) -> Option<Hwlat> {
        let mut hwlat = Hwlat::default();
        for setting in text.split(',') {
            match setting.split_once('=')? {
                ("width", value) => hwlat.width = some_time(value)?,
                ("period", value) => hwlat.period = some_time(value)?,
                ("threshold", value) => hwlat.threshold = time(value)?,
                _ => return None,
            }
        }
        (hwlat.width < hwlat.period).then_some(hwlat)
    }
}

impl fmt::Display for Hwlat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "width={},period={},threshold={}",
            Written(self.width),
            Written(self.period),
            Written(self.threshold)
        )
    }
}

/// Their names and what they mean.
pub(super) const METRICS: [(&str, &str); 4] = [
    (
        "noise_pct",
        "sum of the gaps above the threshold, times period over width, over the time, %",
    ),
    (
        "noise_max_pct",
        "the same of the largest gap of each window alone, %",
    ),
    (
        "window_run_delay_pct",
        "time in the windows in which the tracer's vCPU did not run, %",
    ),
    ("hwlat_windows", "windows that ended"),
];

/// What the tracer has found so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    hwlat: Hwlat,
    windows: u64,
    /// Gaps above the threshold, ns.
    breaches: u64,
    /// The largest of each window that ended, ns.
    largest: u64,
    largest_of_window: u64,
    /// All gaps, ns.
    delay: u64,
}

impl Noise {
    pub fn new(hwlat: Hwlat) -> Noise {
        Noise {
            hwlat,
            windows: 0,
            breaches: 0,
            largest: 0,
            largest_of_window: 0,
            delay: 0,
        }
    }

    /// The vCPU did not run for so long in a window.
    pub fn gap(&mut self, gap: Ns) {
        self.delay += gap.0;
        if gap > self.hwlat.threshold {
            self.breaches += gap.0;
            self.largest_of_window = self.largest_of_window.max(gap.0);
        }
    }

    pub fn window_over(&mut self) {
        self.windows += 1;
        self.largest += std::mem::take(&mut self.largest_of_window);
    }

    /// The metrics of a run of so much time. A window that has not ended counts with its gaps so far. If
    /// none has, nothing was measured, and only that is told.
    pub fn metrics(&self, time: Ns) -> Vec<Metric> {
        if self.windows == 0 {
            let [.., (name, _)] = METRICS;
            return vec![Metric { name, value: 0.0 }];
        }
        let pct = |part: u64, whole: f64| match part {
            0 => 0.0,
            part => 100.0 * part as f64 / whole,
        };
        let scaled = time.0 as f64 * self.hwlat.width.0 as f64 / self.hwlat.period.0 as f64;
        let in_windows = self.windows as f64 * self.hwlat.width.0 as f64;
        let values = [
            pct(self.breaches, scaled),
            pct(self.largest + self.largest_of_window, scaled),
            pct(self.delay, in_windows),
            self.windows as f64,
        ];
        let named = METRICS.into_iter().zip(values);
        named
            .map(|((name, _), value)| Metric { name, value })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn mail() -> Hwlat {
        Hwlat::read("width=100ms,period=300ms,threshold=100us").unwrap()
    }

    #[test]
    fn settings_are_read_and_what_is_missing_is_the_tracers_default() {
        assert_eq!(
            (mail().width, mail().threshold),
            (Ns(100 * MS), Ns(100_000))
        );
        let threshold = Hwlat::read("threshold=1ms").unwrap();
        assert_eq!(
            (threshold.width, threshold.period),
            (Ns(500 * MS), Ns(1000 * MS))
        );
        for bad in [
            "",
            "width",
            "width=100",
            "width=0ms",
            "width=300ms,period=300ms",
            "wide=1ms",
            "width=1ms,",
        ] {
            assert_eq!(Hwlat::read(bad), None, "{bad}");
        }
        assert_eq!(Hwlat::read(&mail().to_string()), Some(mail()));
    }

    #[test]
    fn noise_is_scaled_up_to_the_period_over_the_width() {
        let mut noise = Noise::new(mail());
        // Two windows in 600 ms: 1 and 3 ms of breaches in the first, 2 in the second, and a gap
        // that is none.
        for gap in [MS, 3 * MS, 50_000] {
            noise.gap(Ns(gap));
        }
        noise.window_over();
        noise.gap(Ns(2 * MS));
        noise.window_over();
        let metrics = noise.metrics(Ns(600 * MS));
        let values: Vec<f64> = metrics.iter().map(|metric| metric.value).collect();
        let expected = [
            100.0 * 6.0 * 3.0 / 600.0,
            100.0 * 5.0 * 3.0 / 600.0,
            3.025,
            2.0,
        ];
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{values:?}");
        }
    }

    #[test]
    fn a_gap_as_long_as_the_threshold_is_no_breach() {
        let mut noise = Noise::new(mail());
        noise.window_over();
        noise.gap(Ns(100_000));
        assert_eq!(noise.metrics(Ns(MS))[0].value, 0.0);
        noise.gap(Ns(100_001));
        assert!(noise.metrics(Ns(MS))[0].value > 0.0);
    }

    #[test]
    fn without_a_window_that_ended_nothing_was_measured() {
        let mut noise = Noise::new(mail());
        noise.gap(Ns(MS));
        let told: Vec<_> = noise
            .metrics(Ns(MS))
            .iter()
            .map(|m| (m.name, m.value))
            .collect();
        assert_eq!(told, [("hwlat_windows", 0.0)]);
        noise.window_over();
        assert_eq!(noise.metrics(Ns(MS)).len(), METRICS.len());
    }
}
