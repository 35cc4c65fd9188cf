//! Putting entities on run queues and taking them off, which may stop half-way and go on later.

use crate::fair::flags::{
    DEQUEUE_DELAYED, DEQUEUE_SAVE, DEQUEUE_SLEEP, DEQUEUE_SPECIAL, DO_ATTACH, DO_DETACH,
    ENQUEUE_DELAYED, ENQUEUE_MIGRATED, ENQUEUE_RESTORE, ENQUEUE_WAKEUP, UPDATE_TG,
};
use crate::features::Feat;
use crate::ids::{CfsId, SeId, TaskId};
use crate::state::{Policy, Sched};
use wakelab_machine::CpuId;

/// How the counts of a level change with a task that comes or goes.
#[derive(Clone, Copy)]
struct Counts {
    /// Tasks that come (1) or go (-1); 0 if only a group's entity goes.
    queued: i32,
    /// Of these, tasks that sleep but are queued.
    delayed: i32,
    /// Of these, tasks of SCHED_IDLE, or all of them once a level is idle.
    idle: i32,
}

impl Sched {
    /// The part that a level has of queueing or dequeueing: its counts of tasks.
    #[inline(always)]
    fn add_counts(&mut self, cfs_id: CfsId, counts: &mut Counts) {
        let cfs = &mut self.cfs[cfs_id.index()];
        cfs.h_nr_running = cfs.h_nr_running.wrapping_add_signed(counts.queued);
        cfs.h_nr_delayed = cfs.h_nr_delayed.wrapping_add_signed(counts.delayed);
        cfs.idle_h_nr_running = cfs.idle_h_nr_running.wrapping_add_signed(counts.idle);
        if cfs.idle {
            counts.idle = counts.queued;
        }
    }

    /// `enqueue_entity`.
    #[inline]
    fn enqueue_entity_eevdf(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32) {
        let running = self.cfs[cfs_id.index()].curr == se_id;
        if running {
            self.place_entity_eevdf(cfs_id, se_id, flags);
        }
        self.update_curr(cfs_id);
        self.update_load_avg(cfs_id, se_id, UPDATE_TG | DO_ATTACH);
        self.se_update_runnable(se_id);
        self.update_cfs_group(se_id);
        if !running {
            self.place_entity_eevdf(cfs_id, se_id, flags);
        }
        self.account_entity_enqueue(cfs_id, se_id);
        if flags & ENQUEUE_MIGRATED != 0 {
            self.se[se_id.index()].exec_start = 0;
        }
        let cfs = &mut self.cfs[cfs_id.index()];
        if !running {
            cfs.timeline_add(&mut self.se, se_id);
        }
        self.se[se_id.index()].on_rq = true;
        if cfs.nr_running == 1 {
            self.list_add_leaf_cfs_rq(cfs_id);
        }
    }

    /// Whether an entity that goes to sleep stays to use up its lag (DELAY_DEQUEUE).
    #[inline]
    fn stays_queued(&self, cfs_id: CfsId, se_id: SeId, flags: u32) -> bool {
        flags & (DEQUEUE_SLEEP | DEQUEUE_SPECIAL | DEQUEUE_DELAYED) == DEQUEUE_SLEEP
            && self.feat.has(Feat::DELAY_DEQUEUE)
            && !self.entity_eligible(cfs_id, se_id)
    }

    /// `dequeue_entity`. False if the entity stays queued for now.
    #[inline]
    pub fn dequeue_entity_eevdf(&mut self, cfs_id: CfsId, se_id: SeId, flags: u32) -> bool {
        self.update_curr(cfs_id);
        self.clear_buddies(cfs_id, se_id);
        if self.stays_queued(cfs_id, se_id, flags) {
            self.update_load_avg(cfs_id, se_id, 0);
            self.set_delayed(se_id);
            return false;
        }
        let task = self.se[se_id.index()].task;
        let migrates = task.is_some() && self.tasks[task.index()].migrating;
        let detach = if migrates { DO_DETACH } else { 0 };
        self.update_load_avg(cfs_id, se_id, UPDATE_TG | detach);
        self.se_update_runnable(se_id);
        self.update_entity_lag(cfs_id, se_id);
        if flags & DEQUEUE_SLEEP == 0 && self.feat.has(Feat::PLACE_REL_DEADLINE) {
            let se = &mut self.se[se_id.index()];
            se.deadline = se.deadline.wrapping_sub(se.vruntime);
            se.rel_deadline = true;
        }
        let cfs = &mut self.cfs[cfs_id.index()];
        if cfs.curr != se_id {
            cfs.timeline_sub(&mut self.se, se_id);
        }
        self.se[se_id.index()].on_rq = false;
        self.account_entity_dequeue(cfs_id, se_id);
        self.update_cfs_group(se_id);
        if flags & DEQUEUE_DELAYED != 0 {
            self.finish_delayed_dequeue_entity(se_id);
        }
        true
    }

    /// A level above the last one that was queued or dequeued: averages, weight, counts, and the
    /// slice of the group's entity, which is the least below it. Gives the least here.
    #[inline]
    fn update_level(&mut self, se_id: SeId, slice: u64, counts: &mut Counts) -> u64 {
        let cfs_id = self.se[se_id.index()].cfs_rq;
        self.update_load_avg(cfs_id, se_id, UPDATE_TG);
        self.se_update_runnable(se_id);
        self.update_cfs_group(se_id);
        self.se[se_id.index()].slice = slice;
        let cfs = &mut self.cfs[cfs_id.index()];
        if cfs.curr != se_id {
            cfs.timeline.slice_changed(&mut self.se, se_id);
        }
        let slice = self.cfs_rq_min_slice(cfs_id);
        self.add_counts(cfs_id, counts);
        slice
    }

