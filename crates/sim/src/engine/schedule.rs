//! `schedule()`: from one task to the next, to idle, and out of idle.

use super::Engine;
use super::cpu::Phase;
use super::session::NO_MM;
use super::task::Stage;
use crate::queue::NEVER;
use crate::work::Workload;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::fair::flags;
use wakelab_sched::{Line, TaskId};

impl<W: Workload> Engine<W> {
    /// The running task goes to sleep, unless it was woken on its way.
    pub(super) fn block_done(&mut self, cpu: CpuId) {
        let p = self.sched.rq(cpu).curr;
        if self.tasks[p.index()].woken {
            self.tasks[p.index()].woken = false;
            return self.run_task(cpu, 0);
        }
        self.begin_schedule(cpu);
        self.sched.deactivate_task(cpu, p, flags::DEQUEUE_SLEEP);
        self.switch(cpu, p);
    }

    /// The running task ends.
    pub(super) fn exit_done(&mut self, cpu: CpuId) {
        let p = self.sched.rq(cpu).curr;
        self.sched.tasks[p.index()].exiting = true;
        let (joiner, last) = self.leave_session(p);
        if joiner.is_some() {
            self.wake(cpu, joiner, 0, 0);
            self.queue_chosen(cpu);
        }
        self.begin_schedule(cpu);
        let flags = flags::DEQUEUE_SLEEP | flags::DEQUEUE_SPECIAL;
        self.sched.deactivate_task(cpu, p, flags);
        self.switch(cpu, p);
        self.sched.exit_task(cpu, p);
        self.sched.sched_core_free(p);
        if last {
            self.finish();
        }
    }

    /// The running task makes way for another, if there is a better one.
    pub(super) fn preempt(&mut self, cpu: CpuId) {
        let p = self.sched.rq(cpu).curr;
        self.begin_schedule(cpu);
        self.tasks[p.index()].placed.queued_at = self.now;
        self.preempting = true;
        self.switch(cpu, p);
        self.preempting = false;
    }

    /// An idle CPU has something to run.
    pub(super) fn leave_idle(&mut self, cpu: CpuId, lead: u64) {
        self.begin_schedule(cpu);
        self.lead = lead;
        self.switch(cpu, TaskId::NONE);
    }

    pub(super) fn begin_schedule(&mut self, cpu: CpuId) {
        self.sched.touch.clear();
        self.sched.touch.write(Line::Rq(cpu));
        self.sched.update_rq_clock(cpu, Ns(self.now));
        self.lead = 0;
    }

    /// Picks the next task and switches to it, after a look at other CPUs if there is none here.
    /// What was noted in `touch` and `lead` so far is paid on the way.
    pub(super) fn switch(&mut self, cpu: CpuId, prev: TaskId) {
        let from_idle = prev.is_none() && !self.cpus[cpu.index()].stop_pending;
        let prev = if self.cpus[cpu.index()].stop_pending {
            self.run_stopper(cpu, prev);
            TaskId::NONE
        } else {
            prev
        };
        if self.sched.core.enabled {
            return self.switch_core(cpu, prev, from_idle);
        }
        if self.sched.only_delayed(cpu) {
            // The kernel picks first and looks at other CPUs if that leaves nothing.
            self.sched.pick_next_task_fair(cpu);
        }
        if self.sched.rq(cpu).nr_running == 0 {
            let lead = self.lead + self.pay(cpu, self.lead);
            let cost = self.newidle(cpu, lead);
            if cost > 0 {
                return self.set_phase(cpu, Phase::NewIdle, self.now + lead + cost);
            }
            self.lead = lead;
            self.sched.touch.clear();
        }
        self.switch_to_next(cpu, prev);
    }

    /// A look for other work is over, or one of its steps.
    #[inline(never)]
    pub(super) fn looked_for_work(&mut self, cpu: CpuId) {
        match self.cpus[cpu.index()].phase {
            Phase::CoreBalance => self.core_balance_goes_on(cpu),
            _ => self.newidle_done(cpu),
        }
    }

    /// A newly-idle balance is over. If all that it brought are tasks that sleep, the pick leaves
    /// nothing, and the CPU looks once more.
    pub(super) fn newidle_done(&mut self, cpu: CpuId) {
        let prev = self.sched.rq(cpu).curr;
        self.begin_schedule(cpu);
        if self.sched.core.enabled {
            return self.newidle_core_done(cpu, prev);
        }
        if self.sched.only_delayed(cpu) {
            return self.switch(cpu, prev);
        }
        self.switch_to_next(cpu, prev);
    }

