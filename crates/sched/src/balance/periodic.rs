//! Balancing by the tick (`trigger_load_balance`, `rebalance_domains`).

use super::cost::update_newidle_cost;
use super::env::CpuIdle;
use super::pass::PassResult;
use crate::{Sched, Touches};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, Ns};

/// What a tick asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickBalance {
    /// The CPU's balance softirq shall run ([`Sched::run_rebalance_domains`]).
    pub rebalance: bool,
    /// An interrupt shall be sent to this idle CPU, to run its balance softirq; with what it was
    /// kicked for, see [`kick`](super::kick).
    pub kick: Option<(CpuId, u8)>,
}

impl Sched {
    /// The balancing part of the tick of a CPU (`scheduler_tick`, `trigger_load_balance`).
    pub fn scheduler_tick_balance(&mut self, cpu: CpuId, now: Ns) -> TickBalance {
        let jiffies = self.jiffies_at(now);
        let rq = self.rq_mut(cpu);
        rq.idle_balance = rq.is_idle();
        let due = jiffies >= rq.next_balance;
        if self.sd[cpu.index()].is_empty() {
            return TickBalance::default();
        }
        TickBalance {
            rebalance: due,
            kick: self.nohz_balancer_kick(cpu, jiffies),
        }
    }

    /// The balance softirq of a CPU: if it was kicked, balances for all idle CPUs; else its own
    /// domains, if they are due. `price` as for [`Sched::newidle_balance`]; it tells how long a
    /// domain with SD_SERIALIZE stays taken (kernel sched/fair.c, `run_rebalance_domains`).
    ///
    /// Tasks may have arrived on this and on other CPUs: `lb.arrivals` says where.
    pub fn run_rebalance_domains(
        &mut self,
        cpu: CpuId,
        now: Ns,
        mut price: impl FnMut(&mut Touches) -> u64,
    ) {
        self.lb.arrivals.clear();
        self.lb.elapsed = Ns::ZERO;
        price(&mut self.touch);
        let jiffies = self.jiffies_at(now);
        if let Some(flags) = self.take_nohz_kick(cpu) {
            if self.rq(cpu).is_idle() && !self.rq(cpu).need_resched {
                self.rq_mut(cpu).idle_balance = true;
                self.lb.stats.nohz_runs += 1;
                self.nohz_idle_balance(cpu, flags, now, &mut price);
                return;
            }
            // A kick that finds the CPU busy is dropped; its own balance may be due all the same.
            if jiffies < self.rq(cpu).next_balance {
                return;
            }
        }
        let idle = CpuIdle::of(self.rq(cpu).idle_balance);
        self.update_rq_clock(cpu, now);
        self.update_blocked_averages(cpu);
        self.rebalance_domains(cpu, idle, now, &mut price);
    }

    /// `get_sd_balance_interval`, jiffies: longer for a busy CPU, and then not a multiple of that of
    /// the domains below.
    pub(crate) fn sd_balance_interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        let mut interval = u64::from(self.sd[cpu.index()][level].balance_interval);
        if busy {
            interval *= u64::from(self.topo.domains[cpu.index()][level].busy_factor);
        }
        let jiffies = self.lb.msecs_to_jiffies(interval);
        jiffies
            .saturating_sub(u64::from(busy && self.rules.busy_interval_less_one))
            .clamp(1, self.lb.max_interval)
    }

    fn is_busy(&self, cpu: CpuId, idle: CpuIdle) -> bool {
        idle != CpuIdle::Idle && !self.sched_idle_rq(cpu)
    }

    /// Balances the CPU's domains that are due, from the lowest up (kernel sched/fair.c,
    /// `rebalance_domains`).
    pub(crate) fn rebalance_domains(
        &mut self,
        cpu: CpuId,
        mut idle: CpuIdle,
        now: Ns,
        price: &mut impl FnMut(&mut Touches) -> u64,
    ) {
        let (jiffies, hz) = (self.jiffies_at(now), self.lb.hz);
        let mut next_balance = jiffies + 60 * hz;
        let (mut goes_on, mut decayed, mut max_cost) = (true, false, 0);
        for level in 0..self.sd[cpu.index()].len() {
            let domain = &mut self.sd[cpu.index()][level];
            decayed = update_newidle_cost(domain, 0, 0, jiffies, hz);
            max_cost += domain.max_newidle_lb_cost;
            if !goes_on {
                // Another CPU of the group balances from here on; costs fade all the same.
                if decayed {
                    continue;
                }
                break;
            }
            let mut interval = self.sd_balance_interval(cpu, level, self.is_busy(cpu, idle));
            let due = jiffies >= self.sd[cpu.index()][level].last_balance + interval;
            let result = match due {
                true => self.load_balance_serialized(cpu, level, idle, now, price),
                false => None,
            };
            if let Some(result) = result {
                goes_on = !result.not_ours;
                if result.moved > 0 {
                    idle = CpuIdle::of(self.rq(cpu).is_idle());
                }
                self.sd[cpu.index()][level].last_balance = jiffies;
                interval = self.sd_balance_interval(cpu, level, self.is_busy(cpu, idle));
            }
            let due_next = self.sd[cpu.index()][level].last_balance + interval;
            next_balance = next_balance.min(due_next);
        }
        let floor = self.tun.migration_cost.0;
        let rq = self.rq_mut(cpu);
        if decayed {
            rq.max_idle_balance_cost = floor.max(max_cost);
        }
        rq.next_balance = next_balance;
    }

    /// Prices what was touched, as time that the softirq under way has taken.
    fn spend(&mut self, price: &mut impl FnMut(&mut Touches) -> u64) {
        self.lb.elapsed += Ns(price(&mut self.touch));
    }

    /// Balances a domain that is due, and holds it for as long as that takes if it is one with
    /// SD_SERIALIZE. None if another CPU holds those.
    fn load_balance_serialized(
        &mut self,
        cpu: CpuId,
        level: usize,
        idle: CpuIdle,
        now: Ns,
        price: &mut impl FnMut(&mut Touches) -> u64,
    ) -> Option<PassResult> {
        let serialize = self.topo.domains[cpu.index()][level].flags & sd::SERIALIZE != 0;
        self.spend(price);
        if serialize && now + self.lb.elapsed < self.lb.serialized_until {
            return None;
        }
        let result = self.load_balance(cpu, level, idle, now);
        self.spend(price);
        if serialize {
            self.lb.serialized_until = now + self.lb.elapsed;
        }
        Some(result)
    }
}
