//! A placement decision recorded on a real kernel: the view on a snapshot of all its inputs.

use super::Ranks;
use super::mutation::Mutation;
use super::view::View;
use crate::features::{Feat, Features};
use crate::rules::Rules;
use crate::state::GroupCapacity;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::ids::GroupId;
use wakelab_machine::{CpuId, CpuMask, LlcId};

/// What is the same for all decisions of a recording.
#[derive(Clone, Debug)]
pub struct RecordedMachine {
    /// The machine as its kernel saw it.
    pub topo: SchedTopology,
    /// Its CPUs by rank.
    pub ranks: Ranks,
    /// The rules of the kernel's release.
    pub rules: Rules,
    /// The features in force.
    pub features: Features,
    /// The threshold of WAKEUP_BIAS_PREV_IDLE.
    pub almost_idle_load: u64,
}

/// The inputs of one decision. Vectors go by CPU unless said otherwise; loads, utilisations and
/// capacities are in kernel units.
#[derive(Clone, Debug, Default)]
pub struct RecordedCall {
    /// The CPU that decided.
    pub this_cpu: CpuId,
    /// The argument `prev_cpu`.
    pub prev_cpu: CpuId,
    /// `wake_flags`.
    pub wake_flags: u32,
    /// Not in an interrupt.
    pub in_task: bool,
    /// The waker is a kernel thread of one CPU, or the idle task.
    pub curr_is_per_cpu_kthread: bool,
    /// The waker was exiting.
    pub curr_is_exiting: bool,
    /// `task_h_load(current)`.
    pub curr_h_load: u64,
    /// The waker's `wakee_flips` before and after `record_wakee`.
    pub curr_wakee_flips: [u32; 2],
    /// The task's `wakee_flips`.
    pub wakee_flips: u32,
    /// Where the task may run.
    pub allowed: CpuMask,
    /// `task_h_load(p)`.
    pub task_h_load: u64,
    /// `task_util_est(p)`.
    pub task_util_est: u64,
    /// The CPU on which the task was queued and counted, if it was (exec).
    pub task_running_on: Option<CpuId>,
    /// The CPU whose `curr` was the task, if one was (exec).
    pub task_current_on: Option<CpuId>,
    /// `recent_used_cpu` before.
    pub recent_used_cpu: CpuId,
    /// CPUs for which `idle_cpu()` held.
    pub idle: CpuMask,
    /// CPUs for which `sched_idle_cpu()` held.
    pub sched_idle: CpuMask,
    /// CPUs whose idle task was current.
    pub curr_idle: CpuMask,
    /// CPUs with `ttwu_pending`.
    pub ttwu_pending: CpuMask,
    /// `nr_running`.
    pub nr_running: Vec<u32>,
    /// `cfs_h_nr_delayed`.
    pub nr_delayed: Vec<u32>,
    /// `cpu_load`.
    pub load: Vec<u64>,
    /// `cpu_load_without(p)`.
    pub load_without: Vec<u64>,
    /// `cpu_runnable_without(p)`.
    pub runnable_without: Vec<u64>,
    /// `cpu_util_without(p)`.
    pub util_without: Vec<u64>,
    /// `cfs.avg.util_est`; empty where it was not recorded, then 0.
    pub util_est: Vec<u64>,
    /// `capacity_of`.
    pub capacity: Vec<u64>,
    /// `idle_stamp`; empty if the slow path was not taken.
    pub idle_stamp: Vec<u64>,
    /// Exit latencies; empty where they are not known.
    pub exit_latency: Vec<Option<u32>>,
    /// `has_idle_cores`, by LLC.
    pub has_idle_cores: Vec<bool>,
    /// `nr_idle_scan`, by LLC.
    pub nr_idle_scan: Vec<i32>,
    /// Capacity records of the groups that the slow path summed up.
    pub groups: Vec<(GroupId, GroupCapacity)>,
    /// Cookies, if core scheduling was in force on the deciding CPU.
    pub cookies: Option<Cookies>,
}

/// Cookies, 0 for none.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    /// The task's.
    pub task: u64,
    /// `rq->core->core_cookie`, by CPU.
    pub core: Vec<u64>,
}

/// A recorded decision to be made again, and what that changes.
#[derive(Debug)]
pub struct Recorded<'a> {
    machine: &'a RecordedMachine,
    call: &'a RecordedCall,
    curr_wakee_flips: u32,
    /// `recent_used_cpu` as the decision leaves it.
    pub recent_used_cpu: CpuId,
    /// The rule that is broken on purpose.
    pub mutation: Option<Mutation>,
}

impl<'a> Recorded<'a> {
    /// The decision as it stood before it was made.
    pub fn new(machine: &'a RecordedMachine, call: &'a RecordedCall) -> Recorded<'a> {
        Recorded {
            machine,
            call,
            curr_wakee_flips: call.curr_wakee_flips[0],
            recent_used_cpu: call.recent_used_cpu,
            mutation: None,
        }
    }

    fn word(&self, llc: LlcId, index: usize, set: &CpuMask) -> u64 {
        let cpus = self.machine.ranks.llc(llc).cpus[index * 64..]
            .iter()
            .take(64)
            .enumerate();
        cpus.fold(0, |word, (bit, &cpu)| {
            word | u64::from(set.contains(cpu)) << bit
        })
    }
}

