//! A task's life: fork, queueing, moving between CPUs and groups, changes of its parameters, exit.

use super::flags::{
    DEQUEUE_MOVE, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_DELAYED, ENQUEUE_INITIAL,
    ENQUEUE_MIGRATED, ENQUEUE_MOVE, ENQUEUE_RESTORE, WF_FORK,
};
use crate::features::Feat;
use crate::ids::{CfsId, Cookie, SeId, TaskId, TgId};
use crate::state::{Policy, Sched, SchedAvg, SchedEntity, Task};
use crate::weight::{LoadWeight, scale_load_down};
use wakelab_machine::{CpuId, CpuMask, Ns};

/// Slices that a task may ask for, ns.
pub(super) const SLICES: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;

/// How long MIGRATION_RATELIMIT leaves a task on its CPU, as posted (`SCHED_MIGRATION_RATELIMIT_WINDOW`).
const MIGRATION_RATELIMIT_WINDOW: Ns = Ns(2_000_000);

/// What a new task is.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// Its group.
    pub tg: TgId,
    /// Its address space; threads of a process have the same number.
    pub mm: u32,
    /// Its policy.
    pub policy: Policy,
    /// Its nice level, -20 ..= 19.
    pub nice: i8,
    /// Where it may run.
    pub cpus: CpuMask,
    /// The CPU on which it is forked: the parent's.
    pub cpu: CpuId,
    /// Whether it is a kernel thread.
    pub kthread: bool,
    /// Its core-scheduling cookie: its parent's, unless it is given another (`sched_core_fork`).
    pub cookie: Cookie,
}

/// The weight of a policy and nice level (`set_load_weight`).
pub(super) fn load_weight(policy: Policy, nice: i8) -> LoadWeight {
    match policy {
        Policy::Idle => LoadWeight::of_idle_policy(),
        Policy::Normal | Policy::Batch => LoadWeight::of_nice(nice),
    }
}

/// The utilisation that a new task starts with (`post_init_entity_util_avg`): its share by weight
/// of what its run queue has, at most half of what is free.
pub fn initial_util(capacity: u64, cfs_util: u64, cfs_load: u64, weight: u64) -> Option<u64> {
    let cap = (capacity as i64 - cfs_util as i64) / 2;
    if cap <= 0 {
        return None;
    }
    if cfs_util == 0 {
        return Some(cap as u64);
    }
    Some((cfs_util.wrapping_mul(weight) / (cfs_load + 1)).min(cap as u64))
}

impl Sched {
    /// `sched_fork`: makes a task, not queued yet. The clock of the CPU that it is forked on must be
    /// up to date; its vruntime follows from that CPU's running task.
    pub fn new_task(&mut self, spec: &TaskSpec) -> TaskId {
        let p = TaskId::from_index(self.tasks.len());
        // Without SMT nobody gets one (`sched_core_share_pid`: ENODEV).
        let has_cookies = self.rules.core_scheduling && self.topo.smt_active;
        let cookie = if has_cookies {
            spec.cookie
        } else {
            Cookie::NONE
        };
        self.core.enabled |= cookie.is_some();
        self.core.cookies.get(cookie);
        let se_id = SeId::from_index(self.se.len());
        let lw = load_weight(spec.policy, spec.nice);
        let runnable_load = self.rules.runnable_load;
        let avg = SchedAvg {
            load_avg: scale_load_down(lw.weight),
            runnable_avg: if runnable_load {
                scale_load_down(lw.weight)
            } else {
                0
            },
            ..SchedAvg::default()
        };
        self.se.push(SchedEntity {
            weight: lw.weight,
            inv_weight: lw.inv_weight,
            runnable_weight: if runnable_load { lw.weight } else { 0 },
            idle: spec.policy == Policy::Idle,
            task: p,
            avg,
            slice: self.tun.base_slice.0,
            ..SchedEntity::default()
        });
        let nr_cpus_allowed = spec.cpus.weight() as u32;
        self.tasks.push(Task {
            se: se_id,
            tg: spec.tg,
            mm: spec.mm,
            policy: spec.policy,
            nice: spec.nice,
            cpu: spec.cpu,
            wake_cpu: spec.cpu,
            recent_used_cpu: spec.cpu,
            cpus: spec.cpus,
            unrestricted: nr_cpus_allowed as usize >= self.ncpu(),
            nr_cpus_allowed,
            on_rq: false,
            migrating: false,
            new: true,
            on_cpu: false,
            exiting: false,
            kthread: spec.kthread,
            cookie,
            core_queued: false,
            core_occupation: 0,
            core_forceidle_sum: 0,
            arrived_at: 0,
            moved_by: None,
            pgrp: 0,
            last_wakee: TaskId::NONE,
            wakee_flips: 0,
            wakee_flip_decay_ts: 0,
            nr_migrations: 0,
            next_migration_time: 0,
        });
        self.set_task_rq(p, spec.cpu);
        if !self.rules.eevdf {
            self.task_fork_fair(spec.cpu, se_id);
        }
        p
    }

