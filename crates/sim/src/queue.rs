//! The event queue: a winner tree over one slot for each CPU and one for timers.
//!
//! A slot holds the time of its next event. The order is total: by time, then by slot number, so
//! equal times are never a matter of luck. Re-arming a slot is one walk to the root.

use std::hint::select_unpredictable;

/// The slot has nothing to wait for.
pub const NEVER: u64 = u64::MAX >> SLOT_BITS;
const SLOT_BITS: u32 = 11;

/// The earliest of a fixed number of slots.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// A heap-shaped tree: node `i` has the smaller of nodes `2i` and `2i + 1`; leaves start at
    /// `leaves`. A key is `time << SLOT_BITS | slot`.
    keys: Box<[u64; NODES]>,
    leaves: usize,
}

/// Where a walk to the root is.
#[derive(Clone, Copy, Debug)]
struct Walk {
    node: usize,
    /// The earliest key below it.
    winner: u64,
}

const ROOT: usize = 1;
/// How many levels a walk climbs without a look at whether it is over. The tree has as many levels
/// as so many strides, or fewer strides, need.
const STRIDE: usize = 3;
/// As many strides as the largest tree takes.
const STRIDES: usize = SLOT_BITS.div_ceil(STRIDE as u32) as usize;
/// Twice the number of leaves that there can be: an index below it needs no check.
const NODES: usize = 2 << (STRIDES * STRIDE);

impl EventQueue {
    /// A queue of so many slots, all waiting for nothing.
    pub fn new(slots: usize) -> EventQueue {
        assert!(
            slots > 0 && slots <= 1 << SLOT_BITS,
            "slot numbers must fit their bits"
        );
        let levels = slots.next_power_of_two().trailing_zeros() as usize;
        let leaves = 1 << levels.next_multiple_of(STRIDE);
        let mut keys = Box::new([u64::MAX; NODES]);
        for slot in 0..slots {
            keys[leaves + slot] = key(NEVER, slot);
        }
        for node in (1..leaves).rev() {
            keys[node] = keys[2 * node].min(keys[2 * node + 1]);
        }
        EventQueue { keys, leaves }
    }

    /// Sets the time of a slot's next event.
    ///
    /// The walk to the root ends at the first stride that leaves its last node as it was. Within a
    /// stride it does not look: near the leaves, where a walk ends is a matter of luck, and a branch
    /// that is guessed wrong costs more than the steps that it saves. Eight slots up it is not: few
    /// events are the earliest of so many.
    #[inline(never)]
    pub fn set(&mut self, slot: usize, time: u64) {
        debug_assert!(time <= NEVER);
        let mut at = self.put(slot, time);
        for _ in 0..STRIDES {
            let before = self.keys[(at.node >> STRIDE) % NODES];
            at = self.climb(at);
            if at.winner == before || at.node == ROOT {
                return;
            }
        }
    }

    /// Takes out the earliest event: its slot, which waits for nothing until it is set again, and
    /// its time ([`NEVER`] when all wait for nothing).
    #[inline(never)]
    pub fn pop(&mut self) -> (usize, u64) {
        let first = self.keys[ROOT];
        let slot = slot_of(first);
        let mut at = self.put(slot, NEVER);
        for _ in 0..STRIDES {
            at = self.climb(at);
            if at.node == ROOT {
                break;
            }
        }
        (slot, first >> SLOT_BITS)
    }

    /// The slot with the earliest event.
    #[inline(always)]
    pub fn peek(&self) -> usize {
        slot_of(self.keys[ROOT])
    }

    /// Writes a slot's leaf.
    #[inline(always)]
    fn put(&mut self, slot: usize, time: u64) -> Walk {
        let node = (self.leaves + slot) % NODES;
        let winner = key(time, slot);
        self.keys[node] = winner;
        Walk { node, winner }
    }

    /// A stride of the walk from a leaf to the root.
    #[inline(always)]
    fn climb(&mut self, mut at: Walk) -> Walk {
        for _ in 0..STRIDE {
            at.winner = earlier(at.winner, self.keys[(at.node ^ 1) % NODES]);
            at.node >>= 1;
            self.keys[at.node % NODES] = at.winner;
        }
        at
    }
}

/// The smaller key. Which one that is cannot be predicted, and the compiler has to be told so: else
/// it makes a branch of the comparison, half of which are guessed wrong.
#[inline(always)]
fn earlier(a: u64, b: u64) -> u64 {
    select_unpredictable(a < b, a, b)
}

#[inline(always)]
fn slot_of(key: u64) -> usize {
    (key & ((1 << SLOT_BITS) - 1)) as usize
}

#[inline(always)]
fn key(time: u64, slot: usize) -> u64 {
    time << SLOT_BITS | slot as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_slot_wins_and_ties_go_to_the_lowest(
            slots in 1usize..600,
            sets in prop::collection::vec((0usize..600, 0u64..50, any::<bool>()), 1..300),
        ) {
            let mut queue = EventQueue::new(slots);
            let mut times = vec![NEVER; slots];
            for (slot, time, pop) in sets {
                let slot = slot % slots;
                queue.set(slot, time);
                times[slot] = time;
                let first = (0..slots).min_by_key(|&s| (times[s], s)).expect("not empty");
                if pop {
                    prop_assert_eq!(queue.pop(), (first, times[first]));
                    times[first] = NEVER;
                }
            }
        }
    }
}