impl View for Recorded<'_> {
    fn topo(&self) -> &SchedTopology {
        &self.machine.topo
    }

    fn ranks(&self) -> &Ranks {
        &self.machine.ranks
    }

    fn rules(&self) -> &Rules {
        &self.machine.rules
    }

    fn feat(&self, feat: Feat) -> bool {
        self.machine.features.has(feat)
    }

    fn almost_idle_load(&self) -> u64 {
        self.machine.almost_idle_load
    }

    fn this_cpu(&self) -> CpuId {
        self.call.this_cpu
    }

    fn in_task(&self) -> bool {
        self.call.in_task
    }

    fn curr_is_per_cpu_kthread(&self) -> bool {
        self.call.curr_is_per_cpu_kthread
    }

    fn curr_is_exiting(&self) -> bool {
        self.call.curr_is_exiting
    }

    fn curr_h_load(&mut self) -> u64 {
        self.call.curr_h_load
    }

    fn curr_wakee_flips(&self) -> u32 {
        self.curr_wakee_flips
    }

    fn wakee_flips(&self) -> u32 {
        self.call.wakee_flips
    }

    /// What it came to is recorded; the last wakee and the decay that it goes by are not.
    fn record_wakee(&mut self) {
        self.curr_wakee_flips = self.call.curr_wakee_flips[1];
    }

    fn allowed(&self, cpu: CpuId) -> bool {
        self.call.allowed.contains(cpu)
    }

    fn allowed_word(&self, llc: LlcId, index: usize) -> u64 {
        self.word(llc, index, &self.call.allowed)
    }

    fn task_h_load(&mut self) -> u64 {
        self.call.task_h_load
    }

    fn task_util_est(&self) -> u64 {
        self.call.task_util_est
    }

    /// The recorded averages are up to date.
    fn sync_entity_load_avg(&mut self) {}

    fn recent_used_cpu(&self) -> CpuId {
        self.recent_used_cpu
    }

    fn set_recent_used_cpu(&mut self, cpu: CpuId) {
        self.recent_used_cpu = cpu;
    }

    fn idle_cpu(&self, cpu: CpuId) -> bool {
        self.call.idle.contains(cpu)
    }

    fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        self.machine.rules.sched_idle_is_idle && self.call.sched_idle.contains(cpu)
    }

    fn idle_word(&self, llc: LlcId, index: usize) -> u64 {
        self.word(llc, index, &self.call.idle)
    }

    fn sched_idle_word(&self, llc: LlcId, index: usize) -> u64 {
        match self.machine.rules.sched_idle_is_idle {
            true => self.word(llc, index, &self.call.sched_idle),
            false => 0,
        }
    }

    fn idle_cpu_without(&self, cpu: CpuId) -> bool {
        (self.call.curr_idle.contains(cpu) || self.call.task_current_on == Some(cpu))
            && !self.call.ttwu_pending.contains(cpu)
    }

    fn task_running_on(&self, cpu: CpuId) -> bool {
        self.call.task_running_on == Some(cpu)
    }

    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.call.nr_running[cpu.index()]
    }

    fn nr_delayed(&self, cpu: CpuId) -> u32 {
        self.call.nr_delayed[cpu.index()]
    }

    fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.call.load[cpu.index()]
    }

    fn cpu_load_without(&mut self, cpu: CpuId) -> u64 {
        self.call.load_without[cpu.index()]
    }

    fn cpu_runnable_without(&self, cpu: CpuId) -> u64 {
        self.call.runnable_without[cpu.index()]
    }

    fn cpu_util_without(&self, cpu: CpuId) -> u64 {
        self.call.util_without[cpu.index()]
    }

    fn util_est_enqueued(&self, cpu: CpuId) -> u64 {
        self.call.util_est.get(cpu.index()).copied().unwrap_or(0)
    }

    fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.call.capacity[cpu.index()]
    }

    fn idle_stamp(&self, cpu: CpuId) -> u64 {
        self.call.idle_stamp.get(cpu.index()).copied().unwrap_or(0)
    }

    fn exit_latency(&self, cpu: CpuId) -> Option<u32> {
        self.call.exit_latency.get(cpu.index()).copied().flatten()
    }

    fn has_idle_cores(&self, llc: LlcId) -> bool {
        self.call.has_idle_cores[llc.index()]
    }

    /// The decision's own result says that it did.
    fn clear_idle_cores(&mut self, _llc: LlcId) {}

    fn nr_idle_scan(&self, llc: LlcId) -> i32 {
        self.call.nr_idle_scan[llc.index()]
    }

    /// A group that the recorded decision did not sum up has the capacity of its CPUs.
    fn group_capacity(&self, group: GroupId) -> GroupCapacity {
        let recorded = self.call.groups.iter().find(|(id, _)| *id == group);
        recorded
            .map(|(_, capacity)| *capacity)
            .unwrap_or_else(|| GroupCapacity {
                capacity: u64::from(self.machine.topo.groups[group.index()].capacity),
                ..GroupCapacity::default()
            })
    }

    fn core_sched(&self) -> bool {
        self.call.cookies.is_some()
    }

    fn cookie(&self) -> u64 {
        self.call.cookies.as_ref().map_or(0, |cookies| cookies.task)
    }

    fn core_cookie(&self, cpu: CpuId) -> u64 {
        self.call
            .cookies
            .as_ref()
            .map_or(0, |cookies| cookies.core[cpu.index()])
    }

    /// SIS_PROP's averages are not recorded.
    fn wake_avg_idle(&mut self) -> u64 {
        0
    }

    fn avg_scan_cost(&self) -> u64 {
        0
    }

    fn charge_scan(&mut self, _scanned: u32) {}

    fn look_at(&mut self, _cpu: CpuId) {}

    fn look_at_llc(&mut self, _llc: LlcId) {}

    fn note_scanned(&mut self, _cpus: u32) {}

    fn note_stats_read(&mut self, _cpus: u32) {}

    fn mutation(&self) -> Option<Mutation> {
        self.mutation
    }
}
