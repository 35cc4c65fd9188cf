//! Numbers as benchmarks print them.

use wakelab_sim::{Metric, Outcome};

/// A metric of an outcome; 0 if it has none of this name.
pub(crate) fn metric(outcome: &Outcome, name: &str) -> f64 {
    let wanted = |metric: &&Metric| metric.name == name;
    outcome
        .metrics
        .iter()
        .find(wanted)
        .map_or(0.0, |metric| metric.value)
}

/// The time of the measured part, whole microseconds, as `gettimeofday` gives it.
pub(crate) fn micros(outcome: &Outcome) -> u64 {
    (metric(outcome, "time_s") * 1e9).round() as u64 / 1000
}

/// Seconds and milliseconds, the rest cut off: `1.234`.
pub(crate) fn seconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000_000, micros / 1000 % 1000)
}

/// All lines that a run wrote.
pub(crate) fn log(outcome: &Outcome) -> String {
    let line = |line: &String| format!("{line}\n");
    outcome.log.iter().map(line).collect()
}

/// C's `%g`: six significant digits without trailing zeros, with an exponent if it is below -4 or
/// above 5.
pub(crate) fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let places = (DIGITS - 1 - exponent) as usize;
        return trimmed(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_numbers_are_those_of_printf() {
        let cases = [
            (948.149, "948.149"),
            (300.4021, "300.402"),
            (12.0, "12"),
            (0.0, "0"),
            (999_999.6, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012, "1.2e-05"),
        ];
        for (value, text) in cases {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn times_are_cut_and_not_rounded() {
        assert_eq!(seconds(12_999_999), "12.999");
        assert_eq!(seconds(4_005), "0.004");
    }
}
