//! Wake-up placement: on which CPU a task that becomes runnable shall run.
//!
//! The rooms follow the path that a decision takes through the kernel's `sched/fair.c`:
//!
//! 1. `select`: `select_task_rq_fair`, the walk up the domains that leads to one of two paths.
//! 2. `wake_affine`: `wake_wide`, `wake_affine_idle`, `wake_affine_weight`: the waking or the
//!    previous CPU as the target of the fast path.
//! 3. `sibling`: `select_idle_sibling` and its steps: target, previous, per-CPU kernel thread,
//!    recent CPU, SMT sibling, LLC; `idle` is the check of a CPU that they share, `search` the loop
//!    over the LLC as bit masks, `capacity` the search on asymmetric machines.
//! 4. `slow`: the slow path, the idlest CPU of the idlest group.
//!
//! What releases before 5.5 and 5.12 do in another way has rooms of its own: `slow_by_load`, `turns`.
//!
//! All of it is written over a [`View`], so that the simulator ([`Live`]) and a decision recorded on
//! a real kernel ([`Recorded`]) run the same code. A posted patch is a feature word and a few lines
//! at the step that it changes. Every decision names its [`Reason`]. To see whether recorded
//! decisions would notice a step that is wrong, each can be broken on purpose (`mutation`).

mod capacity;
mod decision;
mod idle;
mod live;
mod mutation;
mod ranks;
mod recorded;
mod search;
mod select;
mod sibling;
mod slow;
mod slow_by_load;
#[cfg(test)]
mod tests;
mod turns;
mod view;
mod wake_affine;

pub use decision::{AffinePath, Decision, Reason, SearchStats, SisPath, WakeAffine};
pub use live::Live;
pub use mutation::Mutation;
pub use ranks::{LlcRanks, Ranks};
pub use recorded::{Cookies, Recorded, RecordedCall, RecordedMachine};
pub use select::select_task_rq_fair;
pub use view::View;

/// Wake flags (`WF_*`), with the kernel's values.
pub mod wf {
    /// Wake-up after exec; SD_BALANCE_EXEC.
    pub const EXEC: u32 = 0x02;
    /// Wake-up after fork; SD_BALANCE_FORK.
    pub const FORK: u32 = 0x04;
    /// Wake-up proper; SD_BALANCE_WAKE.
    pub const TTWU: u32 = 0x08;
    /// The waker goes to sleep after the wake-up.
    pub const SYNC: u32 = 0x10;
    /// The wake-up migrated the task.
    pub const MIGRATED: u32 = 0x20;
    /// Prefer to move the task to the waking CPU.
    pub const CURRENT_CPU: u32 = 0x40;
    /// The bits that are `SD_BALANCE_*` flags of domains.
    pub const SD_FLAGS: u32 = 0x0f;
}
