//! Core scheduling: what the pick of one CPU asks of its siblings.
//!
//! A sibling that must switch is interrupted. In a task's own code it stops at once, so that no two
//! tasks with different cookies run there at the same time; in the kernel it goes on to the end of
//! what it does, as kernels without preemption do. (A real sibling runs on for as long as the
//! interrupt travels.)

use super::Engine;
use super::cpu::Phase;
use crate::queue::NEVER;
use crate::work::Workload;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::TaskId;
use wakelab_sched::core_sched::StealSearch;
use wakelab_sched::core_sched::prctl::CoreSchedCall;
use wakelab_sched::state::{Mover, Pick};

impl<W: Workload> Engine<W> {
    /// Whether the running task of a CPU is in its own code, not in the kernel.
    pub fn in_own_code(&self, cpu: CpuId) -> bool {
        matches!(self.cpus[cpu.index()].phase, Phase::Compute | Phase::Timed)
    }

    /// Whether a CPU that must reschedule will come to it: the kernel does at the end of what it is at, the
    /// idle loop and a task's own code only at an interrupt.
    pub fn will_look(&self, cpu: CpuId) -> bool {
        let slot = &self.cpus[cpu.index()];
        slot.irq_at != NEVER || !(slot.phase == Phase::Idle || self.in_own_code(cpu))
    }

    /// Whether an idle CPU has something that it must leave idle for: one that is forced idle stays
    /// so until it is told, be it only that the last of its tasks has left (`sched_core_dequeue`), so that
    /// its core picks again.
    #[inline]
    pub(super) fn has_to_run(&self, cpu: CpuId) -> bool {
        let rq = self.sched.rq(cpu);
        if self.sched.core.enabled {
            return rq.need_resched || self.cpus[cpu.index()].stop_pending;
        }
        rq.nr_running > 0
    }

    /// `switch` with core scheduling: other CPUs are looked at before the pick, and neither if that
    /// follows a sibling's nor by the idle task (`prev_balance`).
    #[inline(never)]
    pub(super) fn switch_core(&mut self, cpu: CpuId, prev: TaskId, from_idle: bool) {
        if !from_idle && self.sched.rq(cpu).nr_running == 0 && !self.sched.core_pick_ready(cpu) {
            let lead = self.lead + self.pay(cpu, self.lead);
            let cost = self.newidle(cpu, lead);
            if cost > 0 {
                return self.set_phase(cpu, Phase::NewIdle, self.now + lead + cost);
            }
            self.lead = lead;
            self.sched.touch.clear();
            self.sched.forget_core_pick(cpu);
        }
        self.switch_core_to_next(cpu, prev);
    }

    /// A newly-idle balance is over, with core scheduling.
    pub(super) fn newidle_core_done(&mut self, cpu: CpuId, prev: TaskId) {
        self.sched.forget_core_pick(cpu);
        if self.cpus[cpu.index()].stop_pending {
            return self.switch(cpu, prev);
        }
        self.switch_core_to_next(cpu, prev);
    }

    fn switch_core_to_next(&mut self, cpu: CpuId, prev: TaskId) {
        let before = self.sched.core.of(cpu).core_pick_seq;
        let lead = self.lead;
        let next = self.sched.switch_task(cpu);
        let mut cost = lead + self.pay(cpu, lead);
        let core_wide = self.sched.core.of(cpu).core_pick_seq != before;
        if core_wide {
            self.note_forced_idle();
            cost += self.tell_siblings(cpu, cost);
        }
        let held = cost + self.switch_cost(cpu, prev, next);
        self.lines.hold(cpu, self.now + held);
        self.go_on_with(cpu, prev, next, cost);
        if core_wide {
            self.stop_siblings(cpu);
        }
    }

    /// What a switch takes beside the pick, with the run queue's lock held (up to `finish_lock_switch`), ns.
    fn switch_cost(&self, cpu: CpuId, prev: TaskId, next: TaskId) -> u64 {
        if next.is_none() || next == prev {
            return 0;
        }
        self.prices.context_switch + self.mm_switch_cost(cpu, next)
    }

    /// Core scheduling may be in force by now: CPUs of a core then have one lock.
    pub(super) fn core_scheduling_may_begin(&mut self) {
        if self.sched.core.enabled {
            let leaders = self.sched.core.rqs.iter().map(|rq| rq.leader);
            self.lines.share_locks(leaders);
        }
    }

    /// Force idle that a pick began goes into the audit, under the decision that brought the two
    /// tasks together: of their arrivals the later.
    fn note_forced_idle(&mut self) {
        for n in 0..self.sched.core.begun.len() {
            let begun = self.sched.core.begun[n];
            let arrived = |p: TaskId| self.sched.tasks[p.index()].arrived_at;
            let later = match begun.by {
                Pick::Task(by) if arrived(by) > arrived(begun.blocked) => by,
                _ => begun.blocked,
            };
            let moved_by = self.sched.tasks[later.index()].moved_by;
            let placed = self.tasks[later.index()].placed.reason;
            let cause = moved_by.map_or(placed.name(), Mover::name);
            let better = self.sched.better_cpu_free(begun.blocked);
            let before = self.sched.core.rqs[begun.cpu.index()].forceidle_sum;
            self.stats.forced.began(begun.cpu, cause, better, before);
        }
    }

