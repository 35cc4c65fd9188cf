//! Commands beside a measured one: they take their part of the machine and nothing else.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Companion, Grouping, RunConfig, Start, Workload, run};

fn workload(line: &str, beside: &[&str]) -> Workload {
    let companions: Result<Vec<Companion>, _> =
        beside.iter().map(|line| Companion::parse(line)).collect();
    let workload = Workload::parse(line).expect("a command line");
    workload
        .with(&companions.expect("command lines"))
        .expect("few enough")
}

fn simulate(line: &str, beside: &[&str], start: Start, seed: u64) -> Outcome {
    let machine = Machine::preset("smt2-8").expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Autogroup,
        start,
        seed,
    };
    run(&workload(line, beside), &config, &|| false)
        .unwrap_or_else(|error| panic!("{line} {beside:?}: {error}"))
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

const HACKBENCH: &str = "hackbench -g 2 -f 3 -l 100";

#[test]
fn spinners_beside_need_no_end_and_slow_what_is_measured() {
    let with = |beside: &[&str]| simulate(HACKBENCH, beside, Start::Forked, 1);
    let (alone, beside) = (with(&[]), with(&["spin -n 8"]));
    let times = [&alone, &beside].map(|outcome| metric(outcome, "time_s"));
    assert!(times[1] > 1.2 * times[0], "{times:?}");
    assert!(metric(&beside, "cpus_utilized") > 7.0);
}

#[test]
fn one_that_ends_early_has_ended() {
    // The clock begins when the spinners have run for 200 ms: the shell looks twice.
    let line = "worksleep -t 1 -n 1 --work 1ms --sleep 999ms";
    let busy = |beside| {
        let outcome = simulate(line, &[beside], Start::Forked, 1);
        metric(&outcome, "task_clock_s")
    };
    let ended = busy("spin -n 4 -t 400ms");
    assert!((0.7..0.9).contains(&ended), "{ended}");
    let on = busy("spin -n 4");
    assert!((3.9..4.2).contains(&on), "{on}");
}

#[test]
fn kworkers_and_daemons_wake_now_and_then() {
    let line = "worksleep -t 1 -n 1 --work 1ms --sleep 999ms";
    let with = |beside: &[&str]| {
        let outcome = simulate(line, beside, Start::Forked, 1);
        ["wakeups", "cpu_migrations", "task_clock_s"].map(|name| metric(&outcome, name))
    };
    let [alone, _, _] = with(&[]);
    // Eight CPUs, one wake-up of each a second; then a hundred.
    let [wakeups, migrations, _] = with(&["kworkers"]);
    assert!(
        (7.0..=9.0).contains(&(wakeups - alone)),
        "{wakeups} {alone}"
    );
    assert_eq!(migrations, 0.0);
    let [wakeups, migrations, busy] = with(&["kworkers --run 100us --sleep 9.9ms"]);
    assert!((780.0..=810.0).contains(&(wakeups - alone)), "{wakeups}");
    assert_eq!(migrations, 0.0);
    assert!((0.08..0.09).contains(&busy), "{busy}");
    // Four that sleep for 0.1 s on average.
    let [wakeups, _, busy] = with(&["daemons"]);
    assert!((25.0..55.0).contains(&(wakeups - alone)), "{wakeups}");
    assert!(busy < 0.01, "{busy}");
}

#[test]
fn measured_kworkers_are_kernel_threads_too() {
    let outcome = simulate("kworkers --sleep 1ms -t 50ms", &[], Start::Forked, 1);
    assert_eq!(metric(&outcome, "time_s"), 0.05);
    assert_eq!(metric(&outcome, "cpu_migrations"), 0.0);
}

/// One short line of each benchmark, which ends by itself.
const LINES: [&str; 7] = [
    "hackbench -g 1 -f 2 -l 20",
    "worksleep -t 3 -n 3 --cookies pairs",
    "stress-ng --cpu 0 -t 5ms",
    "spin -n 3 -t 5ms",
    "vms --vms 3 --vcpus 2 --hwlat width=1ms,period=3ms --vmm 0.1ms/2ms -t 20ms",
    "kworkers --sleep 1ms -t 10ms",
    "daemons -n 9 --sleep 1ms-3ms -t 20ms",
];

#[test]
fn each_runs_beside_each_and_repeats() {
    for measured in LINES {
        for beside in LINES {
            for start in [Start::Forked, Start::Spread] {
                let one = |seed| simulate(measured, &[beside, "hackbench -l 5 -p"], start, seed);
                assert_eq!(one(3), one(3), "{measured} with {beside}");
                assert!(metric(&one(3), "time_s") > 0.0, "{measured} with {beside}");
            }
        }
    }
}

#[test]
fn the_metrics_are_those_of_the_measured_one() {
    let names = |line: &str, beside: &[&str]| -> Vec<&str> {
        let outcome = simulate(line, beside, Start::Forked, 1);
        outcome.metrics.iter().map(|metric| metric.name).collect()
    };
    let vms = LINES[4];
    assert_eq!(names(vms, &[HACKBENCH]), names(vms, &[]));
    assert_eq!(names(HACKBENCH, &[vms]), names(HACKBENCH, &[]));
}

#[test]
fn scale_shortens_what_is_measured_alone() {
    let both = workload("spin -n 3 -t 10s", &["spin -n 4 -t 20", "stress-ng -c 0"]);
    assert_eq!(
        both.scaled(0.1).command_line(),
        "spin -n 3 -t 1s --with 'spin -n 4 -t 20s' --with 'stress-ng --cpu 0'"
    );
}

#[test]
fn what_is_measured_needs_an_end_and_those_beside_are_not_too_many() {
    for line in ["spin -n 4", "stress-ng --cpu 0", "vms --vms 2"] {
        let error = Workload::parse(line).unwrap_err().to_string();
        assert!(error.contains("'-t' is needed"), "{line}: {error}");
        assert!(Companion::parse(line).is_ok(), "{line}");
    }
    let error = Companion::parse("spin -n x").unwrap_err().to_string();
    assert!(error.contains("'x' for '-n'"), "{error}");
    let spin = Companion::parse("spin -n 1").unwrap();
    let many = vec![spin; wakelab_workload::MAX_COMPANIONS + 1];
    let error = workload(HACKBENCH, &[]).with(&many).unwrap_err();
    assert!(error.to_string().contains("65 commands"), "{error}");
}

#[test]
fn commands_on_siblings_force_each_other_idle_however_they_get_their_cookies() {
    let sleeps = "worksleep -t 2 -n 20 --work 5ms --sleep 1ms --cookies";
    let ways = [
        format!("{sleeps} pairs"),
        format!("{sleeps} pairs,by=prctl"),
        format!("coresched new -- {sleeps} none"),
        format!("coresched new -- {sleeps} pairs,by=prctl"),
    ];
    for measured in &ways {
        for beside in &ways {
            let beside = beside.replace("-n 20", "-n 3000");
            let lines = [(0, measured), (4, &beside)];
            let [measured, beside] = lines.map(|(cpu, line)| format!("taskset -c {cpu} {line}"));
            let outcome = simulate(&measured, &[&beside], Start::Forked, 1);
            let forced = outcome.forced_idle.expect("there are cookies");
            assert!(
                forced.time.0 > 100_000_000,
                "{measured} {beside}: {forced:?}"
            );
        }
    }
}
