//! The search for an idle CPU or an idle core in one LLC, by bit masks.
//!
//! The kernel loops over CPUs from the one after the target, around the LLC, and back. Here the
//! same CPUs are bits of a few words, so the loop's result and the number of its steps come from
//! masks and bit counts. The kernel's loop itself stands in the tests, which compare the two.

use super::idle::{At, cookie_fits};
use super::mutation::{Mutation, broken};
use super::ranks::LlcRanks;
use super::view::View;
use wakelab_machine::mask::MAX_CPUS;
use wakelab_machine::{CpuId, LlcId};

/// Words of ranks, enough for the largest LLC.
type Words = [u64; MAX_CPUS / 64];

/// Which ranks of an LLC are searched.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// All.
    Whole,
    /// Those of this rank's cluster.
    Cluster(usize),
    /// Those outside of this rank's cluster.
    Rest(usize),
    /// All, and those on which the task may not run count as looked at.
    Span,
}

/// What is searched, and from where.
#[derive(Clone, Copy)]
pub(super) struct Space {
    /// The LLC.
    pub llc: LlcId,
    /// The rank to start at; the LLC's size means 0.
    pub start: usize,
    /// The part of the LLC.
    pub part: Part,
}

/// How a search for an idle CPU ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuScan {
    /// The CPU found.
    pub found: Option<CpuId>,
    /// CPUs looked at.
    pub visited: u32,
    /// Whether the limit ended it with a CPU left to look at.
    pub limited: bool,
}

/// How a search for an idle core ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoreScan {
    /// The CPU of an idle core.
    pub found: Option<CpuId>,
    /// Without one: the first idle CPU met.
    pub fallback: Option<CpuId>,
    /// Cores looked at.
    pub visited: u32,
}

/// Ranks in the order of the search, as words with the bits of each that are due.
fn ring(start: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let start = if start >= len { 0 } else { start };
    let words = len.div_ceil(64);
    let first = start / 64;
    let below = (1u64 << (start % 64)) - 1;
    (0..=words).map(move |step| {
        let index = first + step;
        let index = if index >= words { index - words } else { index };
        let due = if step == 0 {
            !below
        } else if step == words {
            below
        } else {
            u64::MAX
        };
        (index, due)
    })
}

/// Where the task may run in the part of the LLC that is searched.
#[inline(always)]
fn searched<V: View>(v: &V, llc: &LlcRanks, space: &Space, index: usize) -> u64 {
    let allowed = v.allowed_word(space.llc, index);
    match space.part {
        Part::Whole | Part::Span => allowed,
        Part::Cluster(rank) => allowed & llc.cluster[rank].word(index),
        Part::Rest(rank) => allowed & !llc.cluster[rank].word(index),
    }
}

/// The LLC's ranks in a word.
fn span_word(llc: &LlcRanks, index: usize) -> u64 {
    match llc.len() - index * 64 {
        left @ 0..64 => (1 << left) - 1,
        _ => u64::MAX,
    }
}

/// CPUs that a search may take: idle, or with SCHED_IDLE tasks only. The half of [`is_idle_cpu`] that
/// [`cookie_fits`] leaves, of 64 CPUs at once.
///
/// [`is_idle_cpu`]: super::idle::is_idle_cpu
#[inline(always)]
fn idle_enough<V: View>(v: &V, llc: LlcId, index: usize) -> u64 {
    if broken(v, Mutation::ScanSchedIdleIgnored) {
        return v.idle_word(llc, index);
    }
    v.idle_word(llc, index) | v.sched_idle_word(llc, index)
}

/// The first idle CPU within so many CPUs looked at (the plain loop of kernel `sched/fair.c`,
/// `select_idle_cpu()`, with `__is_idle_cpu()` at each step, which releases call `__select_idle_cpu()`).
pub(super) fn scan_cpus<V: View>(v: &V, space: Space, limit: u32) -> CpuScan {
    let llc = v.ranks().llc(space.llc);
    let mut visited = 0;
    for (index, due) in ring(space.start, llc.len()) {
        let allowed = searched(v, llc, &space, index) & due;
        let mut idle = allowed & idle_enough(v, space.llc, index);
        let cpus = match space.part {
            Part::Span => span_word(llc, index) & due,
            _ => allowed,
        };
        while idle != 0 {
            let bit = idle & idle.wrapping_neg();
            let before = visited + (cpus & (bit - 1)).count_ones();
            if before >= limit {
                return CpuScan {
                    found: None,
                    visited: limit,
                    limited: true,
                };
            }
            let cpu = llc.cpus[index * 64 + bit.trailing_zeros() as usize];
            if cookie_fits(v, cpu, At::Scan) {
                return CpuScan {
                    found: Some(cpu),
                    visited: before + 1,
                    limited: false,
                };
            }
            idle ^= bit;
        }
        visited += cpus.count_ones();
        if visited > limit {
            return CpuScan {
                found: None,
                visited: limit,
                limited: true,
            };
        }
    }
    CpuScan {
        found: None,
        visited,
        limited: false,
    }
}

