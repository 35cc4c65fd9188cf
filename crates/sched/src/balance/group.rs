//! What the groups of a domain look like (`update_sd_lb_stats`).

use super::busiest::update_sd_pick_busiest;
use super::by_load;
use super::env::{CpuIdle, LbEnv, asym_prefer};
use crate::fair::load::{load_of, util_of};
use crate::state::Rq;
use crate::{Feat, Line, Rules, Sched};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, GroupId};

/// The state of a group, by the priority of pulling from it (`enum group_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupType {
    /// It could run more tasks.
    #[default]
    HasSpare,
    /// It is full, and no task waits much.
    FullyBusy,
    /// A task is too big for its CPU.
    MisfitTask,
    /// Several tasks share a core, and the destination could take one (6.6 on).
    SmtBalance,
    /// The destination is preferred to it.
    AsymPacking,
    /// Affinity kept a pass below from balancing it.
    Imbalanced,
    /// More tasks than it can serve.
    Overloaded,
    /// FORCE_IDLE_LB: a task cannot run there at all, and can on the destination.
    ForceIdle,
}

/// Statistics of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub struct SgStats {
    /// Load by capacity; only of an overloaded group.
    pub avg_load: u64,
    /// Sum of loads.
    pub load: u64,
    /// Sum of capacities.
    pub capacity: u64,
    /// Sum of utilisations.
    pub util: u64,
    /// Sum of runnable averages.
    pub runnable: u64,
    /// Tasks.
    pub sum_nr_running: u32,
    /// Fair tasks.
    pub sum_h_nr_running: u32,
    /// Idle CPUs.
    pub idle_cpus: u32,
    /// CPUs.
    pub weight: u32,
    /// What follows from all this.
    pub group_type: GroupType,
    /// The destination is preferred.
    pub asym_packing: bool,
    /// Several tasks share a core.
    pub smt_balance: bool,
    /// A CPU is forced idle and has a task that could run on the destination (FORCE_IDLE_LB).
    pub force_idle: bool,
    /// Load of the largest task that does not fit its CPU.
    pub misfit_task_load: u64,
    /// It is full (`group_no_capacity`, before 5.5).
    pub no_capacity: bool,
}

/// What does not change about a group, as far as the decisions ask for it.
#[derive(Clone, Copy, Debug)]
pub struct GroupView {
    /// Which one.
    pub id: GroupId,
    /// `SD_*` bits of the domain that it stands for.
    pub flags: u32,
    /// `cores`.
    pub cores: u32,
    /// `asym_prefer_cpu`.
    pub asym_prefer_cpu: CpuId,
    /// Smallest capacity of a CPU in it.
    pub min_capacity: u64,
    /// Largest capacity of a CPU in it.
    pub max_capacity: u64,
}

/// Statistics of a domain (`struct sd_lb_stats`).
#[derive(Clone, Debug)]
pub struct SdStats {
    /// The group that pulls.
    pub local: Option<GroupView>,
    /// Its statistics.
    pub local_stat: SgStats,
    /// The busiest of the others.
    pub busiest: Option<GroupView>,
    /// Its statistics.
    pub busiest_stat: SgStats,
    /// Load of all groups.
    pub total_load: u64,
    /// Capacity of all groups.
    pub total_capacity: u64,
    /// Load by capacity of the domain, once computed.
    pub avg_load: u64,
    /// Tasks shall spread over the groups (SD_PREFER_SIBLING of the domain below).
    pub prefer_sibling: bool,
}

impl Default for SdStats {
    fn default() -> Self {
        SdStats {
            local: None,
            local_stat: SgStats::default(),
            busiest: None,
            // The least busy group that can be, for any other to beat.
            busiest_stat: SgStats {
                idle_cpus: u32::MAX,
                ..SgStats::default()
            },
            total_load: 0,
            total_capacity: 0,
            avg_load: 0,
            prefer_sibling: false,
        }
    }
}

fn group_has_capacity(pct: u64, sgs: &SgStats) -> bool {
    sgs.sum_nr_running < sgs.weight
        || (sgs.capacity * pct >= sgs.runnable * 100 && sgs.capacity * 100 > sgs.util * pct)
}

fn group_is_overloaded(pct: u64, sgs: &SgStats) -> bool {
    sgs.sum_nr_running > sgs.weight
        && (sgs.capacity * 100 < sgs.util * pct || sgs.capacity * pct < sgs.runnable * 100)
}

