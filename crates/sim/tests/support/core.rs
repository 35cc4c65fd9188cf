//! A machine of one core with two threads.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::{Grouping, RunConfig, Start};

const CORE: &str = r#"
    name = "core"
    description = "for tests"
    arch = "x86"
    [topology]
    packages = 1
    llcs_per_die = 1
    cores_per_llc = 1
    threads_per_core = 2
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

pub const MS: u64 = 1_000_000;

/// A run on it under a release's rules, without groups.
pub fn config(release: Release) -> RunConfig {
    let machine = Machine::from_toml(CORE, "core.toml").expect("a machine");
    let (major, minor) = release.number();
    let rules = DomainRules::for_release(major, minor);
    RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &rules)),
        machine: Arc::new(machine),
        release,
        features: FeatureSet::defaults(release),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    }
}
