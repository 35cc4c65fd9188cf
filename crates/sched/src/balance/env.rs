//! What one balance pass knows and carries along (`struct lb_env`).

use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, CpuMask, GroupId};

/// How idle the CPU is for which a pass is done (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuIdle {
    /// It is busy.
    #[default]
    NotIdle,
    /// It is idle.
    Idle,
    /// It is about to become idle.
    NewlyIdle,
}

impl CpuIdle {
    /// Idle or about to be.
    #[inline(always)]
    pub fn is_idle(self) -> bool {
        self != CpuIdle::NotIdle
    }

    /// Of whether the CPU is idle, at a tick.
    pub(crate) fn of(idle: bool) -> CpuIdle {
        if idle {
            CpuIdle::Idle
        } else {
            CpuIdle::NotIdle
        }
    }
}

/// What an imbalance is counted in (`enum migration_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationType {
    /// Load (`task_h_load`).
    #[default]
    Load,
    /// Estimated utilisation.
    Util,
    /// Tasks.
    Task,
    /// One task that is too big for its CPU.
    Misfit,
}

/// Flags of a pass (`LBF_*`).
pub mod lbf {
    /// No task was seen that may run on the destination.
    pub const ALL_PINNED: u32 = 0x01;
    /// Take a breath and go on.
    pub const NEED_BREAK: u32 = 0x02;
    /// A task was seen that may run on `new_dst_cpu` instead.
    pub const DST_PINNED: u32 = 0x04;
    /// A task was seen that may not run on the destination.
    pub const SOME_PINNED: u32 = 0x08;
    /// The stopper moves the running task.
    pub const ACTIVE_LB: u32 = 0x10;
    /// FORCE_IDLE_LB: a task is taken that its core's cookie keeps from running.
    pub const FORCE_IDLE: u32 = 0x20;
}

/// `SCHED_NR_MIGRATE_BREAK`: tasks looked at before the source is let go for a moment.
pub const NR_MIGRATE_BREAK: u32 = 32;

/// One pass.
#[derive(Clone, Debug, Default)]
pub struct LbEnv {
    /// The CPU whose domain is balanced.
    pub this_cpu: CpuId,
    /// Which of its domains, the lowest is 0.
    pub level: usize,
    /// The domain's `SD_*` bits.
    pub sd_flags: u32,
    /// The domain's `imbalance_pct`.
    pub imbalance_pct: u32,
    /// The domain's `imb_numa_nr`.
    pub imb_numa_nr: u32,
    /// The domain's `cache_nice_tries`.
    pub cache_nice_tries: u32,
    /// The domain's `nr_balance_failed`.
    pub nr_balance_failed: u32,
    /// How idle the CPU is.
    pub idle: CpuIdle,
    /// The CPU that tasks go to: `this_cpu` unless tasks were pinned away from it.
    pub dst_cpu: CpuId,
    /// `capacity_of(dst_cpu)`.
    pub dst_capacity: u64,
    /// No SMT, or the SMT siblings of `dst_cpu` are idle.
    pub dst_core_idle: bool,
    /// The group whose balance mask holds the alternatives to `dst_cpu` (`dst_grpmask`).
    pub dst_group: GroupId,
    /// The alternative to `dst_cpu`, if `flags` has [`lbf::DST_PINNED`].
    pub new_dst_cpu: CpuId,
    /// The CPU that tasks are taken from.
    pub src_cpu: CpuId,
    /// FORCE_IDLE_LB: such tasks count (see [`lbf::FORCE_IDLE`]).
    pub force_idle_aware: bool,
    /// CPUs under consideration.
    pub cpus: CpuMask,
    /// Whether some CPU of the domain is no longer in `cpus`.
    pub trimmed: bool,
    /// How much to move, in the unit of `migration_type`.
    pub imbalance: i64,
    /// The unit of `imbalance`.
    pub migration_type: MigrationType,
    /// `LBF_*`.
    pub flags: u32,
    /// Tasks looked at.
    pub loops: u32,
    /// How many may be, before a break.
    pub loop_break: u32,
    /// How many may be.
    pub loop_max: u32,
}

impl LbEnv {
    /// Whether the domain has one of these `SD_*` bits.
    #[inline(always)]
    pub fn sd_has(&self, bits: u32) -> bool {
        self.sd_flags & bits != 0
    }

    /// Whether the pass has one of these `LBF_*` bits.
    #[inline(always)]
    pub fn has(&self, bits: u32) -> bool {
        self.flags & bits != 0
    }

    /// Starts the count of tasks looked at again.
    pub(crate) fn restart_loop(&mut self) {
        self.loops = 0;
        self.loop_break = NR_MIGRATE_BREAK;
    }

    /// Takes a CPU out of consideration.
    pub(crate) fn exclude(&mut self, cpu: CpuId) {
        self.cpus.clear(cpu);
        self.trimmed = true;
    }

    /// `check_cpu_capacity`: noticeably less capacity is left than the CPU was built with.
    #[inline(always)]
    pub fn capacity_reduced(&self, capacity: u64, arch_capacity: u64) -> bool {
        capacity * u64::from(self.imbalance_pct) < arch_capacity * 100
    }

    /// Whether the domain's CPUs share an SMT core.
    #[inline(always)]
    pub(crate) fn is_smt_level(&self) -> bool {
        self.sd_has(sd::SHARE_CPUCAPACITY)
    }
}

/// `sched_asym_prefer`: whether work is better on `a` than on `b` where CPUs differ in priority. By
/// default the lower number is preferred (kernel sched/fair.c, `arch_asym_cpu_priority`).
#[inline(always)]
pub fn asym_prefer(a: CpuId, b: CpuId) -> bool {
    a < b
}

/// `capacity_greater`: by more than 5 %.
#[inline(always)]
pub fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}
