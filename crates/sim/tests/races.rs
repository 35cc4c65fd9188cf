//! Between choosing a CPU for a woken task and queueing it there time passes: two wakers can choose
//! the same idle CPU.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::features::FeatureSet;
use wakelab_sched::{Release, TaskId};
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Engine, Grouping, Op, Outcome, RunConfig, Spawn, Start, Workload};

/// One LLC of four CPUs without siblings.
const FOUR: &str = r#"
    name = "four"
    description = "for tests"
    arch = "x86"
    [topology]
    packages = 1
    llcs_per_die = 1
    cores_per_llc = 4
    threads_per_core = 1
    numbering = "siblings-last"
    [[idle_state]]
    name = "C1"
    exit_latency_us = 1
    target_residency_us = 2
    polling = true
    source = "none"
    [costs]
    like = "smt2-8"
"#;

/// Two tasks that sleep in a pipe each, on CPUs 0 and 1, and two wakers pinned there, of which the
/// second comes later by so much.
struct TwoWakers {
    later: Ns,
    at: [usize; 5],
}

const READERS: u32 = 2;

impl Workload for TwoWakers {
    fn channels(&self) -> Vec<Chan> {
        vec![Chan::pipe(), Chan::pipe()]
    }

    fn max_tasks(&self) -> usize {
        self.at.len()
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {}

    fn attributes(&self, role: u32) -> Attributes {
        let pinned = CpuId(role.saturating_sub(1) as u16 % 2);
        Attributes {
            cpus: (role > READERS).then(|| CpuMask::single(pinned)),
            start: (role > 0).then_some(pinned),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let step = self.at[task.index()];
        self.at[task.index()] += 1;
        let role = task.index() as u32;
        match (role, step) {
            (0, step @ 0..2) => fork(step),
            // Time for the readers to go to sleep, and then for the wakers to get going.
            (0, 2) => Op::Sleep(Ns(1_000_000)),
            (0, 3) => Op::Start,
            (0, step @ 4..6) => fork(step - 2),
            (0, 6) => Op::Join,
            (1..=READERS, 0) => Op::Read(ChanId(role - 1), 1),
            (3, 0) => Op::Compute(Ns(500_000)),
            (4, 0) => Op::Compute(self.later),
            (3 | 4, 1) => Op::Write(ChanId(role - 3), 1),
            (3 | 4, 2) => Op::Compute(Ns(100_000)),
            _ => Op::Exit,
        }
    }
}

fn fork(made: usize) -> Op {
    Op::Fork(Spawn {
        role: made as u32 + 1,
        thread: true,
    })
}

fn run(machine: &Machine, work: impl Workload) -> Outcome {
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(machine, &DomainRules::v6_5())),
        machine: Arc::new(machine.clone()),
        release: Release::V6_5,
        features: FeatureSet::defaults(Release::V6_5),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    };
    Engine::new(&config, work).run(&|| false).expect("it ends")
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let metric = outcome.metrics.iter().find(|metric| metric.name == name);
    metric.expect("a metric").value
}

fn four() -> Machine {
    Machine::from_toml(FOUR, "four.toml").expect("a machine")
}

#[test]
fn two_wakers_at_the_same_time_lose_a_race_and_only_then() {
    let machine = four();
    // The second waker is made a fork later, so that some of these delays bring them together.
    let races: Vec<f64> = (0..100)
        .map(|step| {
            let later = Ns(400_000 + step * 1_000);
            let work = TwoWakers { later, at: [0; 5] };
            metric(&run(&machine, work), "lost_races")
        })
        .collect();
    let lost = races.iter().filter(|&&lost| lost > 0.0).count();
    assert!((1..20).contains(&lost), "{races:?}");
    assert!(races.iter().all(|&lost| lost <= 1.0), "{races:?}");
    assert_eq!((races[0], races[99]), (0.0, 0.0), "far apart: {races:?}");
}

/// Pairs of tasks that pass a byte to and fro over two pipes.
struct PingPong {
    pairs: u32,
    rounds: u32,
    at: Vec<u32>,
}

impl PingPong {
    fn new(pairs: u32) -> PingPong {
        PingPong {
            pairs,
            rounds: 5000,
            at: Vec::new(),
        }
    }
}

impl Workload for PingPong {
    fn channels(&self) -> Vec<Chan> {
        (0..2 * self.pairs).map(|_| Chan::pipe()).collect()
    }

    fn max_tasks(&self) -> usize {
        2 * self.pairs as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.at.push(0);
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let step = std::mem::replace(&mut self.at[task.index()], 0);
        self.at[task.index()] = step + 1;
        let Some(member) = (task.index() as u32).checked_sub(1) else {
            return match step {
                0 => Op::Start,
                step if step <= 2 * self.pairs => fork(step as usize - 1),
                step if step == 2 * self.pairs + 1 => Op::Join,
                _ => Op::Exit,
            };
        };
        if step == 2 * self.rounds {
            return Op::Exit;
        }
        let (pair, answers) = (member / 2, member % 2);
        if step % 2 == answers {
            Op::Write(ChanId(2 * pair + answers), 4)
        } else {
            Op::Read(ChanId(2 * pair + 1 - answers), 4)
        }
    }
}

#[test]
fn pairs_that_fill_an_llc_lose_races_and_a_lone_pair_does_not() {
    let machine = Machine::preset("altra-80").expect("a preset");
    let lost = |pairs| metric(&run(&machine, PingPong::new(pairs)), "lost_races");
    assert_eq!(lost(1), 0.0);
    assert!(lost(60) + lost(80) + lost(100) > 0.0);
}