/// `group_classify`: the most urgent state that applies. `imbalanced` is the group's
/// `sgc->imbalance`.
pub fn group_classify(imbalance_pct: u32, imbalanced: bool, sgs: &SgStats) -> GroupType {
    let pct = u64::from(imbalance_pct);
    if sgs.force_idle {
        GroupType::ForceIdle
    } else if group_is_overloaded(pct, sgs) {
        GroupType::Overloaded
    } else if imbalanced {
        GroupType::Imbalanced
    } else if sgs.asym_packing {
        GroupType::AsymPacking
    } else if sgs.smt_balance {
        GroupType::SmtBalance
    } else if sgs.misfit_task_load > 0 {
        GroupType::MisfitTask
    } else if !group_has_capacity(pct, sgs) {
        GroupType::FullyBusy
    } else {
        GroupType::HasSpare
    }
}

/// `smt_balance` (6.6 on): an idle CPU can relieve a core on which several tasks run.
pub fn smt_balance(rules: &Rules, env: &LbEnv, group_flags: u32, sgs: &SgStats) -> bool {
    rules.smt_balance
        && env.idle.is_idle()
        && group_flags & sd::SHARE_CPUCAPACITY != 0
        && sgs.sum_h_nr_running > 1
}

/// What the sums of a pass over one group noticed besides (`SG_OVERLOAD`, `SG_OVERUTILIZED`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SgStatus {
    overload: bool,
    overutilized: bool,
}

/// Which misfits a pass looks for in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misfits {
    None,
    /// Tasks that are too big for their CPU.
    Tasks,
    /// Lone tasks of a CPU that has less capacity left than it had.
    Reduced,
}

impl Misfits {
    fn that_count(rules: &Rules, env: &LbEnv, local: bool) -> Misfits {
        if local {
            Misfits::None
        } else if env.sd_has(sd::ASYM_CPUCAPACITY) {
            Misfits::Tasks
        } else if !rules.groups_by_load && env.idle.is_idle() {
            Misfits::Reduced
        } else {
            Misfits::None
        }
    }

    /// A CPU that is not idle, with so many fair tasks and so much load.
    #[inline(always)]
    fn note(
        self,
        env: &LbEnv,
        rq: &Rq,
        (tasks, load): (u32, u64),
        sgs: &mut SgStats,
        status: &mut SgStatus,
    ) {
        if self == Misfits::Tasks {
            if rq.misfit_task_load > sgs.misfit_task_load {
                sgs.misfit_task_load = rq.misfit_task_load;
                status.overload = true;
            }
        } else if tasks == 1 && env.capacity_reduced(rq.cpu_capacity, rq.cpu_capacity_orig) {
            sgs.misfit_task_load = sgs.misfit_task_load.max(load);
        }
    }
}

impl Sched {
    fn group_view(&self, id: GroupId) -> GroupView {
        let (group, sgc) = (&self.topo.groups[id.index()], &self.sgc[id.index()]);
        GroupView {
            id,
            flags: group.flags,
            cores: group.cores,
            asym_prefer_cpu: group.asym_prefer_cpu,
            min_capacity: sgc.min_capacity,
            max_capacity: sgc.max_capacity,
        }
    }

    /// Adds up a group's CPUs.
    pub(super) fn sum_group(
        &self,
        env: &LbEnv,
        id: GroupId,
        local: bool,
        status: &mut SgStatus,
    ) -> SgStats {
        let mut sgs = SgStats::default();
        // What is the same for all CPUs is asked for once: a pass sees hundreds.
        let (queued, util_est) = (self.rules.runnable_load, self.feat.has(Feat::UTIL_EST));
        let runnable_only = self.rules.balance_counts_runnable;
        let misfits = Misfits::that_count(&self.rules, env, local);
        for &cpu in &self.lb.tables.groups[id.index()].cpus {
            if env.trimmed && !env.cpus.contains(cpu) {
                continue;
            }
            let (rq, root) = (&self.rqs[cpu.index()], &self.cfs[cpu.index()]);
            let load = load_of(&root.avg, queued);
            let util = util_of(&root.avg, util_est, rq.cpu_capacity_orig);
            let tasks = root.tasks_to_balance(runnable_only);
            sgs.load += load;
            sgs.util += util;
            sgs.runnable += root.avg.runnable_avg;
            sgs.sum_h_nr_running += tasks;
            sgs.sum_nr_running += rq.nr_running;
            status.overload |= rq.nr_running > 1;
            status.overutilized |= util * 1280 >= rq.cpu_capacity * 1024;
            if env.force_idle_aware && self.is_force_idle(cpu) {
                status.overload = true;
                sgs.force_idle |= !local && self.is_force_idle_source(env, cpu);
            }
            let idle = rq.nr_running == 0 && rq.is_idle();
            sgs.idle_cpus += u32::from(idle);
            if !idle && misfits != Misfits::None {
                misfits.note(env, rq, (tasks, load), &mut sgs, status);
            }
        }
        sgs
    }

