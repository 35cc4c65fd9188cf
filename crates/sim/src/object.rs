//! What tasks block on: pipes, sockets, TCP and UDP connections, with the lock that guards each and the wait queues.

pub mod mutex;
pub mod pipe;
pub mod socket;
pub mod sync;
pub mod tcp;
pub mod udp;

use crate::price::Place;
use mutex::Mutex;
use std::collections::VecDeque;
use wakelab_sched::TaskId;

/// A channel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChanId(pub u32);

impl ChanId {
    /// As an index.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A pipe, or one direction of a socket pair. What each operation touches is in two cache lines, and
/// what wake-ups and sleeps touch in the two after these.
#[derive(Clone, Debug)]
#[repr(C, align(128))]
pub struct Chan {
    /// The lock that each read and write holds.
    pub mutex: Mutex,
    /// Where the CPU is that last held the channel's lines.
    pub(crate) last_place: Place,
    /// What is in it.
    pub content: Content,
    /// Who waits for what is in it or for room.
    pub waiting: Waiting,
}

/// A channel's wait queues.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Readers that wait, first come first.
    pub readers: VecDeque<TaskId>,
    /// Writers that wait, first come first.
    pub writers: VecDeque<TaskId>,
    /// Tasks that poll for something to read.
    pub pollers: Vec<TaskId>,
}

/// The kind of channel.
#[derive(Clone, Debug)]
pub enum Content {
    /// A pipe.
    Pipe(pipe::Ring),
    /// One direction of a Unix stream socket pair.
    Socket(socket::Stream),
    /// One direction of a TCP connection over loopback.
    Tcp(tcp::Stream),
    /// One direction between two UDP sockets over loopback.
    Udp(udp::Queue),
}

impl Content {
    /// Whether a write, or a read, holds the lock. The receiver of a TCP connection has a socket, and a
    /// lock, of its own; datagrams are sent and received without one.
    #[inline(always)]
    pub fn locks(&self, write: bool) -> bool {
        match self {
            Content::Pipe(_) | Content::Socket(_) => true,
            Content::Tcp(_) => write,
            Content::Udp(_) => false,
        }
    }
}

impl Chan {
    /// An empty pipe.
    pub fn pipe() -> Chan {
        Chan::with(Content::Pipe(pipe::Ring::default()))
    }

    /// An empty direction of a socket pair.
    pub fn socket() -> Chan {
        Chan::with(Content::Socket(socket::Stream::default()))
    }

    /// An empty direction of a TCP connection.
    pub fn tcp() -> Chan {
        Chan::with(Content::Tcp(tcp::Stream::default()))
    }

    /// An empty direction of a TCP connection whose ends take turns, each answering the other.
    pub fn tcp_pingpong() -> Chan {
        Chan::with(Content::Tcp(tcp::Stream::pingpong()))
    }

    /// An empty direction between two UDP sockets.
    pub fn udp() -> Chan {
        Chan::with(Content::Udp(udp::Queue::default()))
    }

    fn with(content: Content) -> Chan {
        Chan {
            mutex: Mutex::default(),
            last_place: Place::default(),
            content,
            waiting: Waiting::default(),
        }
    }

    /// Whether there is nothing to read.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        match &self.content {
            Content::Pipe(ring) => ring.is_empty(),
            Content::Socket(stream) => stream.is_empty(),
            Content::Tcp(stream) => stream.is_empty(),
            Content::Udp(queue) => queue.is_empty(),
        }
    }

    /// Whether a write must wait.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        match &self.content {
            Content::Pipe(ring) => ring.is_full(),
            Content::Socket(stream) => stream.is_full(),
            Content::Tcp(stream) => stream.is_full(),
            Content::Udp(_) => false,
        }
    }
}
