//! `core_tree`: the tasks of a CPU that have a cookie.

use crate::fair::flags::DEQUEUE_SAVE;
use crate::ids::{Cookie, TaskId};
use crate::state::{Pick, Sched};
use wakelab_machine::CpuId;

impl Sched {
    /// `sched_core_enqueue`, after the task was queued. One that sleeps does not count.
    #[inline(never)]
    pub(crate) fn core_enqueue(&mut self, cpu: CpuId, p: TaskId) {
        if self.is_delayed(p) {
            return;
        }
        self.core.of_mut(cpu).core_task_seq += 1;
        self.tasks[p.index()].arrived_at = self.now;
        if !self.tasks[p.index()].cookie.is_some() || self.tasks[p.index()].core_queued {
            return;
        }
        let at = self.core_place(cpu, p);
        self.core.rqs[cpu.index()].core_tree.insert(at, p);
        self.tasks[p.index()].core_queued = true;
    }

    /// Where a task goes. The order is that of the priorities now; those queued before stay where
    /// theirs put them then. (Where the order has become stale, the kernel's place follows from the
    /// shape of its tree, which is not modelled.)
    fn core_place(&mut self, cpu: CpuId, p: TaskId) -> usize {
        let in_fi = self.core.of(cpu).core_forceidle_count != 0;
        let (mut low, mut high) = (0, self.core.rqs[cpu.index()].core_tree.len());
        while low < high {
            let middle = low.midpoint(high);
            let other = self.core.rqs[cpu.index()].core_tree[middle];
            if self.core_less(p, other, in_fi) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// `__sched_core_less`: by cookie, and then the higher priority first.
    fn core_less(&mut self, a: TaskId, b: TaskId, in_fi: bool) -> bool {
        let cookie = |p: TaskId| self.tasks[p.index()].cookie;
        match cookie(a).cmp(&cookie(b)) {
            std::cmp::Ordering::Equal => self.prio_less(Pick::Task(b), Pick::Task(a), in_fi),
            order => order.is_lt(),
        }
    }

    /// `sched_core_dequeue`, before the task is taken off the queue. If that leaves a CPU that is
    /// forced idle nothing to be kept from, it must look again.
    #[inline(never)]
    pub(crate) fn core_dequeue(&mut self, cpu: CpuId, p: TaskId, flags: u32) {
        if self.is_delayed(p) {
            return;
        }
        self.core.of_mut(cpu).core_task_seq += 1;
        if std::mem::take(&mut self.tasks[p.index()].core_queued) {
            let tree = &mut self.core.rqs[cpu.index()].core_tree;
            if let Some(at) = tree.iter().position(|&other| other == p) {
                tree.remove(at);
            }
        }
        let forced = self.core.of(cpu).core_forceidle_count != 0;
        let rq = &mut self.rqs[cpu.index()];
        if flags & DEQUEUE_SAVE == 0 && rq.nr_running == 1 && forced && rq.curr.is_none() {
            rq.need_resched = true;
        }
    }

    /// The place in the tree of the first task with a cookie.
    fn core_first(&self, cpu: CpuId, cookie: Cookie) -> usize {
        let tree = &self.core.rqs[cpu.index()].core_tree;
        tree.partition_point(|p| self.tasks[p.index()].cookie < cookie)
    }

    /// The tasks with a cookie in the order of the tree (`sched_core_find`, `sched_core_next`).
    pub(super) fn core_matching(
        &self,
        cpu: CpuId,
        cookie: Cookie,
    ) -> impl Iterator<Item = TaskId> + '_ {
        let tree = &self.core.rqs[cpu.index()].core_tree;
        let rest = tree[self.core_first(cpu, cookie)..].iter().copied();
        rest.take_while(move |p| self.tasks[p.index()].cookie == cookie)
    }
}
