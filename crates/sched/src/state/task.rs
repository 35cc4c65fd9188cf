//! Tasks.

use crate::ids::{Cookie, SeId, TgId};
use wakelab_machine::{CpuId, CpuMask};

/// The fair class's policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// SCHED_NORMAL (SCHED_OTHER).
    #[default]
    Normal,
    /// SCHED_BATCH: never preempts on wake-up.
    Batch,
    /// SCHED_IDLE: weight 3, preempted by all others.
    Idle,
}

/// What, after its placement, makes a queued task one that a core may be forced idle for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// A CPU about to go idle.
    NewlyIdle,
    /// Periodic balancing, by a busy CPU or for idle ones.
    Periodic,
    /// The stopper, for a CPU that has failed to get anything else.
    Active,
    /// A CPU that was forced idle.
    Stealing,
    /// A CPU that was forced idle, for another that can run it (FORCE_IDLE_PUSH).
    Pushing,
    /// Nobody moved it: it was given another cookie where it is (`prctl`).
    Cookie,
}

impl Mover {
    /// All of them in their order.
    pub const ALL: [Mover; 6] = [
        Mover::NewlyIdle,
        Mover::Periodic,
        Mover::Active,
        Mover::Stealing,
        Mover::Pushing,
        Mover::Cookie,
    ];

    /// Its name in audits.
    pub fn name(self) -> &'static str {
        match self {
            Mover::NewlyIdle => "newly-idle balancing",
            Mover::Periodic => "periodic balancing",
            Mover::Active => "active balancing",
            Mover::Stealing => "stealing",
            Mover::Pushing => "pushing",
            Mover::Cookie => "new cookie",
        }
    }
}

/// What the scheduler keeps of a task (`struct task_struct`).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Task {
    // Cache line 1: what a wake-up and a switch read.
    /// Its entity.
    pub se: SeId,
    /// Its group (`sched_task_group`).
    pub tg: TgId,
    /// Its address space: tasks with the same number share one (threads).
    pub mm: u32,
    /// The CPU that it is on or was last on (`task_cpu`).
    pub cpu: CpuId,
    /// `wake_cpu`: where a wake-up takes it to have been.
    pub wake_cpu: CpuId,
    /// `recent_used_cpu`.
    pub recent_used_cpu: CpuId,
    /// SCHED_NORMAL, SCHED_BATCH or SCHED_IDLE.
    pub policy: Policy,
    /// -20 ..= 19.
    pub nice: i8,
    /// Whether `cpus` holds all CPUs of the machine.
    pub unrestricted: bool,
    /// `on_rq`: queued (or running).
    pub on_rq: bool,
    /// `on_cpu`: running now.
    pub on_cpu: bool,
    /// TASK_ON_RQ_MIGRATING: taken off one queue, to be put on another.
    pub migrating: bool,
    /// TASK_NEW: forked, never queued yet.
    pub new: bool,
    /// PF_EXITING.
    pub exiting: bool,
    /// A kernel thread (PF_KTHREAD).
    pub kthread: bool,
    /// `nr_cpus_allowed`.
    pub nr_cpus_allowed: u32,
    /// `last_wakee`, as a task index or none.
    pub last_wakee: crate::ids::TaskId,
    /// `wakee_flips`.
    pub wakee_flips: u32,
    /// `wakee_flip_decay_ts`, jiffies.
    pub wakee_flip_decay_ts: u64,
    /// Times that it changed CPU (`se.nr_migrations`).
    pub nr_migrations: u64,
    /// `se.next_migration_time`: until when affine wake-ups leave it where it is, ns
    /// (MIGRATION_RATELIMIT).
    pub next_migration_time: u64,
    // Cache line 2: core scheduling.
    /// `core_cookie`.
    pub cookie: Cookie,
    /// `core_occupation`: how many CPUs of the core had a task when it was last picked.
    pub core_occupation: u32,
    /// It is in its CPU's `core_tree`.
    pub core_queued: bool,
    /// With core scheduling, what moved it there, if that was not a placement.
    pub moved_by: Option<Mover>,
    /// Its process group.
    pub pgrp: u16,
    /// `core_forceidle_sum`: forced idle that siblings had while it ran, ns.
    pub core_forceidle_sum: u64,
    /// With core scheduling, when it last came to its queue, ns.
    pub arrived_at: u64,
    /// `cpus_ptr`: where it may run.
    pub cpus: CpuMask,
}

impl Task {
    /// Whether it may run on a CPU.
    #[inline(always)]
    pub fn may_run_on(&self, cpu: CpuId) -> bool {
        self.unrestricted || self.cpus.contains(cpu)
    }
}
