//! Recorded wake-up decisions: calls of `select_task_rq_fair()` with all that they looked at.

mod compare;
mod machine;
mod record;

pub use compare::Step;
pub(crate) use compare::compare;
pub(crate) use machine::Machine;
pub(crate) use record::Record;
