//! The search for a task to steal goes on in simulated time.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::features::FeatureSet;
use wakelab_sched::{Cookie, Release, Sched, TaskId};
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Engine, Grouping, Op, RunConfig, Spawn, Start, Workload};

/// Two sockets of 48 cores of two CPUs.
const MACHINE: &str = "xeon-2s96c";
/// The CPUs of the first socket's first core.
const CORE: [CpuId; 2] = [CpuId(0), CpuId(96)];
/// The first CPU of the second socket.
const FAR: u16 = 48;

/// A task of one cookie that computes beside two of another and of its own that sleep now and then, so
/// that CPUs of the core are forced idle again and again, and now and then told to reschedule. On the other
/// socket tasks without a cookie come and go, so that their run queues' lines are there.
#[derive(Default)]
struct OneCore {
    steps: Vec<u32>,
}

const ROUNDS: u32 = 300;
const ON_CORE: u32 = 3;
const BESIDE: u32 = 45;

impl Workload for OneCore {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        (1 + ON_CORE + BESIDE) as usize
    }

    fn idle_exit_limit(&self) -> Option<Ns> {
        // Idle CPUs poll.
        Some(Ns(0))
    }

    fn working_set_kib(&self) -> u64 {
        0
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.steps.push(0);
    }

    fn attributes(&self, role: u32) -> Attributes {
        let cpu = match role {
            0 | 1 => CORE[0],
            2..=ON_CORE => CORE[1],
            _ => CpuId(FAR + (role - ON_CORE) as u16),
        };
        let cookie = match role {
            2 => Cookie(2),
            0..=ON_CORE => Cookie(1),
            _ => Cookie::NONE,
        };
        Attributes {
            cookie: Some(cookie),
            cpus: Some(CpuMask::single(cpu)),
            start: Some(cpu),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        let step = self.steps[task.index()];
        self.steps[task.index()] += 1;
        match (task.index(), step) {
            (0, step) if step < ON_CORE + BESIDE => Op::Fork(Spawn {
                role: step + 1,
                thread: true,
            }),
            (0, step) if step == ON_CORE + BESIDE => Op::Start,
            (0, step) if step == ON_CORE + BESIDE + 1 => Op::Join,
            (1, 0) => Op::Compute(Ns(u64::from(ROUNDS) * 100_000)),
            (2.., step) if step < ROUNDS && step % 2 == 0 => {
                Op::Work(Ns(1_000 + rng.below(20_000)))
            }
            (2.., step) if step < ROUNDS => Op::Sleep(Ns(rng.below(200_000))),
            _ => Op::Exit,
        }
    }
}

fn engine() -> Engine<OneCore> {
    let machine = Machine::preset(MACHINE).expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    };
    Engine::new(&config, OneCore::default())
}

/// The CPU is idle with tasks queued and has been told to reschedule.
fn told_in_idle(sched: &Sched, cpu: CpuId) -> bool {
    let rq = sched.rq(cpu);
    rq.curr.is_none() && rq.nr_running > 0 && rq.need_resched
}

/// For how long CPUs stay idle that are told to reschedule, ns.
fn reactions() -> Vec<u64> {
    let mut engine = engine();
    let mut since = [None; 2];
    let all = (1 + ON_CORE + BESIDE) as usize;
    let mut reactions = Vec::new();
    while engine.step().expect("it ends") {
        let now = engine.now().0;
        for (since, cpu) in since.iter_mut().zip(CORE) {
            let sched = engine.sched();
            if sched.tasks.len() == all && told_in_idle(sched, cpu) {
                since.get_or_insert(now);
            } else if let Some(told) = since.take() {
                reactions.push(now - told);
            }
        }
    }
    reactions
}

/// It ends where it is when its CPU is told to reschedule (`need_resched` in `steal_cookie_task`): a CPU
/// takes no longer for that than for one look and an interrupt.
#[test]
fn a_cpu_told_to_reschedule_stops_looking() {
    let reactions = reactions();
    assert!(reactions.len() > 100, "{}", reactions.len());
    let longest = reactions.iter().max().expect("some");
    assert!(*longest < 1_000, "{longest} ns");
}
