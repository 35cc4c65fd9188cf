//! The fair class as kernel 6.5 has it (CFS): queueing, picking, preemption, group scheduling, and
//! the load figures that placement and balancing read (kernel `sched/fair.c`).
//!
//! Virtual times wrap and are compared by signed difference. What makes this CFS and not another
//! rule of the pick stands in four rooms: `curr` (accounting and slices), `place`, `pick` and
//! `preempt`. The others, the queueing walk, the averages and the groups, do not depend on it.

pub mod average;
mod blocked;
mod buddies;
mod clock;
mod curr;
pub mod flags;
pub mod group;
mod load;
mod pick;
mod place;
mod preempt;
mod queue;
pub mod task;
mod timeline;
pub mod util_est;

pub use task::TaskSpec;
