//! A set of CPUs as a fixed array of words: copied freely, never allocated, scanned by counting
//! trailing zeros.

use crate::excerpt::excerpt;
use crate::ids::CpuId;
use std::fmt;

/// The most CPUs that a machine may have.
pub const MAX_CPUS: usize = 1024;
const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs (the kernel's `cpumask`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuMask {
    words: [u64; WORDS],
}

/// Why a cpulist could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CpuListError {
    /// A part of the list is not a number or a range of numbers.
    #[error("'{0}' is not a CPU number or a range such as 0-7")]
    Word(String),
    /// A range that ends before it starts.
    #[error("the range '{0}' ends before it starts")]
    Order(String),
    /// A part of a bit mask is not a hexadecimal word of 32 bits.
    #[error("'{0}' is not a hexadecimal word of at most 32 bits")]
    Hex(String),
    /// A CPU number past the largest one supported.
    #[error("CPU {0} is past the largest supported, {max}", max = MAX_CPUS - 1)]
    TooLarge(usize),
}

impl Default for CpuMask {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl CpuMask {
    /// The empty set.
    pub const EMPTY: CpuMask = CpuMask { words: [0; WORDS] };

    /// The set of one CPU.
    pub fn single(cpu: CpuId) -> Self {
        let mut mask = Self::EMPTY;
        mask.set(cpu);
        mask
    }

    /// The CPUs `0..n`.
    pub fn first_n(n: usize) -> Self {
        assert!(n <= MAX_CPUS, "a machine has at most {MAX_CPUS} CPUs");
        let mut mask = Self::EMPTY;
        for (index, word) in mask.words.iter_mut().enumerate() {
            let base = index * 64;
            if n >= base + 64 {
                *word = u64::MAX;
            } else if n > base {
                *word = (1u64 << (n - base)) - 1;
            }
        }
        mask
    }

    /// The set whose first 64 CPUs are the bits of `word`.
    pub fn from_u64(word: u64) -> Self {
        let mut mask = Self::EMPTY;
        mask.words[0] = word;
        mask
    }

    /// The CPUs `64 * index ..` of the set as one word.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index]
    }

    /// Adds a CPU.
    #[inline(always)]
    pub fn set(&mut self, cpu: CpuId) {
        self.words[cpu.index() >> 6] |= 1 << (cpu.index() & 63);
    }

    /// Removes a CPU.
    #[inline(always)]
    pub fn clear(&mut self, cpu: CpuId) {
        self.words[cpu.index() >> 6] &= !(1 << (cpu.index() & 63));
    }

    /// Whether the CPU is in the set.
    #[inline(always)]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words[cpu.index() >> 6] >> (cpu.index() & 63) & 1 != 0
    }

    /// The CPUs in both sets.
    #[inline]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        self.zip(other, |a, b| a & b)
    }

    /// The CPUs in either set.
    #[inline]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        self.zip(other, |a, b| a | b)
    }

    /// The CPUs of this set that are not in the other.
    #[inline]
    pub fn and_not(&self, other: &CpuMask) -> CpuMask {
        self.zip(other, |a, b| a & !b)
    }

    /// How many CPUs the set has.
    pub fn weight(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// Whether every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuMask) -> bool {
        self.words
            .iter()
            .zip(&other.words)
            .all(|(a, b)| a & !b == 0)
    }

    /// Whether the sets share a CPU.
    pub fn intersects(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The lowest CPU of the set.
    pub fn first(&self) -> Option<CpuId> {
        self.next(0)
    }

    /// The lowest CPU of the set that is not below `from`.
    #[inline]
    pub fn next(&self, from: usize) -> Option<CpuId> {
        if from >= MAX_CPUS {
            return None;
        }
        let mut index = from >> 6;
        let mut word = self.words[index] & (u64::MAX << (from & 63));
        while word == 0 {
            index += 1;
            if index == WORDS {
                return None;
            }
            word = self.words[index];
        }
        Some(CpuId::from_index(
            index * 64 + word.trailing_zeros() as usize,
        ))
    }

    /// The CPUs of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + use<> {
        let mask = *self;
        let mut from = 0;
        std::iter::from_fn(move || {
            let cpu = mask.next(from)?;
            from = cpu.index() + 1;
            Some(cpu)
        })
    }

    /// The CPUs of the set from `start` upwards and then those below it (`for_each_cpu_wrap`).
    pub fn iter_wrap(&self, start: usize) -> impl Iterator<Item = CpuId> + use<> {
        let mask = *self;
        let mut from = start;
        let mut wrapped = false;
        std::iter::from_fn(move || {
            if !wrapped {
                if let Some(cpu) = mask.next(from) {
                    from = cpu.index() + 1;
                    return Some(cpu);
                }
                wrapped = true;
                from = 0;
            }
            let cpu = mask.next(from).filter(|cpu| cpu.index() < start)?;
            from = cpu.index() + 1;
            Some(cpu)
        })
    }

    /// Reads a cpulist such as `0-7,16-23` (the kernel's format; an empty text is the empty set).
    ///
    /// # Errors
    /// If a part is no number or range, or a CPU is too large.
    pub fn from_cpulist(text: &str) -> Result<CpuMask, CpuListError> {
        let mut mask = CpuMask::EMPTY;
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let number = |word: &str| {
                word.trim()
                    .parse::<usize>()
                    .map_err(|_| CpuListError::Word(excerpt(part)))
            };
            let (low, high) = (number(low)?, number(high)?);
            if low > high {
                return Err(CpuListError::Order(excerpt(part)));
            }
            if high >= MAX_CPUS {
                return Err(CpuListError::TooLarge(high));
            }
            (low..=high).for_each(|cpu| mask.set(CpuId::from_index(cpu)));
        }
        Ok(mask)
    }

    /// Reads a bit mask in hexadecimal words of 32 bits, the highest first: the kernel's
    /// `00000003,ffffffff`, or hwloc's `0x00000003,0xffffffff`, where an empty word is zero and a
    /// first word `0xf...f` stands for all CPUs above the rest.
    ///
    /// # Errors
    /// If a part is no such word, or a CPU is too large.
    pub fn from_hex_words(text: &str) -> Result<CpuMask, CpuListError> {
        let text = text.trim();
        let (endless, text) = match text.strip_prefix("0xf...f") {
            Some(rest) => (true, rest.strip_prefix(',').unwrap_or(rest)),
            None => (false, text),
        };
        let mut mask = CpuMask::EMPTY;
        let mut base = 0;
        if !text.is_empty() {
            for part in text.rsplit(',') {
                mask.set_hex_word(base, part.trim())?;
                base += 32;
            }
        }
        if endless {
            (base..MAX_CPUS).for_each(|cpu| mask.set(CpuId::from_index(cpu)));
        }
        Ok(mask)
    }

    /// Sets the CPUs from `base` on that a word of a bit mask names.
    fn set_hex_word(&mut self, base: usize, part: &str) -> Result<(), CpuListError> {
        let digits = part.strip_prefix("0x").unwrap_or(part);
        let wrong = || CpuListError::Hex(excerpt(part));
        let bits = match digits.len() {
            0 if part.is_empty() => 0,
            // A sign would parse, but is no digit.
            1..=8 if !digits.starts_with(['+', '-']) => {
                u32::from_str_radix(digits, 16).map_err(|_| wrong())?
            }
            _ => return Err(wrong()),
        };
        if bits != 0 && base >= MAX_CPUS {
            return Err(CpuListError::TooLarge(
                base + bits.trailing_zeros() as usize,
            ));
        }
        let cpus = (0..32).filter(|bit| bits >> bit & 1 != 0);
        cpus.for_each(|bit| self.set(CpuId::from_index(base + bit)));
        Ok(())
    }

    #[inline]
    fn zip(&self, other: &CpuMask, op: impl Fn(u64, u64) -> u64) -> CpuMask {
        let mut words = self.words;
        words
            .iter_mut()
            .zip(&other.words)
            .for_each(|(a, &b)| *a = op(*a, b));
        CpuMask { words }
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut mask = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| mask.set(cpu));
        mask
    }
}

