//! Balancing by a CPU that is about to become idle (`newidle_balance`).

use super::cost::{
    newidle_dice, newidle_gated, newidle_too_dear, update_newidle_cost, update_newidle_stats,
};
use super::env::CpuIdle;
use crate::{Feat, Line, Sched, Touches};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, Ns};

impl Sched {
    /// The CPU is about to become idle: tries to pull tasks from its domains, from the lowest up,
    /// as long as that costs less than the CPU is idle on average. More than 0 if tasks are there
    /// to run, else 0.
    ///
    /// `price` gives the time that what was touched since its last call takes, in ns; it is called
    /// once before the balance, to close what came before. Whether it clears the touches or
    /// remembers how far it got is its own affair.
    pub fn newidle_balance(
        &mut self,
        cpu: CpuId,
        now: Ns,
        price: impl FnMut(&mut Touches) -> u64,
    ) -> i32 {
        self.lb.arrivals.clear();
        let rq = self.rq_mut(cpu);
        rq.misfit_task_load = 0;
        if rq.ttwu_pending {
            return 0;
        }
        // From before the balance on: its duration is idle time.
        rq.idle_stamp = rq.clock;
        let avg_idle = rq.avg_idle;
        self.lb.stats.newidle_calls += 1;
        let jiffies = self.jiffies_at(now);
        let mut next_balance = jiffies + self.lb.hz;
        let (mut pulled, mut gated) = (0, false);
        if !self.sd[cpu.index()].is_empty() {
            self.touch.read(Line::RdOverload);
            let lowest = match self.rules.newidle_by_migration_cost {
                true => self.tun.migration_cost.0,
                false => self.sd[cpu.index()][0].max_newidle_lb_cost,
            };
            gated = newidle_gated(self.rd.overload, avg_idle, lowest);
            if gated {
                self.lb.stats.newidle_gated += 1;
                self.update_next_balance(cpu, 0, &mut next_balance);
            } else {
                pulled = self.newidle_pull(cpu, now, &mut next_balance, price);
            }
        }
        let rq = self.rq_mut(cpu);
        rq.next_balance = rq.next_balance.min(next_balance);
        if pulled > 0 {
            rq.idle_stamp = 0;
        } else if gated || !self.rules.newidle_by_migration_cost {
            self.nohz_newidle_balance(cpu, jiffies);
        }
        pulled
    }

    /// `update_next_balance`: no later than the domain is due for an idle CPU.
    fn update_next_balance(&self, cpu: CpuId, level: usize, next_balance: &mut u64) {
        let interval = self.sd_balance_interval(cpu, level, false);
        let due = self.sd[cpu.index()][level].last_balance + interval;
        *next_balance = due.min(*next_balance);
    }

    /// Walks up the domains until something was pulled or it becomes too expensive.
    fn newidle_pull(
        &mut self,
        cpu: CpuId,
        now: Ns,
        next_balance: &mut u64,
        mut price: impl FnMut(&mut Touches) -> u64,
    ) -> i32 {
        price(&mut self.touch);
        self.update_rq_clock(cpu, now);
        self.update_blocked_averages(cpu);
        let avg_idle = self.rq(cpu).avg_idle;
        let mut curr_cost = 0;
        let mut pulled = 0;
        for level in 0..self.sd[cpu.index()].len() {
            self.update_next_balance(cpu, level, next_balance);
            let domain_cost = self.sd[cpu.index()][level].max_newidle_lb_cost;
            if newidle_too_dear(avg_idle, curr_cost, domain_cost) {
                break;
            }
            if self.topo.domains[cpu.index()][level].flags & sd::BALANCE_NEWIDLE == 0 {
                continue;
            }
            let Some(weight) = self.roll_newidle_dice(cpu, level) else {
                continue;
            };
            pulled = self.load_balance(cpu, level, CpuIdle::NewlyIdle, now).moved as i32;
            let cost = price(&mut self.touch);
            curr_cost += cost;
            let success = weight * u32::from(pulled > 0);
            let (jiffies, hz) = (self.jiffies_at(now), self.lb.hz);
            let domain = &mut self.sd[cpu.index()][level];
            update_newidle_cost(domain, cost, success, jiffies, hz);
            let rq = self.rq(cpu);
            if pulled > 0 || rq.nr_running > 0 || rq.ttwu_pending {
                break;
            }
        }
        let here = self.cfs[cpu.index()].h_nr_running;
        let rq = self.rq_mut(cpu);
        rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(curr_cost);
        if pulled == 0 && here > 0 { 1 } else { pulled }
    }

    /// NI_RANDOM: newly idle balances happen as often as they succeed. The weight of a success, or
    /// none if the dice lost; 1 without the feature.
    fn roll_newidle_dice(&mut self, cpu: CpuId, level: usize) -> Option<u32> {
        if !self.feat.has(Feat::NI_RANDOM) {
            return Some(1);
        }
        // SplitMix64: any even-handed sequence serves, it only has to be the same in every run.
        self.lb.dice = self.lb.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.lb.dice;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let roll = ((z ^ z >> 31) % 1024) as u32;
        let domain = &mut self.sd[cpu.index()][level];
        let weight = newidle_dice(domain, roll);
        if weight.is_none() {
            update_newidle_stats(domain, 0);
        }
        weight
    }
}
