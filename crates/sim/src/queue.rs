//! The event queue: a winner tree over one slot for each CPU and one for timers.
//!
//! A slot holds the time of its next event. The order is total: by time, then by slot number, so
//! equal times are never a matter of luck. Re-arming a slot is one walk to the root.

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
    levels: u32,
}

/// Twice the number of slots that a key can name: an index below it needs no check.
const NODES: usize = 2 << SLOT_BITS;

impl EventQueue {
    /// A queue of so many slots, all waiting for nothing.
    pub fn new(slots: usize) -> EventQueue {
        assert!(
            slots > 0 && slots <= 1 << SLOT_BITS,
            "slot numbers must fit their bits"
        );
        let leaves = slots.next_power_of_two();
        let mut keys = Box::new([u64::MAX; NODES]);
        for slot in 0..slots {
            keys[leaves + slot] = key(NEVER, slot);
        }
        for node in (1..leaves).rev() {
            keys[node] = keys[2 * node].min(keys[2 * node + 1]);
        }
        EventQueue {
            keys,
            leaves,
            levels: leaves.trailing_zeros(),
        }
    }

    /// Sets the time of a slot's next event.
    #[inline(always)]
    pub fn set(&mut self, slot: usize, time: u64) {
        debug_assert!(time <= NEVER);
        let mut node = self.leaves + slot;
        let mut winner = key(time, slot);
        self.keys[node % NODES] = winner;
        // Always up to the root: where the walk could end early is a matter of luck, and a branch
        // that is guessed wrong costs more than the steps that it saves.
        for _ in 0..self.levels {
            winner = winner.min(self.keys[(node ^ 1) % NODES]);
            node >>= 1;
            self.keys[node % NODES] = winner;
        }
    }

    /// The slot with the earliest event and its time ([`NEVER`] when all wait for nothing).
    #[inline(always)]
    pub fn peek(&self) -> (usize, u64) {
        let key = self.keys[1];
        ((key & ((1 << SLOT_BITS) - 1)) as usize, key >> SLOT_BITS)
    }
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
            sets in prop::collection::vec((0usize..600, 0u64..50), 1..300),
        ) {
            let mut queue = EventQueue::new(slots);
            let mut times = vec![NEVER; slots];
            for (slot, time) in sets {
                let slot = slot % slots;
                queue.set(slot, time);
                times[slot] = time;
                let first = (0..slots).min_by_key(|&s| (times[s], s)).expect("not empty");
                prop_assert_eq!(queue.peek(), (first, times[first]));
            }
        }
    }
}
