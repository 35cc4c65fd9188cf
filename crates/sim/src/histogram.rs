//! Latencies in a histogram of 16 linear steps a power of two: a percentile is exact to 6 %.

const STEP_BITS: u32 = 4;
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) << STEP_BITS;

/// Counts of times by length.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds a time in ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.sum += ns;
        self.max = self.max.max(ns);
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, ns.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The longest, ns.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The time that `percent` of them do not exceed, in ns, to the middle of a bucket; 0 if none
    /// was added.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, &n) in self.buckets.iter().enumerate() {
            seen += n;
            if n != 0 && seen >= wanted {
                return middle(index).min(self.max as f64);
            }
        }
        0.0
    }
}

fn bucket(ns: u64) -> usize {
    let steps = 1 << STEP_BITS;
    if ns < steps {
        return ns as usize;
    }
    let octave = 63 - ns.leading_zeros() - STEP_BITS;
    (((octave + 1) as u64) << STEP_BITS | (ns >> octave) & (steps - 1)) as usize
}

fn middle(index: usize) -> f64 {
    let steps = 1usize << STEP_BITS;
    if index < steps {
        return index as f64;
    }
    let octave = (index >> STEP_BITS) - 1;
    let low = ((index & (steps - 1) | steps) as u64) << octave;
    low as f64 + ((1u64 << octave) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_step() {
        let mut h = Histogram::default();
        (1..=100_000u64).for_each(|n| h.record(n));
        for p in [1.0, 50.0, 95.0, 99.9] {
            let exact = p * 1000.0;
            assert!(
                (h.percentile(p) / exact - 1.0).abs() < 0.063,
                "{p}: {}",
                h.percentile(p)
            );
        }
        assert_eq!((h.count(), h.max()), (100_000, 100_000));
    }

    #[test]
    fn every_length_has_a_bucket_that_holds_it() {
        for ns in [0, 1, 15, 16, 17, 31, 32, 1 << 20, u64::MAX] {
            assert!(bucket(ns) < BUCKETS);
        }
        assert!((0..1u64 << 12).all(|ns| bucket(ns) <= bucket(ns + 1)));
        assert_eq!(Histogram::default().percentile(50.0), 0.0);
    }
}
