//! What a placement decision sees of the world.
//!
//! The decision is written once, over this trait, and has two callers: the simulator's state
//! ([`Live`](super::Live)) and a decision recorded on a real kernel
//! ([`Recorded`](super::Recorded)). Both are known at compile time, so nothing is looked up at run
//! time.

use super::Ranks;
use super::mutation::{Mutation, broken};
use crate::features::Feat;
use crate::rules::Rules;
use crate::state::GroupCapacity;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::ids::GroupId;
use wakelab_machine::{CpuId, LlcId};

/// One decision's world: the machine, the task to place (`p`), the waker (`current`) and the run
/// queues. Loads, utilisations and capacities are in kernel units (1024 = one nice-0 task always
/// runnable, or one full CPU of the biggest kind).
pub trait View {
    /// The machine's shape.
    fn topo(&self) -> &SchedTopology;
    /// Its CPUs by rank in their LLC.
    fn ranks(&self) -> &Ranks;
    /// The release's rules.
    fn rules(&self) -> &Rules;
    /// Whether a feature is on (`sched_feat`).
    fn feat(&self, feat: Feat) -> bool;
    /// Threshold of WAKEUP_BIAS_PREV_IDLE.
    fn almost_idle_load(&self) -> u64;

    /// The CPU that decides (`smp_processor_id`).
    fn this_cpu(&self) -> CpuId;
    /// Not in an interrupt (`in_task`).
    fn in_task(&self) -> bool;
    /// Whether the waker is a kernel thread of one CPU; the idle task is (`is_per_cpu_kthread`).
    fn curr_is_per_cpu_kthread(&self) -> bool;
    /// Whether the waker is exiting (PF_EXITING).
    fn curr_is_exiting(&self) -> bool;
    /// The waker's share of its CPU's load (`task_h_load(current)`).
    fn curr_h_load(&mut self) -> u64;
    /// The waker's `wakee_flips`.
    fn curr_wakee_flips(&self) -> u32;
    /// The task's `wakee_flips`.
    fn wakee_flips(&self) -> u32;
    /// Notes that the waker wakes the task (`record_wakee`).
    fn record_wakee(&mut self);

    /// Whether the task may run on a CPU.
    fn allowed(&self, cpu: CpuId) -> bool;
    /// Whether its last change of CPU is long enough ago (MIGRATION_RATELIMIT); recordings do not
    /// have the patch.
    fn should_migrate_task(&self) -> bool {
        true
    }
    /// Where it may run in an LLC: bits of the ranks `64 * index ..`.
    fn allowed_word(&self, llc: LlcId, index: usize) -> u64;
    /// The task's share of its CPU's load (`task_h_load`).
    fn task_h_load(&mut self) -> u64;
    /// The task's utilisation (`task_util`), where that is not `task_util_est`.
    fn task_util(&self) -> u64 {
        self.task_util_est()
    }
    /// The task's estimated utilisation (`task_util_est`).
    fn task_util_est(&self) -> u64;
    /// Brings the sleeping task's averages up to date (`sync_entity_load_avg`).
    fn sync_entity_load_avg(&mut self);
    /// The task's `recent_used_cpu`.
    fn recent_used_cpu(&self) -> CpuId;
    /// Overwrites it.
    fn set_recent_used_cpu(&mut self, cpu: CpuId);
    /// Overwrites that of the waker with its CPU; nothing in recordings, which are of later releases.
    fn note_cpu_of_waker(&mut self) {}

    /// `idle_cpu()` (and `available_idle_cpu()`: no CPU is a preempted virtual one).
    fn idle_cpu(&self, cpu: CpuId) -> bool;
    /// Whether it has SCHED_IDLE tasks and nothing else (`sched_idle_cpu`).
    fn sched_idle_cpu(&self, cpu: CpuId) -> bool;
    /// CPUs of an LLC that are idle: bits of the ranks `64 * index ..`.
    fn idle_word(&self, llc: LlcId, index: usize) -> u64;
    /// CPUs of an LLC with only SCHED_IDLE tasks, in the same way.
    fn sched_idle_word(&self, llc: LlcId, index: usize) -> u64;
    /// Whether the CPU would be idle without the task, its `nr_running` aside (`idle_cpu_without`).
    fn idle_cpu_without(&self, cpu: CpuId) -> bool;
    /// Whether the task is queued on this CPU and counts there (`task_running_on_cpu`).
    fn task_running_on(&self, cpu: CpuId) -> bool;
    /// Tasks on the run queue (`nr_running`).
    fn nr_running(&self, cpu: CpuId) -> u32;
    /// Those of them that sleep but were not dequeued yet (`cfs_h_nr_delayed`; 0 before 6.12).
    fn nr_delayed(&self, cpu: CpuId) -> u32;
    /// `cpu_load`.
    fn cpu_load(&self, cpu: CpuId) -> u64;
    /// The load average of a CPU with what sleeps (`cfs_rq_load_avg`), where that is not `cpu_load`.
    fn cpu_load_avg(&self, cpu: CpuId) -> u64 {
        self.cpu_load(cpu)
    }
    /// `cpu_load_without` the task.
    fn cpu_load_without(&mut self, cpu: CpuId) -> u64;
    /// `cpu_runnable_without` the task.
    fn cpu_runnable_without(&self, cpu: CpuId) -> u64;
    /// `cpu_util_without` the task.
    fn cpu_util_without(&self, cpu: CpuId) -> u64;
    /// Estimated utilisation of the tasks queued there (`cfs.avg.util_est`).
    fn util_est_enqueued(&self, cpu: CpuId) -> u64;
    /// `capacity_of`.
    fn capacity_of(&self, cpu: CpuId) -> u64;
    /// `idle_stamp`, ns.
    fn idle_stamp(&self, cpu: CpuId) -> u64;
    /// Exit latency of its idle state, us, if that is known.
    fn exit_latency(&self, cpu: CpuId) -> Option<u32>;

