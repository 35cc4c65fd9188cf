//! One direction of a TCP connection over the loopback device (kernel `net/ipv4/tcp.c`,
//! `tcp_output.c`).
//!
//! A segment that is sent is in the receiver's queue at once: the loopback device delivers it in a
//! soft interrupt on the sender's CPU. Nagle's algorithm is on, as hackbench leaves it: while a
//! segment shorter than the MSS is not acknowledged, a further short one is held back and grows.
//! The receiver acknowledges when it has read its queue empty, or more than a segment of the largest
//! size seen (`tcp_cleanup_rbuf`); what was held back then follows in one segment. Not modelled: the
//! first acknowledgements of a connection, which are sent at once; growth of window and buffer.
//!
//! Ends that answer each other are in ping-pong mode (`inet_csk_in_pingpong_mode`): an answer carries the
//! acknowledgement, so that reading emits nothing and nothing is held back. Their windows have grown with
//! the connection (`tcp_rcv_space_adjust`) and do not limit it.

use std::collections::VecDeque;

/// Payload of a segment on the loopback device: its MTU of 65,536 less headers and time stamps.
pub const MSS: u32 = 65_483;

/// `sk_sndbuf` as `tcp_sndbuf_expand` sets it at the start of a connection: twice ten segments, each
/// rounded up to a power of two with its headers, and `sk_buff`.
pub const SNDBUF: u32 = 2 * 10 * (131_072 + 256);

/// The receive window that a new connection offers: half of `tcp_rmem`'s 131,072.
pub const WINDOW: u32 = 65_536;

/// The connection's state.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Bytes in the write queue that were not sent.
    unsent: u32,
    /// Bytes sent and not acknowledged.
    unacked: u32,
    /// A segment below the MSS is among those (`snd_sml` after `snd_una`).
    short_unacked: bool,
    /// Bytes left of each segment in the receive queue.
    segments: VecDeque<u32>,
    /// Their sum.
    received: u32,
    /// The largest segment seen (`rcv_mss`).
    largest: u32,
    /// Both ends take turns.
    pingpong: bool,
}

/// What a read did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes read.
    pub bytes: u32,
    /// Blocked senders are woken.
    pub wake_senders: bool,
    /// Its acknowledgement let a segment follow, which arrived.
    pub arrived: bool,
}

impl Stream {
    /// A direction of a connection in ping-pong mode.
    pub fn pingpong() -> Stream {
        Stream {
            pingpong: true,
            ..Stream::default()
        }
    }

