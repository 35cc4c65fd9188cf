//! Ticks, and load balancing where the engine drives it: newly idle, periodic, NOHZ, active.

use super::Engine;
use super::cpu::Phase;
use crate::queue::NEVER;
use crate::work::Workload;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::{Sched, TaskId, Touches};

impl<W: Workload> Engine<W> {
    /// The first tick after a time.
    pub(super) fn next_tick(&self, now: u64) -> u64 {
        (now / self.tick_ns + 1) * self.tick_ns
    }

    pub(super) fn tick(&mut self, cpu: CpuId) {
        let phase = self.cpus[cpu.index()].phase;
        let idle = matches!(phase, Phase::Idle | Phase::CoreBalance);
        self.cpus[cpu.index()].tick_at = self.now + self.tick_ns;
        self.sched.touch.clear();
        self.sched.update_rq_clock(cpu, Ns(self.now));
        if !idle {
            self.sched.task_tick(cpu);
        }
        self.sched.sched_core_tick(cpu);
        let balance = self.sched.scheduler_tick_balance(cpu, Ns(self.now));
        let mut cost = self.prices.tick + self.pay(cpu, 0);
        if let Some((target, _)) = balance.kick {
            cost += self.kick(cpu, target, cost);
        }
        if balance.rebalance {
            cost += self.balance_softirq(cpu, cost);
        }
        if phase == Phase::Idle {
            return self.idle_tick(cpu, cost);
        }
        self.delay(cpu, cost);
        self.resched_now(cpu);
    }

    /// After a tick in idle: run what balancing brought, else stop the tick.
    fn idle_tick(&mut self, cpu: CpuId, cost: u64) {
        if self.has_to_run(cpu) {
            return self.leave_idle(cpu, cost);
        }
        self.sched.touch.clear();
        self.sched.nohz_balance_enter_idle(cpu);
        self.pay(cpu, cost);
        self.cpus[cpu.index()].tick_at = NEVER;
        self.arm(cpu);
    }

    /// Asks an idle CPU to balance for all idle CPUs (`kick_ilb`).
    fn kick(&mut self, cpu: CpuId, target: CpuId, lead: u64) -> u64 {
        self.cpus[target.index()].kicked = true;
        self.interrupt(cpu, target, self.now + lead)
    }

    /// SCHED_SOFTIRQ on a CPU, `lead` ns after the event. Returns what it took, ns.
    pub(super) fn balance_softirq(&mut self, cpu: CpuId, lead: u64) -> u64 {
        self.balancing(cpu, lead, |sched, now, price| {
            sched.run_rebalance_domains(cpu, now, price);
        })
    }

    /// `newidle_balance`, `lead` ns after the event. Returns what it took, ns.
    pub(super) fn newidle(&mut self, cpu: CpuId, lead: u64) -> u64 {
        let mut steps = std::mem::take(&mut self.cpus[cpu.index()].rare.newidle_steps);
        steps.clear();
        let mut end = self.now + lead;
        let cost = self.balancing(cpu, lead, |sched, now, price| {
            sched.newidle_balance(cpu, now, |touch: &mut Touches| {
                let spent = price(touch);
                end += spent;
                steps.push(end);
                spent
            });
        });
        self.cpus[cpu.index()].rare.newidle_steps = steps;
        cost
    }

    /// What the idle loop does of balancing before it sleeps. Returns what it took, ns.
    pub(super) fn idle_loop_balance(&mut self, cpu: CpuId, lead: u64) -> u64 {
        self.balancing(cpu, lead, |sched, now, price| {
            sched.nohz_run_idle_balance(cpu, now, price);
        })
    }

    /// Runs a balance and prices what it touches as it goes, since the kernel weighs its cost.
    fn balancing(
        &mut self,
        cpu: CpuId,
        lead: u64,
        balance: impl FnOnce(&mut Sched, Ns, &mut dyn FnMut(&mut Touches) -> u64),
    ) -> u64 {
        let now = self.now;
        let (lines, prices) = (&mut self.lines, &self.prices);
        let mut cost = 0;
        self.sched.touch.clear();
        balance(&mut self.sched, Ns(self.now), &mut |touch| {
            let paid = lines.charge(touch, cpu, now, lead + cost, prices);
            let spent = paid.total() + u64::from(touch.stats_read) * prices.balance_cpu;
            touch.clear();
            cost += spent;
            spent
        });
        cost += self.pay(cpu, lead + cost);
        self.notify_balanced(cpu, now + lead + cost);
        self.start_stoppers(cpu, now + lead + cost);
        cost
    }

    /// Tells other CPUs that balancing on their behalf brought them tasks to switch to.
    pub(super) fn notify_balanced(&mut self, cpu: CpuId, at: u64) {
        for n in 0..self.sched.lb.arrivals.len() {
            let other = self.sched.lb.arrivals[n];
            if other != cpu && self.sched.rq(other).need_resched {
                self.interrupt(cpu, other, at);
            }
        }
    }

    /// Starts the stoppers that balancing asked for.
    fn start_stoppers(&mut self, cpu: CpuId, at: u64) {
        while let Some(busiest) = self.sched.lb.pending_active.pop() {
            self.cpus[busiest.index()].stop_pending = true;
            self.sched.rq_mut(busiest).need_resched = true;
            if self.sched.core.enabled {
                self.sched.set_stopper(busiest, true);
            }
            self.interrupt(cpu, busiest, at);
        }
    }

    /// The stopper of a CPU: active balancing pushes away the task that ran. The stopper has
    /// displaced it, so that it is queued and no longer running.
    pub(super) fn run_stopper(&mut self, cpu: CpuId, prev: TaskId) {
        self.cpus[cpu.index()].stop_pending = false;
        if self.sched.core.enabled {
            self.sched.set_stopper(cpu, false);
        }
        if self.sched.rq(cpu).curr.is_some() {
            self.count_switch(prev);
            self.sched.put_prev_task(cpu, prev);
            self.sched.set_next_task(cpu, TaskId::NONE);
        }
        self.sched.active_load_balance(cpu, Ns(self.now));
        self.notify_balanced(cpu, self.now);
        self.start_stoppers(cpu, self.now);
    }
}
