//! When it happens: the event queue, the clock, running CPUs, idle states, costs, and what tasks
//! block on.

pub mod outcome;

pub use outcome::{AuditRow, HostCost, METRICS, Metric, Outcome};
