//! One pass over one domain (`load_balance`).

use super::env::{CpuIdle, LbEnv, MigrationType, NR_MIGRATE_BREAK, lbf};
use super::stats::PassStats;
use crate::{Feat, Line, Rules, Sched};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, Ns};

/// `MAX_PINNED_INTERVAL`, ms.
pub const MAX_PINNED_INTERVAL: u32 = 512;

/// What a pass gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassResult {
    /// Tasks moved.
    pub moved: u32,
    /// Another CPU of the group balances here and above.
    pub not_ours: bool,
}

/// How a look for something to move ended.
enum Round {
    /// Another CPU balances for the group.
    NotOurs,
    /// Nothing to move.
    Balanced,
    /// All tasks are pinned, and no other CPU is left to take from.
    AllPinned,
    /// Moved so many, of a source that was imbalanced.
    Imbalanced(u32),
}

/// How a pass ended, as far as the next is due sooner or later for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Tasks moved.
    Moved,
    /// There was an imbalance and nothing moved.
    Failed,
    /// There was nothing to move, or all was pinned.
    Balanced,
    /// The task to be pushed may not run on this CPU.
    OnePinned,
}

fn is_tolerated_misfit(env: &LbEnv, rules: &Rules) -> bool {
    rules.misfit_not_failed && env.migration_type == MigrationType::Misfit
}

/// The domain's `balance_interval` after a pass, ms: the shortest while there is an imbalance, else
/// twice the last up to the longest, or to [`MAX_PINNED_INTERVAL`] if all tasks were pinned. Newly
/// idle passes come at any time and do not lengthen it. `bounds` are the domain's `min_interval` and
/// `max_interval` (kernel sched/fair.c, the end of `load_balance`).
pub fn interval_after(
    env: &LbEnv,
    rules: &Rules,
    outcome: Outcome,
    interval: u32,
    bounds: (u32, u32),
) -> u32 {
    if matches!(outcome, Outcome::Moved | Outcome::Failed) {
        return bounds.0;
    }
    let pinned = env.has(lbf::ALL_PINNED) && interval < MAX_PINNED_INTERVAL;
    let lengthens = env.idle != CpuIdle::NewlyIdle && !is_tolerated_misfit(env, rules);
    if lengthens && (pinned || interval < bounds.1) {
        interval * 2
    } else {
        interval
    }
}

impl Sched {
    fn lb_env(&self, cpu: CpuId, level: usize, idle: CpuIdle) -> LbEnv {
        let domain = &self.topo.domains[cpu.index()][level];
        LbEnv {
            this_cpu: cpu,
            level,
            sd_flags: domain.flags,
            imbalance_pct: domain.imbalance_pct,
            imb_numa_nr: domain.imb_numa_nr,
            cache_nice_tries: domain.cache_nice_tries,
            nr_balance_failed: self.sd[cpu.index()][level].nr_balance_failed,
            idle,
            dst_cpu: cpu,
            dst_group: domain.groups[0],
            force_idle_aware: self.core.enabled
                && self.feat.has(Feat::FORCE_IDLE_LB)
                && domain.flags & sd::SHARE_CPUCAPACITY == 0,
            cpus: domain.span,
            loop_break: NR_MIGRATE_BREAK,
            ..LbEnv::default()
        }
    }

    fn pass_stats(&mut self, env: &LbEnv) -> &mut PassStats {
        self.lb.stats.pass(env.level, env.idle)
    }

    /// Balances one of the CPU's domains: takes tasks from its busiest group, if that is worth it
    /// (kernel sched/fair.c, `load_balance`; `sched_balance_rq` since 6.10).
    pub(crate) fn load_balance(
        &mut self,
        cpu: CpuId,
        level: usize,
        idle: CpuIdle,
        now: Ns,
    ) -> PassResult {
        let mut env = self.lb_env(cpu, level, idle);
        self.pass_stats(&env).calls += 1;
        let round = self.look_for_imbalance(&mut env, now);
        match round {
            Round::NotOurs | Round::Balanced => {
                if !env.has(lbf::ALL_PINNED) {
                    self.set_parent_imbalance(&env, false);
                }
                self.balanced(&env);
            }
            Round::AllPinned => self.balanced(&env),
            Round::Imbalanced(moved) => {
                self.pass_stats(&env).pulled += u64::from(moved);
                self.count_force_idle_pull(&env, moved);
                if moved > 0 {
                    self.domain(&env).nr_balance_failed = 0;
                    self.end_with(&env, Outcome::Moved);
                } else {
                    self.failed(&mut env);
                }
                return PassResult {
                    moved,
                    not_ours: false,
                };
            }
        }
        PassResult {
            moved: 0,
            not_ours: matches!(round, Round::NotOurs),
        }
    }

    /// Looks for the busiest CPU and moves tasks; again without CPUs whose tasks are all pinned.
    fn look_for_imbalance(&mut self, env: &mut LbEnv, now: Ns) -> Round {
        let jiffies = self.jiffies_at(now);
        loop {
            if !self.should_we_balance(env) {
                self.pass_stats(env).not_ours += 1;
                return Round::NotOurs;
            }
            let Some(group) = self.find_busiest_group(env, jiffies) else {
                return Round::Balanced;
            };
            let Some(src) = self.find_busiest_queue(env, group) else {
                return Round::Balanced;
            };
            debug_assert!(src != env.dst_cpu, "a CPU is not its own busiest");
            env.src_cpu = src;
            env.flags |= lbf::ALL_PINNED;
            if !self.has_to_spare(env, src) {
                return Round::Imbalanced(0);
            }
            let moved = self.move_tasks(env, now);
            if !env.has(lbf::ALL_PINNED) {
                return Round::Imbalanced(moved);
            }
            env.exclude(src);
            if env
                .cpus
                .is_subset(&self.topo.groups[env.dst_group.index()].balance_mask)
            {
                return Round::AllPinned;
            }
            env.restart_loop();
        }
    }

