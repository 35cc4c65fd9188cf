//! A scheduler of one CPU, put into the state in which a recorded call began.

use super::record::{Entity, Queue, Record, fl, of};
use crate::error::Problem;
use crate::outcome::Comparison;
use std::sync::Arc;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::state::Policy;
use wakelab_sched::{CfsId, Cookie, Features, Release, Rules, Sched, SeId, TaskId, TgId, Tunables};

/// The CPU.
pub const CPU: CpuId = CpuId(0);

/// Its root run queue, on which all recorded calls are played.
pub const ROOT: CfsId = CfsId(0);

/// When the calls are played. Nothing is charged unless a record says since when.
const NOW: u64 = 1_000_000_000_000;

/// Two parts that an entity can play: what runs, and what it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Running,
    Other,
}

/// The scheduler before any record: for each part a task in the root group, and a group with a task.
#[derive(Clone, Debug)]
pub struct Stage {
    empty: Sched,
}

/// A scheduler in the state of a record.
#[derive(Debug)]
pub struct Scene {
    pub sched: Sched,
}

impl Stage {
    /// On a machine of one CPU.
    pub(super) fn new(topology: Arc<SchedTopology>) -> Stage {
        let rules = Rules::of(Release::V6_12);
        let tun = Tunables::for_machine(1, 250);
        let mut empty = Sched::new(topology, rules, Features(0), tun);
        empty.update_rq_clock(CPU, Ns(NOW));
        for tg in [TgId(0), TgId(0), TgId(1), TgId(2)] {
            while tg.index() >= empty.tgs.len() {
                empty.add_group("group", TgId::ROOT, 1024);
            }
            empty.new_task(&TaskSpec {
                tg,
                mm: 0,
                policy: Policy::Normal,
                nice: 0,
                cpus: CpuMask::first_n(1),
                cpu: CPU,
                kthread: false,
                cookie: Cookie::NONE,
            });
        }
        Stage { empty }
    }

    /// With the features and tunables of a record.
    pub(super) fn scene(&self, record: &Record<'_>) -> Result<Scene, Problem> {
        let mut sched = self.empty.clone();
        sched.feat = record.features()?;
        sched.rules = Rules::of(record.header.release);
        sched.tun.tick = Ns(1_000_000_000 / record.header.hz);
        sched.tun.base_slice = Ns(record.base_slice()?);
        Ok(Scene { sched })
    }
}

impl Scene {
    /// The task of a part: in the root group, or in the part's own.
    pub(super) fn task(&self, part: Part, grouped: bool) -> TaskId {
        TaskId(u32::from(part == Part::Other) + 2 * u32::from(grouped))
    }

    /// The entity of a part, a task's or a group's.
    pub(super) fn se(&self, part: Part, is_task: bool) -> SeId {
        let task = &self.sched.tasks[self.task(part, !is_task).index()];
        let se = &self.sched.se[task.se.index()];
        if is_task { task.se } else { se.parent }
    }

    /// Lets a part be as recorded.
    pub(super) fn put(&mut self, part: Part, e: &Entity) -> SeId {
        let id = self.se(part, e.is(fl::TASK));
        let se = &mut self.sched.se[id.index()];
        (se.vruntime, se.deadline, se.vlag) = (e.vruntime, e.deadline, e.vlag);
        (se.weight, se.inv_weight) = (e.weight, e.inv_weight);
        se.slice = e.slice;
        se.custom_slice = e.is(fl::CUSTOM_SLICE);
        se.rel_deadline = e.is(fl::REL_DEADLINE);
        se.on_rq = e.is(fl::ON_RQ);
        se.sched_delayed = e.is(fl::DELAYED);
        se.exec_start = NOW;
        self.sched.cfs[0].h_nr_delayed += u32::from(e.is(fl::DELAYED) && e.is(fl::TASK));
        id
    }