    fn switch_to_next(&mut self, cpu: CpuId, prev: TaskId) {
        let mut cost = self.lead;
        let next = self.sched.switch_task(cpu);
        cost += self.pay(cpu, cost);
        self.go_on_with(cpu, prev, next, cost);
    }

    /// The task that was picked starts or goes on, `cost` ns after the event.
    #[inline(always)]
    pub(super) fn go_on_with(&mut self, cpu: CpuId, prev: TaskId, next: TaskId, mut cost: u64) {
        self.cpus[cpu.index()].curr = next;
        if next.is_none() {
            return self.enter_idle(cpu, prev, cost);
        }
        if next == prev {
            return self.resume_at(cpu, self.now + cost);
        }
        self.count_switch(prev);
        self.becomes_busy(cpu);
        cost += self.prices.context_switch + self.mm_switch(cpu, next);
        self.account_wait(next, cpu, self.now + cost);
        cost += self.refill(cpu, next);
        self.resume_at(cpu, self.now + cost);
    }

    pub(super) fn count_switch(&mut self, prev: TaskId) {
        if prev.is_some() {
            self.stats.switches += 1;
            self.stats.preemptions += u64::from(self.preempting);
        }
    }

    /// The cost of another address space than the last one here, ns.
    pub(super) fn mm_switch_cost(&self, cpu: CpuId, next: TaskId) -> u64 {
        let mm = self.sched.tasks[next.index()].mm;
        if self.sched.rq(cpu).last_mm == mm || mm == NO_MM {
            return 0;
        }
        self.prices.process_switch
    }

    /// Switches to a task's address space. Returns what it took, ns.
    fn mm_switch(&mut self, cpu: CpuId, next: TaskId) -> u64 {
        let mm = self.sched.tasks[next.index()].mm;
        let last = &mut self.sched.rq_mut(cpu).last_mm;
        if *last == mm || mm == NO_MM {
            return 0;
        }
        *last = mm;
        self.prices.process_switch
    }

    /// What a task pays for its cold caches after a move, ns.
    fn refill(&mut self, cpu: CpuId, next: TaskId) -> u64 {
        let task = &mut self.tasks[next.index()];
        let refill = self.prices.refill(task.session, task.placed.warm_cpu, cpu);
        task.placed.warm_cpu = cpu;
        self.stats.stalled += refill;
        refill
    }

    fn enter_idle(&mut self, cpu: CpuId, prev: TaskId, cost: u64) {
        self.sched.touch.clear();
        self.sched.update_idle_core(cpu);
        if self.sched.core.enabled && self.sched.needs_core_balance(cpu) {
            return self.begin_core_balance(cpu, prev, cost);
        }
        self.enter_idle_loop(cpu, prev, cost);
    }

    /// The idle loop up to the idle state, `cost` ns after the event.
    pub(super) fn enter_idle_loop(&mut self, cpu: CpuId, prev: TaskId, cost: u64) {
        let expected = self.cpus[cpu.index()].rare.idle_avg;
        let stop_tick = expected > self.tick_ns;
        if stop_tick {
            self.sched.nohz_balance_enter_idle(cpu);
        }
        let mut cost = cost + self.pay(cpu, cost) + self.prices.idle_enter;
        cost += self.idle_loop_balance(cpu, cost);
        self.count_switch(prev);
        self.becomes_idle(cpu);
        let state = self.prices.idle_state(Ns(expected));
        self.sched.rq_mut(cpu).idle_exit_latency = state.map(|s| (s.exit / 1000) as u32);
        let slot = &mut self.cpus[cpu.index()];
        slot.phase = Phase::Idle;
        slot.op_at = NEVER;
        slot.rare.ready_at = self.now + cost;
        slot.rare.idle_exit = state.map_or(0, |s| s.exit);
        slot.idle_polls = state.is_none_or(|s| s.polling);
        if stop_tick {
            slot.tick_at = NEVER;
        }
        let stolen = self.sched.core.enabled && self.sched.rq(cpu).need_resched;
        if stolen || self.sched.rq(cpu).ttwu_pending {
            slot.irq_at = slot.irq_at.min(slot.rare.ready_at.max(self.now + 1));
        }
        self.arm(cpu);
    }

