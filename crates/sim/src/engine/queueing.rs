//! From the choice of a CPU for a woken task to its queueing there.
//!
//! Time passes in between: what the search looks at comes from other CPUs' caches, and the run queue's
//! lock or the wake list comes last. The chosen CPU looks the same to other wakers meanwhile, so that
//! two can choose the same idle CPU and their tasks stack there, as they do in the kernel
//! (`try_to_wake_up`: `select_task_rq`, `set_task_cpu`, then `ttwu_queue`).

use super::Engine;
use super::cpu::{Chosen, Phase};
use super::ops::MAX_LEAD;
use crate::queue::NEVER;
use crate::work::Workload;
use wakelab_machine::CpuId;
use wakelab_sched::placement::wf;
use wakelab_sched::{Line, TaskId};

impl<W: Workload> Engine<W> {
    /// The CPU `cpu` will queue a task on `target` at `at`.
    pub(super) fn queue_later(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        target: CpuId,
        wake_flags: u32,
        at: u64,
    ) {
        debug_assert_eq!(self.cpus[cpu.index()].queue_at, NEVER);
        self.tasks[task.index()].waking = true;
        let was_idle = self.nothing_there(target);
        let slot = &mut self.cpus[cpu.index()];
        slot.rare.chosen = Chosen {
            task,
            target,
            wake_flags,
            was_idle,
        };
        slot.queue_at = at;
        self.arm(cpu);
    }

    fn nothing_there(&self, cpu: CpuId) -> bool {
        let rq = self.sched.rq(cpu);
        rq.curr.is_none() && rq.nr_running == 0 && !rq.ttwu_pending
    }

    /// Queues now what the CPU has chosen for, if there is something. Returns what it took, ns.
    pub(super) fn queue_chosen(&mut self, cpu: CpuId) -> u64 {
        let slot = &mut self.cpus[cpu.index()];
        if slot.queue_at == NEVER {
            return 0;
        }
        slot.queue_at = NEVER;
        let Chosen {
            task: p,
            target,
            wake_flags,
            was_idle,
        } = slot.rare.chosen;
        self.stats.lost_races += u64::from(was_idle && !self.nothing_there(target));
        self.sched.touch.clear();
        if self.sched.ttwu_queue_cond(p, cpu, target) {
            self.tasks[p.index()].remote_wakeup = wake_flags & wf::MIGRATED != 0;
            self.queue_remote(cpu, p, target);
            let cost = self.pay(cpu, 0);
            return cost + self.notify_queued(cpu, target, self.now + cost);
        }
        self.tasks[p.index()].waking = false;
        self.sched.touch.write(Line::Rq(target));
        self.enqueue_woken(p, target, wake_flags);
        let cost = self.prices.wakeup / 2 + self.pay(cpu, 0);
        self.lines.hold(target, self.now + cost);
        cost + self.notify_resched(cpu, target, self.now + cost)
    }

    /// The time to queue has come.
    pub(super) fn queue_woken(&mut self, cpu: CpuId) {
        let cost = self.queue_chosen(cpu);
        let slot = &self.cpus[cpu.index()];
        match slot.phase {
            // The end of the operation that woke: straight on, as at the end of any other.
            Phase::Resume if slot.op_at <= self.now && cost <= MAX_LEAD => self.run_task(cpu, cost),
            Phase::Idle => self.woke_in_idle(cpu, cost),
            _ => {
                self.delay(cpu, cost);
                self.resched_now(cpu);
            }
        }
    }

    /// An interrupt in idle woke a task. If that runs here, it ends the idle state.
    pub(super) fn woke_in_idle(&mut self, cpu: CpuId, cost: u64) {
        let resched = self.sched.rq(cpu).need_resched;
        let slot = &mut self.cpus[cpu.index()];
        if resched {
            let exit = if self.now < slot.rare.ready_at {
                0
            } else {
                slot.rare.idle_exit
            };
            let runs_at = self.now.max(slot.rare.ready_at) + exit + cost;
            slot.irq_at = slot.irq_at.min(runs_at);
        }
        self.arm(cpu);
    }
}
