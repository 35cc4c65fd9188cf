//! A scheduler put into the state in which a recorded call began.

use super::super::TOPOLOGY;
use crate::error::Problem;
use crate::header::Header;
use crate::wire;
use serde_json::Value;
use std::sync::Arc;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::state::{Pick, Policy};
use wakelab_sched::{Cookie, Features, Release, Rules, Sched, SeId, TaskId, TgId, Tunables};

/// When the calls are played.
const NOW: u64 = 1_000_000_000_000;

/// A CPU of a record.
pub fn cpu(header: &Header, value: &Value, name: &str) -> Result<CpuId, Problem> {
    wire::cpu(name, num(value, name)?, header.ncpu)
}

/// A scheduler with the tasks and groups of a record, by their names there.
#[derive(Clone, Debug)]
pub struct Scene {
    pub sched: Sched,
    tasks: Vec<(u64, TaskId)>,
    groups: Vec<(u64, TgId)>,
}

/// Groups are not nested deeper in any recording.
const MAX_DEPTH: usize = 16;

/// A level of a task's chain of entities, as recorded.
#[derive(Clone, Copy, Debug)]
struct Level {
    tg: u64,
    depth: u64,
    vruntime: u64,
    zero: u64,
    zero_fi: u64,
    seq: u64,
}

fn level(value: &Value) -> Result<Level, Problem> {
    let at = |index: usize| integer(&value[index], "chain");
    Ok(Level {
        tg: at(0)?,
        depth: at(1)?,
        vruntime: at(2)?,
        zero: at(3)?,
        zero_fi: at(4)?,
        seq: at(5)?,
    })
}

/// An integer, modulo 2^64.
pub fn integer(value: &Value, name: &str) -> Result<u64, Problem> {
    let signed = || value.as_i64().map(|n| n as u64);
    let number = value.as_u64().or_else(signed);
    number.ok_or_else(|| Problem::value(name, value, "an integer"))
}

/// A list of a record.
pub fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>, Problem> {
    let list = value[name].as_array();
    list.ok_or_else(|| Problem::value(name, &value[name], "a list"))
}

/// A number of a record.
pub fn num(value: &Value, name: &str) -> Result<u64, Problem> {
    integer(&value[name], name)
}

/// A count that a core keeps.
pub fn count(value: &Value, name: &str) -> Result<u64, Problem> {
    let number = num(value, name)?;
    let small = number <= u64::from(u32::MAX);
    small
        .then_some(number)
        .ok_or_else(|| Problem::value(name, number, "a count of 32 bits"))
}

/// The machine of a header: its cores are all that matters here. Where the header has none, the
/// CPUs of a record are of one core.
fn topology(header: &Header) -> Result<SchedTopology, Problem> {
    let mut topology = SchedTopology::clone(&TOPOLOGY);
    let all = CpuMask::first_n(header.ncpu);
    let mut place = topology.cpus[0].clone();
    place.llc_span = all;
    topology.cpus = vec![place; header.ncpu];
    topology.cores = header.cores()?;
    topology.llcs = vec![all];
    topology.nodes = vec![all];
    topology.groups.clear();
    topology.domains = vec![Vec::new(); header.ncpu];
    for &core in &topology.cores {
        for cpu in core.iter() {
            topology.cpus[cpu.index()].smt = core;
        }
    }
    Ok(topology)
}

impl Scene {
    pub fn new(header: &Header) -> Result<Scene, Problem> {
        let topology = topology(header)?;
        let tun = Tunables::for_machine(topology.cpus.len(), 250);
        let rules = Rules::of(Release::V6_12);
        let mut sched = Sched::new(Arc::new(topology), rules, Features(0), tun);
        for index in 0..sched.ncpu() {
            sched.update_rq_clock(CpuId::from_index(index), Ns(NOW));
        }
        sched.core.enabled = true;
        Ok(Scene {
            sched,
            tasks: Vec::new(),
            groups: Vec::new(),
        })
    }

    /// The task with a pid, made if it is not known yet.
    pub fn task(&mut self, pid: u64, cpu: CpuId, cookie: u64) -> TaskId {
        self.grouped_task(pid, cpu, cookie, TgId::ROOT)
    }

