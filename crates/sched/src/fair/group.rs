//! Task groups: the group's load over all CPUs, the weight of its entity on each, and the averages
//! as they pass up the hierarchy.

use super::average::{
    attach_entity_load_avg, detach_entity_load_avg, propagate, reweight_load_avg, take_removed,
};
use super::flags::{DO_ATTACH, DO_DETACH, SKIP_AGE_LOAD, UPDATE_TG};
use super::runnable_load::{self, calc_group_runnable};
use crate::ids::{CfsId, SeId, TgId};
use crate::pelt;
use crate::rules::Rules;
use crate::state::{CfsRq, Sched};
use crate::touch::Line;
use crate::weight::scale_load_down;

/// The smallest weight of a group's entity, unscaled (`MIN_SHARES`).
const MIN_SHARES: i64 = 2;

/// How often a run queue may write its group's load where that is limited, ns.
const TG_UPDATE_INTERVAL: u64 = 1_000_000;

/// `update_cfs_rq_load_avg`: what left with migrated tasks, then time. True if an average changed.
#[inline]
pub(crate) fn update_cfs_rq_load_avg(rules: &Rules, now: u64, cfs: &mut CfsRq) -> bool {
    if rules.runnable_load {
        return update_cfs_rq_runnable_load(now, cfs);
    }
    let mut decayed = false;
    if cfs.removed.nr != 0 {
        let removed = std::mem::take(&mut cfs.removed);
        let sum = take_removed(&mut cfs.avg, &removed);
        add_tg_cfs_propagate(cfs, sum);
        decayed = true;
    }
    let load = scale_load_down(cfs.weight);
    let running = cfs.curr.is_some();
    let runnable = u64::from(cfs.h_nr_running.wrapping_sub(cfs.h_nr_delayed));
    decayed | pelt::update_cfs_rq(now, &mut cfs.avg, load, runnable, running)
}

/// The same before 5.7.
fn update_cfs_rq_runnable_load(now: u64, cfs: &mut CfsRq) -> bool {
    let mut decayed = false;
    if cfs.removed.nr != 0 {
        let removed = std::mem::take(&mut cfs.removed);
        let sum = runnable_load::take_removed(&mut cfs.avg, &removed);
        add_tg_cfs_propagate(cfs, sum);
        decayed = true;
    }
    let (load, runnable) = (
        scale_load_down(cfs.weight),
        scale_load_down(cfs.runnable_weight),
    );
    let running = cfs.curr.is_some();
    let avg = &mut cfs.avg;
    decayed | pelt::update_with_runnable_load(now, avg, (load, runnable), (1, 1), running)
}

/// `add_tg_cfs_propagate`: the parent is to be told.
#[inline(always)]
fn add_tg_cfs_propagate(cfs: &mut CfsRq, runnable_sum: i64) {
    cfs.propagate = true;
    cfs.prop_runnable_sum = cfs.prop_runnable_sum.wrapping_add(runnable_sum);
}

/// `calc_group_shares`: a group's shares split by the load of its run queues. `weight` is that of
/// this run queue, unscaled, `contrib` what of its `load_avg` is in `tg_load_avg`.
#[inline]
pub fn calc_group_shares(
    shares: u64,
    weight: u64,
    load_avg: u64,
    tg_load_avg: u64,
    contrib: u64,
) -> u64 {
    let load = scale_load_down(weight).max(load_avg);
    let total = (tg_load_avg as i64)
        .wrapping_sub(contrib as i64)
        .wrapping_add(load as i64);
    let part = shares.wrapping_mul(load);
    let part = match total {
        0 => part as i64,
        // Always so in practice, and unsigned division is cheaper.
        1.. if part as i64 >= 0 => (part / total as u64) as i64,
        _ => (part as i64).wrapping_div(total),
    };
    part.min(shares as i64).max(MIN_SHARES) as u64
}

/// Whether a run queue may write its group's load again, so many ns after it last did, where that
/// is limited (6.7 on).
#[inline]
pub fn tg_update_due(since: u64) -> bool {
    since >= TG_UPDATE_INTERVAL
}