    /// Interrupts the siblings that must switch. Returns what it took the sender, ns.
    fn tell_siblings(&mut self, cpu: CpuId, lead: u64) -> u64 {
        let mut cost = 0;
        for n in 0..self.siblings[cpu.index()].len() {
            let sibling = self.siblings[cpu.index()][n];
            if !self.sched.rq(sibling).need_resched {
                continue;
            }
            cost += if self.stops_at_once(sibling) {
                self.prices.ipi_send
            } else {
                self.interrupt(cpu, sibling, self.now + lead + cost)
            };
        }
        cost
    }

    fn stops_at_once(&self, cpu: CpuId) -> bool {
        matches!(
            self.cpus[cpu.index()].phase,
            Phase::Compute | Phase::Timed | Phase::Spin
        )
    }

    /// The siblings that were told while in a task's own code switch now.
    fn stop_siblings(&mut self, cpu: CpuId) {
        for n in 0..self.siblings[cpu.index()].len() {
            self.stop_if_told(self.siblings[cpu.index()][n]);
        }
    }

    /// `prctl(PR_SCHED_CORE)` by the running task of a CPU. CPUs that run a task with a new cookie are
    /// told as siblings are after a pick: what computes stops in this event. The caller's own CPU
    /// reschedules on the way out of the call.
    pub(super) fn core_sched_call(
        &mut self,
        cpu: CpuId,
        p: TaskId,
        call: CoreSchedCall,
        lead: u64,
    ) {
        let result = self.sched.sched_core_share_pid(p, call);
        self.core_scheduling_may_begin();
        self.work.core_sched_done(p, result);
        let told: Vec<CpuId> = self.sched.lb.arrivals.drain(..).collect();
        let others = || told.iter().copied().filter(|&other| other != cpu);
        let mut cost = self.prices.syscall;
        for other in others() {
            cost += if self.stops_at_once(other) {
                self.prices.ipi_send
            } else {
                self.interrupt(cpu, other, self.now + lead + cost)
            };
        }
        self.resume_at(cpu, self.now + lead + cost);
        for other in others() {
            self.stop_if_told(other);
        }
    }

    /// A CPU that must switch does so now if it is in a task's own code.
    fn stop_if_told(&mut self, cpu: CpuId) {
        let preempting = self.preempting;
        if self.sched.rq(cpu).need_resched && self.stops_at_once(cpu) {
            self.delay(cpu, self.prices.ipi_receive);
            self.resched_now(cpu);
        }
        self.preempting = preempting;
    }

    /// A CPU that has just been forced idle will look for a task that fits, before it sleeps. It runs the
    /// idle task by then (`__balance_callbacks` after the switch).
    pub(super) fn begin_core_balance(&mut self, cpu: CpuId, prev: TaskId, cost: u64) {
        let cost = cost + self.pay(cpu, cost);
        self.count_switch(prev);
        self.becomes_idle(cpu);
        self.cpus[cpu.index()].rare.stealing = StealSearch::by(cpu);
        self.set_phase(cpu, Phase::CoreBalance, self.now + cost);
    }

    /// The search has the locks for the CPU that it is at.
    pub(super) fn core_balance_goes_on(&mut self, cpu: CpuId) {
        let cost = self.try_steal(cpu);
        self.look_further(cpu, cost);
    }

    /// Interrupts are off while the search waits for locks or has them. One that came meanwhile is taken
    /// right after.
    pub(super) fn irq_in_core_balance(&mut self, cpu: CpuId) {
        let slot = &mut self.cpus[cpu.index()];
        if slot.op_at > self.now {
            slot.irq_at = slot.op_at;
            return self.arm(cpu);
        }
        let cost = self.try_steal(cpu) + self.prices.ipi_receive;
        let cost = cost + self.irq_work(cpu);
        self.look_further(cpu, cost);
    }

    /// Takes a task off the CPU that the search is at, if there is one. Returns what it took, ns.
    fn try_steal(&mut self, cpu: CpuId) -> u64 {
        let Some(src) = self.cpus[cpu.index()].rare.stealing.at() else {
            return 0;
        };
        self.sched.touch.clear();
        self.sched.try_steal_cookie(cpu, src, Ns(self.now));
        let cost = self.pay(cpu, 0);
        self.notify_balanced(cpu, self.now + cost);
        cost
    }

    /// Goes to the next CPU, unless this one must reschedule or has looked at all.
    fn look_further(&mut self, cpu: CpuId, lead: u64) {
        self.sched.touch.clear();
        let search = &mut self.cpus[cpu.index()].rare.stealing;
        if self.sched.next_to_steal_from(search).is_some() {
            let cost = lead + self.pay(cpu, lead);
            return self.set_phase(cpu, Phase::CoreBalance, self.now + cost);
        }
        self.sched.end_core_balance(cpu, Ns(self.now));
        let lead = lead + self.pay(cpu, lead);
        self.notify_balanced(cpu, self.now + lead);
        if self.has_to_run(cpu) {
            return self.leave_idle(cpu, lead);
        }
        self.sched.touch.clear();
        self.enter_idle_loop(cpu, TaskId::NONE, lead);
    }
}