    /// `has_idle_cores` of an LLC.
    fn has_idle_cores(&self, llc: LlcId) -> bool;
    /// Clears `has_idle_cores` of an LLC.
    fn clear_idle_cores(&mut self, llc: LlcId);
    /// `nr_idle_scan` of an LLC.
    fn nr_idle_scan(&self, llc: LlcId) -> i32;
    /// `sched_group_capacity` of a group.
    fn group_capacity(&self, group: GroupId) -> GroupCapacity;

    /// Whether core scheduling is in force on this CPU (`sched_core_enabled`).
    fn core_sched(&self) -> bool;
    /// The task's cookie, 0 for none.
    fn cookie(&self) -> u64;
    /// A core's cookie as of its last pick, 0 for none; asked of any of its CPUs.
    fn core_cookie(&self, cpu: CpuId) -> u64;

    /// `wake_avg_idle` of this CPU, aged to now, ns (SIS_PROP); before 5.12 a 512th of `avg_idle`.
    fn wake_avg_idle(&mut self) -> u64;
    /// `avg_scan_cost` of this CPU's LLC domain, ns (SIS_PROP).
    fn avg_scan_cost(&self) -> u64;
    /// Charges a search of so many CPUs to both (SIS_PROP).
    fn charge_scan(&mut self, scanned: u32);

    /// The decision reads the run queue of a CPU.
    fn look_at(&mut self, cpu: CpuId);
    /// It reads what the CPUs of an LLC share.
    fn look_at_llc(&mut self, llc: LlcId);
    /// It looked at so many CPUs in an idle search.
    fn note_scanned(&mut self, cpus: u32);
    /// It read so many CPUs' statistics in the slow path.
    fn note_stats_read(&mut self, cpus: u32);

    /// The rule that is broken on purpose; none but for `verify --mutate`.
    #[inline(always)]
    fn mutation(&self) -> Option<Mutation> {
        None
    }
}

/// `cpus_share_cache`: the same last-level cache.
#[inline(always)]
pub(super) fn cpus_share_cache<V: View>(v: &V, a: CpuId, b: CpuId) -> bool {
    a == b || v.topo().cpus[a.index()].llc == v.topo().cpus[b.index()].llc
}

/// `cpus_share_resources`: the same cluster or, where there are none, the same LLC.
#[inline(always)]
pub(super) fn cpus_share_resources<V: View>(v: &V, a: CpuId, b: CpuId) -> bool {
    a == b || v.topo().cpus[a.index()].share == v.topo().cpus[b.index()].share
}

/// `sched_cpu_cookie_match`: the core runs the task's cookie. An idle core's cookie is 0, so a task
/// with a cookie does not match it.
#[inline(always)]
pub(super) fn cpu_cookie_match<V: View>(v: &V, cpu: CpuId) -> bool {
    !v.core_sched() || v.core_cookie(cpu) == v.cookie()
}

/// `sched_core_cookie_match`: as [`cpu_cookie_match`], or the whole core is idle.
#[inline(always)]
pub(super) fn core_cookie_match<V: View>(v: &V, cpu: CpuId) -> bool {
    !v.core_sched()
        || v.core_cookie(cpu) == v.cookie()
        || !broken(v, Mutation::IdleCoreCookie)
            && v.topo().cpus[cpu.index()]
                .smt
                .iter()
                .all(|sibling| v.idle_cpu(sibling))
}

/// `fits_capacity`: with 20 % to spare.
#[inline(always)]
pub(super) fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}
