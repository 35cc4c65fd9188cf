//! Times in command lines: `100us`, `0.5ms`, ranges of them (`0-10ms`), and work that comes back
//! (`0.5ms/50ms`).

use std::fmt;
use wakelab_machine::Ns;
use wakelab_sim::rng::Rng;

/// Units and their length in ns, the longest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The longest time taken: about eleven days.
pub(crate) const MAX_NS: u64 = 1_000_000_000_000_000;

/// A time with its unit: `100us`, `0.5ms`.
pub(crate) fn time(text: &str) -> Option<Ns> {
    time_or(text, "")
}

/// A time above zero.
pub(crate) fn some_time(text: &str) -> Option<Ns> {
    time(text).filter(|time| time.0 > 0)
}

/// A time above zero whose unit is the second unless it says another, as of `timeout` and `stress-ng`.
pub(crate) fn seconds(text: &str) -> Option<Ns> {
    time_or(text, "s").filter(|time| time.0 > 0)
}

/// A time, in `unit` if it says none.
fn time_or(text: &str, unit: &str) -> Option<Ns> {
    let letters = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, said) = text.split_at(letters);
    let unit = if said.is_empty() { unit } else { said };
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if part.is_empty() || part.len() > 9 {
        return None;
    }
    let part_ns = part.parse::<u64>().ok()? as u128 * u128::from(*length);
    let part_ns = (part_ns / 10u128.pow(part.len() as u32)) as u64;
    let ns = whole.parse::<u64>().ok()?.checked_mul(*length)?;
    let ns = ns.checked_add(part_ns)?;
    (ns <= MAX_NS).then_some(Ns(ns))
}

/// A time as it is read: `10ms`.
pub(crate) struct Written(pub Ns);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.0;
        // Not in minutes or hours, which are read but are not how benchmarks write times.
        let fits = |unit: &&(&str, u64)| ns.is_multiple_of(unit.1);
        let (name, length) = UNITS[2..].iter().find(fits).unwrap_or(&("ns", 1));
        write!(f, "{}{name}", ns / length)
    }
}

/// A time as an option in seconds takes it: `10`, or with a unit if it is no whole number of them.
pub(crate) fn in_seconds(time: Ns) -> String {
    const SECOND: u64 = 1_000_000_000;
    if time.0.is_multiple_of(SECOND) {
        (time.0 / SECOND).to_string()
    } else {
        Written(time).to_string()
    }
}

/// Times between two ends, each as likely as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// The shortest.
    pub low: Ns,
    /// The longest.
    pub high: Ns,
}

impl Uniform {
    /// `0-10ms`, `500us-2ms`, `3ms`.
    pub(crate) fn read(text: &str) -> Option<Uniform> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let unit = high.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let (low, high) = (time_or(low, unit)?, time(high)?);
        (low <= high).then_some(Uniform { low, high })
    }

    /// One of the times.
    pub fn draw(self, rng: &mut Rng) -> Ns {
        Ns(self.low.0 + below(rng, self.high.0 - self.low.0 + 1))
    }
}

impl fmt::Display for Uniform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low {
            low if low == self.high => write!(f, "{}", Written(low)),
            Ns(0) => write!(f, "0-{}", Written(self.high)),
            low => write!(f, "{}-{}", Written(low), Written(self.high)),
        }
    }
}

/// A number in `0..n`, also of more than 32 bits.
pub(crate) fn below(rng: &mut Rng, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Work that comes back: so much CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// CPU time.
    pub run: Ns,
    /// From one start to the next, if nothing delays it.
    pub period: Ns,
}

impl Cycle {
    /// `0.5ms/50ms`.
    pub(crate) fn read(text: &str) -> Option<Cycle> {
        let (run, period) = text.split_once('/')?;
        let (run, period) = (some_time(run)?, some_time(period)?);
        (run < period).then_some(Cycle { run, period })
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Written(self.run), Written(self.period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn times_have_units_and_decimals() {
        let cases = [
            ("100us", 100_000),
            ("0.5ms", 500_000),
            ("1.25s", 1_250_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7ns", 7),
            ("0ms", 0),
        ];
        for (text, ns) in cases {
            assert_eq!(time(text), Some(Ns(ns)), "{text}");
        }
        for bad in [
            "",
            "1",
            "ms",
            ".5ms",
            "1.ms",
            "1.5.5ms",
            "-1ms",
            "1 ms",
            "1mss",
            "1e3ms",
            "1.0000000001s",
            "99999999999999999999ns",
            "9999999h",
            "18446744073709551615s",
            "é",
        ] {
            assert_eq!(time(bad), None, "{bad}");
        }
        assert_eq!(seconds("10"), Some(Ns(10_000_000_000)));
        assert_eq!(seconds("500ms"), Some(Ns(500_000_000)));
        assert_eq!((seconds("0"), some_time("0ms")), (None, None));
    }

    #[test]
    fn ranges_and_cycles_are_read_and_refused() {
        let range = |low, high| Uniform {
            low: Ns(low),
            high: Ns(high),
        };
        assert_eq!(Uniform::read("0-10ms"), Some(range(0, 10_000_000)));
        assert_eq!(Uniform::read("500us-2ms"), Some(range(500_000, 2_000_000)));
        assert_eq!(Uniform::read("3ms"), Some(range(3_000_000, 3_000_000)));
        for bad in ["", "-", "10ms-5ms", "5-", "-5ms", "0-10", "0-10ms-20ms"] {
            assert_eq!(Uniform::read(bad), None, "{bad}");
        }
        let cycle = Cycle::read("0.5ms/50ms").unwrap();
        assert_eq!((cycle.run, cycle.period), (Ns(500_000), Ns(50_000_000)));
        for bad in [
            "",
            "/",
            "1ms",
            "0ms/1ms",
            "1ms/1ms",
            "2ms/1ms",
            "1/2",
            "1ms/2ms/3ms",
        ] {
            assert_eq!(Cycle::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn drawn_times_fill_the_range_evenly() {
        let mut rng = Rng::stream(1, 1);
        let range = Uniform::read("2ms-12s").unwrap();
        let drawn: Vec<u64> = (0..20_000).map(|_| range.draw(&mut rng).0).collect();
        assert!(
            drawn
                .iter()
                .all(|ns| (2_000_000..=12_000_000_000).contains(ns))
        );
        let mean = drawn.iter().sum::<u64>() as f64 / 20_000.0;
        assert!((mean / 6.001e9 - 1.0).abs() < 0.02, "{mean}");
        let fixed = Uniform::read("3ms").unwrap();
        assert_eq!(fixed.draw(&mut rng), Ns(3_000_000));
    }

    proptest! {
        #[test]
        fn any_text_gives_a_time_or_none(text in "[-0-9./a-zé]{0,12}") {
            let _ = (time(&text), seconds(&text), Uniform::read(&text), Cycle::read(&text));
        }

        #[test]
        fn what_it_prints_it_reads(a in 1u64..MAX_NS, b in 1u64..MAX_NS) {
            let (low, high) = (Ns(a.min(b)), Ns(a.max(b)));
            prop_assert_eq!(time(&Written(low).to_string()), Some(low));
            let range = Uniform { low, high };
            prop_assert_eq!(Uniform::read(&range.to_string()), Some(range));
            if low < high {
                let cycle = Cycle { run: low, period: high };
                prop_assert_eq!(Cycle::read(&cycle.to_string()), Some(cycle));
            }
        }
    }
}
