//! What the kernel decides: tasks, run queues, PELT, the fair pick, task groups, wake-up placement,
//! preemption and load balancing.
//!
//! The crate knows no clock, no event queue and no file: every entry point is told the time, and
//! what it did to shared cache lines is left in [`Touches`] for the engine to charge.

pub mod balance;
pub mod core_sched;
pub mod fair;
pub mod features;
pub mod ids;
pub mod init;
pub mod pelt;
pub mod placement;
pub mod rules;
pub mod state;
pub mod touch;
mod ttwu;
pub mod weight;

pub use features::{Feat, FeatureError, FeatureSet, Features};
pub use ids::{CfsId, Cookie, SeId, TaskId, TgId};
pub use rules::{Release, Rules, Tunables};
pub use state::{CfsRq, Rq, Sched, SchedAvg, SchedEntity, Task, TaskGroup};
pub use touch::{LINE_KINDS, Line, Touch, Touches};
