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
use wakelab_sched::features::{Feat, FeatureSet};
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

/// A release, and features that the model acts on in it, any of them flipped.
fn kernel_strategy() -> impl Strategy<Value = (Release, FeatureSet)> {
    const FLIPPED: [Feat; 28] = [
        Feat::GENTLE_FAIR_SLEEPERS,
        Feat::START_DEBIT,
        Feat::NEXT_BUDDY,
        Feat::LAST_BUDDY,
        Feat::WAKEUP_PREEMPTION,
        Feat::TTWU_QUEUE,
        Feat::SIS_UTIL,
        Feat::WA_IDLE,
        Feat::WA_WEIGHT,
        Feat::UTIL_EST,
        Feat::WAKEUP_BIAS_PREV_IDLE,
        Feat::UTIL_FITS_CAPACITY,
        Feat::SELECT_BIAS_PREV,
        Feat::CACHE_HOT_BUDDY,
        Feat::PLACE_LAG,
        Feat::PLACE_DEADLINE_INITIAL,
        Feat::PLACE_REL_DEADLINE,
        Feat::RUN_TO_PARITY,
        Feat::PREEMPT_SHORT,
        Feat::PICK_BUDDY,
        Feat::DELAY_DEQUEUE,
        Feat::DELAY_ZERO,
        Feat::SIS_COOKIE,
        Feat::FORCE_IDLE_PUSH,
        Feat::FORCE_IDLE_LB,
        Feat::SIS_PROP,
        Feat::SIS_AVG_CPU,
        Feat::SIS_CORE,
    ];
    let release = prop::sample::select(&Release::ALL[..]);
    (release, any::<u32>()).prop_map(|(release, flips)| {
        let mut set = FeatureSet::defaults(release);
        let known = FLIPPED
            .into_iter()
            .filter(|feat| feat.word().default_in(release).is_some());
        for (bit, feat) in known.enumerate() {
            // Most features stay at their default in most cases.
            if flips >> bit & 1 != 0 && flips.count_ones() < 14 {
                set.features.set(feat, !set.features.has(feat));
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

pub fn scene_strategy() -> impl Strategy<Value = Scene> {
    let grouping = prop_oneof![
        Just(Grouping::Autogroup),
        Just(Grouping::Root),
        (2u64..4096).prop_map(|shares| Grouping::Cgroup { shares }),
    ];
    let start = prop_oneof![Just(Start::Forked), Just(Start::Spread)];
    let tasks = prop::collection::vec(attributes_strategy(), 1..20);
    (
        machine_strategy(),
        kernel_strategy(),
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
