//! Makes recorded calls of a real kernel again, through the functions that the simulator runs, and
//! tells where the two part.
//!
//! A [`Recording`] is a file of JSON lines, gzipped or plain: a header, then one call a line with
//! all that it looked at and what it came to. Two schemas are read: wake-up decisions (1), each a
//! call of `select_task_rq_fair()`, and arithmetic (2), calls of one function by [`KINDS`].
//! [`verify`] compares a recording; [`mutate`] breaks one rule of placement at a time and tells
//! which of them the decisions notice.

mod decisions;
mod error;
mod header;
mod kinds;
mod lines;
mod mutate;
mod outcome;
mod recording;
mod verify;
mod wire;

pub use decisions::Step;
pub use error::{Problem, ReadError};
pub use kinds::{KINDS, Kind};
pub use lines::Lines;
pub use mutate::{Catch, Mutated, Noticed, mutate};
pub use outcome::{Difference, Outcome};
pub use recording::{DECISIONS, Recording};
pub use verify::{Choice, Count, FileReport, Shown, verify};
