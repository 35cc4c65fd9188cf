//! Accounting of the running entity, and how long its slice is.

use crate::features::Feat;
use crate::ids::{CfsId, SeId};
use crate::state::Sched;
use crate::weight::{calc_delta, calc_delta_fair};

impl Sched {
    /// `update_curr`: charges the running entity of a level for the time since it was last charged.
    #[inline]
    pub fn update_curr(&mut self, cfs_id: CfsId) {
        if self.rules.eevdf {
            return self.update_curr_eevdf(cfs_id);
        }
        let cfs = &mut self.cfs[cfs_id.index()];
        if cfs.curr.is_none() {
            return;
        }
        let now = self.rqs[cfs.cpu.index()].clock_task;
        let curr = &mut self.se[cfs.curr.index()];
        let delta = now.wrapping_sub(curr.exec_start);
        if delta as i64 <= 0 {
            return;
        }
        curr.exec_start = now;
        curr.sum_exec_runtime += delta;
        let vdelta = calc_delta_fair(delta, curr.weight, &mut curr.inv_weight);
        curr.vruntime = curr.vruntime.wrapping_add(vdelta);
        cfs.update_min_vruntime(&self.se);
    }

    /// `calc_delta_fair` with an entity's weight.
    #[inline]
    pub(crate) fn delta_fair(&mut self, delta: u64, se: SeId) -> u64 {
        let se = &mut self.se[se.index()];
        calc_delta_fair(delta, se.weight, &mut se.inv_weight)
    }

    /// `__sched_period`: the time in which each of so many entities shall run once, ns.
    fn sched_period(&self, nr_running: u32) -> u64 {
        if nr_running > self.tun.nr_latency {
            u64::from(nr_running) * self.tun.min_granularity.0
        } else {
            self.tun.latency.0
        }
    }

    /// `sched_slice`: an entity's part of that time by weight at each level, ns.
    pub(crate) fn sched_slice(&mut self, cfs_id: CfsId, se_id: SeId) -> u64 {
        let nr_running = if self.feat.has(Feat::ALT_PERIOD) {
            self.cfs[self.root_cfs(self.cfs[cfs_id.index()].cpu).index()].h_nr_running
        } else {
            self.cfs[cfs_id.index()].nr_running
        };
        let queued = self.se[se_id.index()].on_rq;
        let mut slice = self.sched_period(nr_running + u32::from(!queued));
        let mut walk = se_id;
        while walk.is_some() {
            let se = &self.se[walk.index()];
            let cfs = &mut self.cfs[se.cfs_rq.index()];
            slice = if se.on_rq {
                calc_delta(slice, se.weight, cfs.weight, &mut cfs.inv_weight)
            } else {
                calc_delta(slice, se.weight, cfs.weight + se.weight, &mut 0)
            };
            walk = se.parent;
        }
        if self.feat.has(Feat::BASE_SLICE) {
            slice = slice.max(self.slice_floor(cfs_id, se_id));
        }
        slice
    }

    /// The least slice: a SCHED_IDLE entity's is its own unless it is among its like.
    fn slice_floor(&self, cfs_id: CfsId, se_id: SeId) -> u64 {
        let cfs = &self.cfs[cfs_id.index()];
        let only_idle = cfs.nr_running != 0 && cfs.nr_running == cfs.idle_nr_running;
        if self.se[se_id.index()].idle && !only_idle {
            self.tun.idle_min_granularity.0
        } else {
            self.tun.min_granularity.0
        }
    }
}
