//! Random numbers in streams keyed by seed, task and purpose, so that two variants of a run draw
//! the same numbers for the same thing (common random numbers).

/// A xorshift64* stream (Vigna, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled", 2016), seeded through SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// SplitMix64's finaliser: turns related numbers into unrelated ones.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rng {
    /// The stream of a purpose (for example a task's number) under a seed.
    pub fn stream(seed: u64, purpose: u64) -> Rng {
        Rng(mix(seed ^ mix(purpose)) | 1)
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number in `0..n` (by multiplication; the bias is below n / 2^32).
    #[inline(always)]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n <= 1 << 32);
        ((self.next_u64() >> 32) * n) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, purpose| {
            let mut rng = Rng::stream(seed, purpose);
            (0..4).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn below_is_in_range_and_even() {
        let mut rng = Rng::stream(7, 7);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[rng.below(10) as usize] += 1);
        assert!(
            counts.iter().all(|&n| (9_500..10_500).contains(&n)),
            "{counts:?}"
        );
    }
}
