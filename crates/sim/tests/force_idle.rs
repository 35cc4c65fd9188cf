//! FORCE_IDLE_PUSH and FORCE_IDLE_LB in whole runs: they settle.

use std::sync::Arc;
use wakelab_machine::Ns;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::features::FeatureSet;
use wakelab_sched::{Cookie, Release, TaskId};
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{
    Attributes, Engine, ForcedIdle, Grouping, Op, RunConfig, Spawn, Start, Workload,
};

/// Tasks that compute for a while without a break, with one of these cookies each.
struct Spinners {
    cookies: Vec<u64>,
    ops: Vec<u32>,
}

impl Workload for Spinners {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.cookies.len() + 1
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.ops.push(0);
    }

    fn attributes(&self, role: u32) -> Attributes {
        Attributes {
            cookie: Some(Cookie(self.cookies[role as usize - 1])),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let step = self.ops[task.index()];
        self.ops[task.index()] += 1;
        let tasks = self.cookies.len() as u32;
        match (task.index(), step) {
            (0, step) if step < tasks => Op::Fork(Spawn {
                role: step + 1,
                thread: true,
            }),
            (0, step) if step == tasks => Op::Start,
            (0, step) if step == tasks + 1 => Op::Join,
            (1.., 0) => Op::Compute(Ns(2_000_000_000)),
            _ => Op::Exit,
        }
    }
}

/// Forced idle of a run of so long on four cores of two CPUs.
fn run(words: &[&str], cookies: &[u64], seed: u64) -> ForcedIdle {
    let machine = Machine::preset("smt2-8").expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::parse_words(Release::V6_12, words).expect("words"),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed,
    };
    let work = Spinners {
        cookies: cookies.to_vec(),
        ops: Vec::new(),
    };
    let outcome = Engine::new(&config, work).run(&|| false).expect("it ends");
    outcome.forced_idle.expect("there are cookies")
}

/// As many tasks as CPUs or fewer, whose cookies need not fill whole cores.
const CASES: [&[u64]; 4] = [
    &[1, 2, 3, 4, 1, 2, 3, 4],
    &[1, 2, 3, 1, 2, 3, 4],
    &[1, 1, 1, 2, 2, 2, 3],
    &[1, 2, 3, 4, 5, 6],
];

/// Tasks that never sleep are placed once. After that nothing but the patches' own moves could make them
/// wait, so there is a bounded number of these, whatever the time: 2 s are 500 ticks.
#[test]
fn pushes_and_pulls_do_not_go_on() {
    for cookies in CASES {
        for seed in 1..=5 {
            let words = ["FORCE_IDLE_PUSH", "FORCE_IDLE_LB"];
            let forced = run(&words, cookies, seed);
            let moved = forced.pushed + forced.pulled;
            assert!(moved <= 2 * cookies.len() as u64, "{cookies:?} {forced:?}");
        }
    }
}

/// They do something here: forced idle is less, all seeds together.
#[test]
fn they_end_forced_idle_that_goes_on_without_them() {
    let total = |words: &[&str]| -> u64 {
        let runs = CASES
            .iter()
            .flat_map(|c| (1..=5).map(move |seed| (c, seed)));
        runs.map(|(cookies, seed)| run(words, cookies, seed).time.0)
            .sum()
    };
    let without = total(&[]);
    assert!(total(&["FORCE_IDLE_PUSH"]) < without);
    assert!(total(&["FORCE_IDLE_LB"]) <= without);
}
