//! Waking tasks: placement, remote queueing, interrupts, timers, and new tasks.

use super::Engine;
use super::cpu::Phase;
use super::session::NO_MM;
use super::task::{NOT_WOKEN, TaskSim, Waits};
use crate::work::{Spawn, Workload};
use std::cmp::Reverse;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::placement::{Reason, wf};
use wakelab_sched::{Line, TaskId};

/// Lines of the woken task that its waker takes over: `pi_lock` with the state, and the entity's
/// averages (include/linux/sched.h).
const TASK_LINES: u64 = 2;

/// Making a task: a stand-in of the usual order, outside of what any benchmark here measures.
const FORK_NS: u64 = 20_000;

impl<W: Workload> Engine<W> {
    /// `try_to_wake_up` by the task that runs on `cpu`, `lead` ns after the event. Returns what it
    /// took the waker, ns.
    pub(super) fn wake(&mut self, cpu: CpuId, p: TaskId, wake_flags: u32, lead: u64) -> u64 {
        let task = &mut self.tasks[p.index()];
        task.waits = Waits::Nothing;
        if self.sched.tasks[p.index()].on_rq || task.waking {
            if self.sched.is_delayed(p) {
                return self.wake_delayed(cpu, p, wake_flags, lead);
            }
            // Not asleep yet, or preempted on its way, or woken already (TASK_WAKING, on a wake
            // list): its state is set back and that is all.
            task.woken = true;
            return self.prices.wakeup / 4;
        }
        let prev = self.sched.tasks[p.index()].cpu;
        if self.sched.tasks[p.index()].on_cpu {
            return self.wake_on_cpu(cpu, p, prev, lead);
        }
        // What this CPU woke just before is queued before it chooses again.
        let before = self.queue_chosen(cpu);
        let lead = lead + before;
        self.stats.wakeups += 1;
        self.sched.look_ahead(p);
        let waker = self.sched.rq(cpu).curr;
        let memory = TASK_LINES * self.prices.transfer(prev, cpu);
        self.sched.touch.clear();
        let target = self.place(p, prev, cpu, waker, wf::TTWU | wake_flags);
        let mut wake_flags = wake_flags;
        if target != prev {
            wake_flags |= wf::MIGRATED;
            self.sched.set_task_cpu(p, target);
            self.stats.migrations += 1;
        }
        let cost = self.prices.wakeup / 2 + memory + self.pay(cpu, lead);
        self.stats.stalled += memory;
        self.queue_later(cpu, p, target, wake_flags, self.now + lead + cost);
        before + cost
    }

    /// Wakes a task that has gone to sleep while its CPU has not switched away from it yet (it looks
    /// for other work): the task is left to that CPU, without a placement (WF_ON_CPU).
    fn wake_on_cpu(&mut self, cpu: CpuId, p: TaskId, prev: CpuId, lead: u64) -> u64 {
        self.left_in_place(p, prev, Reason::OnCpu);
        let task = &mut self.tasks[p.index()];
        task.waking = true;
        task.remote_wakeup = false;
        self.sched.touch.clear();
        self.queue_remote(cpu, p, prev);
        let cost = self.prices.wakeup / 2 + self.pay(cpu, lead);
        cost + self.notify_queued(cpu, prev, self.now + lead + cost)
    }

    /// Wakes a task that sleeps but is still queued (DELAY_DEQUEUE): it stays on its CPU, whose run
    /// queue the waker locks, and neither placement nor queueing is to be done.
    fn wake_delayed(&mut self, cpu: CpuId, p: TaskId, wake_flags: u32, lead: u64) -> u64 {
        let prev = self.sched.tasks[p.index()].cpu;
        self.left_in_place(p, prev, Reason::StillQueued);
        let memory = TASK_LINES * self.prices.transfer(prev, cpu);
        self.stats.stalled += memory;
        self.sched.touch.clear();
        self.sched.touch.write(Line::Rq(prev));
        self.sched.update_rq_clock(prev, Ns(self.now));
        self.sched.wake_delayed(prev, p, wake_flags);
        let cost = self.prices.wakeup / 2 + memory + self.pay(cpu, lead);
        cost + self.notify_resched(cpu, prev, self.now + lead + cost)
    }

    /// A wake-up that is no placement goes into the records.
    fn left_in_place(&mut self, p: TaskId, cpu: CpuId, reason: Reason) {
        if self.sched.core.enabled {
            self.sched.tasks[p.index()].moved_by = None;
        }
        self.stats.wakeups += 1;
        self.stats.left(reason);
        let placed = &mut self.tasks[p.index()].placed;
        placed.woken_at = self.now;
        placed.queued_at = self.now;
        placed.cpu = cpu;
        placed.idle = false;
        placed.reason = reason;
    }