    fn update_levels(&mut self, mut se_id: SeId, mut slice: u64, counts: &mut Counts) {
        while se_id.is_some() {
            slice = self.update_level(se_id, slice, counts);
            se_id = self.se[se_id.index()].parent;
        }
    }

    /// `enqueue_task_fair`.
    pub(crate) fn enqueue_task_eevdf(&mut self, cpu: CpuId, p: TaskId, mut flags: u32) {
        let task = &self.tasks[p.index()];
        let (mut walk, migrating) = (task.se, task.migrating || flags & ENQUEUE_MIGRATED != 0);
        let delayed = self.se[walk.index()].sched_delayed;
        let mut counts = Counts {
            queued: 1,
            delayed: i32::from(delayed && flags & ENQUEUE_WAKEUP == 0),
            idle: i32::from(task.policy == Policy::Idle),
        };
        // The estimate of a task that sleeps left when it went to sleep.
        if !(delayed && (migrating || flags & ENQUEUE_RESTORE != 0)) {
            self.util_est_enqueue(self.root_cfs(cpu), p);
        }
        if flags & ENQUEUE_DELAYED != 0 {
            return self.requeue_delayed_entity(walk);
        }
        let mut slice = 0;
        while walk.is_some() {
            let se = &mut self.se[walk.index()];
            let cfs_id = se.cfs_rq;
            if se.on_rq {
                if se.sched_delayed {
                    self.requeue_delayed_entity(walk);
                }
                break;
            }
            if slice != 0 {
                (se.slice, se.custom_slice) = (slice, true);
            }
            self.enqueue_entity_eevdf(cfs_id, walk, flags);
            slice = self.cfs_rq_min_slice(cfs_id);
            self.add_counts(cfs_id, &mut counts);
            flags = ENQUEUE_WAKEUP;
            walk = self.se[walk.index()].parent;
        }
        self.update_levels(walk, slice, &mut counts);
        self.add_nr_running(cpu);
    }

    /// `dequeue_task_fair`. False if the task stays queued though it sleeps.
    pub(crate) fn dequeue_task_eevdf(&mut self, cpu: CpuId, p: TaskId, flags: u32) -> bool {
        let task = &self.tasks[p.index()];
        let (se_id, migrating) = (task.se, task.migrating);
        let delayed = self.se[se_id.index()].sched_delayed;
        if !(delayed && (migrating || flags & DEQUEUE_SAVE != 0)) {
            self.util_est_dequeue(self.root_cfs(cpu), p);
        }
        self.util_est_update(p, flags & DEQUEUE_SLEEP != 0);
        self.dequeue_entities(cpu, se_id, flags)
    }

    /// `dequeue_entities`: from a task or a group's entity upwards. False if the task itself stays.
    pub(crate) fn dequeue_entities(&mut self, cpu: CpuId, se_id: SeId, mut flags: u32) -> bool {
        let sleeps = flags & DEQUEUE_SLEEP != 0;
        let finishes = flags & DEQUEUE_DELAYED != 0;
        let was_sched_idle = self.sched_idle_rq(cpu);
        let p = self.se[se_id.index()].task;
        let mut counts = self.leaving(se_id, flags);
        let (mut walk, mut slice) = (se_id, 0);
        while walk.is_some() {
            let cfs_id = self.se[walk.index()].cfs_rq;
            if !self.dequeue_entity_eevdf(cfs_id, walk, flags) {
                if walk == se_id && p.is_some() {
                    return false;
                }
                slice = self.cfs_rq_min_slice(cfs_id);
                break;
            }
            self.add_counts(cfs_id, &mut counts);
            walk = self.se[walk.index()].parent;
            if self.cfs[cfs_id.index()].weight != 0 {
                slice = self.cfs_rq_min_slice(cfs_id);
                if sleeps && walk.is_some() {
                    self.set_next_buddy(walk);
                }
                break;
            }
            flags = (flags | DEQUEUE_SLEEP) & !(DEQUEUE_DELAYED | DEQUEUE_SPECIAL);
        }
        let left = counts_of_task(counts);
        self.update_levels(walk, slice, &mut counts);
        self.rqs[cpu.index()].nr_running -= left;
        if !was_sched_idle && self.sched_idle_rq(cpu) {
            self.rqs[cpu.index()].next_balance = self.jiffies(cpu);
        }
        if finishes && p.is_some() {
            // __block_task
            self.tasks[p.index()].on_rq = false;
        }
        if finishes {
            self.sync_idle(cpu);
        }
        true
    }

    /// What leaves with an entity. A group's entity has no tasks left.
    fn leaving(&self, se_id: SeId, flags: u32) -> Counts {
        let se = &self.se[se_id.index()];
        if se.task.is_none() {
            return Counts {
                queued: 0,
                delayed: 0,
                idle: 0,
            };
        }
        // That of a task which completes its dequeueing is taken off with `clear_delayed`.
        let moves = flags & (DEQUEUE_SLEEP | DEQUEUE_DELAYED) == 0;
        Counts {
            queued: -1,
            delayed: -i32::from(moves && se.sched_delayed),
            idle: -i32::from(self.tasks[se.task.index()].policy == Policy::Idle),
        }
    }
}

/// How many tasks leave the CPU.
fn counts_of_task(counts: Counts) -> u32 {
    counts.queued.unsigned_abs()
}
