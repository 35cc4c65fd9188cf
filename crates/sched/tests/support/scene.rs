//! Small scenes of tasks on a machine without scheduling domains.

use crate::support;
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, ENQUEUE_MIGRATED, ENQUEUE_WAKEUP};
use wakelab_sched::state::Policy;
use wakelab_sched::{Cookie, Features, Release, Rules, Sched, TaskId, TgId, Tunables};

pub const MS: u64 = 1_000_000;

/// A scheduler with a clock, driven as the engine drives it.
pub struct Scene {
    pub sched: Sched,
    pub now: u64,
}

impl Scene {
    pub fn new(release: Release, ncpu: usize) -> Scene {
        let tun = Tunables::for_machine(ncpu, 1000);
        let feat = Features::defaults(release);
        let topo = Arc::new(support::flat(ncpu, 2));
        let sched = Sched::new(topo, Rules::of(release), feat, tun);
        let mut scene = Scene { sched, now: 0 };
        scene.advance(1000 * MS);
        scene
    }

    /// Moves time on for all CPUs.
    pub fn advance(&mut self, span: u64) {
        self.now += span;
        for cpu in 0..self.sched.ncpu() {
            self.sched
                .update_rq_clock(CpuId::from_index(cpu), Ns(self.now));
        }
    }

    pub fn fork(&mut self, tg: TgId, policy: Policy, nice: i8, cpu: u16) -> TaskId {
        let cpus = CpuMask::first_n(self.sched.ncpu());
        let cpu = CpuId(cpu);
        let spec = TaskSpec {
            tg,
            mm: 0,
            policy,
            nice,
            cpus,
            cpu,
            kthread: false,
            cookie: Cookie::NONE,
        };
        let p = self.sched.new_task(&spec);
        self.sched.wake_up_new_task(p, cpu);
        self.resched(cpu);
        p
    }

    pub fn resched(&mut self, cpu: CpuId) {
        if self.sched.rq(cpu).need_resched {
            self.sched.switch_task(cpu);
        }
    }

    /// Lets all CPUs run for so many ticks of 1 ms.
    pub fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.advance(MS);
            for cpu in 0..self.sched.ncpu() {
                let cpu = CpuId::from_index(cpu);
                self.sched.task_tick(cpu);
                self.resched(cpu);
            }
        }
    }

    pub fn sleep(&mut self, p: TaskId) {
        let cpu = self.sched.tasks[p.index()].cpu;
        self.sched.deactivate_task(cpu, p, DEQUEUE_SLEEP);
        if self.sched.rq(cpu).curr == p {
            self.sched.switch_task(cpu);
        }
    }

    pub fn wake(&mut self, p: TaskId, cpu: CpuId) {
        let from = self.sched.tasks[p.index()].cpu;
        if self.sched.is_delayed(p) {
            // It is woken where it is.
            return self.sched.wake_delayed(from, p, 0);
        }
        self.sched.set_task_cpu(p, cpu);
        let migrated = if from == cpu { 0 } else { ENQUEUE_MIGRATED };
        self.sched.activate_task(cpu, p, ENQUEUE_WAKEUP | migrated);
        self.sched.check_preempt_curr(cpu, p, 0);
    }

    pub fn se(&self, p: TaskId) -> &wakelab_sched::SchedEntity {
        &self.sched.se[self.sched.tasks[p.index()].se.index()]
    }

    pub fn runtime(&self, p: TaskId) -> u64 {
        self.se(p).sum_exec_runtime
    }
}