    /// `select_task_rq`, with its entry in the audit.
    fn place(
        &mut self,
        p: TaskId,
        prev: CpuId,
        cpu: CpuId,
        waker: TaskId,
        wake_flags: u32,
    ) -> CpuId {
        let in_task = waker.is_some() && !self.in_irq;
        let decision = self
            .sched
            .select_task_rq(p, prev, cpu, waker, wake_flags, in_task);
        if self.sched.core.enabled {
            self.sched.tasks[p.index()].moved_by = None;
            // A new task comes from no core.
            if wake_flags & wf::FORK == 0 {
                self.sched.note_core_move(p, prev, decision.cpu, None);
            }
        }
        let task = &mut self.tasks[p.index()];
        task.placed.reason = decision.reason;
        task.placed.cpu = decision.cpu;
        task.placed.idle = self.sched.rq(decision.cpu).curr.is_none();
        task.placed.woken_at = self.now;
        task.placed.queued_at = self.now;
        self.stats.decided(&decision, decision.cpu != prev);
        decision.cpu
    }

    pub(super) fn enqueue_woken(&mut self, p: TaskId, target: CpuId, wake_flags: u32) {
        self.sched.update_rq_clock(target, Ns(self.now));
        self.sched.ttwu_do_activate(target, p, wake_flags);
    }

    /// Puts a woken task on the wake list of its CPU.
    pub(super) fn queue_remote(&mut self, cpu: CpuId, p: TaskId, target: CpuId) {
        let rq = self.sched.rq_mut(target);
        rq.wake_list.push(p);
        rq.ttwu_pending = true;
        self.sched.sync_idle(target);
        if target != cpu {
            self.sched.touch.write(Line::WakeList(target));
        }
    }

    /// Tells a CPU that its wake list has something: by a store if it polls, else by an interrupt,
    /// and not at all if it was told already. Returns what it took the sender, ns.
    pub(super) fn notify_queued(&mut self, cpu: CpuId, target: CpuId, at: u64) -> u64 {
        if self.sched.rq(target).wake_list.len() > 1 {
            return 0;
        }
        self.interrupt(cpu, target, at)
    }

    /// Tells a CPU to reschedule, if it must and does not know.
    pub(super) fn notify_resched(&mut self, cpu: CpuId, target: CpuId, at: u64) -> u64 {
        if target == cpu || !self.sched.rq(target).need_resched {
            return 0;
        }
        self.interrupt(cpu, target, at)
    }

    /// Interrupts a CPU, or wakes it from idle.
    pub(super) fn interrupt(&mut self, from: CpuId, to: CpuId, at: u64) -> u64 {
        let travel = self.prices.transfer(from, to);
        let slot = &mut self.cpus[to.index()];
        let idle = slot.phase == Phase::Idle;
        let polls = idle && slot.idle_polls;
        let sent = if polls { 0 } else { self.prices.ipi_send };
        let mut arrives = at + sent + travel;
        if idle {
            // A CPU still on its way into the idle state sees the request before it enters.
            let exit = if arrives < slot.rare.ready_at {
                0
            } else {
                slot.rare.idle_exit
            };
            let notice = if polls {
                self.prices.poll_wake
            } else {
                self.prices.ipi_receive
            };
            arrives = arrives.max(slot.rare.ready_at) + exit + notice;
        }
        if arrives < slot.irq_at {
            slot.irq_at = arrives;
            self.arm(to);
        }
        sent
    }

    /// `sched_ttwu_pending`: the tasks on a CPU's wake list are queued. Returns what it took, ns.
    pub(super) fn ttwu_pending(&mut self, cpu: CpuId) -> u64 {
        if !self.sched.rq(cpu).ttwu_pending {
            return 0;
        }
        self.sched.touch.clear();
        self.sched.touch.write(Line::WakeList(cpu));
        self.sched.touch.write(Line::Rq(cpu));
        let mut list = std::mem::take(&mut self.sched.rq_mut(cpu).wake_list);
        let count = list.len() as u64;
        for &p in &list {
            let task = &mut self.tasks[p.index()];
            task.waking = false;
            let migrated = if task.remote_wakeup { wf::MIGRATED } else { 0 };
            self.enqueue_woken(p, cpu, migrated);
        }
        list.clear();
        let rq = self.sched.rq_mut(cpu);
        rq.wake_list = list;
        rq.ttwu_pending = false;
        self.sched.sync_idle(cpu);
        let cost = count * (self.prices.wakeup / 2) + self.pay(cpu, 0);
        self.lines.hold(cpu, self.now + cost);
        cost
    }

    /// Charges the lines and searches that the last operation on the scheduler noted. Returns what
    /// they cost, ns.
    pub(super) fn pay(&mut self, cpu: CpuId, lead: u64) -> u64 {
        let touch = &self.sched.touch;
        let paid = self.lines.charge(touch, cpu, self.now, lead, &self.prices);
        self.stats.stalled += paid.total();
        paid.total()
            + u64::from(touch.scanned) * self.prices.scan_cpu
            + u64::from(touch.stats_read) * self.prices.balance_cpu
    }