    /// Moves tasks from the source, with breaks, and to another CPU of the group those that are
    /// pinned away from this one.
    fn move_tasks(&mut self, env: &mut LbEnv, now: Ns) -> u32 {
        env.loop_max = self.tun.nr_migrate.min(self.rq(env.src_cpu).nr_running);
        let mut moved = 0;
        loop {
            self.touch.write(Line::Rq(env.src_cpu));
            self.update_rq_clock(env.src_cpu, now);
            let detached = self.detach_tasks(env);
            if detached > 0 {
                self.attach_tasks(env, now);
                moved += detached;
            }
            let more = env.has(lbf::NEED_BREAK) && self.goes_on_after_break(env);
            env.flags &= !lbf::NEED_BREAK;
            if more {
                continue;
            }
            if env.has(lbf::DST_PINNED) && env.imbalance > 0 {
                env.exclude(env.dst_cpu);
                env.dst_cpu = env.new_dst_cpu;
                env.flags &= !lbf::DST_PINNED;
                env.restart_loop();
            } else {
                break;
            }
        }
        if env.has(lbf::SOME_PINNED) && env.imbalance > 0 {
            self.set_parent_imbalance(env, true);
        }
        moved
    }

    /// Whether the source is looked at again after a break. Where the limit does not hold as long as
    /// all tasks seen are pinned, the number of tasks there is the end.
    fn goes_on_after_break(&self, env: &LbEnv) -> bool {
        !self.rules.detach_first_movable || env.loops < self.rq(env.src_cpu).nr_running
    }

    /// Tells the domain above (its local group is this domain) that affinity stood in the way.
    fn set_parent_imbalance(&mut self, env: &LbEnv, imbalance: bool) {
        if let Some(parent) = self.topo.domains[env.this_cpu.index()].get(env.level + 1) {
            self.sgc[parent.groups[0].index()].imbalance = imbalance;
        }
    }

    /// The stopper was asked for, before 5.5: cache-hot tasks may go from now on, and the next pass is
    /// twice as far away, unless what is to be moved could not be had in another way.
    fn active_backs_off(&mut self, env: &LbEnv) {
        let (this_cpu, level) = (env.this_cpu.index(), env.level);
        let max = self.topo.domains[this_cpu][level].max_interval;
        let domain = &mut self.sd[this_cpu][level];
        domain.nr_balance_failed = env.cache_nice_tries + 1;
        let calm = LbEnv {
            nr_balance_failed: 0,
            ..env.clone()
        };
        if self.need_active_balance(&calm) {
            return self.end_with(env, Outcome::Failed);
        }
        let domain = &mut self.sd[this_cpu][level];
        if domain.balance_interval < max {
            domain.balance_interval *= 2;
        }
    }

    fn domain(&mut self, env: &LbEnv) -> &mut crate::state::DomainState {
        &mut self.sd[env.this_cpu.index()][env.level]
    }

    fn end_with(&mut self, env: &LbEnv, outcome: Outcome) {
        let domain = &self.topo.domains[env.this_cpu.index()][env.level];
        let bounds = (domain.min_interval, domain.max_interval);
        let interval = self.domain(env).balance_interval;
        let interval = interval_after(env, &self.rules, outcome, interval, bounds);
        self.domain(env).balance_interval = interval;
    }

    /// The domain is balanced, or cannot be: no failure, and look less often.
    fn balanced(&mut self, env: &LbEnv) {
        self.pass_stats(env).balanced += 1;
        self.domain(env).nr_balance_failed = 0;
        self.end_with(env, Outcome::Balanced);
    }

    /// There is an imbalance and nothing could be moved: count it, and when it has come to that let
    /// the stopper move the running task.
    fn failed(&mut self, env: &mut LbEnv) {
        self.pass_stats(env).failed += 1;
        let misfit = self.rules.misfit_not_failed && env.migration_type == MigrationType::Misfit;
        if env.idle != CpuIdle::NewlyIdle && !misfit {
            let failed = self.domain(env).nr_balance_failed + 1;
            self.domain(env).nr_balance_failed = failed;
            env.nr_balance_failed = failed;
        }
        if !self.need_active_balance(env) {
            self.end_with(env, Outcome::Failed);
            return;
        }
        self.touch.write(Line::Rq(env.src_cpu));
        let curr = self.rq(env.src_cpu).curr;
        // The idle task is bound to its CPU.
        if curr.is_none() || !self.tasks[curr.index()].cpus.contains(env.this_cpu) {
            self.end_with(env, Outcome::OnePinned);
            return;
        }
        let src = self.rq_mut(env.src_cpu);
        if !src.active_balance {
            src.active_balance = true;
            src.push_cpu = env.this_cpu;
            self.lb.pending_active.push(env.src_cpu);
            self.pass_stats(env).active += 1;
            if self.rules.groups_by_load {
                return self.active_backs_off(env);
            }
        } else if self.rules.groups_by_load {
            self.domain(env).nr_balance_failed = env.cache_nice_tries + 1;
        }
        self.end_with(env, Outcome::Failed);
    }
}
