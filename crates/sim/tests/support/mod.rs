//! Random machines, workloads and features, and the checks between events.

pub mod check;
mod exclusive;
mod work;

pub use check::run_checked;
use proptest::prelude::*;
use std::sync::Arc;
use wakelab_machine::Ns;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::features::{FeatureSet, words_of};
use wakelab_sched::{Release, state::Policy};
use wakelab_sim::{
    Attributes, Combined, Command, Engine, Grouping, Outcome, RunConfig, RunError, Start, Workload,
};
pub use work::{Pairs, Task};

/// Everything that decides a run.
#[derive(Clone, Debug)]
pub struct Scene {
    pub machine: Arc<Machine>,
    pub release: Release,
    pub features: FeatureSet,
    pub grouping: Grouping,
    pub start: Start,
    pub tasks: Vec<Task>,
    pub rounds: u32,
    /// Tasks and rounds of what runs beside.
    pub beside: Arc<[(Vec<Task>, u32)]>,
    pub seed: u64,
}

impl Scene {
    pub fn config(&self) -> RunConfig {
        let (major, minor) = self.release.number();
        let rules = DomainRules::for_release(major, minor);
        RunConfig {
            machine: Arc::clone(&self.machine),
            topology: Arc::new(SchedTopology::build(&self.machine, &rules)),
            release: self.release,
            features: self.features,
            grouping: self.grouping,
            start: self.start,
            seed: self.seed,
        }
    }

    pub fn engine(&self) -> Engine<Box<dyn Workload>> {
        let measured = Pairs::new(self.tasks.clone(), self.rounds);
        if self.beside.is_empty() {
            return Engine::new(&self.config(), Box::new(measured));
        }
        let beside = self.beside.iter();
        let beside = beside.map(|(tasks, rounds)| command(Pairs::new(tasks.clone(), *rounds)));
        let combined = Combined::new(command(measured), beside.collect());
        Engine::new(&self.config(), Box::new(combined))
    }

    pub fn run(&self) -> Result<Outcome, RunError> {
        self.engine().run(&|| false)
    }
}

/// A workload as it is.
pub fn command(work: impl Workload + 'static) -> Command {
    Command {
        work: Box::new(work),
        attributes: Attributes::default(),
        kernel: false,
        after: Ns(0),
    }
}

/// Machines of one or two packages, a few LLCs, with and without SMT.
pub fn machine_strategy() -> impl Strategy<Value = Arc<Machine>> {
    (
        1usize..=2,
        1usize..=2,
        1usize..=3,
        prop_oneof![Just(1usize), Just(2), Just(4)],
        prop_oneof![Just("siblings-last"), Just("consecutive")],
    )
        .prop_map(|(packages, llcs, cores, threads, numbering)| {
            Arc::new(machine_of(packages, llcs, cores, threads, numbering))
        })
}

pub fn machine_of(
    packages: usize,
    llcs: usize,
    cores: usize,
    threads: usize,
    numbering: &str,
) -> Machine {
    let like = if threads == 4 {
        "power9-2s44c"
    } else {
        "epyc-9654-2s"
    };
    let distances = if packages == 2 {
        "node_distance = [[10, 32], [32, 10]]"
    } else {
        ""
    };
    let text = format!(
        r#"
        name = "random"
        description = "for tests"
        arch = "x86"
        [topology]
        packages = {packages}
        llcs_per_die = {llcs}
        cores_per_llc = {cores}
        threads_per_core = {threads}
        numbering = "{numbering}"
        {distances}
        [[idle_state]]
        name = "C1"
        exit_latency_us = 1
        target_residency_us = 2
        polling = true
        source = "none"
        [[idle_state]]
        name = "C6"
        exit_latency_us = 50
        target_residency_us = 200
        polling = false
        source = "none"
        [costs]
        like = "{like}"
        "#
    );
    Machine::from_toml(&text, "random.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A release from this one on, and its features: in most cases some of the words that the model acts on are flipped, any of them.
fn kernel_strategy(since: Release) -> impl Strategy<Value = (Release, FeatureSet)> {
    let releases = Release::ALL.into_iter().filter(|&release| release >= since);
    let release = prop::sample::select(releases.collect::<Vec<_>>());
    // None in one case of nine, a quarter and a half of them in four each.
    let flips = prop_oneof![
        1 => Just(0),
        4 => (any::<u64>(), any::<u64>()).prop_map(|(some, others)| some & others),
        4 => any::<u64>(),
    ];
    (release, flips).prop_map(|(release, flips)| {
        let mut set = FeatureSet::defaults(release);
        let acted = words_of(release).filter(|word| word.acted(release));
        for (bit, word) in acted.enumerate() {
            if flips >> bit & 1 != 0 {
                set.features.set(word.feat, !set.features.has(word.feat));
            }
        }
        (release, set)
    })
}

fn attributes_strategy() -> impl Strategy<Value = (Option<i8>, Option<Policy>, u64)> {
    let nice = prop_oneof![4 => Just(None), 1 => (-5i8..=10).prop_map(Some)];
    let policy = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Policy::Batch)),
        1 => Just(Some(Policy::Idle)),
    ];
    (nice, policy, any::<u64>())
}

/// Scenes of releases from this one on.
pub fn scene_strategy(since: Release) -> impl Strategy<Value = Scene> {
    let grouping = prop_oneof![
        Just(Grouping::Autogroup),
        Just(Grouping::Root),
        (2u64..4096).prop_map(|shares| Grouping::Cgroup { shares }),
    ];
    let start = prop_oneof![Just(Start::Forked), Just(Start::Spread)];
    let tasks = prop::collection::vec(attributes_strategy(), 1..20);
    (
        machine_strategy(),
        kernel_strategy(since),
        grouping,
        start,
        tasks,
        5u32..120,
        any::<u64>(),
    )
        .prop_map(
            |(machine, (release, features), grouping, start, tasks, rounds, seed)| {
                let ncpu = machine.ncpu();
                let tasks = tasks
                    .into_iter()
                    .map(|(nice, policy, cpus)| Task {
                        attributes: Attributes {
                            nice,
                            policy,
                            cpus: work::affinity(cpus, ncpu),
                            ..Attributes::default()
                        },
                        prctl: false,
                    })
                    .collect();
                Scene {
                    machine,
                    release,
                    features,
                    grouping,
                    start,
                    tasks,
                    rounds,
                    beside: Arc::default(),
                    seed,
                }
            },
        )
}
