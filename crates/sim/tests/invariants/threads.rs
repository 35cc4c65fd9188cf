//! Threads that lock, wait, signal, post, yield and change how they are scheduled, at random. They end by
//! themselves: nobody has two mutexes, and the main task broadcasts and posts until all others have ended.

use crate::support::Scene;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::TaskId;
use wakelab_sched::state::Policy;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Group, Op, Setting, Spawn, SyncCounts, SyncObjects, SyncOp, Workload};

const OBJECTS: u32 = 3;

/// The workload.
pub struct Threads {
    tasks: u32,
    rounds: u32,
    ncpu: usize,
    inherit: bool,
    states: Vec<State>,
    settings: Vec<Setting>,
    made: u32,
    alive: u32,
    started: bool,
    joined: bool,
    now: Ns,
    knows_time: bool,
}

#[derive(Clone, Copy, Default)]
struct State {
    round: u32,
    step: u32,
    mutex: u32,
}

impl Threads {
    pub fn new(scene: &Scene, inherit: bool) -> Threads {
        let tasks = scene.tasks.len() as u32;
        Threads {
            tasks,
            rounds: scene.rounds,
            ncpu: scene.machine.ncpu(),
            inherit,
            states: Vec::new(),
            settings: vec![Setting::default(); tasks as usize + 1],
            made: 0,
            alive: tasks,
            started: false,
            joined: false,
            now: Ns(0),
            knows_time: false,
        }
    }

    fn main_op(&mut self) -> Op {
        if !std::mem::replace(&mut self.started, true) {
            return Op::Start;
        }
        if self.made < self.tasks {
            self.made += 1;
            let (role, thread) = (self.made, true);
            return Op::Fork(Spawn { role, thread });
        }
        if self.alive > 0 {
            let state = &mut self.states[0];
            state.step = (state.step + 1) % (2 * OBJECTS + 1);
            return match state.step {
                number if number < OBJECTS => Op::Sync(SyncOp::Broadcast(number)),
                number if number < 2 * OBJECTS => Op::Sync(SyncOp::Post(number - OBJECTS)),
                _ => Op::Sleep(Ns(1_000_000)),
            };
        }
        if std::mem::replace(&mut self.joined, true) {
            return Op::Exit;
        }
        Op::Join
    }

    /// Something of how a task is scheduled.
    fn change(&self, rng: &mut Rng) -> Setting {
        let mut setting = Setting::default();
        match rng.below(4) {
            0 => {
                let policy = [Policy::Normal, Policy::Batch, Policy::Idle][rng.below(3) as usize];
                setting.scheduler = Some((policy, rng.below(16) as i8 - 5));
                setting.slice = (rng.below(2) == 0).then(|| Ns(50_000 + rng.below(20_000_000)));
            }
            1 => setting.group = Some(rng.below(3) as u32),
            2 => setting.cpus = Some(CpuMask::first_n(self.ncpu)),
            _ => {
                let cpu = rng.below(self.ncpu as u64) as usize;
                setting.cpus = Some(CpuMask::single(CpuId::from_index(cpu)));
            }
        }
        setting
    }
}

impl Workload for Threads {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.tasks as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.states.push(State::default());
    }

    fn sync_objects(&self) -> SyncObjects {
        SyncObjects::new(SyncCounts {
            mutexes: OBJECTS,
            inherit: self.inherit,
            condvars: OBJECTS,
            semaphores: OBJECTS,
        })
    }

    fn groups(&self) -> Vec<Group> {
        let group = |name: &str, parent| Group {
            name: name.to_owned(),
            parent,
        };
        vec![group("/a", None), group("/a/b", Some(0)), group("/c", None)]
    }

    fn setting(&self, number: u32) -> Setting {
        self.settings[number as usize]
    }

    fn time_is(&mut self, _task: TaskId, now: Ns) {
        self.now = now;
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        self.knows_time = !self.knows_time;
        if self.knows_time {
            return Op::Time;
        }
        if task.index() == 0 {
            return self.main_op();
        }
        let mut state = self.states[task.index()];
        let step = state.step;
        state.step = (step + 1) % 8;
        state.round += u32::from(state.step == 0);
        if step == 0 {
            state.mutex = rng.below(OBJECTS.into()) as u32;
        }
        let any = rng.below(OBJECTS.into()) as u32;
        if step == 0 && state.round * 4 >= self.rounds {
            self.alive -= 1;
            return Op::Exit;
        }
        self.states[task.index()] = state;
        match step {
            0 => Op::Sync(SyncOp::Lock(state.mutex)),
            1 if rng.below(3) == 0 => Op::Sync(SyncOp::Wait(any, state.mutex)),
            1 => Op::Compute(Ns(rng.below(300_000))),
            2 => Op::Sync(SyncOp::Post(any)),
            3 if rng.below(2) == 0 => {
                self.settings[task.index()] = self.change(rng);
                Op::Set(task.0)
            }
            3 => Op::Yield,
            4 if rng.below(3) == 0 => Op::SleepUntil(Ns(self.now.0 + rng.below(400_000))),
            4 => Op::Sync(SyncOp::Signal(any)),
            5 => Op::Compute(Ns(rng.below(200_000))),
            6 => Op::Sync(SyncOp::Unlock(state.mutex)),
            _ => Op::Sync(SyncOp::Acquire(any)),
        }
    }
}
