//! Where an entity joins in virtual time, when its request ends, and what a new weight does to both.

use crate::fair::average::reweight_load_avg;
use crate::fair::flags::ENQUEUE_INITIAL;
use crate::features::Feat;
use crate::ids::{CfsId, SeId};
use crate::state::Sched;
use crate::weight::scale_load_down;

impl Sched {
    /// The slice that an entity requests: its own, or the default, which it takes on.
    #[inline(always)]
    fn renew_slice(&mut self, se_id: SeId) -> u64 {
        let se = &mut self.se[se_id.index()];
        if !se.custom_slice {
            se.slice = self.tun.base_slice.0;
        }
        se.slice
    }

    /// `place_entity`: an entity joins as far behind the average as it was when it left (PLACE_LAG),
    /// its request to be served within a slice.
    #[inline]
    pub fn place_entity_eevdf(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32) {
        let average = self.avg_vruntime(cfs_id);
        let slice = self.renew_slice(se_id);
        let mut vslice = self.delta_fair(slice, se_id);
        let cfs = &self.cfs[cfs_id.index()];
        let weight = scale_load_down(self.se[se_id.index()].weight) as i64;
        let mut lag = 0;
        if self.feat.has(Feat::PLACE_LAG) && cfs.nr_running != 0 {
            // Joining moves the average towards the entity, so that it has to stand further off to
            // be as far from the new one.
            let load = cfs.queued_load(&self.se);
            lag = self.se[se_id.index()].vlag;
            lag = lag.wrapping_mul(load.wrapping_add(weight));
            lag = lag.wrapping_div(if load == 0 { 1 } else { load });
        }
        let relative = self.feat.has(Feat::PLACE_REL_DEADLINE);
        let se = &mut self.se[se_id.index()];
        se.vruntime = average.wrapping_sub(lag as u64);
        if relative && se.rel_deadline {
            se.deadline = se.deadline.wrapping_add(se.vruntime);
            se.rel_deadline = false;
            return;
        }
        if flags & ENQUEUE_INITIAL != 0 && self.feat.has(Feat::PLACE_DEADLINE_INITIAL) {
            // The others are on average half through their slices.
            vslice /= 2;
        }
        se.deadline = se.vruntime.wrapping_add(vslice);
    }

    /// `update_deadline`: if the request of a running entity is served, it makes the next. Tells
    /// whether it did.
    #[inline]
    pub fn update_deadline(&mut self, cfs_id: CfsId, se_id: SeId) -> bool {
        let se = &self.se[se_id.index()];
        if (se.vruntime.wrapping_sub(se.deadline) as i64) < 0 {
            return false;
        }
        let slice = self.renew_slice(se_id);
        let vslice = self.delta_fair(slice, se_id);
        let se = &mut self.se[se_id.index()];
        se.deadline = se.vruntime.wrapping_add(vslice);
        self.avg_vruntime(cfs_id);
        true
    }

    /// `reweight_entity`: gives an entity a new weight, unscaled. Its lag in real time and what is
    /// left of its request stay the same.
    pub fn reweight_entity_eevdf(&mut self, cfs_id: CfsId, se_id: SeId, weight: u64) {
        let running = self.cfs[cfs_id.index()].curr == se_id;
        let old = self.se[se_id.index()].weight;
        if self.se[se_id.index()].on_rq {
            self.update_curr(cfs_id);
            let mut about = self.avg_vruntime(cfs_id);
            if self.rules.reweight_keeps_vruntime {
                about = self.se[se_id.index()].vruntime;
            }
            if !running {
                self.cfs[cfs_id.index()].timeline_sub(&mut self.se, se_id);
            }
            self.rescale(about, se_id, weight);
        } else {
            let se = &mut self.se[se_id.index()];
            se.vlag = by_weight(se.vlag, old, weight);
        }
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &mut self.se[se_id.index()]);
        se.weight = weight;
        se.inv_weight = 0;
        let (down, down_new) = (scale_load_down(old), scale_load_down(weight));
        reweight_load_avg(&mut cfs.avg, &mut se.avg, down, down_new);
        if se.on_rq {
            cfs.weight = cfs.weight - old + weight;
            if !running {
                cfs.timeline_add(&mut self.se, se_id);
            }
        }
    }

    /// `reweight_eevdf`: moves a queued entity's vruntime and deadline about the average; about its
    /// vruntime, the deadline alone moves.
    fn rescale(&mut self, average: u64, se_id: SeId, weight: u64) {
        let old = self.se[se_id.index()].weight;
        if average != self.se[se_id.index()].vruntime {
            let lag = by_weight(self.entity_lag(average, se_id), old, weight);
            self.se[se_id.index()].vruntime = average.wrapping_sub(lag as u64);
        }
        let se = &mut self.se[se_id.index()];
        let left = by_weight(se.deadline.wrapping_sub(average) as i64, old, weight);
        se.deadline = average.wrapping_add(left as u64);
    }
}

/// A virtual time under another weight: the heavier, the shorter.
#[inline(always)]
fn by_weight(vtime: i64, old: u64, new: u64) -> i64 {
    vtime
        .wrapping_mul(old as i64)
        .wrapping_div((new as i64).max(1))
}