/// `update_tg_load_avg`: by how much the group's load is to change, none for less than 1/64.
#[inline]
pub fn tg_load_change(load_avg: u64, contrib: u64) -> Option<i64> {
    let delta = load_avg.wrapping_sub(contrib) as i64;
    (delta.unsigned_abs() > contrib / 64).then_some(delta)
}

impl Sched {
    /// `update_load_avg`: brings an entity and its run queue up to date, attaches or detaches it,
    /// and tells the group (`flags::UPDATE_TG`).
    #[inline]
    pub(crate) fn update_load_avg(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32) {
        let cfs = &mut self.cfs[cfs_id.index()];
        let se = &mut self.se[se_id.index()];
        let now = self.rqs[cfs.cpu.index()].rq_clock_pelt();
        let attached = se.avg.last_update_time != 0;
        if attached && flags & SKIP_AGE_LOAD == 0 && self.rules.runnable_load {
            se.update_runnable_load(now, cfs.curr == se_id);
        } else if attached && flags & SKIP_AGE_LOAD == 0 {
            let runnable = if se.sched_delayed {
                0
            } else if se.my_q.is_none() {
                u64::from(se.on_rq)
            } else {
                se.runnable_weight
            };
            let running = cfs.curr == se_id;
            let weight = scale_load_down(se.weight);
            pelt::update_se(now, &mut se.avg, weight, se.on_rq, runnable, running);
        }
        let group = se.my_q;
        let mut changed = update_cfs_rq_load_avg(&self.rules, now, cfs);
        if group.is_some() && self.cfs[group.index()].propagate {
            self.propagate_entity_load_avg(cfs_id, se_id, group);
            changed = true;
        }
        if self.se[se_id.index()].avg.last_update_time == 0 && flags & DO_ATTACH != 0 {
            self.attach_load(cfs_id, se_id);
            self.update_tg_load_avg(cfs_id);
        } else if flags & DO_DETACH != 0 {
            self.detach_load(cfs_id, se_id);
            self.update_tg_load_avg(cfs_id);
        } else if changed && flags & UPDATE_TG != 0 {
            self.update_tg_load_avg(cfs_id);
        }
    }

