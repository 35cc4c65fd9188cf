//! Priorities across the CPUs of a core.

use crate::ids::{SeId, TaskId};
use crate::state::{Pick, Sched};
use wakelab_machine::CpuId;

/// Classes in the order of priority.
fn rank(pick: Pick) -> u8 {
    match pick {
        Pick::Idle => 0,
        Pick::Task(_) => 1,
        Pick::Stop => 2,
    }
}

impl Sched {
    /// `prio_less`: `b` comes before `a`. `in_fi`: force idle goes on.
    pub fn prio_less(&mut self, a: Pick, b: Pick, in_fi: bool) -> bool {
        match (a, b) {
            (Pick::Task(a), Pick::Task(b)) => self.cfs_prio_less(a, b, in_fi),
            _ => rank(a) < rank(b),
        }
    }

    /// `cfs_prio_less`: virtual times of different CPUs are compared by their distance from what
    /// was the virtual time of each queue when force idle began.
    pub fn cfs_prio_less(&mut self, a: TaskId, b: TaskId, in_fi: bool) -> bool {
        let seq = self.core.of(self.tasks[a.index()].cpu).core_forceidle_seq;
        let (a, b) = self.in_one_group(a, b);
        self.se_fi_update(a, seq, in_fi);
        self.se_fi_update(b, seq, in_fi);
        let base = |se: SeId| self.cfs[self.se[se.index()].cfs_rq.index()].zero_vruntime_fi;
        let vruntime = |se: SeId| self.se[se.index()].vruntime;
        let apart = vruntime(a).wrapping_sub(vruntime(b)) as i64;
        apart.wrapping_add(base(b).wrapping_sub(base(a)) as i64) > 0
    }

    /// The entities of two tasks, or above them, that are in the same group on their CPUs.
    fn in_one_group(&self, a: TaskId, b: TaskId) -> (SeId, SeId) {
        let (mut a, mut b) = (self.tasks[a.index()].se, self.tasks[b.index()].se);
        let group = |se: SeId| self.cfs[self.se[se.index()].cfs_rq.index()].tg;
        while group(a) != group(b) {
            let depths = (self.se[a.index()].depth, self.se[b.index()].depth);
            if depths.0 >= depths.1 {
                a = self.se[a.index()].parent;
            }
            if depths.0 <= depths.1 {
                b = self.se[b.index()].parent;
            }
        }
        (a, b)
    }

    /// `se_fi_update`: notes the virtual times that tasks of the siblings are compared by, on all
    /// levels from an entity upwards; while force idle goes on, only if that was not done yet.
    fn se_fi_update(&mut self, mut se: SeId, seq: u32, in_fi: bool) {
        while se.is_some() {
            let entity = &self.se[se.index()];
            let cfs = &mut self.cfs[entity.cfs_rq.index()];
            if in_fi {
                if cfs.forceidle_seq == seq {
                    break;
                }
                cfs.forceidle_seq = seq;
            }
            cfs.zero_vruntime_fi = if self.rules.eevdf {
                cfs.zero_vruntime
            } else {
                cfs.min_vruntime
            };
            se = entity.parent;
        }
    }

    /// `task_vruntime_update`.
    pub(super) fn task_vruntime_update(&mut self, cpu: CpuId, pick: Pick, in_fi: bool) {
        if let Pick::Task(p) = pick {
            let seq = self.core.of(cpu).core_forceidle_seq;
            self.se_fi_update(self.tasks[p.index()].se, seq, in_fi);
        }
    }
}
