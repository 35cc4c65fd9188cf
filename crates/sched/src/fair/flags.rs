//! Flags of queueing and of wake-ups, with the values of kernel 6.5 (`sched/sched.h`).

/// The task sleeps: it is no longer runnable.
pub const DEQUEUE_SLEEP: u32 = 0x01;
/// Taken off for a change of its parameters, to be put back at once.
pub const DEQUEUE_SAVE: u32 = 0x02;
/// Its place in the queue may change by that.
pub const DEQUEUE_MOVE: u32 = 0x04;
/// The task must not be woken for nothing, so that its dequeueing is not delayed (6.12).
pub const DEQUEUE_SPECIAL: u32 = 0x10;
/// The delayed dequeueing of an entity is completed (6.12).
pub const DEQUEUE_DELAYED: u32 = 0x200;
/// The task has just become runnable.
pub const ENQUEUE_WAKEUP: u32 = 0x01;
/// Counterpart of [`DEQUEUE_SAVE`].
pub const ENQUEUE_RESTORE: u32 = 0x02;
/// Counterpart of [`DEQUEUE_MOVE`].
pub const ENQUEUE_MOVE: u32 = 0x04;
/// The task changed CPU on the way.
pub const ENQUEUE_MIGRATED: u32 = 0x40;
/// The task is new (6.6).
pub const ENQUEUE_INITIAL: u32 = 0x80;
/// The task is still queued: its dequeueing was delayed (6.12).
pub const ENQUEUE_DELAYED: u32 = 0x200;

/// Wake-up after exec.
pub const WF_EXEC: u32 = 0x02;
/// Wake-up of a new task.
pub const WF_FORK: u32 = 0x04;
/// Wake-up of a sleeper.
pub const WF_TTWU: u32 = 0x08;
/// The waker is about to sleep.
pub const WF_SYNC: u32 = 0x10;
/// The task changed CPU.
pub const WF_MIGRATED: u32 = 0x20;
/// Prefer the waker's CPU.
pub const WF_CURRENT_CPU: u32 = 0x40;

/// `update_load_avg`: pass a change on to the task group.
pub(crate) const UPDATE_TG: u32 = 0x1;
/// `update_load_avg`: leave the entity's own averages alone.
pub(crate) const SKIP_AGE_LOAD: u32 = 0x2;
/// `update_load_avg`: attach the entity if it has no run queue's clock yet.
pub(crate) const DO_ATTACH: u32 = 0x4;
/// `update_load_avg`: detach the entity.
pub(crate) const DO_DETACH: u32 = 0x8;