    fn grouped_task(&mut self, pid: u64, cpu: CpuId, cookie: u64, tg: TgId) -> TaskId {
        if let Some((_, p)) = self.tasks.iter().find(|(known, _)| *known == pid) {
            return *p;
        }
        let p = self.sched.new_task(&TaskSpec {
            tg,
            mm: 0,
            policy: Policy::Normal,
            nice: 0,
            cpus: CpuMask::first_n(self.sched.ncpu()),
            cpu,
            kthread: false,
            cookie: Cookie(cookie),
        });
        self.tasks.push((pid, p));
        p
    }

    /// The pid of what was picked, 0 for idle.
    pub fn pid(&self, pick: Pick) -> Option<u64> {
        match pick {
            Pick::Idle => Some(0),
            Pick::Stop => None,
            Pick::Task(p) => self.pid_of(p),
        }
    }

    pub fn pid_of(&self, p: TaskId) -> Option<u64> {
        let named = self.tasks.iter().find(|(_, known)| *known == p);
        named.map(|(pid, _)| *pid)
    }

    /// A pid as `curr` or `core_pick`: 0 is idle, -1 none.
    pub fn known(&mut self, pid: u64, cpu: CpuId) -> Option<Pick> {
        match pid {
            u64::MAX => None,
            0 => Some(Pick::Idle),
            _ => Some(Pick::Task(self.task(pid, cpu, 0))),
        }
    }

    /// The group of a level, made if it is not known yet; that of depth 0 is the root.
    fn group(&mut self, levels: &[Level]) -> TgId {
        let Some((first, above)) = levels.split_first() else {
            return TgId::ROOT;
        };
        if first.depth == 0 {
            return TgId::ROOT;
        }
        if let Some((_, tg)) = self.groups.iter().find(|(known, _)| *known == first.tg) {
            return *tg;
        }
        let parent = self.group(above);
        let tg = self.sched.add_group("group", parent, 1024);
        self.groups.push((first.tg, tg));
        tg
    }

    /// A task with its chain of entities, from its own upwards, as recorded.
    pub fn plant(
        &mut self,
        pid: u64,
        on: CpuId,
        cookie: u64,
        chain: &[Value],
    ) -> Result<TaskId, Problem> {
        let levels = chain.iter().map(level).collect::<Result<Vec<_>, _>>()?;
        if levels.len() > MAX_DEPTH {
            return Err(Problem::value("chain", levels.len(), "16 levels at most"));
        }
        let tg = self.group(&levels);
        let p = self.grouped_task(pid, on, cookie, tg);
        let mut se_id = self.sched.tasks[p.index()].se;
        for level in levels {
            if se_id.is_none() {
                let expected = "as many levels as its group has";
                return Err(Problem::value("chain", chain.len(), expected));
            }
            self.set_level(se_id, &level);
            se_id = self.sched.se[se_id.index()].parent;
        }
        Ok(p)
    }

    fn set_level(&mut self, se_id: SeId, level: &Level) {
        let se = &mut self.sched.se[se_id.index()];
        se.vruntime = level.vruntime;
        let cfs = &mut self.sched.cfs[se.cfs_rq.index()];
        cfs.zero_vruntime = level.zero;
        cfs.zero_vruntime_fi = level.zero_fi;
        cfs.forceidle_seq = level.seq as u32;
    }

    /// Queues a task as the only one of all its levels, so that its CPU picks it.
    pub fn queue_alone(&mut self, p: TaskId) -> Result<(), Problem> {
        let cpu = self.sched.tasks[p.index()].cpu;
        if self.sched.cfs[cpu.index()].nr_running != 0 {
            return Err(Problem::value("sib", cpu.0, "every CPU once"));
        }
        let mut se_id = self.sched.tasks[p.index()].se;
        while se_id.is_some() {
            self.sched.se[se_id.index()].on_rq = true;
            let se = &self.sched.se[se_id.index()];
            let (cfs_id, parent) = (se.cfs_rq, se.parent);
            let cfs = &mut self.sched.cfs[cfs_id.index()];
            cfs.nr_running = 1;
            cfs.timeline_add(&mut self.sched.se, se_id);
            se_id = parent;
        }
        Ok(())
    }

    /// `zero_vruntime_fi` and `forceidle_seq` of the queue that a task's entity is on.
    pub fn fi_of(&self, se_id: SeId) -> (u64, u64) {
        let cfs = &self.sched.cfs[self.sched.se[se_id.index()].cfs_rq.index()];
        (cfs.zero_vruntime_fi, cfs.forceidle_seq.into())
    }
}
