//! The benchmark's histogram, whose percentiles are what it prints: numbers below 512 as they are, then
//! 256 linear steps a power of two, of which the middle is told.

const STEP_BITS: u32 = 8;
const STEPS: u32 = 1 << STEP_BITS;
const GROUPS: u32 = 19;
const BUCKETS: usize = (GROUPS * STEPS) as usize;

/// Numbers, mostly latencies in us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    buckets: Vec<u64>,
    count: u64,
    min: u32,
    max: u32,
}

impl Default for Samples {
    fn default() -> Self {
        Samples {
            buckets: vec![0; BUCKETS],
            count: 0,
            min: 0,
            max: 0,
        }
    }
}

impl Samples {
    /// Adds a number.
    pub fn add(&mut self, number: u32) {
        self.buckets[bucket(number)] += 1;
        self.count += 1;
        self.max = self.max.max(number);
        // A smallest of 0 counts as none yet.
        if self.min == 0 || number < self.min {
            self.min = number;
        }
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest, 0 if there is none.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The largest, 0 if there is none.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// For each of some rising percentages: the number that so many do not exceed, and how many lie
    /// between it and the one before.
    pub fn percentiles(&self, percents: &[f64]) -> Vec<(u32, u64)> {
        let mut found = Vec::with_capacity(percents.len());
        let (mut sum, mut told) = (0, 0);
        for (index, n) in self.buckets.iter().enumerate() {
            sum += n;
            while let Some(percent) = percents.get(found.len()) {
                if (sum as f64) < percent / 100.0 * self.count as f64 {
                    break;
                }
                found.push((middle(index as u32), sum - told));
                told = sum;
            }
        }
        found
    }
}

fn bucket(number: u32) -> usize {
    let highest = 31 - number.max(1).leading_zeros();
    if highest <= STEP_BITS {
        return number as usize;
    }
    let dropped = highest - STEP_BITS;
    let index = ((dropped + 1) << STEP_BITS) + ((number >> dropped) & (STEPS - 1));
    (index as usize).min(BUCKETS - 1)
}

fn middle(index: u32) -> u32 {
    if index < 2 * STEPS {
        return index;
    }
    let dropped = (index >> STEP_BITS) - 1;
    let low = (STEPS + index % STEPS) << dropped;
    low + (1 << dropped) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_exact_and_large_ones_within_a_step() {
        for number in [0, 1, 10, 467, 511] {
            assert_eq!(middle(bucket(number) as u32), number);
        }
        // As published runs print them: in steps of 2 from 512 on, of 32 from 8192 on.
        assert_eq!(middle(bucket(571) as u32), 571);
        assert_eq!(middle(bucket(570) as u32), 571);
        assert_eq!(middle(bucket(11_170) as u32), 11_184);
        assert_eq!(middle(bucket(16_850) as u32), 16_864);
        assert!((1..26).all(|bit| bucket((1 << bit) - 1) < bucket(1 << bit)));
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_come_with_the_samples_since_the_one_before() {
        let mut samples = Samples::default();
        (1..=100).for_each(|number| samples.add(number));
        let found = samples.percentiles(&[20.0, 50.0, 90.0, 99.0, 99.9]);
        assert_eq!(found, [(20, 20), (50, 30), (90, 40), (99, 9), (100, 1)]);
        assert_eq!(
            (samples.count(), samples.min(), samples.max()),
            (100, 1, 100)
        );
        let same = Samples {
            min: 0,
            ..Samples::default()
        };
        assert_eq!(same.percentiles(&[50.0, 99.0]), [(0, 0), (0, 0)]);
    }
}
