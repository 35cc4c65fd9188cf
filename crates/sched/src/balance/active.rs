//! Active balancing: the stopper of a busy CPU pushes the task that ran there.

use super::env::{CpuIdle, LbEnv, lbf};
use crate::{Line, Sched};
use wakelab_machine::{CpuId, Ns};

impl Sched {
    /// The stopper's work on `busiest`, a CPU that was in `lb.pending_active`: moves one task to
    /// the CPU that asked. True if one moved.
    ///
    /// The stopper has preempted by now: the task that ran must be put back, `rq.curr` none (kernel
    /// sched/fair.c, `active_load_balance_cpu_stop`; the stopper counts in its `nr_running`, it
    /// does not here).
    pub fn active_load_balance(&mut self, busiest: CpuId, now: Ns) -> bool {
        self.lb.arrivals.clear();
        self.touch.write(Line::Rq(busiest));
        if !self.rq(busiest).active_balance {
            return false;
        }
        self.lb.stats.active_runs += 1;
        let target = self.rq(busiest).push_cpu;
        let moved = self.rq(busiest).nr_running > 0 && self.push_one(busiest, target, now);
        self.rq_mut(busiest).active_balance = false;
        moved
    }

    fn push_one(&mut self, busiest: CpuId, target: CpuId, now: Ns) -> bool {
        let domains = &self.topo.domains[target.index()];
        let Some(level) = domains
            .iter()
            .position(|domain| domain.span.contains(busiest))
        else {
            return false;
        };
        let mut env = LbEnv {
            this_cpu: target,
            level,
            sd_flags: domains[level].flags,
            idle: CpuIdle::Idle,
            dst_cpu: target,
            dst_group: domains[level].groups[0],
            src_cpu: busiest,
            flags: lbf::ACTIVE_LB,
            ..LbEnv::default()
        };
        self.update_rq_clock(busiest, now);
        if self.move_one_task(&mut env, now).is_none() {
            return false;
        }
        self.sd[target.index()][level].nr_balance_failed = 0;
        self.lb.stats.active_pushed += 1;
        true
    }
}
