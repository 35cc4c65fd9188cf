//! When it happens: the event queue, the clock, running CPUs, idle states, costs, and what tasks
//! block on.

pub mod combined;
pub mod engine;
pub mod forced_idle;
pub mod histogram;
pub mod lines;
pub mod object;
pub mod outcome;
pub mod price;
pub mod queue;
pub mod rng;
pub mod stats;
pub mod work;

pub use combined::{Combined, Command};
pub use engine::{Engine, Grouping, RunConfig, RunError, Start};
pub use forced_idle::{CauseRow, ForcedIdle, MoveRow, PairRow};
pub use object::sync::{SyncCounts, SyncObjects, SyncOp};
pub use outcome::{AuditRow, HostCost, LineRow, METRICS, Metric, Outcome};
pub use work::{Attributes, Group, Op, Session, Setting, Spawn, Workload};
