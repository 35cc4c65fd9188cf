//! Files of rt-app that last as long as a test, and their runs.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use tempfile::NamedTempFile;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::{Outcome, RunError};
use wakelab_workload::{Grouping, RunConfig, Start, Workload, WorkloadError, run};

pub fn preset(name: &str) -> Machine {
    if name == "big-little-8" {
        return Machine::from_toml(BIG_LITTLE, "big-little.toml").expect("a machine");
    }
    Machine::preset(name).expect("a preset")
}

/// CPUs 0 to 3 do half of what 4 to 7 do.
const BIG_LITTLE: &str = r#"
    name = "big-little-8"
    description = "for tests"
    arch = "arm64"
    [topology]
    packages = 1
    llcs_per_die = 1
    cores_per_llc = 8
    threads_per_core = 1
    numbering = "siblings-last"
    capacity = [{ cpus = "0-3", capacity = 512 }]
    [[idle_state]]
    name = "WFI"
    exit_latency_us = 1
    target_residency_us = 1
    polling = false
    source = "none"
    [costs]
    like = "kunpeng-920"
"#;

pub fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("no metric {name}")).value
}

/// A file.
pub struct Load(NamedTempFile);

impl Load {
    pub fn new(text: &str) -> Load {
        let mut file = NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("it can be written");
        Load(file)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn parse(&self, options: &str) -> Result<Workload, WorkloadError> {
        Workload::parse(&format!("rt-app {options} {}", self.path().display()))
    }

    pub fn run(&self, machine: &str) -> Outcome {
        self.run_with("", machine)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn run_with(&self, options: &str, machine: &str) -> Result<Outcome, RunError> {
        let workload = self
            .parse(options)
            .unwrap_or_else(|error| panic!("{error}"));
        run(&workload, &config(machine), &|| false)
    }
}

pub fn config(machine: &str) -> RunConfig {
    let machine = preset(machine);
    RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    }
}
