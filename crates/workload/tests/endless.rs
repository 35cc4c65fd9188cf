//! Work and sleep, spinners and virtual machines in the engine: they take the time that they should, stop
//! on time, and repeat.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

fn simulate(machine: &str, line: &str, seed: u64) -> Outcome {
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
    let workload = Workload::parse(line).expect("a command line");
    run(&workload, &config, &|| false).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

#[test]
fn a_thread_alone_takes_its_work_and_its_sleep_with_the_timer_slack() {
    let line = "worksleep -t 1 -n 200 --work 5ms --sleep 15ms";
    let outcome = simulate("smt2-8", line, 1);
    let (time, work) = (metric(&outcome, "time_s"), metric(&outcome, "task_clock_s"));
    let expected = 200.0 * 20.05e-3;
    assert!((time / expected - 1.0).abs() < 0.002, "{time}");
    assert!((1.0..1.01).contains(&work), "{work}");
    assert!((198.0..=202.0).contains(&metric(&outcome, "wakeups")));
}

/// The largest of ten sums of 1200 cycles: 24 s of work and sleep, 0.06 s of slack, and 1.54 standard
/// deviations of 0.32 s; published without cookies are 24.653, 24.454 and 24.586 s.
#[test]
fn without_cookies_the_mails_load_takes_the_largest_of_ten_sums() {
    let times = [1, 2, 3, 4].map(|seed| metric(&simulate("smt2-8", "worksleep", seed), "time_s"));
    let mean = times.iter().sum::<f64>() / 4.0;
    assert!((24.3..24.8).contains(&mean), "{times:?}");
}

#[test]
fn spinners_keep_every_cpu_busy_and_stop_on_time() {
    for line in [
        "stress-ng --cpu 0 -t 1",
        "spin -n 12 -t 1s",
        "spin -n 0 -t 1000ms",
    ] {
        let outcome = simulate("smt2-8", line, 1);
        assert_eq!(metric(&outcome, "time_s"), 1.0, "{line}");
        let busy = metric(&outcome, "cpus_utilized");
        assert!((7.9..=8.0).contains(&busy), "{line}: {busy}");
    }
    let three = metric(&simulate("smt2-8", "spin -n 3 -t 1", 1), "cpus_utilized");
    assert!((2.99..3.01).contains(&three), "{three}");
}

const HWLAT: &str = "--hwlat width=10ms,period=30ms,threshold=100us";

#[test]
fn a_guest_with_a_core_to_itself_sees_no_noise() {
    let line = format!("vms --vms 2 --vcpus 2 --busy 1 {HWLAT} -t 3");
    let outcome = simulate("smt2-8", &line, 1);
    assert_eq!(metric(&outcome, "noise_pct"), 0.0);
    assert_eq!(metric(&outcome, "noise_max_pct"), 0.0);
    let windows = metric(&outcome, "hwlat_windows");
    assert!((99.0..=100.0).contains(&windows), "{windows}");
    // Four cores: one for each of the two busy vCPUs, one for the tracer.
    let cores = ["cores_pair", "cores_single", "cores_none"].map(|name| metric(&outcome, name));
    assert_eq!(cores, [0.0, 2.0, 1.0]);
    // Two busy vCPUs and a third of one.
    let busy = metric(&outcome, "cpus_utilized");
    assert!((2.32..2.36).contains(&busy), "{busy}");
}

#[test]
fn a_guest_on_an_overcommitted_host_sees_the_time_that_it_is_denied() {
    let line =
        format!("vms --vms 5 --vcpus 4 --busy 4 --vmm 0.5ms/50ms {HWLAT} --cookies none -t 3");
    let outcome = simulate("smt2-8", &line, 1);
    let [noise, largest, delay] =
        ["noise_pct", "noise_max_pct", "window_run_delay_pct"].map(|name| metric(&outcome, name));
    // 16 busy vCPUs on 8 CPUs: the tracer gets a third of one when it wants all.
    assert!((30.0..75.0).contains(&delay), "{delay}");
    assert!(
        noise > 0.0 && largest > 0.0 && largest <= noise,
        "{noise} {largest}"
    );
    assert_eq!(metric(&outcome, "time_s"), 3.0);
}

#[test]
fn busy_vcpus_of_one_cookie_are_counted_as_pairs_of_their_cores() {
    let line = format!("vms --vms 3 --vcpus 4 --busy 2 {HWLAT} --start matched -t 300ms");
    let outcome = simulate("smt2-8", &line, 1);
    let cores = ["cores_pair", "cores_single", "cores_none"].map(|name| metric(&outcome, name));
    // Eight busy vCPUs fill all four cores from the start on.
    assert!(
        cores[0] > 1.0 && cores.iter().sum::<f64>() <= 4.0,
        "{cores:?}"
    );
    assert_eq!(cores[2], 0.0, "{cores:?}");
}

#[test]
fn vcpus_that_block_are_idle_for_the_rest_of_their_periods() {
    let outcome = simulate(
        "smt2-8",
        "vms --vms 2 --vcpus 2 --busy 2 --load 2ms/8ms -t 2",
        1,
    );
    let busy = metric(&outcome, "cpus_utilized");
    assert!((0.98..1.03).contains(&busy), "{busy}");
    let idle = simulate("smt2-8", "vms --vms 2 --vcpus 2 --busy 0 -t 2", 1);
    assert!(
        metric(&idle, "task_clock_s") < 0.001,
        "nobody has anything to do"
    );
}

#[test]
fn times_out_of_all_proportion_are_simulated_as_they_are() {
    for line in [
        "vms --vms 3 --vcpus 30 --hwlat width=1us,period=2us,threshold=0us -t 5ms",
        "vms --vms 2 --vcpus 1 --hwlat width=1ns,period=2ns -t 100us",
        "vms --vms 2 --vcpus 9 --load 1us/2us --vmm 1us/3us --hwlat width=1h,period=2h -t 3ms",
        "vms --vms 1 -t 1ns",
        "stress-ng --cpu 0 -t 1ns",
        "worksleep -t 3 -n 3 --work 0ms --sleep 0ms",
        "worksleep -t 20 -n 2 --work 1ns --sleep 1h",
    ] {
        let outcome = simulate("smt2-8", line, 1);
        assert!(metric(&outcome, "time_s") > 0.0, "{line}");
        let finite = outcome
            .metrics
            .iter()
            .all(|metric| metric.value.is_finite());
        assert!(finite, "{line}: {:?}", outcome.metrics);
    }
}

#[test]
fn metrics_of_the_tracer_come_first_and_only_with_it() {
    let names = |line: &str| -> Vec<&str> {
        let outcome = simulate("smt2-8", line, 1);
        outcome.metrics.iter().map(|metric| metric.name).collect()
    };
    let own: Vec<&str> = wakelab_workload::vms::METRICS
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let all: Vec<&str> = wakelab_sim::METRICS.iter().map(|(name, _)| *name).collect();
    let with = names(&format!("vms --vms 2 --vcpus 1 {HWLAT} -t 100ms"));
    assert_eq!(with, [own, all.clone()].concat());
    assert_eq!(names("vms --vms 2 --vcpus 1 -t 100ms"), all);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    for line in [
        "worksleep -n 20 --cookies pairs",
        "vms --vms 3 --vcpus 3 --load 1ms/7ms --vmm 1ms/9ms -t 300ms",
    ] {
        let one = |seed| simulate("smt2-8", line, seed);
        assert_eq!(one(3), one(3), "{line}");
        assert_ne!(one(3).metrics, one(4).metrics, "{line}");
    }
}

#[test]
fn every_form_stops_on_every_preset() {
    for (name, _) in wakelab_machine::presets() {
        for line in [
            "worksleep -n 5 -c pairs".to_owned(),
            "stress-ng --cpu 0 -t 20ms".to_owned(),
            format!("vms {HWLAT} --vmm 0.1ms/10ms --start matched -t 50ms"),
        ] {
            let outcome = simulate(name, &line, 1);
            assert!(metric(&outcome, "time_s") > 0.0, "{name} {line}");
        }
    }
}
