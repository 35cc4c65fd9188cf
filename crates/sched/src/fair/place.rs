//! Where in virtual time an entity joins a run queue.

use super::timeline::max_vruntime;
use crate::features::Feat;
use crate::ids::{CfsId, SeId};
use crate::state::Sched;
use crate::weight::NICE_0_LOAD;
use wakelab_machine::CpuId;

impl Sched {
    /// `place_entity`: the vruntime of an entity that joins: a new one starts a slice late, a
    /// sleeper gets at most half a latency of credit (GENTLE_FAIR_SLEEPERS).
    pub(crate) fn place_entity(&mut self, cfs_id: CfsId, se_id: SeId, initial: bool) {
        let mut vruntime = self.cfs[cfs_id.index()].min_vruntime;
        if !initial {
            let idle = self.se[se_id.index()].idle;
            let credit = if idle {
                self.tun.min_granularity
            } else {
                self.tun.latency
            }
            .0;
            let halved = self.feat.has(Feat::GENTLE_FAIR_SLEEPERS);
            vruntime = vruntime.wrapping_sub(credit >> u32::from(halved));
        } else if self.feat.has(Feat::START_DEBIT) {
            let slice = self.sched_slice(cfs_id, se_id);
            vruntime = vruntime.wrapping_add(self.delta_fair(slice, se_id));
        }
        let long = self.entity_is_long_sleeper(se_id);
        let se = &mut self.se[se_id.index()];
        se.vruntime = if long {
            vruntime
        } else {
            max_vruntime(se.vruntime, vruntime)
        };
    }

    /// `entity_is_long_sleeper`: asleep for so long that its vruntime, in the worst case of weights,
    /// may have wrapped against the queue's: 2^63 / 1024 ns, 104 days.
    fn entity_is_long_sleeper(&self, se_id: SeId) -> bool {
        let se = &self.se[se_id.index()];
        let now = self.rqs[self.cfs[se.cfs_rq.index()].cpu.index()].clock_task;
        se.exec_start != 0
            && now > se.exec_start
            && now - se.exec_start > (1 << 63) / (NICE_0_LOAD >> 10)
    }

    /// `task_fork_fair`: the child starts from its parent's vruntime, a slice late (START_DEBIT).
    pub(crate) fn task_fork_fair(&mut self, cpu: CpuId, se_id: SeId) {
        let parent = self.rqs[cpu.index()].curr;
        let cfs_id = if parent.is_some() {
            self.se[self.tasks[parent.index()].se.index()].cfs_rq
        } else {
            self.se[se_id.index()].cfs_rq
        };
        let curr = self.cfs[cfs_id.index()].curr;
        if curr.is_some() {
            self.update_curr(cfs_id);
            self.se[se_id.index()].vruntime = self.se[curr.index()].vruntime;
        }
        self.place_entity(cfs_id, se_id, true);
        let min_vruntime = self.cfs[cfs_id.index()].min_vruntime;
        let se = &mut self.se[se_id.index()];
        se.vruntime = se.vruntime.wrapping_sub(min_vruntime);
    }
}
