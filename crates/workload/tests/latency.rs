//! schbench and cyclictest in the engine: they take the time that they should, and say what happened.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Companion, Grouping, RunConfig, Start, Workload, run};

fn simulate_on(machine: &str, line: &str, seed: u64) -> Outcome {
    let workload = Workload::parse(line).expect("a command line");
    simulate_workload(machine, &workload, seed)
}

fn simulate_with(line: &str, beside: &str) -> Outcome {
    let workload = Workload::parse(line).expect("a command line");
    let companion = Companion::parse(beside).expect("a command line");
    let workload = workload.with(&[companion]).expect("not too many");
    simulate_workload("smt2-8", &workload, 1)
}

fn simulate_workload(machine: &str, workload: &Workload, seed: u64) -> Outcome {
    let machine = Machine::preset(machine).expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed,
    };
    run(workload, &config, &|| false)
        .unwrap_or_else(|error| panic!("{}: {error}", workload.command_line()))
}

fn simulate(line: &str) -> Outcome {
    simulate_on("smt2-8", line, 1)
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

/// 5 ms of thinking, 10 ms and up to 2.5 ms of sleep with the timer's slack.
#[test]
fn a_worker_of_2019_thinks_and_waits_for_as_long_as_it_is_told() {
    let outcome = simulate("schbench-2019 -m 1 -t 1 -c 5000 -s 10000 -r 20");
    let rounds = metric(&outcome, "schbench_samples");
    let expected = 20.0 / (5e-3 + 11.25e-3 + 0.05e-3);
    assert!((rounds / expected - 1.0).abs() < 0.01, "{rounds}");
    let p50 = metric(&outcome, "schbench_p50_us");
    assert!((1.0..20.0).contains(&p50), "{p50}");
    assert_eq!(metric(&outcome, "time_s"), 20.0);
}

/// The first one woken in a round is the last one that came, and waits for no other wake-up.
#[test]
fn the_last_workers_of_a_round_wait_for_the_wake_ups_before_theirs() {
    let p50 = |workers: u32| {
        let line = format!("schbench-2019 -m 1 -t {workers} -c 1000 -s 3000 -r 5");
        metric(&simulate_on("epyc-7763-2s", &line, 1), "schbench_p50_us")
    };
    assert!(p50(64) > p50(1) + 10.0, "{} {}", p50(64), p50(1));
}

#[test]
fn too_many_workers_of_2019_show_in_the_tail() {
    let p99 = |workers: u32| {
        let line = format!("schbench-2019 -m 1 -t {workers} -r 5");
        metric(&simulate(&line), "schbench_p99_us")
    };
    assert!(p99(4) < 100.0, "{}", p99(4));
    assert!(p99(32) > 2000.0, "{}", p99(32));
}

/// 100 us of nap with the timer's slack, and 9240 us of work.
#[test]
fn a_request_takes_its_nap_and_its_work() {
    let outcome = simulate("schbench -t 1 -r 10");
    let p50 = metric(&outcome, "schbench_request_p50_us");
    assert!((9390.0..9430.0).contains(&p50), "{p50}");
    let rps = metric(&outcome, "schbench_rps");
    assert!((rps * (9.39e-3 + 50e-6) - 1.0).abs() < 0.02, "{rps}");
    let p50 = metric(&outcome, "schbench_rps_p50");
    assert!((p50 - rps).abs() <= 2.0, "{p50} {rps}");
    let calibrated = simulate("schbench -t 1 -r 10 -C");
    let p50 = metric(&calibrated, "schbench_request_p50_us");
    assert!((9230.0..9260.0).contains(&p50), "{p50}");
}

#[test]
fn a_busy_sibling_stretches_the_work_of_a_request() {
    let p50 = |line: &str| metric(&simulate(line), "schbench_request_p50_us");
    assert!(p50("schbench -r 5") > 1.2 * p50("schbench -t 1 -r 5"));
}

#[test]
fn message_threads_hand_out_so_many_requests_a_second() {
    for (line, expected) in [("-R 60", 60.0), ("-m 3 -t 2 -R 62", 60.0)] {
        let outcome = simulate(&format!("schbench {line} -r 20"));
        let rps = metric(&outcome, "schbench_rps");
        assert!((rps / expected - 1.0).abs() < 0.06, "{line}: {rps}");
    }
    // More than can be done: each worker's list grows to its limit, and all work on.
    let all = metric(&simulate("schbench -r 5"), "schbench_rps");
    let asked = metric(&simulate("schbench -R 100000 -r 5"), "schbench_rps");
    assert!((asked / all - 1.0).abs() < 0.1, "{asked} {all}");
}

/// A preempted worker keeps the lock of its CPU.
#[test]
fn the_lock_of_a_cpu_makes_preemption_dear() {
    let rps = |line: &str| metric(&simulate(line), "schbench_rps");
    let (locked, free) = (rps("schbench -t 32 -r 5"), rps("schbench -t 32 -r 5 -L"));
    assert!(locked < 0.97 * free, "{locked} {free}");
    let (locked, free) = (rps("schbench -t 4 -r 5"), rps("schbench -t 4 -r 5 -L"));
    assert!((locked / free - 1.0).abs() < 0.01, "{locked} {free}");
}

#[test]
fn what_was_before_the_warm_up_is_forgotten() {
    let samples = |line: &str| {
        let outcome = simulate(line);
        let lines = outcome.log.iter().rev();
        let line = lines.into_iter().find(|line| line.starts_with("Request"));
        let (_, rest) = line.unwrap().rsplit_once('(').unwrap();
        rest.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let (all, warm) = (samples("schbench -r 8"), samples("schbench -r 8 -w 4"));
    assert!((warm / all - 0.5).abs() < 0.03, "{warm} of {all}");
}

#[test]
fn it_prints_as_the_program_does() {
    let log = simulate("schbench -r 3 -i 2 -j - -J night").log;
    let starts = |number: usize, text: &str| {
        assert!(log[number].starts_with(text), "{number}: {}", log[number]);
    };
    starts(0, "setting worker threads to 8");
    starts(1, "Wakeup Latencies percentiles (usec) runtime 2 (s) (");
    starts(2, "\t  50.0th: ");
    starts(4, "\t* 99.0th: ");
    starts(6, "\t  min=");
    starts(7, "Request Latencies percentiles (usec) runtime 2 (s) (");
    starts(
        13,
        "RPS percentiles (requests) runtime 2 (s) (3 total samples)",
    );
    starts(14, "\t  20.0th: ");
    starts(15, "\t* 50.0th: ");
    starts(18, "sched delay: message ");
    starts(19, "current rps: ");
    let json: Vec<&String> = log.iter().filter(|line| line.starts_with('{')).collect();
    assert!(json[0].contains("\"jobname\": \"night\",") && json[0].ends_with("\"runtime\": 3}}"));
    for label in [
        "wakeup_latency_pct99.9",
        "request_latency_min",
        "rps_pct20.0",
    ] {
        assert!(json[0].contains(&format!("\"{label}\": ")), "{}", json[0]);
    }
    assert!(log[log.len() - 2].starts_with("average rps: "));
}

#[test]
fn cyclictest_alone_is_late_by_the_timers_slack_and_the_wake_up() {
    let outcome = simulate("cyclictest -q -l 1000");
    let of = |name: &str| metric(&outcome, name);
    assert_eq!(of("cyclictest_cycles"), 1000.0);
    assert!(of("cyclictest_min_us") >= 50.0);
    assert!((50.0..60.0).contains(&of("cyclictest_avg_us")));
    assert!(of("cyclictest_p99_us") <= of("cyclictest_max_us"));
    // It sleeps to times that it reckons from the first: the main thread sees that it is done at its next
    // look, every 10 ms, and waits 50 ms.
    assert!((1.05..1.07).contains(&of("time_s")), "{}", of("time_s"));
    assert!(outcome.log[1].starts_with("T: 0 (    1) P: 0 I:1000 C:   1000 Min:     5"));
}

#[test]
fn cyclictest_forbids_deep_idle_states_unless_told_not_to() {
    let average = |line: &str| metric(&simulate_on("xeon-8360y-2s", line, 1), "cyclictest_avg_us");
    let (polling, deep) = (
        average("cyclictest -q -i 20000 -l 50"),
        average("cyclictest -q -i 20000 -l 50 --default-system"),
    );
    assert!(deep > polling + 50.0, "{polling} {deep}");
}

#[test]
fn cyclictest_ends_with_the_first_thread_that_is_done() {
    let outcome = simulate("cyclictest -q -t 3 -d 1000 -l 100 -h 200");
    // One interval for all with a histogram; each does one more while the main thread waits.
    assert_eq!(metric(&outcome, "cyclictest_cycles"), 300.0);
    let timed = simulate("cyclictest -q -S -D 2");
    assert_eq!(timed.log.len(), 1 + 8);
    let cycles = metric(&timed, "cyclictest_cycles");
    assert!(cycles > 2000.0, "{cycles}");
}

/// Each program has locks of its own, and threads that spin for one end with their program.
#[test]
fn two_programs_run_side_by_side() {
    let beside = simulate_with("schbench -r 2", "schbench -t 16 -r 1");
    let alone = simulate("schbench -r 2");
    let rps = |outcome: &Outcome| metric(outcome, "schbench_rps");
    assert!(rps(&beside) < 0.9 * rps(&alone), "{}", rps(&beside));
    let loaded = simulate_with("cyclictest -t 4 -l 100", "spin -n 16");
    assert!(metric(&loaded, "cyclictest_max_us") > 100.0);
    simulate_with("spin -n 1 -t 1", "cyclictest -t 4");
}

#[test]
fn extremes_end_and_their_metrics_are_finite() {
    for line in [
        "schbench-2019 -c 0 -s 0 -r 10ms",
        "schbench-2019 -c 0 -s 1 -r 10ms",
        "schbench-2019 -m 3 -t 1 -r 1ns",
        "schbench -F 0 -n 0 -s 0 -r 10ms",
        "schbench -r 1ms -w 1ms -z 1ns -i 1ns",
        "schbench -R 1000000 -F 0 -n 0 -s 0 -r 100ms",
        "cyclictest -l 1 -i 1",
        "cyclictest -D 1ns -t",
    ] {
        let outcome = simulate(line);
        let finite = outcome
            .metrics
            .iter()
            .all(|metric| metric.value.is_finite());
        assert!(finite, "{line}: {:?}", outcome.metrics);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    for line in [
        "schbench-2019 -m 2 -t 8 -r 1",
        "schbench -m 2 -r 1",
        "cyclictest -t 20 -l 100",
    ] {
        let one = |seed| simulate_on("smt2-8", line, seed);
        assert_eq!(one(3), one(3), "{line}");
        assert_ne!(one(3).metrics, one(4).metrics, "{line}");
    }
}
