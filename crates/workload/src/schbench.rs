//! schbench: message threads wake workers through futexes, and workers tell how late they ran.
//!
//! *Measures* the tail of wake-up latencies under think time (2019), and how many requests get done
//! when preemption is dear (2023 on). *Does not measure* throughput of messages: each is one wake-up.
//!
//! Two programs have this name, told apart here by theirs: `schbench-2019` ([`old`]), in which a worker
//! spins for `-c` us of wall time between messages, and `schbench` ([`new`]), in which it serves requests.

mod futex;
mod histogram;
pub mod new;
pub mod old;

pub use histogram::Samples;
