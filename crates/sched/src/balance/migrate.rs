//! Which tasks of the busiest CPU move (`can_migrate_task`, `detach_tasks`, `attach_tasks`).

use super::env::{CpuIdle, LbEnv, MigrationType, NR_MIGRATE_BREAK, lbf};
use crate::state::{Mover, Policy};
use crate::{Feat, Line, Sched, TaskId};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, CpuMask, Ns};

/// A task as [`can_migrate_task`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Where it may run.
    pub cpus: &'a CpuMask,
    /// Bandwidth control keeps its group back on either CPU (`throttled_lb_pair`); never in a
    /// simulation, which has none.
    pub throttled: bool,
    /// A kernel thread bound to one CPU.
    pub per_cpu_kthread: bool,
    /// Running now.
    pub running: bool,
    /// SCHED_IDLE.
    pub idle_policy: bool,
    /// The `next` or `last` buddy of its queue.
    pub buddy: bool,
    /// Time since it last ran or was accounted, ns (`rq_clock_task - exec_start`).
    pub since_exec: i64,
    /// Its cookie fits the destination's core.
    pub cookie_match: bool,
    /// Its caches are not those of an SMT sibling (before 5.10).
    pub hot_between_siblings: bool,
}

/// What [`can_migrate_task`] asks of the rest.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// `rq->nr_running` of the destination.
    pub nr_running: u32,
    /// Alternatives to the destination (`dst_grpmask`).
    pub group: &'a CpuMask,
    /// `sched_migration_cost`, ns; -1: every task is hot.
    pub migration_cost: i64,
    /// CACHE_HOT_BUDDY.
    pub cache_hot_buddy: bool,
}

/// `task_hot`: the task's working set is likely still in the caches of the source.
pub fn task_hot(env: &LbEnv, dst: &Destination<'_>, p: &Candidate<'_>) -> bool {
    if p.idle_policy || env.sd_has(sd::SHARE_CPUCAPACITY) && !p.hot_between_siblings {
        return false;
    }
    if dst.cache_hot_buddy && dst.nr_running > 0 && p.buddy {
        return true;
    }
    if dst.migration_cost == -1 || !p.cookie_match {
        return true;
    }
    dst.migration_cost != 0 && p.since_exec < dst.migration_cost
}

/// Whether the task may move to the destination. Notes in `env.flags` what stood in the way, and in
/// `env.new_dst_cpu` where else the task could go (kernel sched/fair.c, `can_migrate_task`).
pub fn can_migrate_task(env: &mut LbEnv, dst: &Destination<'_>, p: &Candidate<'_>) -> bool {
    if p.throttled || p.per_cpu_kthread {
        return false;
    }
    if !p.cpus.contains(env.dst_cpu) {
        env.flags |= lbf::SOME_PINNED;
        if env.idle != CpuIdle::NewlyIdle
            && !env.has(lbf::DST_PINNED | lbf::ACTIVE_LB)
            && let Some(cpu) = dst.group.and(&env.cpus).and(p.cpus).first()
        {
            env.flags |= lbf::DST_PINNED;
            env.new_dst_cpu = cpu;
        }
        return false;
    }
    env.flags &= !lbf::ALL_PINNED;
    if p.running {
        return false;
    }
    // What cannot run where its caches are warm has nothing from them.
    env.has(lbf::ACTIVE_LB | lbf::FORCE_IDLE)
        || env.nr_balance_failed > env.cache_nice_tries
        || !task_hot(env, dst, p)
}

/// `shr_bound`: shifted right, by one bit less than all at most.
fn shr_bound(value: u64, shift: u32) -> i64 {
    (value >> shift.min(63)) as i64
}

/// Whether a task of this size shall move, and if so takes it off `env.imbalance`. `size` is
/// `task_h_load` (at least 1) for load, `task_util_est` for utilisation, else ignored.
///
/// `halved` is the rule before 5.7: a task may be twice the imbalance, however often passes failed.
pub fn take_from_imbalance(env: &mut LbEnv, size: u64, lb_min: bool, halved: bool) -> bool {
    match env.migration_type {
        MigrationType::Load if lb_min && size < 16 && env.nr_balance_failed == 0 => return false,
        MigrationType::Load if halved => {
            if (size / 2) as i64 > env.imbalance {
                return false;
            }
            env.imbalance -= size as i64;
        }
        MigrationType::Load | MigrationType::Util => {
            // After failures tasks that are too big may go too.
            if shr_bound(size, env.nr_balance_failed) > env.imbalance {
                return false;
            }
            env.imbalance -= size as i64;
        }
        MigrationType::Task => env.imbalance -= 1,
        MigrationType::Misfit => env.imbalance = 0,
    }
    true
}

/// What an audit calls a pass.
fn mover(env: &LbEnv) -> Mover {
    if env.has(lbf::ACTIVE_LB) {
        Mover::Active
    } else if env.idle == CpuIdle::NewlyIdle {
        Mover::NewlyIdle
    } else {
        Mover::Periodic
    }
}