/// The first wholly idle core (the loop of kernel `sched/fair.c`, `select_idle_cpu()`, with
/// `select_idle_core()` at each step). The core is returned as its first CPU in the order of the
/// search on which the task may run; its other CPUs need not be allowed, but idle. Without one, the
/// first core in that order with an idle CPU gives its lowest such CPU.
pub(super) fn scan_cores<V: View>(v: &V, space: Space) -> CoreScan {
    let llc = v.ranks().llc(space.llc);
    for (index, due) in ring(space.start, llc.len()) {
        let mut idle = searched(v, llc, &space, index) & due & v.idle_word(space.llc, index);
        while idle != 0 {
            let rank = index * 64 + idle.trailing_zeros() as usize;
            if is_core_idle(v, llc, &space, rank) {
                let visited = count_cores(v, llc, &space, rank);
                return CoreScan {
                    found: Some(llc.cpus[rank]),
                    fallback: None,
                    visited,
                };
            }
            idle &= idle - 1;
        }
    }
    let last = (space.start + llc.len() - 1) % llc.len();
    let visited = count_cores(v, llc, &space, last);
    CoreScan {
        found: None,
        fallback: fallback(v, llc, &space),
        visited,
    }
}

#[inline(always)]
fn is_core_idle<V: View>(v: &V, llc: &LlcRanks, space: &Space, rank: usize) -> bool {
    let smt = &llc.smt[rank];
    (0..llc.words).all(|index| smt.word(index) & !v.idle_word(space.llc, index) == 0)
}

/// How many cores have a CPU in the search from its start to `last`, both included.
fn count_cores<V: View>(v: &V, llc: &LlcRanks, space: &Space, last: usize) -> u32 {
    let start = if space.start >= llc.len() {
        0
    } else {
        space.start
    };
    let mut seen: Words = [0; MAX_CPUS / 64];
    let mut cpus = 0;
    for (step, (index, due)) in ring(start, llc.len()).enumerate() {
        // The start's word comes twice; the last rank may be in either half of it.
        let here = index == last / 64 && due >> (last % 64) & 1 != 0;
        let upto = if here {
            u64::MAX >> (63 - last % 64)
        } else {
            u64::MAX
        };
        let word = searched(v, llc, space, index) & due & upto;
        seen[index] |= word;
        cpus += word.count_ones();
        debug_assert!(step <= llc.words);
        if here {
            break;
        }
    }
    let run = (last + llc.len() - start) % llc.len() + 1;
    if run <= llc.core_gap {
        return cpus;
    }
    let met = |core: &&wakelab_machine::CpuMask| {
        (0..llc.words).any(|index| core.word(index) & seen[index] != 0)
    };
    llc.cores.iter().filter(met).count() as u32
}

/// The lowest idle CPU of the first core in the order of the search that has one.
fn fallback<V: View>(v: &V, llc: &LlcRanks, space: &Space) -> Option<CpuId> {
    let mut best = None;
    for index in 0..llc.words {
        let mut idle = searched(v, llc, space, index) & idle_enough(v, space.llc, index);
        while idle != 0 {
            let rank = index * 64 + idle.trailing_zeros() as usize;
            idle &= idle - 1;
            // Ascending ranks: of a core's CPUs the lowest comes first and is kept.
            let turn = core_turn(v, llc, space, rank);
            if best.is_none_or(|(earliest, _)| turn < earliest) {
                best = Some((turn, llc.cpus[rank]));
            }
        }
    }
    best.map(|(_, cpu)| cpu)
}

/// When the search comes to the core of a rank: the smallest distance from the start of a sibling
/// that is searched.
fn core_turn<V: View>(v: &V, llc: &LlcRanks, space: &Space, rank: usize) -> usize {
    let mut turn = usize::MAX;
    for index in 0..llc.words {
        let mut siblings = llc.smt[rank].word(index) & searched(v, llc, space, index);
        while siblings != 0 {
            let sibling = index * 64 + siblings.trailing_zeros() as usize;
            siblings &= siblings - 1;
            turn = turn.min((sibling + llc.len() - space.start % llc.len()) % llc.len());
        }
    }
    turn
}