    /// `set_task_rq`: points the entity at its group's run queue on a CPU.
    fn set_task_rq(&mut self, p: TaskId, cpu: CpuId) {
        let task = &self.tasks[p.index()];
        let (cfs_rq, parent) = (self.cfs_of(task.tg, cpu), self.group_se(task.tg, cpu));
        let depth = self.tgs[task.tg.index()].depth;
        let se = &mut self.se[task.se.index()];
        (se.cfs_rq, se.parent, se.depth) = (cfs_rq, parent, depth);
    }

    /// `__set_task_cpu`.
    fn assign_cpu(&mut self, p: TaskId, cpu: CpuId) {
        self.set_task_rq(p, cpu);
        let task = &mut self.tasks[p.index()];
        task.cpu = cpu;
        task.wake_cpu = cpu;
    }

    /// `wake_up_new_task`: queues a new task for the first time, on the CPU that placement chose,
    /// whose clock must be up to date.
    pub fn wake_up_new_task(&mut self, p: TaskId, cpu: CpuId) {
        self.tasks[p.index()].recent_used_cpu = self.tasks[p.index()].cpu;
        self.assign_cpu(p, cpu);
        self.post_init_entity_util_avg(p);
        self.activate_task(cpu, p, ENQUEUE_INITIAL);
        self.tasks[p.index()].new = false;
        self.check_preempt_curr(cpu, p, WF_FORK);
    }

    /// `post_init_entity_util_avg`.
    fn post_init_entity_util_avg(&mut self, p: TaskId) {
        let task = &self.tasks[p.index()];
        let capacity = self.rqs[task.cpu.index()].cpu_capacity_orig;
        let se = &mut self.se[task.se.index()];
        let cfs = &self.cfs[se.cfs_rq.index()].avg;
        let down = self.rules.init_util_scaled_down;
        let weight = if down {
            scale_load_down(se.weight)
        } else {
            se.weight
        };
        if let Some(util) = initial_util(capacity, cfs.util_avg, cfs.load_avg, weight) {
            se.avg.util_avg = util;
        }
        if !self.rules.runnable_load {
            se.avg.runnable_avg = se.avg.util_avg;
        }
    }

    /// `activate_task`: queues a task on the CPU that it is assigned to, with `ENQUEUE_*` flags. The
    /// CPU's clock must be up to date. A task that is queued already is left alone.
    pub fn activate_task(&mut self, cpu: CpuId, p: TaskId, mut flags: u32) {
        debug_assert!(self.tasks[p.index()].cpu == cpu);
        let task = &mut self.tasks[p.index()];
        if task.on_rq {
            return;
        }
        if std::mem::take(&mut task.migrating) {
            flags |= ENQUEUE_MIGRATED;
        }
        task.on_rq = true;
        self.enqueue_task_fair(cpu, p, flags);
        if self.core.enabled {
            self.core_enqueue(cpu, p);
        }
        self.sync_idle(cpu);
    }

