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
    /// The slot's path to the root has the earliest of all others already, so that an event that
    /// comes before the slot's last one, as after [`EventQueue::pop`], needs no look at the nodes
    /// beside the path: nothing waits for anything. The walk ends at the first stride whose last
    /// node stays as it is. Within a stride it does not look: near the leaves, where a walk ends is
    /// a matter of luck, and a branch that is guessed wrong costs more than the steps that it saves.
    #[inline(never)]
    pub fn set(&mut self, slot: usize, time: u64) {
        debug_assert!(time <= NEVER);
        let node = (self.leaves + slot) % NODES;
        let key = key(time, slot);
        if key > self.keys[node] {
            return self.put_off(node, key);
        }
        self.keys[node] = key;
        let mut node = node;
        for _ in 0..STRIDES {
            let mut before = 0;
            for _ in 0..STRIDE {
                node /= 2;
                before = self.keys[node];
                self.keys[node] = earlier(before, key);
            }
            if key > before || node == ROOT {
                return;
            }
        }
    }

    /// Sets a leaf to a later event than it had.
    #[cold]
    fn put_off(&mut self, node: usize, key: u64) {
        let mut at = self.put(node, key);
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
        let mut at = self.put((self.leaves + slot) % NODES, key(NEVER, slot));
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

    /// Writes a leaf.
    #[inline(always)]
    fn put(&mut self, node: usize, winner: u64) -> Walk {
        self.keys[node % NODES] = winner;
        Walk { node, winner }
    }

    /// A stride of the walk from a leaf to the root.
    #[inline(always)]
    fn climb(&mut self, at: Walk) -> Walk {
        // Numbers below it stay below it, so that only this one is checked.
        let mut node = at.node % NODES;
        let mut winner = at.winner;
        for _ in 0..STRIDE {
            winner = earlier(winner, self.keys[node ^ 1]);
            node /= 2;
            self.keys[node] = winner;
        }
        Walk { node, winner }
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
