//! What load balancing and placement ask: loads, utilisations and capacities.

use crate::features::Feat;
use crate::ids::{CfsId, TaskId};
use crate::state::{Sched, SchedAvg, SchedEntity};
use wakelab_machine::CpuId;

/// [`Sched::cpu_load`] of the averages of a root run queue; `queued` tells whether it counts what is
/// queued.
#[inline(always)]
pub(crate) fn load_of(avg: &SchedAvg, queued: bool) -> u64 {
    if queued {
        avg.runnable_avg
    } else {
        avg.load_avg
    }
}

/// [`Sched::cpu_util`] of the averages of a root run queue, on a CPU of this capacity.
#[inline(always)]
pub(crate) fn util_of(avg: &SchedAvg, util_est: bool, capacity: u64) -> u64 {
    let estimate = if util_est { avg.util_est.enqueued } else { 0 };
    avg.util_avg.max(u64::from(estimate)).min(capacity)
}

impl Sched {
    #[inline(always)]
    fn task_se(&self, p: TaskId) -> &SchedEntity {
        &self.se[self.tasks[p.index()].se.index()]
    }

    /// Whether the task's load is part of this CPU's.
    #[inline(always)]
    fn contributes(&self, cpu: CpuId, p: TaskId) -> bool {
        self.tasks[p.index()].cpu == cpu && self.task_se(p).avg.last_update_time != 0
    }

    /// `cpu_load`: load average of the root run queue, 1024 for one nice-0 task at the root that
    /// always runs; before 5.7 (`cpu_runnable_load`) of what is queued there.
    #[inline(always)]
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        load_of(&self.cfs[cpu.index()].avg, self.rules.runnable_load)
    }

    /// `cpu_load_without`: without what the task contributes (the kernel computes in 32 bits).
    pub fn cpu_load_without(&mut self, cpu: CpuId, p: TaskId) -> u64 {
        let load = self.cpu_load(cpu);
        if !self.contributes(cpu, p) {
            return load;
        }
        let own = self.task_h_load(p);
        u64::from((load as u32).saturating_sub(own as u32))
    }

    /// `cpu_runnable`: runnable average, 1024 for one task always runnable.
    #[inline(always)]
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        self.cfs[cpu.index()].avg.runnable_avg
    }

    /// `cpu_runnable_without`.
    pub fn cpu_runnable_without(&self, cpu: CpuId, p: TaskId) -> u64 {
        let runnable = self.cpu_runnable(cpu);
        if !self.contributes(cpu, p) {
            return runnable;
        }
        u64::from((runnable as u32).saturating_sub(self.task_se(p).avg.runnable_avg as u32))
    }

    /// `cpu_util_cfs`: utilisation of the CPU by the fair class, at least the estimate for what is
    /// queued, at most its capacity.
    #[inline(always)]
    pub fn cpu_util(&self, cpu: CpuId) -> u64 {
        let capacity = self.rqs[cpu.index()].cpu_capacity_orig;
        util_of(
            &self.cfs[cpu.index()].avg,
            self.feat.has(Feat::UTIL_EST),
            capacity,
        )
    }

    /// `cpu_util_cfs_boost`: at least the runnable average, so that contention shows.
    pub fn cpu_util_boost(&self, cpu: CpuId) -> u64 {
        self.cpu_util_of(cpu, TaskId::NONE, true)
    }

    /// `cpu_util_without`: without what the task contributes.
    pub fn cpu_util_without(&self, cpu: CpuId, p: TaskId) -> u64 {
        self.cpu_util_of(
            cpu,
            if self.contributes(cpu, p) {
                p
            } else {
                TaskId::NONE
            },
            false,
        )
    }

    /// `cpu_util` with `dst_cpu` -1: `without` is a task on this CPU to leave out, or none.
    fn cpu_util_of(&self, cpu: CpuId, without: TaskId, boost: bool) -> u64 {
        let avg = &self.cfs[cpu.index()].avg;
        let mut util = avg.util_avg;
        if boost {
            util = util.max(avg.runnable_avg);
        }
        if without.is_some() {
            util = util.saturating_sub(self.task_util(without));
        }
        if self.feat.has(Feat::UTIL_EST) {
            let mut est = u64::from(avg.util_est.enqueued);
            if without.is_some() {
                let task = &self.tasks[without.index()];
                if task.on_rq && !task.migrating || task.on_cpu {
                    est = est.saturating_sub(self.task_se(without).avg.util_est.value());
                }
            }
            util = util.max(est);
        }
        util.min(self.rqs[cpu.index()].cpu_capacity_orig)
    }

    /// `task_util`: the task's utilisation, 1024 for a whole big CPU.
    #[inline(always)]
    pub fn task_util(&self, p: TaskId) -> u64 {
        self.task_se(p).avg.util_avg
    }

    /// `task_util_est`: the larger of the utilisation and its estimate.
    #[inline]
    pub fn task_util_est(&self, p: TaskId) -> u64 {
        let avg = &self.task_se(p).avg;
        avg.util_avg.max(avg.util_est.value())
    }

    /// `capacity_of`: what is left of a CPU's capacity for the fair class.
    #[inline(always)]
    pub fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rqs[cpu.index()].cpu_capacity
    }

    /// `task_h_load`: what of its CPU's load is the task's, through all levels of groups.
    pub fn task_h_load(&mut self, p: TaskId) -> u64 {
        let cfs_id = self.task_se(p).cfs_rq;
        let now = self.jiffies(self.cfs[cfs_id.index()].cpu);
        self.update_cfs_rq_h_load(cfs_id, now);
        let cfs = &self.cfs[cfs_id.index()];
        self.task_se(p).avg.load_avg.wrapping_mul(cfs.h_load) / (cfs.avg.load_avg + 1)
    }

    /// `update_cfs_rq_h_load`: from the nearest level that is up to date, or the root, downwards;
    /// once a jiffy.
    fn update_cfs_rq_h_load(&mut self, cfs_id: CfsId, now: u64) {
        let cfs = &self.cfs[cfs_id.index()];
        if cfs.last_h_load_update == now {
            return;
        }
        let h_load = if cfs.owner.is_none() {
            cfs.avg.load_avg
        } else {
            let se = cfs.owner;
            let parent = self.se[se.index()].cfs_rq;
            self.update_cfs_rq_h_load(parent, now);
            let parent = &self.cfs[parent.index()];
            let load = self.se[se.index()].avg.load_avg;
            parent.h_load.wrapping_mul(load) / (parent.avg.load_avg + 1)
        };
        let cfs = &mut self.cfs[cfs_id.index()];
        cfs.h_load = h_load;
        cfs.last_h_load_update = now;
    }

    /// `update_misfit_status`: on a machine with CPUs of different capacity, whether the running
    /// task needs a bigger one.
    #[inline]
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, p: TaskId) {
        if !self.topo.asym_cpucap {
            return;
        }
        // fits_capacity: with a fifth to spare.
        let fits = self.task_util_est(p) * 1280 < self.capacity_of(cpu) * 1024;
        let pinned = self.tasks[p.index()].nr_cpus_allowed == 1;
        let load = if fits || pinned {
            0
        } else {
            self.task_h_load(p).max(1)
        };
        self.rqs[cpu.index()].misfit_task_load = load;
    }
}