    /// `deactivate_task`: takes a task off its queue with `DEQUEUE_*` flags; without DEQUEUE_SLEEP it
    /// is on its way to another CPU. The CPU's clock must be up to date. A task that is not queued
    /// is left alone; one that sleeps may stay queued for a while (DELAY_DEQUEUE).
    pub fn deactivate_task(&mut self, cpu: CpuId, p: TaskId, flags: u32) {
        debug_assert!(self.tasks[p.index()].cpu == cpu);
        let task = &mut self.tasks[p.index()];
        if !task.on_rq {
            return;
        }
        task.on_rq = false;
        task.migrating = flags & DEQUEUE_SLEEP == 0;
        if self.core.enabled {
            self.core_dequeue(cpu, p, flags);
        }
        if !self.dequeue_task_fair(cpu, p, flags) {
            self.tasks[p.index()].on_rq = true;
        }
        self.sync_idle(cpu);
    }

    /// `ttwu_runnable` of a task that sleeps but is still queued: it stays where it is, and may
    /// preempt. The CPU's clock must be up to date.
    pub fn wake_delayed(&mut self, cpu: CpuId, p: TaskId, wake_flags: u32) {
        debug_assert!(self.is_delayed(p) && self.tasks[p.index()].cpu == cpu);
        self.enqueue_task_fair(cpu, p, ENQUEUE_DELAYED);
        if self.core.enabled {
            self.core_enqueue(cpu, p);
        }
        if !self.tasks[p.index()].on_cpu {
            self.check_preempt_curr(cpu, p, wake_flags);
        }
    }

    /// `set_task_cpu`: assigns a task that is not queued to a CPU. If that is another one, its
    /// vruntime becomes relative and its load leaves the old CPU.
    pub fn set_task_cpu(&mut self, p: TaskId, new_cpu: CpuId) {
        debug_assert!(!self.tasks[p.index()].on_rq);
        if self.tasks[p.index()].cpu != new_cpu {
            self.migrate_task_rq_fair(p);
            self.tasks[p.index()].nr_migrations += 1;
        }
        self.assign_cpu(p, new_cpu);
    }

    /// `migrate_task_rq_fair`: of a waking task the vruntime becomes relative (with EEVDF its lag
    /// says all) and the load is noted as removed; a migrating one had both done when it was
    /// dequeued. Every migration, also one by balancing, starts the window of MIGRATION_RATELIMIT.
    fn migrate_task_rq_fair(&mut self, p: TaskId) {
        if self.feat.has(Feat::MIGRATION_RATELIMIT) {
            self.tasks[p.index()].next_migration_time = self.now + MIGRATION_RATELIMIT_WINDOW.0;
        }
        let task = &self.tasks[p.index()];
        let (se_id, migrating, new) = (task.se, task.migrating, task.new);
        if !migrating {
            if !new && !self.rules.eevdf {
                self.normalise(self.se[se_id.index()].cfs_rq, se_id);
            }
            self.remove_entity_load_avg(se_id);
            self.migrate_se_pelt_lag(se_id);
        }
        self.se[se_id.index()].avg.last_update_time = 0;
    }

    fn normalise(&mut self, cfs_id: CfsId, se_id: SeId) {
        let se = &mut self.se[se_id.index()];
        se.vruntime = se
            .vruntime
            .wrapping_sub(self.cfs[cfs_id.index()].min_vruntime);
    }

    /// Takes a task off its queue and off the CPU for a change of its parameters; gives whether it
    /// was queued and whether it was running, for [`Self::put_back`].
    pub(super) fn take_off(&mut self, p: TaskId, flags: u32) -> (bool, bool) {
        let task = &self.tasks[p.index()];
        let (cpu, queued) = (task.cpu, task.on_rq);
        let running = self.rqs[cpu.index()].curr == p;
        if queued {
            if self.core.enabled {
                self.core_dequeue(cpu, p, flags);
            }
            self.dequeue_task_fair(cpu, p, flags);
        }
        if running {
            self.put_prev_task(cpu, p);
        }
        (queued, running)
    }

    pub(super) fn put_back(&mut self, p: TaskId, (queued, running): (bool, bool), flags: u32) {
        let cpu = self.tasks[p.index()].cpu;
        if queued {
            self.enqueue_task_fair(cpu, p, flags);
            if self.core.enabled {
                self.core_enqueue(cpu, p);
            }
        }
        if running {
            self.set_next_task(cpu, p);
        }
        self.sync_idle(cpu);
    }

