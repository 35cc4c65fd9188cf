//! Numbers as kernel people write them: `118.0 M`, `9.286 K/CPU-s`, `8.16 %`.

use crate::metric::Unit;
use crate::stats::Change;

/// A value with its unit; `-` if it is not a number.
pub fn value(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match unit {
        Unit::Seconds if value.abs() >= 1000.0 => format!("{value:.1} s"),
        Unit::Seconds => format!("{value:.3} s"),
        Unit::Count => count(value),
        Unit::KPerCpuSecond => format!("{value:.3} K/CPU-s"),
        Unit::Cpus => format!("{value:.3}"),
        Unit::Percent => format!("{value:.2} %"),
        // Whole round trips of a few microseconds are compared to the last digit published.
        Unit::Micros if value.abs() < 10.0 => format!("{value:.3} us"),
        Unit::Micros => format!("{value:.1} us"),
        Unit::PerSecond => format!("{}/s", count(value)),
        Unit::MegabytesPerSecond => format!("{value:.1} MB/s"),
    }
}

/// A number of things with a decimal prefix from ten thousand on: `9876`, `12.35 K`, `118.0 M`.
pub fn count(value: f64) -> String {
    // The limits leave out what would round up to 1000.0 of a prefix.
    let (divisor, prefix) = match value.abs() {
        size if size >= 999_950_000.0 => (1e9, "G"),
        size if size >= 999_950.0 => (1e6, "M"),
        size if size >= 10_000.0 => (1e3, "K"),
        _ if value.fract() == 0.0 => return format!("{value:.0}"),
        _ => return format!("{value:.1}"),
    };
    let scaled = value / divisor;
    let decimals = if scaled.abs() >= 99.995 { 1 } else { 2 };
    format!("{scaled:.decimals$} {prefix}")
}

/// A change in per cent with its sign: `-34.1 %`.
pub fn percent_change(pct: f64) -> String {
    if pct.is_finite() {
        format!("{pct:+.1} %")
    } else {
        "-".to_owned()
    }
}

/// A difference between two figures in per cent: `+1.3 pp`.
pub fn points(points: f64) -> String {
    if points.is_finite() {
        format!("{points:+.1} pp")
    } else {
        "-".to_owned()
    }
}

/// A change with its interval, `-34.1 % ±2.3`, after a `~` if the interval includes zero.
pub fn change(change: &Change) -> String {
    let mark = if change.includes_zero() { "~ " } else { "" };
    let interval = change
        .half_width()
        .map(|half| format!(" ±{half:.1}"))
        .unwrap_or_default();
    format!("{mark}{}{interval}", percent_change(change.pct))
}

/// A change with the ends of its interval, `-34.1 % [-36.4 -31.8]`, for intervals that are not even on
/// both sides; after a `~` if it includes zero.
pub fn change_between(change: &Change) -> String {
    let mark = if change.includes_zero() { "~ " } else { "" };
    let interval = change
        .ci95
        .map(|[low, high]| format!(" [{low:+.1} {high:+.1}]"))
        .unwrap_or_default();
    format!("{mark}{}{interval}", percent_change(change.pct))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_in_perf_stat() {
        let table = [
            (118e6, Unit::Count, "118.0 M"),
            (6.144e9, Unit::Count, "6.14 G"),
            (999_960.0, Unit::Count, "1.00 M"),
            (12_347.0, Unit::Count, "12.35 K"),
            (9_999.0, Unit::Count, "9999"),
            (12.4, Unit::Count, "12.4"),
            (0.0, Unit::Count, "0"),
            (9.286, Unit::KPerCpuSecond, "9.286 K/CPU-s"),
            (49.0123, Unit::Seconds, "49.012 s"),
            (12_715.2, Unit::Seconds, "12715.2 s"),
            (253.275, Unit::Cpus, "253.275"),
            (8.16, Unit::Percent, "8.16 %"),
            (12.34, Unit::Micros, "12.3 us"),
            (77_303.0, Unit::PerSecond, "77.30 K/s"),
            (948.149, Unit::MegabytesPerSecond, "948.1 MB/s"),
            (f64::NAN, Unit::Seconds, "-"),
        ];
        for (number, unit, text) in table {
            assert_eq!(value(number, unit), text);
        }
    }

    #[test]
    fn changes_show_sign_interval_and_doubt() {
        let clear = Change {
            pct: -34.12,
            ci95: Some([-36.4, -31.84]),
        };
        let open = Change {
            pct: 0.3,
            ci95: Some([-0.9, 1.5]),
        };
        let single = Change {
            pct: 5.0,
            ci95: None,
        };
        assert_eq!(change(&clear), "-34.1 % ±2.3");
        assert_eq!(change(&open), "~ +0.3 % ±1.2");
        assert_eq!(change(&single), "+5.0 %");
        assert_eq!(change_between(&clear), "-34.1 % [-36.4 -31.8]");
        assert_eq!(change_between(&open), "~ +0.3 % [-0.9 +1.5]");
        assert_eq!(change_between(&single), "+5.0 %");
    }
}
