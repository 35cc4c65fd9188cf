//! Directions that published experiments and the kernel's rules give, at a small scale.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

/// Migrations a wake-up of `wakeup-bias-prev-idle`, shortened.
fn migrations_per_wakeup(word: &str, grouping: Grouping) -> f64 {
    let machine = Machine::preset("epyc-9654-2s").expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_5())),
        machine: Arc::new(machine),
        release: Release::V6_5,
        features: FeatureSet::parse_words(Release::V6_5, &[word]).expect("a known word"),
        grouping,
        start: Start::Spread,
        seed: 1,
    };
    let line = "hackbench -g 32 -f 20 --threads --pipe -l 1000 -s 100";
    let workload = Workload::parse(line).expect("a command line");
    let outcome = run(&workload, &config, &|| false).expect("it ends");
    let metric = |name| {
        outcome
            .metrics
            .iter()
            .find(|m| m.name == name)
            .expect("a metric")
            .value
    };
    metric("cpu_migrations") / metric("wakeups")
}

/// As the measured loads of busy CPUs have it, WAKEUP_BIAS_PREV_IDLE works by the dilution of a
/// task group's load over many CPUs. With all tasks in the root group busy CPUs are far over its
/// threshold, and it changes next to nothing.
#[test]
fn the_bias_to_prev_cuts_migrations_if_and_only_if_group_load_is_diluted() {
    let change = |grouping| {
        let base = migrations_per_wakeup("NO_WAKEUP_BIAS_PREV_IDLE", grouping);
        migrations_per_wakeup("WAKEUP_BIAS_PREV_IDLE", grouping) / base - 1.0
    };
    let autogroup = change(Grouping::Autogroup);
    let root = change(Grouping::Root);
    assert!(autogroup < -0.4, "autogroup: {:+.1} %", 100.0 * autogroup);
    assert!(root.abs() < 0.15, "root: {:+.1} %", 100.0 * root);
}