    /// `attach_entity_load_avg`.
    pub(crate) fn attach_load(&mut self, cfs_id: CfsId, se_id: SeId) {
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &mut self.se[se_id.index()]);
        let weight = scale_load_down(se.weight);
        let sum = match self.rules.runnable_load {
            true => runnable_load::attach(&mut cfs.avg, &mut se.avg, weight),
            false => attach_entity_load_avg(&mut cfs.avg, &mut se.avg, weight),
        };
        add_tg_cfs_propagate(cfs, sum);
    }

    /// `detach_entity_load_avg`.
    pub(crate) fn detach_load(&mut self, cfs_id: CfsId, se_id: SeId) {
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &mut self.se[se_id.index()]);
        let weight = scale_load_down(se.weight);
        let sum = match self.rules.runnable_load {
            true => runnable_load::detach(&mut cfs.avg, &se.avg, weight),
            false => detach_entity_load_avg(&mut cfs.avg, &se.avg, weight),
        };
        add_tg_cfs_propagate(cfs, sum);
    }

    /// `propagate_entity_load_avg`.
    fn propagate_entity_load_avg(&mut self, cfs_id: CfsId, se_id: SeId, group: CfsId) {
        let [cfs, gcfs] = self
            .cfs
            .get_disjoint_mut([cfs_id.index(), group.index()])
            .expect("a group's run queue is not its parent's");
        gcfs.propagate = false;
        let sum = std::mem::take(&mut gcfs.prop_runnable_sum);
        add_tg_cfs_propagate(cfs, sum);
        let se = &mut self.se[se_id.index()];
        let weight = scale_load_down(se.weight);
        let gweight = scale_load_down(gcfs.weight);
        if self.rules.runnable_load {
            return runnable_load::propagate(&mut cfs.avg, se, &gcfs.avg, gweight, sum);
        }
        propagate(&mut cfs.avg, &mut se.avg, weight, &gcfs.avg, gweight, sum);
    }

    /// `update_tg_load_avg`: writes the run queue's contribution to its group's load, a line that
    /// all CPUs share, if it has changed enough.
    #[inline]
    pub(crate) fn update_tg_load_avg(&mut self, cfs_id: CfsId) {
        let cfs = &mut self.cfs[cfs_id.index()];
        if cfs.tg == TgId::ROOT {
            return;
        }
        if self.rules.tg_load_avg_ratelimit {
            let since = self.rqs[cfs.cpu.index()]
                .clock
                .wrapping_sub(cfs.last_update_tg_load_avg);
            if !tg_update_due(since) {
                return;
            }
        }
        if let Some(delta) = tg_load_change(cfs.avg.load_avg, cfs.tg_load_avg_contrib) {
            let tg = &mut self.tgs[cfs.tg.index()];
            tg.load_avg = tg.load_avg.wrapping_add(delta as u64);
            cfs.tg_load_avg_contrib = cfs.avg.load_avg;
            cfs.last_update_tg_load_avg = self.rqs[cfs.cpu.index()].clock;
            self.touch.write(Line::TgLoadAvg(cfs.tg));
        }
    }

    /// `update_cfs_group`: re-weights a group's entity by its share of the group's load.
    #[inline]
    pub(crate) fn update_cfs_group(&mut self, se_id: SeId) {
        let group = self.se[se_id.index()].my_q;
        if group.is_none() {
            return;
        }
        let gcfs = &self.cfs[group.index()];
        let keeps = self.rules.empty_group_keeps_weight;
        if keeps && gcfs.weight == 0 {
            return;
        }
        let tg = &self.tgs[gcfs.tg.index()];
        self.touch.read(Line::TgLoadAvg(gcfs.tg));
        let (load_avg, contrib) = (gcfs.avg.load_avg, gcfs.tg_load_avg_contrib);
        let weight = calc_group_shares(tg.shares, gcfs.weight, load_avg, tg.load_avg, contrib);
        if self.rules.runnable_load {
            let (avg, queued) = (&gcfs.avg, gcfs.runnable_weight);
            let runnable = calc_group_runnable(avg, gcfs.weight, queued, weight);
            let cfs_rq = self.se[se_id.index()].cfs_rq;
            return self.reweight(cfs_rq, se_id, weight, runnable);
        }
        let se = &self.se[se_id.index()];
        if !keeps || se.weight != weight {
            self.reweight_entity(se.cfs_rq, se_id, weight);
        }
    }

    /// `reweight_entity`: gives an entity a new weight, unscaled. (Its cached inverse is dropped
    /// only if the weight changes: it is computed from the weight alone.)
    #[inline]
    pub fn reweight_entity(&mut self, cfs_id: CfsId, se_id: SeId, weight: u64) {
        if self.rules.eevdf {
            return self.reweight_entity_eevdf(cfs_id, se_id, weight);
        }
        self.reweight(cfs_id, se_id, weight, weight);
    }

    /// The same with a weight for what of a group is queued, where load is told apart so.
    #[inline]
    fn reweight(&mut self, cfs_id: CfsId, se_id: SeId, weight: u64, runnable: u64) {
        let on_rq = self.se[se_id.index()].on_rq;
        if on_rq && self.cfs[cfs_id.index()].curr == se_id {
            self.update_curr(cfs_id);
        }
        let (cfs, se) = (&mut self.cfs[cfs_id.index()], &mut self.se[se_id.index()]);
        let old = se.weight;
        if weight != old {
            se.weight = weight;
            se.inv_weight = 0;
            if on_rq {
                cfs.weight = cfs.weight - old + weight;
                cfs.inv_weight = 0;
            }
        }
        if self.rules.runnable_load {
            return self.reweight_runnable_load(cfs_id, se_id, old, runnable);
        }
        let (old, new) = (scale_load_down(old), scale_load_down(weight));
        reweight_load_avg(&mut cfs.avg, &mut se.avg, old, new);
    }

    /// `remove_entity_load_avg`: a task that leaves while asleep notes its load at the queue that
    /// it leaves, to be taken off there later.
    pub(crate) fn remove_entity_load_avg(&mut self, se_id: SeId) {
        let se = &mut self.se[se_id.index()];
        let cfs = &mut self.cfs[se.cfs_rq.index()];
        let now = cfs.avg.last_update_time;
        cfs.removed.nr += 1;
        self.touch.write(Line::Removed(cfs.cpu));
        if self.rules.runnable_load {
            se.update_blocked_runnable_load(now);
            cfs.removed.util_avg += se.avg.util_avg;
            cfs.removed.load_avg += se.avg.load_avg;
            cfs.removed.runnable_avg += se.avg.load_sum;
            return;
        }
        pelt::update_blocked_se(now, &mut se.avg, scale_load_down(se.weight));
        cfs.removed.util_avg += se.avg.util_avg;
        cfs.removed.load_avg += se.avg.load_avg;
        cfs.removed.runnable_avg += se.avg.runnable_avg;
    }

    /// `migrate_se_pelt_lag`: decays an entity for the time that the idle CPU which it leaves has
    /// not accounted.
    pub(crate) fn migrate_se_pelt_lag(&mut self, se_id: SeId) {
        if !self.rules.migrate_pelt_lag {
            return;
        }
        let se = &mut self.se[se_id.index()];
        let cfs = &self.cfs[se.cfs_rq.index()];
        let rq = &self.rqs[cfs.cpu.index()];
        if pelt::is_decayed(&se.avg) || rq.curr.is_some() {
            return;
        }
        let seen = cfs.avg.last_update_time;
        let idle = rq.clock_pelt_idle;
        let now = if idle < seen {
            seen
        } else {
            idle + (self.now.saturating_sub(rq.clock_idle))
        };
        pelt::update_blocked_se(now, &mut se.avg, scale_load_down(se.weight));
    }

    /// `detach_entity_cfs_rq`.
    pub(crate) fn detach_entity_cfs_rq(&mut self, se_id: SeId) {
        let cfs_id = self.se[se_id.index()].cfs_rq;
        if self.se[se_id.index()].avg.last_update_time == 0 {
            return;
        }
        self.update_load_avg(cfs_id, se_id, 0);
        self.detach_load(cfs_id, se_id);
        self.update_tg_load_avg(cfs_id);
        self.propagate_entity_cfs_rq(se_id);
    }

    /// `attach_entity_cfs_rq`.
    pub(crate) fn attach_entity_cfs_rq(&mut self, se_id: SeId) {
        let cfs_id = self.se[se_id.index()].cfs_rq;
        let age = self.feat.has(crate::Feat::ATTACH_AGE_LOAD);
        self.update_load_avg(cfs_id, se_id, if age { 0 } else { SKIP_AGE_LOAD });
        self.attach_load(cfs_id, se_id);
        self.update_tg_load_avg(cfs_id);
        self.propagate_entity_cfs_rq(se_id);
    }

    /// `propagate_entity_cfs_rq`: lets all levels above an entity see a change at once.
    fn propagate_entity_cfs_rq(&mut self, se_id: SeId) {
        self.list_add_leaf_cfs_rq(self.se[se_id.index()].cfs_rq);
        let mut walk = self.se[se_id.index()].parent;
        while walk.is_some() {
            let cfs_id = self.se[walk.index()].cfs_rq;
            self.update_load_avg(cfs_id, walk, UPDATE_TG);
            self.list_add_leaf_cfs_rq(cfs_id);
            walk = self.se[walk.index()].parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_split_by_load() {
        let shares = 1 << 20;
        // Two CPUs, each with one always-running task: half each.
        assert_eq!(
            calc_group_shares(shares, 1 << 20, 1024, 2048, 1024),
            shares / 2
        );
        // Alone: all of it.
        assert_eq!(calc_group_shares(shares, 1 << 20, 1024, 1024, 1024), shares);
        // A queue whose load is not yet in the group's counts with its weight.
        assert_eq!(calc_group_shares(shares, 1 << 20, 0, 1024, 0), shares / 2);
        // Nothing here: the least weight.
        assert_eq!(calc_group_shares(shares, 0, 0, 4096, 0), 2);
        assert_eq!(calc_group_shares(shares, 0, 0, 0, 0), 2);
    }

    #[test]
    fn the_group_load_is_written_for_changes_over_a_64th() {
        assert_eq!(tg_load_change(1024, 1024), None);
        assert_eq!(tg_load_change(1040, 1024), None);
        assert_eq!(tg_load_change(1041, 1024), Some(17));
        assert_eq!(tg_load_change(0, 1024), Some(-1024));
        assert_eq!(tg_load_change(1, 0), Some(1));
    }
}
