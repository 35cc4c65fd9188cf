//! A pipe: pages of bytes in a ring (kernel `fs/pipe.c`, the same in 5.2, 6.1 and 6.5).
//!
//! A write joins the last page if it fits there whole, else it takes a new page. A page that was
//! read empty is released, so the capacity in bytes varies with the sizes of the writes.

const PAGE: u32 = 4096;
/// PIPE_DEF_BUFFERS: pages in a pipe.
pub const SLOTS: usize = 16;

/// The contents of a pipe, counted and not kept.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    head: u32,
    tail: u32,
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Bytes written to the page since it was taken.
    end: u16,
    /// Bytes not read yet.
    left: u16,
}

impl Ring {
    /// `pipe_empty`.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Pages with something to read.
    #[inline(always)]
    pub fn pages(&self) -> u32 {
        self.head - self.tail
    }

    /// `pipe_full`: no page is free, though the last may have room.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.head - self.tail >= SLOTS as u32
    }

    /// Puts in as much of a write of `bytes` as there is room for and returns how much that was.
    /// `first` tells the first attempt of a system call: only that one may join the last page.
    #[inline(always)]
    pub fn write(&mut self, bytes: u32, first: bool) -> u32 {
        if first && bytes < PAGE && !self.is_empty() {
            let last = &mut self.slots[self.head.wrapping_sub(1) as usize % SLOTS];
            if u32::from(last.end) + bytes <= PAGE {
                last.end += bytes as u16;
                last.left += bytes as u16;
                return bytes;
            }
        }
        self.write_to_new_pages(bytes, first)
    }

    /// As [`Self::write`], for what does not fit into the last page whole.
    fn write_to_new_pages(&mut self, bytes: u32, first: bool) -> u32 {
        let mut left = bytes;
        let part = left % PAGE;
        if first && part != 0 && !self.is_empty() {
            let last = &mut self.slots[(self.head - 1) as usize % SLOTS];
            if u32::from(last.end) + part <= PAGE {
                last.end += part as u16;
                last.left += part as u16;
                left -= part;
            }
        }
        while left > 0 && !self.is_full() {
            let part = left.min(PAGE);
            self.slots[self.head as usize % SLOTS] = Slot {
                end: part as u16,
                left: part as u16,
            };
            self.head += 1;
            left -= part;
        }
        bytes - left
    }

    /// Takes out up to `bytes` and returns how much that was.
    #[inline(always)]
    pub fn read(&mut self, bytes: u32) -> u32 {
        let first = &mut self.slots[self.tail as usize % SLOTS];
        if bytes < u32::from(first.left) && self.head != self.tail {
            first.left -= bytes as u16;
            return bytes;
        }
        self.read_pages(bytes)
    }

    /// As [`Self::read`], for what takes a page's last byte.
    fn read_pages(&mut self, bytes: u32) -> u32 {
        let mut left = bytes;
        while left > 0 && !self.is_empty() {
            let slot = &mut self.slots[self.tail as usize % SLOTS];
            let part = left.min(u32::from(slot.left));
            slot.left -= part as u16;
            left -= part;
            if slot.left == 0 {
                self.tail += 1;
            }
        }
        bytes - left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_page_takes_40_messages_of_100_bytes_and_a_pipe_640() {
        let mut ring = Ring::default();
        let written = (0..).take_while(|_| ring.write(100, true) == 100).count();
        assert_eq!(written, 640);
        assert!(ring.is_full());
        for n in 0..40 {
            assert!(
                ring.is_full(),
                "full until the first page is read empty ({n})"
            );
            assert_eq!(ring.read(100), 100);
        }
        assert!(!ring.is_full());
    }

    #[test]
    fn a_long_write_goes_in_as_far_as_there_is_room() {
        let mut ring = Ring::default();
        assert_eq!(ring.write(100_000, true), SLOTS as u32 * PAGE);
        assert_eq!(ring.write(100, false), 0);
        assert_eq!(ring.read(5000), 5000);
        assert_eq!(ring.write(34_464, false), PAGE);
    }

    proptest! {
        #[test]
        fn bytes_are_neither_lost_nor_made(
            ops in prop::collection::vec((any::<bool>(), 1u32..9000), 1..200),
        ) {
            let mut ring = Ring::default();
            let (mut written, mut read) = (0u64, 0u64);
            for (write, bytes) in ops {
                if write {
                    written += u64::from(ring.write(bytes, true));
                } else {
                    read += u64::from(ring.read(bytes));
                }
                prop_assert!(read <= written);
                prop_assert_eq!(ring.is_empty(), read == written);
            }
            while !ring.is_empty() {
                read += u64::from(ring.read(PAGE));
            }
            prop_assert_eq!(read, written);
        }
    }
}