impl Sched {
    fn can_migrate(&self, env: &mut LbEnv, task: TaskId) -> bool {
        let p = &self.tasks[task.index()];
        let se = &self.se[p.se.index()];
        let cfs = &self.cfs[se.cfs_rq.index()];
        let candidate = Candidate {
            throttled: false,
            cpus: &p.cpus,
            per_cpu_kthread: p.kthread && p.nr_cpus_allowed == 1,
            running: p.on_cpu,
            idle_policy: p.policy == Policy::Idle,
            buddy: cfs.next == p.se || cfs.last == p.se,
            since_exec: self.rq(env.src_cpu).clock_task.wrapping_sub(se.exec_start) as i64,
            cookie_match: self.core_cookie_match(env.dst_cpu, task),
            hot_between_siblings: !self.rules.smt_siblings_share_heat,
        };
        let dst = Destination {
            nr_running: self.rq(env.dst_cpu).nr_running,
            group: &self.topo.groups[env.dst_group.index()].balance_mask,
            migration_cost: self.tun.migration_cost.0 as i64,
            cache_hot_buddy: self.feat.has(Feat::CACHE_HOT_BUDDY),
        };
        can_migrate_task(env, &dst, &candidate) && self.suits_force_idle_pass(env, task)
    }

    /// The task's size in the unit of the imbalance; none if it is not of the kind looked for.
    fn size_for(&mut self, env: &LbEnv, p: TaskId) -> Option<u64> {
        match env.migration_type {
            MigrationType::Load if self.rules.groups_by_load => Some(self.task_h_load(p)),
            MigrationType::Load => Some(self.task_h_load(p).max(1)),
            MigrationType::Util => Some(self.task_util_est(p)),
            MigrationType::Task => Some(1),
            MigrationType::Misfit => {
                let fits = self.task_util_est(p) * 1280 < self.capacity_of(env.src_cpu) * 1024;
                (!fits).then_some(1)
            }
        }
    }

    /// `detach_task`.
    fn detach_task(&mut self, env: &LbEnv, p: TaskId) {
        let told = self.rq(env.src_cpu).need_resched;
        self.deactivate_task(env.src_cpu, p, 0);
        let may_tell = self.rules.eevdf || self.core.enabled;
        if may_tell && !told && self.rq(env.src_cpu).need_resched {
            // Charging what runs there found its slice used up, or a CPU that is forced idle has
            // nothing any more to be kept from.
            self.lb.arrivals.push(env.src_cpu);
        }
        self.set_task_cpu(p, env.dst_cpu);
        if self.core.enabled {
            self.tasks[p.index()].moved_by = Some(mover(env));
            self.note_core_move(p, env.src_cpu, env.dst_cpu, Some(mover(env)));
        }
    }

    /// Whether the look through the source's tasks ends here: seen enough, or a break.
    fn detach_stops(&self, env: &mut LbEnv) -> bool {
        // Stealing all would only turn the roles around.
        if env.idle.is_idle() && !self.has_to_spare(env, env.src_cpu) {
            return true;
        }
        env.loops += 1;
        let look_on = self.rules.detach_first_movable && env.has(lbf::ALL_PINNED);
        if env.loops > env.loop_max && !look_on {
            return true;
        }
        if env.loops > env.loop_break {
            env.loop_break += NR_MIGRATE_BREAK;
            env.flags |= lbf::NEED_BREAK;
            return true;
        }
        false
    }

    /// Takes tasks off the source until the imbalance is gone, the coldest first (kernel
    /// sched/fair.c, `detach_tasks`). They are left in `lb.detached`; gives how many.
    pub(crate) fn detach_tasks(&mut self, env: &mut LbEnv) -> u32 {
        let src = env.src_cpu;
        if !self.has_to_spare(env, src) {
            env.flags &= !lbf::ALL_PINNED;
            return 0;
        }
        if env.imbalance <= 0 {
            return 0;
        }
        let lb_min = self.feat.has(Feat::LB_MIN);
        let halved = self.rules.groups_by_load;
        let mut detached = 0;
        while let Some(&p) = self.rq(src).cfs_tasks.first() {
            if self.detach_stops(env) {
                break;
            }
            let moves = self.can_migrate(env, p)
                && self
                    .size_for(env, p)
                    .is_some_and(|size| take_from_imbalance(env, size, lb_min, halved));
            if !moves {
                self.rq_mut(src).cfs_tasks.rotate_left(1);
                continue;
            }
            self.detach_task(env, p);
            self.lb.detached.push(p);
            detached += 1;
            // A kernel with preemption keeps the newly idle CPU waiting no longer than for one task.
            let one = env.idle == CpuIdle::NewlyIdle && self.rules.newidle_takes_one;
            if one || env.imbalance <= 0 {
                break;
            }
        }
        detached
    }

    /// `attach_task` on a CPU whose clock is up to date.
    fn attach_task(&mut self, cpu: CpuId, p: TaskId) {
        self.activate_task(cpu, p, 0);
        self.check_preempt_curr(cpu, p, 0);
        self.lb.arrivals.push(cpu);
    }

    /// Puts the detached tasks on the destination, the last detached first (`attach_tasks`).
    pub(crate) fn attach_tasks(&mut self, env: &LbEnv, now: Ns) {
        self.touch.write(Line::Rq(env.dst_cpu));
        self.update_rq_clock(env.dst_cpu, now);
        while let Some(p) = self.lb.detached.pop() {
            self.attach_task(env.dst_cpu, p);
        }
    }

    /// Moves the coldest task that may go, if any (`detach_one_task`, `attach_one_task`).
    pub(crate) fn move_one_task(&mut self, env: &mut LbEnv, now: Ns) -> Option<TaskId> {
        for place in 0..self.rq(env.src_cpu).cfs_tasks.len() {
            let p = self.rq(env.src_cpu).cfs_tasks[place];
            if self.can_migrate(env, p) {
                self.detach_task(env, p);
                self.touch.write(Line::Rq(env.dst_cpu));
                self.update_rq_clock(env.dst_cpu, now);
                self.attach_task(env.dst_cpu, p);
                return Some(p);
            }
        }
        None
    }
}
