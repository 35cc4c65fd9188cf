//! One direction of a Unix stream socket pair: buffers charged to the sender (kernel
//! `net/unix/af_unix.c`, `net/core/sock.c`).

use std::collections::VecDeque;

/// `sysctl_wmem_default`: SK_WMEM_MAX, 256 buffers of 256 bytes of data with their overhead.
pub const SNDBUF: u32 = 212_992;

/// A stream of buffers.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Bytes left and bytes charged of each buffer, first come first.
    buffers: VecDeque<(u32, u32)>,
    /// `sk_wmem_alloc`.
    charged: u32,
}

impl Stream {
    /// Whether there is nothing to read.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Whether a send must wait (`sock_alloc_send_pskb`: as long as the charge reaches the limit).
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.charged >= SNDBUF
    }

    /// `unix_writable`: sleepers are woken when at most a quarter of the buffer is in use.
    #[inline(always)]
    pub fn is_writable(&self) -> bool {
        self.charged << 2 <= SNDBUF
    }

    /// Sends up to one buffer's worth (`unix_stream_sendmsg`: at most half the send buffer less 64
    /// bytes) of `bytes` and returns how much that was, 0 if the send must wait.
    pub fn send(&mut self, bytes: u32) -> u32 {
        if self.is_full() {
            return 0;
        }
        let part = bytes.min((SNDBUF >> 1) - 64);
        let charge = truesize(part);
        self.buffers.push_back((part, charge));
        self.charged += charge;
        part
    }

    /// Receives up to `bytes`. Returns how much, and whether a buffer was freed and left the
    /// socket writable, so that blocked senders are woken (`sock_wfree`, `unix_write_space`).
    pub fn receive(&mut self, bytes: u32) -> (u32, bool) {
        let mut left = bytes;
        let mut wake = false;
        while let Some((have, charge)) = self.buffers.front_mut().filter(|_| left > 0) {
            let part = left.min(*have);
            *have -= part;
            left -= part;
            if *have == 0 {
                self.charged -= *charge;
                self.buffers.pop_front();
                wake |= self.is_writable();
            }
        }
        (bytes - left, wake)
    }
}

/// What a buffer of so many bytes is charged: the head from the allocator's size classes
/// (`kmalloc`, with the 320 bytes of `skb_shared_info` at its end), and 256 bytes for `sk_buff`.
fn truesize(bytes: u32) -> u32 {
    const SHARED_INFO: u32 = 320;
    const SK_BUFF: u32 = 256;
    // Beyond one page of linear data the rest goes into page fragments.
    const LINEAR: u32 = 32_768;
    let linear = bytes.min(LINEAR - SHARED_INFO);
    let fragments = (bytes - linear).next_multiple_of(4096);
    (linear + SHARED_INFO).next_power_of_two().max(512) + fragments + SK_BUFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_100_byte_message_is_charged_768_bytes() {
        assert_eq!(truesize(100), 768);
        let mut stream = Stream::default();
        let sent = (0..).take_while(|_| stream.send(100) == 100).count();
        assert_eq!(sent as u32, SNDBUF.div_ceil(768));
    }

    #[test]
    fn senders_are_woken_when_a_quarter_is_in_use() {
        let mut stream = Stream::default();
        while !stream.is_full() {
            stream.send(100);
        }
        let mut left = stream.buffers.len() as u32;
        while left > 0 {
            let (read, wake) = stream.receive(100);
            left -= 1;
            assert_eq!(read, 100);
            assert_eq!(wake, left * 768 * 4 <= SNDBUF);
        }
        assert!(stream.is_empty());
    }
}
