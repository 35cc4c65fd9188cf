//! Words before a command: what they set holds for all its tasks, and for no other's.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Companion, Grouping, RunConfig, Start, Workload, run};

fn simulate(machine: &str, line: &str, beside: &[&str]) -> Outcome {
    let machine = Machine::preset(machine).expect("a preset");
    let companions = beside.iter().map(|line| Companion::parse(line));
    let companions: Vec<_> = companions.collect::<Result<_, _>>().expect("lines");
    let workload = Workload::parse(line).expect("a line");
    let workload = workload.with(&companions).expect("few enough");
    workload.check(&machine).expect("CPUs for it");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    };
    run(&workload, &config, &|| false).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

#[test]
fn tasks_stay_on_the_cpus_and_nodes_that_they_are_bound_to() {
    let used = |machine, line, beside: &[&str]| {
        let outcome = simulate(machine, line, beside);
        metric(&outcome, "cpus_utilized")
    };
    let one = used("smt2-8", "taskset -c 2 spin -n 3 -t 100ms", &[]);
    assert!((0.99..1.02).contains(&one), "{one}");
    let three = used(
        "smt2-8",
        "taskset -c 2 spin -n 3 -t 100ms",
        &["taskset -c 0,1 spin -n 4"],
    );
    assert!((2.98..3.02).contains(&three), "{three}");
    let node = used(
        "xeon-8360y-2s",
        "numactl --cpunodebind=1 stress-ng --cpu 0 -t 20ms",
        &[],
    );
    assert!((60.0..72.1).contains(&node), "{node}");
}

/// How long 100 ms of work take on a CPU with another command.
fn time_beside(prefix: &str, beside: &str) -> f64 {
    let line = format!("taskset -c 0 {prefix} worksleep -t 1 -n 1 --work 100ms --sleep 0ms");
    let beside = format!("taskset -c 0 {beside} spin -n 1");
    metric(&simulate("smt2-8", &line, &[&beside]), "time_s")
}

#[test]
fn niceness_and_policies_decide_the_share_of_a_cpu() {
    for (prefix, beside, low, high) in [
        ("", "", 0.18, 0.22),
        ("chrt --other 0", "nice -n 19", 0.098, 0.11),
        ("", "chrt --idle 0", 0.098, 0.105),
        // Weights 110 and 1024.
        ("nice", "", 0.9, 1.2),
        ("chrt --batch 0", "chrt --batch 0", 0.18, 0.22),
    ] {
        let time = time_beside(prefix, beside);
        assert!(
            (low..high).contains(&time),
            "'{prefix}' beside '{beside}': {time}"
        );
    }
}

#[test]
fn each_command_with_a_new_cookie_has_its_own() {
    let forced = |line: &str, beside: &[&str]| {
        let outcome = simulate("smt2-8", line, beside);
        outcome.forced_idle.map(|forced| forced.time.0)
    };
    let spin = "spin -n 4 -t 50ms";
    assert_eq!(forced(spin, &["spin -n 4"]), None);
    let cookie = format!("coresched new -t pgid -- {spin}");
    let alone = format!("coresched new -- {}", spin.replace('4', "8"));
    assert_eq!(forced(&alone, &[]), Some(0), "all have the same");
    // Two beside, so that nine do not fit four cores of two.
    let others = ["coresched new -- spin -n 3", "coresched new -- spin -n 3"];
    let time = forced(&cookie, &others).expect("core scheduling is on");
    assert!(time > 0, "they share cores");
}

/// Workloads that set attributes of their own keep them, but start where they may.
#[test]
fn a_matched_start_is_within_the_mask() {
    let line = "taskset -c 0,4 vms --vms 2 --vcpus 2 --busy 2 --start matched -t 50ms";
    let used = metric(&simulate("smt2-8", line, &[]), "cpus_utilized");
    assert!((0.9..2.1).contains(&used), "{used}");
}

#[test]
fn a_kernel_without_core_scheduling_refuses_what_gives_cookies_and_names_it() {
    let lines = [
        ("worksleep -t 2 --cookies pairs", "--cookies pairs"),
        (
            "worksleep -t 2 --cookies pairs,by=prctl",
            "--cookies pairs,by=prctl",
        ),
        ("vms -n 1 -v 2 -t 1s", "--cookies vm"),
        ("vms -n 1 -v 2 -t 1s --cookies prctl", "--cookies prctl"),
        ("nice -n 5 coresched new -- hackbench -g 1", "coresched new"),
    ];
    let plain = Workload::parse("hackbench -g 1 -l 10").unwrap();
    for (line, word) in lines {
        let beside = plain.with(&[Companion::parse(line).unwrap()]).unwrap();
        for workload in [Workload::parse(line).unwrap(), beside] {
            for release in Release::ALL {
                let said = workload.check_release(release).map_err(|e| e.to_string());
                let refused = format!("kernel 5.2 has no '{word}': core scheduling came with 5.14");
                let expected = match release {
                    Release::V5_2 => Err(refused),
                    _ => Ok(()),
                };
                assert_eq!(said, expected, "{line}");
            }
        }
    }
    for line in ["worksleep -t 2", "vms -n 1 -v 2 -t 1s --cookies none"] {
        let workload = Workload::parse(line).unwrap();
        assert_eq!(workload.check_release(Release::V5_2), Ok(()));
    }
}
