//! Changes of a task's priority: by `sched_setattr`, and by a mutex with priority inheritance.

use super::flags::{DEQUEUE_MOVE, DEQUEUE_SAVE, ENQUEUE_MOVE, ENQUEUE_RESTORE};
use super::task::{SLICES, load_weight};
use crate::ids::TaskId;
use crate::state::{Policy, Sched};
use wakelab_machine::Ns;

impl Sched {
    /// `sched_setattr` between the fair policies: policy, nice (-20 ..= 19, others are taken as the
    /// nearest) and the slice, which is the default unless one is given (EEVDF only). The clock of the
    /// task's CPU must be up to date.
    pub fn sched_setattr(&mut self, p: TaskId, policy: Policy, nice: i8, slice: Option<Ns>) {
        let nice = nice.clamp(-20, 19);
        let task = &self.tasks[p.index()];
        let (se_id, old) = (task.se, task.nice);
        let slice = slice.filter(|_| self.rules.eevdf);
        let same_slice = match slice {
            None => !self.se[se_id.index()].custom_slice,
            Some(slice) => self.se[se_id.index()].slice == slice.0,
        };
        if task.policy == policy && old == nice && same_slice {
            return;
        }
        // An effective priority that stays the same leaves the task where it is on its queue.
        let (off, on) = if old == nice {
            (DEQUEUE_SAVE, ENQUEUE_RESTORE)
        } else {
            (DEQUEUE_SAVE | DEQUEUE_MOVE, ENQUEUE_RESTORE | ENQUEUE_MOVE)
        };
        let state = self.take_off(p, off);
        let task = &mut self.tasks[p.index()];
        (task.policy, task.nice) = (policy, nice);
        let lw = load_weight(policy, nice);
        self.reweight_entity(self.se[se_id.index()].cfs_rq, se_id, lw.weight);
        let se = &mut self.se[se_id.index()];
        se.inv_weight = lw.inv_weight;
        se.idle = policy == Policy::Idle;
        se.custom_slice = slice.is_some();
        se.slice = slice.map_or(self.tun.base_slice.0, |slice| {
            slice.0.clamp(*SLICES.start(), *SLICES.end())
        });
        self.put_back(p, state, on);
        self.prio_changed_fair(p, state, old, nice);
    }

    /// `rt_mutex_setprio` within the fair class: the priority that a task has by what waits for its
    /// mutexes changes, and is given as a nice level. Its *weight* stays: the kernel computes it from
    /// the task's own nice level. What is left is that the task is queued anew and that priorities are
    /// compared once. The clock of the task's CPU must be up to date.
    pub fn rt_mutex_setprio(&mut self, p: TaskId, old: i8, new: i8) {
        if old == new {
            return;
        }
        let state = self.take_off(p, DEQUEUE_SAVE | DEQUEUE_MOVE);
        self.put_back(p, state, ENQUEUE_RESTORE | ENQUEUE_MOVE);
        self.prio_changed_fair(p, state, old, new);
    }

    /// `prio_changed_fair`, for a task that was queued and running as `take_off` told.
    pub(super) fn prio_changed_fair(
        &mut self,
        p: TaskId,
        (queued, running): (bool, bool),
        old: i8,
        new: i8,
    ) {
        let cpu = self.tasks[p.index()].cpu;
        if !queued || old == new || self.cfs[cpu.index()].nr_running == 1 {
            return;
        }
        if !running {
            self.check_preempt_curr(cpu, p, 0);
        } else if new > old {
            self.rqs[cpu.index()].need_resched = true;
        }
    }
}