    /// Lets the run queue be as recorded, with `e` on it: as what runs or in the tree, if it is
    /// queued. What runs otherwise is known by its weight and vruntime alone.
    pub(super) fn set(&mut self, q: &Queue, e: &Entity) -> Result<SeId, Problem> {
        if e.is(fl::ON_RQ) && q.nr_running == 0 {
            let expected = "that of a queue with the entity on it";
            return Err(Problem::value("nr_running", 0, expected));
        }
        let id = if e.is(fl::CURR) {
            let id = self.put(Part::Running, e);
            self.sched.cfs[0].curr = id;
            id
        } else {
            self.set_queue(q);
            self.put(Part::Other, e)
        };
        if e.is(fl::ON_RQ) && !e.is(fl::CURR) {
            self.sched.cfs[0].timeline.insert(&mut self.sched.se, id);
        }
        self.set_sums(q);
        self.sched.cfs[0].weight = q.curr_weight.saturating_add(e.weight);
        Ok(id)
    }

    /// Lets the run queue be as recorded, with what runs known by its weight and vruntime alone.
    pub(super) fn set_queue(&mut self, q: &Queue) {
        let id = self.se(Part::Running, true);
        if q.has_curr {
            let se = &mut self.sched.se[id.index()];
            (se.weight, se.inv_weight, se.vruntime) = (q.curr_weight, 0, q.curr_vruntime);
            (se.on_rq, se.exec_start) = (q.curr_queued, NOW);
            self.sched.cfs[0].curr = id;
        }
        self.set_sums(q);
    }

    pub(super) fn set_sums(&mut self, q: &Queue) {
        let cfs = &mut self.sched.cfs[0];
        cfs.zero_vruntime = q.zero;
        (cfs.avg_vruntime, cfs.avg_load) = (q.sum, q.load);
        (cfs.nr_running, cfs.h_nr_running) = (q.nr_running, q.h_nr_queued);
    }

    /// `zero_vruntime` and the sum after a call, against the record's `z1` and `s1`.
    pub(super) fn sums(&self, record: &Record<'_>) -> Result<Comparison, Problem> {
        let cfs = &self.sched.cfs[0];
        Ok(of(&[
            ("zero_vruntime", cfs.zero_vruntime, record.num("z1")?),
            ("avg_vruntime", cfs.avg_vruntime as u64, record.num("s1")?),
        ]))
    }

    /// The run queue after a call against the record's.
    pub(super) fn queue_is(&self, q: &Queue) -> Comparison {
        let cfs = &self.sched.cfs[0];
        let curr = cfs.curr.is_some().then(|| &self.sched.se[cfs.curr.index()]);
        let queued = curr.is_some_and(|curr| curr.on_rq);
        of(&[
            ("zero_vruntime", cfs.zero_vruntime, q.zero),
            ("avg_vruntime", cfs.avg_vruntime as u64, q.sum as u64),
            ("avg_load", cfs.avg_load, q.load),
            ("nr_running", cfs.nr_running.into(), q.nr_running.into()),
            ("h_nr_queued", cfs.h_nr_running.into(), q.h_nr_queued.into()),
            ("curr", curr.is_some().into(), q.has_curr.into()),
            ("curr queued", queued.into(), q.curr_queued.into()),
            ("curr weight", curr.map_or(0, |se| se.weight), q.curr_weight),
            (
                "curr vruntime",
                curr.map_or(0, |se| se.vruntime),
                q.curr_vruntime,
            ),
        ])
    }

    /// An entity after a call against the record's.
    pub(super) fn entity_is(&self, id: SeId, e: &Entity) -> Comparison {
        let se = &self.sched.se[id.index()];
        let flag = |on: bool, flag: u64| u64::from(on) * flag;
        let flags = flag(se.custom_slice, fl::CUSTOM_SLICE)
            | flag(se.rel_deadline, fl::REL_DEADLINE)
            | flag(se.on_rq, fl::ON_RQ)
            | flag(se.sched_delayed, fl::DELAYED)
            | flag(se.task.is_some(), fl::TASK)
            | flag(self.sched.cfs[0].curr == id, fl::CURR);
        of(&[
            ("vruntime", se.vruntime, e.vruntime),
            ("deadline", se.deadline, e.deadline),
            ("vlag", se.vlag as u64, e.vlag as u64),
            ("weight", se.weight, e.weight),
            ("inv_weight", se.inv_weight.into(), e.inv_weight.into()),
            ("slice", se.slice, e.slice),
            ("flags", flags, e.flags),
        ])
    }
}