    fn becomes_busy(&mut self, cpu: CpuId) {
        if std::mem::replace(&mut self.cpus[cpu.index()].is_busy, true) {
            return;
        }
        let now = self.now;
        let next_tick = self.next_tick(now);
        let slot = &mut self.cpus[cpu.index()];
        let idle = now - slot.rare.since;
        slot.rare.idle_avg = (slot.rare.idle_avg * 7 + idle) / 8;
        slot.rare.since = now;
        if slot.tick_at == NEVER {
            slot.tick_at = next_tick;
        }
        self.siblings_changed(cpu, true);
    }

    pub(super) fn becomes_idle(&mut self, cpu: CpuId) {
        let slot = &mut self.cpus[cpu.index()];
        if !std::mem::replace(&mut slot.is_busy, false) {
            return;
        }
        slot.rare.busy += self.now - slot.rare.since;
        slot.rare.since = self.now;
        self.siblings_changed(cpu, false);
    }

    fn siblings_changed(&mut self, cpu: CpuId, busy: bool) {
        for n in 0..self.siblings[cpu.index()].len() {
            let sibling = self.siblings[cpu.index()][n];
            let speeds = &self.prices.smt_speed;
            self.cpus[sibling.index()].sibling_changed(self.now, busy, speeds);
            self.arm(sibling);
        }
    }

    /// An interrupt from another CPU, or the end of an idle state.
    pub(super) fn irq(&mut self, cpu: CpuId) {
        let phase = self.cpus[cpu.index()].phase;
        if matches!(phase, Phase::NewIdle | Phase::CoreBalance) {
            return self.irq_while_looking(cpu, phase);
        }
        let idle = phase == Phase::Idle;
        let cost = self.irq_work(cpu);
        if idle {
            if self.has_to_run(cpu) {
                return self.leave_idle(cpu, cost);
            }
            return self.arm(cpu);
        }
        self.delay(cpu, cost + self.prices.ipi_receive);
        self.resched_now(cpu);
    }

    #[inline(never)]
    fn irq_while_looking(&mut self, cpu: CpuId, phase: Phase) {
        match phase {
            Phase::CoreBalance => self.irq_in_core_balance(cpu),
            _ => self.defer_irq(cpu),
        }
    }

    /// What an interrupt from another CPU is for. Returns what it took, ns.
    #[inline(always)]
    pub(super) fn irq_work(&mut self, cpu: CpuId) -> u64 {
        let slot = &mut self.cpus[cpu.index()];
        slot.irq_at = NEVER;
        let kicked = std::mem::take(&mut slot.kicked);
        let mut cost = self.ttwu_pending(cpu);
        if kicked {
            cost += self.balance_softirq(cpu, cost);
        }
        cost
    }

    /// Interrupts are off in a newly-idle balance; it ends with the domain that it is at.
    fn defer_irq(&mut self, cpu: CpuId) {
        let now = self.now;
        let slot = &mut self.cpus[cpu.index()];
        if let Some(&end) = slot.rare.newidle_steps.iter().find(|&&end| end >= now) {
            slot.op_at = slot.op_at.min(end);
        }
        slot.irq_at = slot.op_at + 1;
        self.arm(cpu);
    }

    /// An interrupt took time from what runs.
    pub(super) fn delay(&mut self, cpu: CpuId, cost: u64) {
        let slot = &mut self.cpus[cpu.index()];
        if slot.op_at != NEVER {
            slot.op_at += cost;
        }
        self.arm(cpu);
    }

    /// Reschedules after an interrupt, if the running task can be left where it is: one that
    /// computes at once, one that spins by giving up. In a system call it waits for the call's end
    /// (the model is of a kernel without preemption inside the kernel).
    pub(super) fn resched_now(&mut self, cpu: CpuId) {
        if !self.sched.rq(cpu).need_resched {
            return;
        }
        let p = self.sched.rq(cpu).curr;
        match self.cpus[cpu.index()].phase {
            Phase::Compute => {
                let left = self.cpus[cpu.index()].compute_left(self.now);
                self.tasks[p.index()].stage = Stage::Compute(left);
                self.preempt(cpu);
            }
            Phase::Timed => {
                let left = self.cpus[cpu.index()].op_at.saturating_sub(self.now);
                let task = &mut self.tasks[p.index()];
                match &mut task.stage {
                    Stage::Work(of) => *of = left,
                    Stage::LockCpu(_) => {}
                    _ => task.placed.off_since = Some(self.now),
                }
                self.preempt(cpu);
            }
            Phase::Spin => {
                self.stop_spinning(p);
                self.preempt(cpu);
            }
            _ => {}
        }
    }
}
