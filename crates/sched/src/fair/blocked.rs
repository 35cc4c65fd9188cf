//! The list of run queues with load, and the decay of what is left of load on them.

use super::flags::UPDATE_TG;
use super::group::update_cfs_rq_load_avg;
use crate::ids::CfsId;
use crate::pelt;
use crate::state::Sched;
use wakelab_machine::CpuId;

impl Sched {
    /// `list_add_leaf_cfs_rq`: before its parent, if that is on the list. Otherwise it waits at the
    /// head of the list for its parent, which the walk upwards adds next.
    #[inline]
    pub(crate) fn list_add_leaf_cfs_rq(&mut self, cfs_id: CfsId) {
        let cfs = &mut self.cfs[cfs_id.index()];
        if cfs.on_list {
            return;
        }
        cfs.on_list = true;
        let (cpu, owner) = (cfs.cpu, cfs.owner);
        let parent = if owner.is_some() {
            self.se[owner.index()].cfs_rq
        } else {
            CfsId::NONE
        };
        let rq = &mut self.rqs[cpu.index()];
        let at = if parent.is_none() {
            rq.leaf_cfs_rqs.len()
        } else if self.cfs[parent.index()].on_list {
            rq.leaf_cfs_rqs
                .iter()
                .position(|&q| q == parent)
                .unwrap_or(0)
        } else {
            rq.leaf_cfs_rqs.insert(rq.tmp_alone as usize, cfs_id);
            rq.tmp_alone += 1;
            return;
        };
        rq.leaf_cfs_rqs.insert(at, cfs_id);
        rq.tmp_alone = 0;
    }

    /// `cfs_rq_is_decayed`: neither queued entities nor any sum, and no child before it on the list.
    fn cfs_rq_is_decayed(&self, cpu: CpuId, at: usize) -> bool {
        let list = &self.rqs[cpu.index()].leaf_cfs_rqs;
        let cfs = &self.cfs[list[at].index()];
        if cfs.weight != 0 || !pelt::is_decayed(&cfs.avg) {
            return false;
        }
        let before = at.checked_sub(1).map(|at| self.cfs[list[at].index()].tg);
        before.is_none_or(|tg| self.tgs[tg.index()].parent != cfs.tg)
    }

    /// `update_blocked_averages`: brings all run queues with load of a CPU up to date, whose clock
    /// the caller has moved; those with none left leave the list. Clears `has_blocked_load` when
    /// nothing is left.
    pub fn update_blocked_averages(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].last_blocked_load_update_tick = self.jiffies(cpu);
        let now = self.rqs[cpu.index()].rq_clock_pelt();
        let mut done = true;
        let mut at = 0;
        while at < self.rqs[cpu.index()].leaf_cfs_rqs.len() {
            let cfs_id = self.rqs[cpu.index()].leaf_cfs_rqs[at];
            if update_cfs_rq_load_avg(&self.rules, now, &mut self.cfs[cfs_id.index()]) {
                self.update_tg_load_avg(cfs_id);
            }
            self.update_blocked_owner(cfs_id);
            let avg = &self.cfs[cfs_id.index()].avg;
            done &= avg.load_avg == 0 && avg.util_avg == 0;
            if self.cfs_rq_is_decayed(cpu, at) {
                self.list_del_leaf_cfs_rq(cpu, at);
            } else {
                at += 1;
            }
        }
        if done {
            self.rqs[cpu.index()].has_blocked_load = false;
        }
    }

    /// The entity of a run queue's group, unless it has nothing to decay (`skip_blocked_update`).
    fn update_blocked_owner(&mut self, cfs_id: CfsId) {
        let cfs = &self.cfs[cfs_id.index()];
        if cfs.owner.is_none() {
            return;
        }
        let se = &self.se[cfs.owner.index()];
        if se.avg.load_avg != 0 || se.avg.util_avg != 0 || cfs.propagate {
            self.update_load_avg(se.cfs_rq, cfs.owner, UPDATE_TG);
        }
    }

    /// `list_del_leaf_cfs_rq`.
    fn list_del_leaf_cfs_rq(&mut self, cpu: CpuId, at: usize) {
        let rq = &mut self.rqs[cpu.index()];
        let cfs_id = rq.leaf_cfs_rqs.remove(at);
        self.cfs[cfs_id.index()].on_list = false;
    }
}