    /// Whether there is nothing to read.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether a send must wait (`sk_stream_memory_free`).
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.unsent + self.unacked >= SNDBUF
    }

    /// Whether a short send would only be queued (`tcp_nagle_check`).
    #[inline(always)]
    pub fn holds_back(&self) -> bool {
        self.short_unacked
    }

    /// Whether reading so many bytes would send an acknowledgement.
    #[inline(always)]
    pub fn acknowledges(&self, bytes: u32) -> bool {
        !self.pingpong
            && (bytes >= self.received || self.received + self.largest < self.unacked + bytes)
    }

    /// Queues up to `bytes` and sends what may be sent. Returns how much was queued, 0 if the send
    /// must wait, and whether a segment arrived.
    pub fn send(&mut self, bytes: u32) -> (u32, bool) {
        let part = bytes.min(SNDBUF.saturating_sub(self.unsent + self.unacked));
        self.unsent += part;
        (part, self.transmit())
    }

    /// Receives up to `bytes`, from as many segments as it takes.
    pub fn receive(&mut self, bytes: u32) -> Received {
        let mut left = bytes;
        while let Some(segment) = self.segments.front_mut().filter(|_| left > 0) {
            let part = left.min(*segment);
            *segment -= part;
            left -= part;
            self.received -= part;
            if *segment == 0 {
                self.segments.pop_front();
            }
        }
        let bytes = bytes - left;
        let read = self.unacked - self.received;
        let all_or_much = self.pingpong || self.received == 0 || read > self.largest;
        if bytes == 0 || !all_or_much {
            return Received {
                bytes,
                wake_senders: false,
                arrived: false,
            };
        }
        self.unacked = self.received;
        self.short_unacked = !self.pingpong && self.segments.back().is_some_and(|&last| last < MSS);
        Received {
            bytes,
            // `sk_stream_write_space`: at least half as much is free as is queued.
            wake_senders: (self.unsent + self.unacked) / 2
                <= SNDBUF.saturating_sub(self.unsent + self.unacked),
            arrived: self.transmit(),
        }
    }

    /// `tcp_write_xmit`: sends segments while Nagle and the window let it.
    fn transmit(&mut self) -> bool {
        let mut arrived = false;
        while self.unsent > 0 {
            let segment = self.unsent.min(MSS);
            let held = segment < MSS && self.short_unacked;
            let closed = !self.pingpong && self.unacked + segment > WINDOW;
            if held || closed {
                break;
            }
            self.unsent -= segment;
            self.unacked += segment;
            self.received += segment;
            self.short_unacked |= segment < MSS && !self.pingpong;
            self.largest = self.largest.max(segment);
            self.segments.push_back(segment);
            arrived = true;
        }
        arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_messages_wait_for_the_acknowledgement_and_follow_in_one_segment() {
        let mut stream = Stream::default();
        assert_eq!(stream.send(100), (100, true));
        for _ in 0..5 {
            assert!(stream.holds_back());
            assert_eq!(stream.send(100), (100, false));
        }
        assert_eq!(stream.segments, [100]);
        assert!(stream.acknowledges(100) && !stream.acknowledges(99));
        let received = stream.receive(100);
        assert_eq!((received.bytes, received.arrived), (100, true));
        assert_eq!(stream.segments, [500]);
    }

    #[test]
    fn a_full_segment_is_not_held_back_but_the_window_is_kept() {
        let mut stream = Stream::default();
        stream.send(100);
        assert_eq!(
            stream.send(MSS),
            (MSS, false),
            "100 + MSS is over the window"
        );
        assert!(stream.receive(100).arrived);
        assert_eq!(stream.segments, [MSS]);
        assert_eq!(stream.send(MSS), (MSS, false));
    }

    #[test]
    fn ends_that_answer_each_other_hold_nothing_back_and_reading_emits_nothing() {
        let mut stream = Stream::pingpong();
        assert_eq!(stream.send(4), (4, true));
        assert!(!stream.holds_back());
        assert_eq!(stream.send(MSS + 100), (MSS + 100, true));
        assert_eq!(stream.segments, [4, MSS, 100]);
        assert!(!stream.acknowledges(MSS + 104));
        assert_eq!(stream.receive(4).bytes, 4);
        let rest = stream.receive(MSS + 100);
        assert_eq!((rest.bytes, rest.arrived), (MSS + 100, false));
        assert_eq!((stream.unacked, stream.is_empty()), (0, true));
    }

    #[test]
    fn a_full_send_buffer_blocks_until_two_thirds() {
        let mut stream = Stream::default();
        let mut queued = 0;
        while !stream.is_full() {
            queued += stream.send(10_000).0;
        }
        assert_eq!(queued, SNDBUF);
        assert_eq!(stream.send(1).0, 0);
        let mut read = 0;
        loop {
            let received = stream.receive(MSS);
            read += received.bytes;
            if received.wake_senders {
                break;
            }
        }
        let left = SNDBUF - read;
        assert!(
            left * 3 <= SNDBUF * 2 && (left + MSS) * 3 > SNDBUF * 2,
            "{left}"
        );
    }

    proptest! {
        #[test]
        fn bytes_are_neither_lost_nor_made_and_none_are_stranded(
            ops in prop::collection::vec((any::<bool>(), 1u32..200_000), 1..200),
        ) {
            let mut stream = Stream::default();
            let (mut sent, mut read) = (0u64, 0u64);
            for (send, bytes) in ops {
                if send {
                    sent += u64::from(stream.send(bytes).0);
                } else {
                    let expects = stream.acknowledges(bytes);
                    let received = stream.receive(bytes);
                    read += u64::from(received.bytes);
                    prop_assert!(expects || !received.arrived);
                }
                prop_assert!(read <= sent && stream.unacked <= WINDOW);
                prop_assert_eq!(stream.is_empty(), read == sent, "what was sent gets there");
                prop_assert_eq!(stream.received, stream.segments.iter().sum::<u32>());
            }
        }
    }
}