    /// Makes a task and places it (`kernel_clone`, `wake_up_new_task`).
    pub(super) fn fork(&mut self, cpu: CpuId, parent: TaskId, spawn: Spawn) -> u64 {
        let attributes = self.work.attributes(spawn.role);
        let session = attributes.session;
        let session = session.unwrap_or(self.tasks[parent.index()].session);
        let from = &self.sched.tasks[parent.index()];
        let kernel = self.sessions[usize::from(session)].kernel;
        let spec = TaskSpec {
            tg: self.sessions[usize::from(session)].group,
            mm: if kernel {
                NO_MM
            } else if spawn.thread {
                from.mm
            } else {
                self.tasks.len() as u32
            },
            policy: attributes.policy.unwrap_or(from.policy),
            nice: attributes.nice.unwrap_or(from.nice),
            cpus: attributes
                .cpus
                .map_or(from.cpus, |cpus| cpus.and(&self.all_cpus())),
            cpu,
            kthread: kernel,
            cookie: attributes.cookie.unwrap_or(from.cookie),
        };
        let child = self.add_task(&spec, session, spawn.role);
        self.core_scheduling_may_begin();
        self.sched.touch.clear();
        self.tasks[child.index()].placed.queued_at = self.now;
        let target = match attributes.start {
            Some(start) => start,
            None => self.place(child, cpu, cpu, parent, wf::FORK),
        };
        self.sched.update_rq_clock(target, Ns(self.now));
        self.sched.touch.write(Line::Rq(target));
        self.sched.wake_up_new_task(child, target);
        let cost = FORK_NS + self.pay(cpu, 0);
        cost + self.notify_resched(cpu, target, self.now + cost)
    }

    fn all_cpus(&self) -> CpuMask {
        CpuMask::first_n(self.cpus.len())
    }

    /// Adds a task that is not queued yet.
    pub(super) fn add_task(&mut self, spec: &TaskSpec, session: u16, role: u32) -> TaskId {
        let p = self.sched.new_task(spec);
        debug_assert_eq!(p.index(), self.tasks.len());
        // A shell makes each command a process group of its own.
        self.sched.tasks[p.index()].pgrp = session;
        let number = self.enter_session(session);
        let task = TaskSim::new(self.seed, session, number, spec.cpu);
        self.tasks.push(task);
        self.work.spawned(role, p);
        p
    }

    /// Wakes a task at a time.
    pub(super) fn arm_timer(&mut self, p: TaskId, at: u64) {
        self.timer_seq += 1;
        self.timers.push(Reverse((at, self.timer_seq, p)));
        self.arm_timers();
    }

    pub(super) fn arm_timers(&mut self) {
        let at = self
            .timers
            .peek()
            .map_or(crate::queue::NEVER, |Reverse((at, ..))| *at);
        self.queue.set(self.cpus.len(), at);
    }

    /// The earliest timer fires, on the CPU that armed it: the one that its task was last on.
    pub(super) fn timer_fires(&mut self) {
        let Some(Reverse((_, _, p))) = self.timers.pop() else {
            return;
        };
        if p.is_none() {
            self.stop_sessions();
        } else if !self.sched.tasks[p.index()].exiting {
            self.wake_from_interrupt(p);
        }
        self.arm_timers();
    }

    /// Wakes a task from an interrupt on the CPU that it was last on.
    pub(super) fn wake_from_interrupt(&mut self, p: TaskId) {
        let cpu = self.sched.tasks[p.index()].cpu;
        let told = self.sched.rq(cpu).need_resched;
        self.in_irq = true;
        let cost = self.wake(cpu, p, 0, 0);
        self.in_irq = false;
        if self.cpus[cpu.index()].phase == Phase::Idle {
            return self.woke_in_idle(cpu, cost);
        }
        self.delay(cpu, cost);
        if !told {
            // One that was still queued here can be better than what runs at once.
            self.resched_now(cpu);
        }
    }

    /// The task runs: its wait is over and goes into the records.
    pub(super) fn account_wait(&mut self, p: TaskId, cpu: CpuId, starts: u64) {
        let task = &mut self.tasks[p.index()];
        let wait = starts.saturating_sub(task.placed.queued_at);
        self.stats.rq_wait += wait;
        self.work.waited(p, Ns(wait));
        if task.placed.woken_at != NOT_WOKEN {
            let latency = starts.saturating_sub(task.placed.woken_at);
            self.stats.ran(
                task.placed.reason,
                latency,
                task.placed.idle,
                task.placed.cpu != cpu,
            );
            task.placed.woken_at = NOT_WOKEN;
        }
    }
}
