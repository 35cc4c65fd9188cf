//! Which CPU of the busiest group to take from (`find_busiest_queue`).

use super::env::{LbEnv, MigrationType, asym_prefer, capacity_greater, lbf};
use crate::Sched;
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, GroupId};

/// A CPU as [`Busiest::consider`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// Which one.
    pub cpu: CpuId,
    /// Fair tasks.
    pub h_nr_running: u32,
    /// `cpu_load`.
    pub load: u64,
    /// Utilisation, or the runnable average if that is larger (`cpu_util_cfs_boost`).
    pub util: u64,
    /// `capacity_of`.
    pub capacity: u64,
    /// Capacity as built.
    pub arch_capacity: u64,
    /// Load of a task that does not fit.
    pub misfit_task_load: u64,
    /// It is preferred to the destination (SD_ASYM_PACKING).
    pub asym_preferred: bool,
}

/// The busiest CPU so far.
#[derive(Clone, Copy, Debug)]
pub struct Busiest {
    /// The CPU, if one is busy at all.
    pub cpu: Option<CpuId>,
    load: u64,
    capacity: u64,
    util: u64,
    nr_running: u32,
}

impl Default for Busiest {
    fn default() -> Self {
        Busiest {
            cpu: None,
            load: 0,
            capacity: 1,
            util: 0,
            nr_running: 0,
        }
    }
}

impl Busiest {
    /// Takes the CPU if it is busier than the one so far, in the unit of the imbalance.
    pub fn consider(&mut self, env: &LbEnv, q: &QueueView) {
        if q.h_nr_running == 0 {
            return;
        }
        // Never aim at the only task of a CPU that is as good as ours.
        let alone = q.h_nr_running == 1;
        if alone
            && ((env.sd_has(sd::ASYM_CPUCAPACITY)
                && !capacity_greater(env.dst_capacity, q.capacity))
                || q.asym_preferred)
        {
            return;
        }
        match env.migration_type {
            MigrationType::Load => {
                let too_heavy = alone
                    && q.load as i64 > env.imbalance
                    && !env.capacity_reduced(q.capacity, q.arch_capacity);
                if !too_heavy && q.load * self.capacity > self.load * q.capacity {
                    (self.load, self.capacity, self.cpu) = (q.load, q.capacity, Some(q.cpu));
                }
            }
            MigrationType::Util => {
                if !alone && q.util > self.util {
                    (self.util, self.cpu) = (q.util, Some(q.cpu));
                }
            }
            MigrationType::Task => {
                if q.h_nr_running > self.nr_running {
                    (self.nr_running, self.cpu) = (q.h_nr_running, Some(q.cpu));
                }
            }
            MigrationType::Misfit => {
                if q.misfit_task_load > self.load {
                    (self.load, self.cpu) = (q.misfit_task_load, Some(q.cpu));
                }
            }
        }
    }
}

impl Sched {
    /// The fair tasks of a CPU that balancing counts.
    #[inline(always)]
    pub fn balanced_tasks(&self, cpu: CpuId) -> u32 {
        self.cfs[cpu.index()].tasks_to_balance(self.rules.balance_counts_runnable)
    }

    fn queue_view(&self, env: &LbEnv, cpu: CpuId) -> QueueView {
        let rq = self.rq(cpu);
        QueueView {
            cpu,
            h_nr_running: self.balanced_tasks(cpu),
            load: self.cpu_load(cpu),
            util: match env.migration_type {
                MigrationType::Util => self.cpu_util_boost(cpu),
                _ => 0,
            },
            capacity: rq.cpu_capacity,
            arch_capacity: rq.cpu_capacity_orig,
            misfit_task_load: rq.misfit_task_load,
            asym_preferred: env.sd_has(sd::ASYM_PACKING)
                && self.lb_use_asym_prio(env, cpu)
                && asym_prefer(cpu, env.dst_cpu),
        }
    }

    /// The busiest CPU of the group.
    pub(crate) fn find_busiest_queue(&mut self, env: &LbEnv, group: GroupId) -> Option<CpuId> {
        let mut busiest = Busiest::default();
        for &cpu in &self.lb.tables.groups[group.index()].cpus {
            let wrong = env.has(lbf::FORCE_IDLE) && !self.is_force_idle_source(env, cpu);
            if !wrong && (!env.trimmed || env.cpus.contains(cpu)) {
                busiest.consider(env, &self.queue_view(env, cpu));
            }
        }
        busiest.cpu
    }

    /// `need_active_balance`: only the stopper can move what is to be moved.
    pub(crate) fn need_active_balance(&self, env: &LbEnv) -> bool {
        let asym = env.idle.is_idle()
            && self.lb_use_asym_prio(env, env.dst_cpu)
            && (asym_prefer(env.dst_cpu, env.src_cpu) || !self.lb_use_asym_prio(env, env.src_cpu));
        if asym || env.migration_type == MigrationType::Misfit {
            return true;
        }
        let by_tasks = env.migration_type == MigrationType::Task || self.rules.groups_by_load;
        if by_tasks && env.nr_balance_failed > env.cache_nice_tries + 2 {
            return true;
        }
        if env.idle.is_idle() && self.balanced_tasks(env.src_cpu) == 1 {
            let src = self.capacity_of(env.src_cpu);
            let arch = self.rq(env.src_cpu).cpu_capacity_orig;
            return env.capacity_reduced(src, arch)
                && src * u64::from(env.imbalance_pct) < self.capacity_of(env.dst_cpu) * 100;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::group::SgStatus;
    use crate::{Features, Release, Rules, Tunables};
    use std::sync::Arc;
    use wakelab_machine::domains::{DomainRules, SchedTopology};
    use wakelab_machine::topology::Machine;

    /// What balancing sees of a CPU with a task that runs and one whose dequeueing is delayed.
    fn seen(release: Release) -> (u32, u32) {
        let machine = Machine::preset("smt2-8").expect("a preset");
        let topo = Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12()));
        let tun = Tunables::for_machine(machine.ncpu(), 250);
        let feat = Features::defaults(release);
        let mut sched = Sched::new(topo, Rules::of(release), feat, tun);
        let cpu = CpuId(1);
        sched.cfs[cpu.index()].h_nr_running = 2;
        sched.cfs[cpu.index()].h_nr_delayed = 1;
        let env = LbEnv::default();
        let group = sched.topo.domains[cpu.index()][0].groups[0];
        let stats = sched.sum_group(&env, group, false, &mut SgStatus::default());
        (
            sched.queue_view(&env, cpu).h_nr_running,
            stats.sum_h_nr_running,
        )
    }

    #[test]
    fn queues_and_groups_count_delayed_tasks_until_6_13() {
        assert_eq!(seen(Release::V6_12), (2, 2));
        assert_eq!(seen(Release::V6_18), (1, 1));
    }
}
