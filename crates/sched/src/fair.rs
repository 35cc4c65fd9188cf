//! The fair class as kernel 6.5 (CFS) and kernel 6.12 (EEVDF) have it: queueing, picking, preemption, group scheduling, and
//! the load figures that placement and balancing read (kernel `sched/fair.c`).
//!
//! Virtual times wrap and are compared by signed difference. What makes CFS stands in four rooms:
//! `curr` (accounting and slices), `place`, `pick` and `preempt`; what makes EEVDF in `eevdf`. The
//! others, the averages and the groups, do not depend on it.

pub mod average;
mod blocked;
mod buddies;
mod clock;
mod curr;
mod eevdf;
pub mod flags;
pub mod group;
pub(crate) mod load;
mod pick;
mod place;
mod preempt;
mod queue;
pub mod runnable_load;
mod setattr;
pub mod task;
mod timeline;
pub mod util_est;

pub(crate) use clock::Jiffy;
pub use task::TaskSpec;