    /// `set_user_nice`: -20 ..= 19, others are taken as the nearest. The clock of the task's CPU must
    /// be up to date.
    pub fn set_user_nice(&mut self, p: TaskId, nice: i8) {
        let nice = nice.clamp(-20, 19);
        let old = std::mem::replace(&mut self.tasks[p.index()].nice, nice);
        if old == nice {
            return;
        }
        let state = self.take_off(p, DEQUEUE_SAVE);
        let task = &self.tasks[p.index()];
        let se_id = task.se;
        let lw = load_weight(task.policy, nice);
        self.reweight_entity(self.se[se_id.index()].cfs_rq, se_id, lw.weight);
        self.se[se_id.index()].inv_weight = lw.inv_weight;
        self.put_back(p, state, ENQUEUE_RESTORE);
        self.prio_changed_fair(p, state, old, nice);
    }

    /// `sched_setattr` with a `sched_runtime`: the task requests slices of its own, within 0.1 ms and
    /// 100 ms, or the default again. The clock of the task's CPU must be up to date.
    pub fn set_slice(&mut self, p: TaskId, slice: Option<Ns>) {
        let state = self.take_off(p, DEQUEUE_SAVE | DEQUEUE_MOVE);
        let se = &mut self.se[self.tasks[p.index()].se.index()];
        se.custom_slice = slice.is_some();
        se.slice = slice.map_or(self.tun.base_slice.0, |slice| {
            slice.0.clamp(*SLICES.start(), *SLICES.end())
        });
        self.put_back(p, state, ENQUEUE_RESTORE | ENQUEUE_MOVE);
    }

    /// `set_cpus_allowed_ptr` without the move: if the task's CPU is no longer among them, moving
    /// it is the caller's.
    pub fn set_cpus_allowed(&mut self, p: TaskId, mask: CpuMask) {
        let ncpu = self.ncpu();
        let task = &mut self.tasks[p.index()];
        task.cpus = mask;
        task.nr_cpus_allowed = mask.weight() as u32;
        task.unrestricted = task.nr_cpus_allowed as usize >= ncpu;
    }

    /// `sched_move_task`: into another group. The clock of the task's CPU must be up to date.
    pub fn move_task_group(&mut self, p: TaskId, tg: TgId) {
        if self.tasks[p.index()].tg == tg {
            return;
        }
        let state = self.take_off(p, DEQUEUE_SAVE | DEQUEUE_MOVE);
        let task = &self.tasks[p.index()];
        let (cpu, se_id, new) = (task.cpu, task.se, task.new);
        self.tasks[p.index()].tg = tg;
        if new {
            self.set_task_rq(p, cpu);
            return;
        }
        // task_change_group_fair
        let eevdf = self.rules.eevdf;
        let normalised = eevdf || state.0 || self.se[se_id.index()].sum_exec_runtime == 0;
        if !normalised {
            self.place_entity(self.se[se_id.index()].cfs_rq, se_id, false);
            self.normalise(self.se[se_id.index()].cfs_rq, se_id);
        }
        self.detach_entity_cfs_rq(se_id);
        self.se[se_id.index()].avg.last_update_time = 0;
        self.set_task_rq(p, cpu);
        self.attach_entity_cfs_rq(se_id);
        if !normalised {
            let min_vruntime = self.cfs[self.se[se_id.index()].cfs_rq.index()].min_vruntime;
            let se = &mut self.se[se_id.index()];
            se.vruntime = se.vruntime.wrapping_add(min_vruntime);
        }
        self.put_back(p, state, ENQUEUE_RESTORE | ENQUEUE_MOVE);
        if state.1 {
            self.rqs[cpu.index()].need_resched = true;
        }
    }

    /// `task_dead_fair`: the task is gone and its load leaves the CPU. To be called once it has been
    /// switched away from; if it is still queued it is taken off first.
    pub fn exit_task(&mut self, cpu: CpuId, p: TaskId) {
        self.tasks[p.index()].exiting = true;
        self.finish_delayed(p);
        self.deactivate_task(cpu, p, DEQUEUE_SLEEP | DEQUEUE_SPECIAL);
        self.remove_entity_load_avg(self.tasks[p.index()].se);
    }
}
