//! hackbench in the engine: it ends, does the same work in every form, and repeats.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

fn config(machine: &str, words: &[&str], grouping: Grouping, seed: u64) -> RunConfig {
    let machine = Machine::preset(machine).expect("a preset");
    RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_5())),
        machine: Arc::new(machine),
        release: Release::V6_5,
        features: FeatureSet::parse_words(Release::V6_5, words).expect("known words"),
        grouping,
        start: Start::Spread,
        seed,
    }
}

fn hackbench(line: &str, config: &RunConfig) -> Outcome {
    let workload = Workload::parse(line).expect("a command line");
    run(&workload, config, &|| false).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

#[test]
fn every_form_ends_on_every_preset() {
    for (name, _) in wakelab_machine::presets() {
        for form in [
            "-T -p",
            "-T",
            "-T -i",
            "-i -s 200000",
            "-P -p",
            "-P",
            "-p -s 5000",
            "-s 5000",
            "-p -s 200000",
        ] {
            let line = format!("hackbench -g 2 -f 3 -l 20 {form}");
            let outcome = hackbench(&line, &config(name, &[], Grouping::Autogroup, 1));
            assert!(metric(&outcome, "time_s") > 0.0, "{name} {line}");
            let switches = metric(&outcome, "context_switches");
            assert!(
                switches >= 12.0,
                "{name} {line}: {switches} switches of 12 tasks"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let line = "hackbench -g 4 -f 5 -l 50 -p -T";
    let one = |seed| hackbench(line, &config("smt2-8", &[], Grouping::Autogroup, seed));
    assert_eq!(one(3), one(3));
    assert_ne!(one(3).metrics, one(4).metrics);
}

#[test]
fn the_audit_accounts_for_every_placement() {
    let outcome = hackbench(
        "hackbench -g 4 -f 5 -l 100 -p -T",
        &config("epyc-7763-2s", &[], Grouping::Autogroup, 1),
    );
    let decisions: u64 = outcome.audit.iter().map(|row| row.decisions).sum();
    assert_eq!(decisions as f64, metric(&outcome, "wakeups"));
    let migrations: u64 = outcome.audit.iter().map(|row| row.migrations).sum();
    let balanced: f64 = ["newidle_pulled", "balance_pulled", "active_balanced"]
        .iter()
        .map(|name| metric(&outcome, name))
        .sum();
    assert_eq!(
        migrations as f64 + balanced,
        metric(&outcome, "cpu_migrations")
    );
}

#[test]
fn cpu_time_is_no_more_than_the_cpus_have() {
    for line in [
        "hackbench -g 1 -f 2 -l 200 -p",
        "hackbench -g 8 -f 10 -l 50 -p -T",
    ] {
        let outcome = hackbench(line, &config("smt2-8", &[], Grouping::Root, 1));
        let (time, busy) = (metric(&outcome, "time_s"), metric(&outcome, "task_clock_s"));
        assert!(
            busy > 0.0 && busy <= 8.0 * time * (1.0 + 1e-9),
            "{line}: {busy} in {time}"
        );
        let idle = metric(&outcome, "idle_s");
        assert!((busy + idle - 8.0 * time).abs() < 1e-6, "{line}");
    }
}
