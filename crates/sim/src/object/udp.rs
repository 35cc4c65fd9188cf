//! One direction of a pair of connected UDP sockets over the loopback device (kernel `net/ipv4/udp.c`).
//!
//! A datagram that is sent is in the receiver's queue at once, as a segment of TCP is; nothing
//! acknowledges it, and neither end holds its socket's lock meanwhile. Not modelled: a receive buffer that
//! is full, in which datagrams are lost. The workloads here have one datagram under way.

use std::collections::VecDeque;

/// The receiver's queue: bytes of each datagram.
#[derive(Clone, Debug, Default)]
pub struct Queue(VecDeque<u32>);

impl Queue {
    /// Whether there is nothing to read.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a datagram and returns its length.
    pub fn send(&mut self, bytes: u32) -> u32 {
        self.0.push_back(bytes);
        bytes
    }

    /// Receives a datagram into a buffer of so many bytes, which fills it as far as the receiver cares:
    /// what does not fit is lost. Returns the buffer's length, 0 if there is none.
    pub fn receive(&mut self, bytes: u32) -> u32 {
        self.0.pop_front().map_or(0, |_| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_whole_and_one_at_a_time() {
        let mut queue = Queue::default();
        assert_eq!(queue.receive(100), 0);
        queue.send(1);
        queue.send(300);
        assert_eq!((queue.receive(100), queue.is_empty()), (100, false));
        assert_eq!((queue.receive(100), queue.is_empty()), (100, true));
    }
}
