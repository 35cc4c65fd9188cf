//! Task groups, and what CPUs share: LLC state, group capacities, domain state, root domain, NOHZ.

use crate::ids::{SeId, TgId};
use wakelab_machine::CpuMask;

/// `struct task_group`.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    /// For people.
    pub name: String,
    /// Its parent, none for the root.
    pub parent: TgId,
    /// Its entity on CPU 0; that of CPU n is n later. None for the root.
    pub first_se: SeId,
    /// `shares`, unscaled: 1048576 by default (`cpu.shares` 1024).
    pub shares: u64,
    /// `load_avg`: the sum of what its run queues contributed.
    pub load_avg: u64,
    /// 0 for the root.
    pub depth: u8,
    /// `cpu.idle`.
    pub idle: bool,
}

/// `struct sched_domain_shared` of an LLC, with the idle CPUs as bits.
#[derive(Clone, Debug, Default)]
pub struct LlcShared {
    /// `has_idle_cores`: a hint, often stale.
    pub has_idle_cores: bool,
    /// `nr_idle_scan`: how many CPUs a search may look at, written by the periodic balance.
    pub nr_idle_scan: i32,
    /// `nr_busy_cpus`.
    pub nr_busy_cpus: u32,
    /// CPUs of the LLC by rank (n-th CPU in ascending order) for which `idle_cpu()` holds.
    pub idle: CpuMask,
    /// CPUs of the LLC by rank for which `sched_idle_cpu()` holds.
    pub sched_idle: CpuMask,
}

/// `struct sched_group_capacity`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupCapacity {
    /// Sum of capacities.
    pub capacity: u64,
    /// Smallest capacity of a CPU.
    pub min_capacity: u64,
    /// Largest capacity of a CPU.
    pub max_capacity: u64,
    /// Jiffy of the next update.
    pub next_update: u64,
    /// An imbalance that affinity causes.
    pub imbalance: bool,
}

/// What changes in one CPU's `struct sched_domain`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DomainState {
    /// Jiffy of the last balance.
    pub last_balance: u64,
    /// Current interval, ms.
    pub balance_interval: u32,
    /// `nr_balance_failed`.
    pub nr_balance_failed: u32,
    /// `avg_scan_cost`, ns (SIS_PROP; of the LLC domain).
    pub avg_scan_cost: u64,
    /// `max_newidle_lb_cost`, ns.
    pub max_newidle_lb_cost: u64,
    /// Jiffy of its last decay.
    pub last_decay_max_lb_cost: u64,
    /// Newidle balances tried since the last halving (NI_RANDOM; 512 at first).
    pub newidle_call: u32,
    /// Those that pulled something, weighted by their chance (NI_RANDOM; 256 at first).
    pub newidle_success: u32,
    /// Share of successes, of 1024 (NI_RANDOM; 512 at first).
    pub newidle_ratio: u32,
}

/// `struct root_domain`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RootDomain {
    /// Some CPU has more than one task (`overload`).
    pub overload: bool,
    /// `overutilized`.
    pub overutilized: bool,
}

/// `struct nohz`.
#[derive(Clone, Debug, Default)]
pub struct Nohz {
    /// Idle CPUs without a tick.
    pub idle_cpus: CpuMask,
    /// How many.
    pub nr_cpus: u32,
    /// Some idle CPU has load to decay.
    pub has_blocked: bool,
    /// An idle CPU was added whose `next_balance` was not looked at yet.
    pub needs_update: bool,
    /// Jiffy of the next balance.
    pub next_balance: u64,
    /// Jiffy of the next update of blocked load.
    pub next_blocked: u64,
}
