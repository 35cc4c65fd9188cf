//! A task changes how it is scheduled, and gives way to others.

use super::Engine;
use super::task::Stage;
use crate::work::{Group, Setting, Workload};
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::{Line, Sched, TaskId, TgId};

impl<W: Workload> Engine<W> {
    /// `sched_setattr`, `sched_setaffinity` and a write to `cgroup.procs` by the task itself, each only
    /// if something of it is set.
    pub(super) fn set(&mut self, cpu: CpuId, p: TaskId, number: u32, lead: u64) {
        let setting = self.work.setting(number);
        self.sched.touch.clear();
        self.sched.touch.write(Line::Rq(cpu));
        self.sched.update_rq_clock(cpu, Ns(self.now));
        let mut calls = 0;
        if let Some((policy, nice)) = setting.scheduler {
            self.sched.sched_setattr(p, policy, nice, setting.slice);
            calls += 1;
        }
        if let Some(group) = setting.group {
            let group = self.groups[group as usize];
            self.sched.move_task_group(p, group);
            calls += 1;
        }
        let mut stage = Stage::Next;
        if let Some(mask) = self.allowed(&setting) {
            calls += 1;
            if mask.contains(cpu) {
                self.sched.set_cpus_allowed(p, mask);
            } else {
                stage = Stage::Leave(number);
            }
        }
        let cost = calls * self.prices.syscall + self.pay(cpu, lead);
        self.tasks[p.index()].stage = stage;
        self.resume_at(cpu, self.now + lead + cost);
    }

    /// Where a setting lets its task run, of the CPUs that there are.
    fn allowed(&self, setting: &Setting) -> Option<CpuMask> {
        let mask = setting.cpus?.and(&CpuMask::first_n(self.cpus.len()));
        (!mask.is_empty()).then_some(mask)
    }

    /// The running task may not run here any more: the stopper takes it to another CPU
    /// (`migration_cpu_stop`), as it does with a task that is still queued.
    pub(super) fn leave_cpu(&mut self, cpu: CpuId, p: TaskId, number: u32) {
        self.tasks[p.index()].stage = Stage::Next;
        let setting = self.work.setting(number);
        let Some(mask) = self.allowed(&setting) else {
            return self.resume_at(cpu, self.now);
        };
        if mask.contains(cpu) {
            // It was moved here on its way.
            self.sched.set_cpus_allowed(p, mask);
            return self.resume_at(cpu, self.now);
        }
        let target = self.any_and_distribute(cpu, &mask);
        self.begin_schedule(cpu);
        self.count_switch(p);
        self.sched.put_prev_task(cpu, p);
        self.sched.set_next_task(cpu, TaskId::NONE);
        self.sched.deactivate_task(cpu, p, 0);
        self.sched.set_cpus_allowed(p, mask);
        self.sched.set_task_cpu(p, target);
        self.stats.migrations += 1;
        self.tasks[p.index()].placed.queued_at = self.now;
        self.sched.touch.write(Line::Rq(target));
        self.sched.update_rq_clock(target, Ns(self.now));
        self.sched.activate_task(target, p, 0);
        self.sched.check_preempt_curr(target, p, 0);
        let mut cost = self.prices.context_switch + self.pay(cpu, 0);
        cost += self.notify_resched(cpu, target, self.now + cost);
        self.sched.touch.clear();
        self.lead = cost;
        self.switch(cpu, TaskId::NONE);
    }

    /// `cpumask_any_and_distribute`: each CPU goes on from where it last sent a task.
    fn any_and_distribute(&mut self, cpu: CpuId, mask: &CpuMask) -> CpuId {
        let last = &mut self.cpus[cpu.index()].rare.distributed;
        let next = mask.iter().find(|cpu| cpu.index() > *last);
        let target = next.or(mask.first()).unwrap_or(cpu);
        *last = target.index();
        target
    }

    /// `sched_yield`: the CPU picks anew, and may pick the same task.
    pub(super) fn give_way(&mut self, cpu: CpuId, p: TaskId) {
        self.tasks[p.index()].stage = Stage::Next;
        self.sched.update_rq_clock(cpu, Ns(self.now));
        self.sched.yield_task(cpu);
        self.preempt(cpu);
    }
}

/// Makes the groups that a workload names, below the root.
pub(super) fn add_groups(sched: &mut Sched, groups: &[Group]) -> Vec<TgId> {
    let mut made: Vec<TgId> = Vec::new();
    for group in groups {
        let parent = group
            .parent
            .map_or(TgId::ROOT, |parent| made[parent as usize]);
        made.push(sched.add_group(&group.name, parent, DEFAULT_SHARES));
    }
    made
}

/// `cpu.shares` of a group that nobody set them of.
const DEFAULT_SHARES: u64 = 1024;