/// As a cpulist: `0-7,16-23`.
impl fmt::Display for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut from = 0;
        while let Some(low) = self.next(from) {
            let mut high = low.index();
            while high + 1 < MAX_CPUS && self.contains(CpuId::from_index(high + 1)) {
                high += 1;
            }
            if high == low.index() {
                write!(f, "{separator}{low}")?;
            } else {
                write!(f, "{separator}{low}-{high}")?;
            }
            separator = ",";
            from = high + 1;
        }
        Ok(())
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMask({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpulist_survives_the_round_trip() {
        for text in ["", "0", "0-7,16-23", "1,3,5", "63-64", "1000-1023"] {
            let mask = CpuMask::from_cpulist(text).unwrap();
            assert_eq!(mask.to_string(), text);
            assert_eq!(mask.iter().collect::<CpuMask>(), mask);
        }
    }

    #[test]
    fn a_bad_cpulist_names_the_word() {
        assert_eq!(
            CpuMask::from_cpulist("1,x"),
            Err(CpuListError::Word("x".into()))
        );
        assert_eq!(
            CpuMask::from_cpulist("3-1"),
            Err(CpuListError::Order("3-1".into()))
        );
        assert_eq!(
            CpuMask::from_cpulist("1024"),
            Err(CpuListError::TooLarge(1024))
        );
    }

    #[test]
    fn a_bit_mask_is_read_in_the_kernels_and_in_hwlocs_form() {
        let read = |text| CpuMask::from_hex_words(text).map(|mask| mask.to_string());
        for (text, list) in [
            ("00000000,000000ff", "0-7"),
            ("3\n", "0-1"),
            ("0x00000001,,0x80000000", "31,64"),
            ("0x0", ""),
            ("", ""),
            ("0xf...f", "0-1023"),
            ("0xf...f,0x0,0x1", "0,64-1023"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(list), "{text}");
        }
        for bad in ["0xg", "123456789", "0x", "+1", "1,x,1", "0-3"] {
            assert!(matches!(read(bad), Err(CpuListError::Hex(_))), "{bad}");
        }
        let far = format!("2{}", ",0".repeat(32));
        assert_eq!(read(&far), Err(CpuListError::TooLarge(1025)));
        let zeros = format!("0{},1", ",0".repeat(99));
        assert_eq!(read(&zeros).as_deref(), Ok("0"));
    }

    #[test]
    fn a_wrapped_walk_starts_at_the_start_and_ends_below_it() {
        let mask = CpuMask::from_cpulist("1,3,70").unwrap();
        let walk = |start| mask.iter_wrap(start).map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(walk(0), [1, 3, 70]);
        assert_eq!(walk(3), [3, 70, 1]);
        assert_eq!(walk(4), [70, 1, 3]);
        assert_eq!(walk(71), [1, 3, 70]);
        assert_eq!(walk(MAX_CPUS), [1, 3, 70]);
    }

    #[test]
    fn first_n_is_exact_at_word_borders() {
        for n in [0, 1, 63, 64, 65, 128, MAX_CPUS] {
            assert_eq!(CpuMask::first_n(n).weight(), n);
        }
    }
}