    /// `sched_use_asym_prio`: priorities count between SMT siblings, and for a CPU of an idle core.
    pub(crate) fn lb_use_asym_prio(&self, env: &LbEnv, cpu: CpuId) -> bool {
        env.sd_has(sd::ASYM_PACKING)
            && (!self.topo.smt_active || env.is_smt_level() || self.lb_is_core_idle(cpu))
    }

    /// `sched_asym`: the destination is preferred to the group, and would not empty half a core.
    fn group_asym(&self, env: &LbEnv, view: &GroupView, sgs: &SgStats) -> bool {
        if view.flags & sd::SHARE_CPUCAPACITY != 0 && sgs.weight - sgs.idle_cpus != 1 {
            return false;
        }
        self.lb_use_asym_prio(env, env.dst_cpu) && asym_prefer(env.dst_cpu, view.asym_prefer_cpu)
    }

    /// `update_sg_lb_stats`.
    fn update_sg_lb_stats(
        &self,
        env: &LbEnv,
        view: &GroupView,
        local: bool,
        status: &mut SgStatus,
    ) -> SgStats {
        let mut sgs = self.sum_group(env, view.id, local, status);
        let sgc = &self.sgc[view.id.index()];
        sgs.capacity = sgc.capacity;
        sgs.weight = self.topo.groups[view.id.index()].weight;
        if self.rules.groups_by_load {
            by_load::complete(env, sgc.imbalance, &mut sgs);
            return sgs;
        }
        if !local && env.idle.is_idle() {
            sgs.asym_packing = env.sd_has(sd::ASYM_PACKING)
                && sgs.sum_h_nr_running > 0
                && self.group_asym(env, view, &sgs);
            sgs.smt_balance = smt_balance(&self.rules, env, view.flags, &sgs);
        }
        sgs.group_type = group_classify(env.imbalance_pct, sgc.imbalance, &sgs);
        if sgs.group_type == GroupType::Overloaded {
            sgs.avg_load = sgs.load * 1024 / sgs.capacity.max(1);
        }
        sgs
    }

    /// Looks at all groups of the domain and picks the busiest (kernel sched/fair.c,
    /// `update_sd_lb_stats`).
    pub(crate) fn update_sd_lb_stats(&mut self, env: &mut LbEnv, jiffies: u64) -> SdStats {
        let mut sds = SdStats::default();
        let mut status = SgStatus::default();
        let mut sum_util = 0;
        let (cpu, level) = (env.this_cpu.index(), env.level);
        sds.prefer_sibling =
            level > 0 && self.topo.domains[cpu][level - 1].flags & sd::PREFER_SIBLING != 0;
        env.dst_core_idle = !self.topo.smt_active || self.lb_is_core_idle(env.dst_cpu);
        env.dst_capacity = self.capacity_of(env.dst_cpu);
        for place in 0..self.topo.domains[cpu][level].groups.len() {
            let id = self.topo.domains[cpu][level].groups[place];
            let local = self.topo.groups[id.index()].span.contains(env.dst_cpu);
            if local
                && (env.idle != CpuIdle::NewlyIdle || jiffies >= self.sgc[id.index()].next_update)
            {
                self.update_group_capacity(env.this_cpu, level, jiffies);
            }
            let view = self.group_view(id);
            let mut sgs = self.update_sg_lb_stats(env, &view, local, &mut status);
            self.touch.stats_read += sgs.weight - u32::from(local);
            sds.total_load += sgs.load;
            sds.total_capacity += sgs.capacity;
            sum_util += sgs.util;
            if local {
                sds.local = Some(view);
                sds.local_stat = sgs;
            } else if self.is_busiest(env, &sds, &view, &mut sgs) {
                sds.busiest = Some(view);
                sds.busiest_stat = sgs;
            }
        }
        self.note_root_domain(env, status);
        self.update_idle_cpu_scan(env, sum_util);
        sds
    }

    /// Whether a group is busier than the busiest so far.
    fn is_busiest(&self, env: &LbEnv, sds: &SdStats, view: &GroupView, sgs: &mut SgStats) -> bool {
        if self.rules.groups_by_load {
            let imbalanced = self.sgc[view.id.index()].imbalance;
            by_load::prefer_sibling(env, imbalanced, sds, sgs);
            return by_load::update_sd_pick_busiest(env, sds, view, sgs);
        }
        update_sd_pick_busiest(env, &self.rules, sds, view, sgs)
    }

    /// The highest domain sees all CPUs: what it saw replaces the root domain's flags.
    fn note_root_domain(&mut self, env: &LbEnv, status: SgStatus) {
        if env.level + 1 == self.topo.domains[env.this_cpu.index()].len() {
            self.rd.overload = status.overload;
            self.rd.overutilized = status.overutilized;
            self.touch.write(Line::RdOverload);
        } else if status.overutilized {
            self.rd.overutilized = true;
        }
    }
}
