//! Requests and responses, pairs and events in the engine: what they count, and what they print.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_sim::Outcome;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

/// A run, and what the benchmark prints.
fn simulate(machine: &str, line: &str) -> (Outcome, String) {
    let machine = Machine::preset(machine).expect("a preset");
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12())),
        machine: Arc::new(machine),
        release: Release::V6_12,
        features: FeatureSet::defaults(Release::V6_12),
        grouping: Grouping::Root,
        start: Start::Forked,
        seed: 1,
    };
    let workload = Workload::parse(line).expect("a command line");
    let again = Workload::parse(&workload.command_line()).expect("its own command line");
    assert_eq!(workload, again);
    let outcome = run(&workload, &config, &|| false).unwrap_or_else(|e| panic!("{line}: {e}"));
    let printed = workload.printed(&outcome);
    (outcome, printed)
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("{name}")).value
}

/// Text with each run of digits as `#` after at most one blank: its form without the model's figures, and
/// the blanks that fill them up.
fn form(text: &str) -> String {
    let mut form = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if form.ends_with('#') => {}
            '0'..='9' => {
                while form.ends_with("  ") {
                    form.pop();
                }
                form.push('#');
            }
            other => form.push(other),
        }
    }
    form
}

#[test]
fn messaging_is_hackbench_in_perfs_words() {
    let (messaging, printed) = simulate("smt2-8", "perf bench sched messaging -g 1 -p -t -l 20");
    let (hackbench, _) = simulate("smt2-8", "hackbench -g 1 -f 20 -s 100 -p -T -l 20");
    assert_eq!(messaging, hackbench);
    assert_eq!(
        form(&printed),
        "# Running 'sched/messaging' benchmark:\n\
         # # sender and receiver threads per group\n\
         # # groups == # threads run\n\n     Total time: #.# [sec]\n"
    );
    let (_, simple) = simulate("smt2-8", "perf bench -f simple sched messaging -g 1 -l 20");
    assert_eq!(form(&simple), "#.#\n");
}

#[test]
fn a_round_trip_takes_two_wakeups_and_the_lines_are_perfs() {
    for threaded in ["", " -T"] {
        let line = format!("perf bench sched pipe{threaded} -l 1000");
        let (outcome, printed) = simulate("smt2-8", &line);
        let wakeups = metric(&outcome, "wakeups");
        assert!((1950.0..2050.0).contains(&wakeups), "{line}: {wakeups}");
        let micros = metric(&outcome, "time_s") * 1e6 / 1000.0;
        assert!((metric(&outcome, "usecs_per_op") / micros - 1.0).abs() < 1e-6);
        let kind = if threaded.is_empty() {
            "processes"
        } else {
            "threads"
        };
        let start = format!(
            "# Running 'sched/pipe' benchmark:\n\
             # Executed 1000 pipe operations between two {kind}\n\n     Total time: 0.0"
        );
        assert!(printed.starts_with(&start), "{printed}");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!((lines[5].len(), lines[6].len()), (24, 23), "{printed}");
        assert!(lines[5].ends_with(" usecs/op") && lines[6].ends_with(" ops/sec"));
    }
}

#[test]
fn each_netperf_prints_its_table_and_the_rate_is_their_sum() {
    let line = "netperf -H 127.0.0.1 -t TCP_RR -l 20ms --pairs 3";
    let (outcome, printed) = simulate("smt2-8", line);
    let table = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () \
                 port 0 AF_INET : first burst 0\n\
                 Local /Remote\n\
                 Socket Size   Request  Resp.   Elapsed  Trans.\n\
                 Send   Recv   Size     Size    Time     Rate         \n\
                 bytes  Bytes  bytes    bytes   secs.    per sec   \n\n\
                 16384  131072 1        1       0.02     ";
    assert_eq!(printed.matches(table).count(), 3, "{printed}");
    let rates = printed.lines().filter(|line| line.contains("0.02"));
    let rates = rates.map(|line| {
        line.split_whitespace()
            .nth(5)
            .unwrap()
            .parse::<f64>()
            .unwrap()
    });
    let sum: f64 = rates.sum();
    assert!(
        (metric(&outcome, "transactions_per_s") - sum).abs() < 0.1,
        "{sum}"
    );
    assert!(sum > 3.0 * 20_000.0, "{sum}");
}

/// No acknowledgement is sent and no lock is held, so that datagrams are the quicker.
#[test]
fn udp_does_a_little_more_transactions_than_tcp() {
    let rate = |test| {
        let (outcome, printed) =
            simulate("smt2-8", &format!("netperf -t {test} -l 50ms -- -r 1,200"));
        (metric(&outcome, "transactions_per_s"), printed)
    };
    let (tcp, _) = rate("TCP_RR");
    let (udp, printed) = rate("UDP_RR");
    assert!((1.0..1.2).contains(&(udp / tcp)), "{tcp} {udp}");
    assert!(printed.starts_with("MIGRATED UDP REQUEST/RESPONSE TEST"));
    assert!(printed.contains("\n212992 212992 1        200     0.05  "));
}

#[test]
fn tbench_moves_the_load_files_data_for_each_request() {
    let (outcome, printed) = simulate("smt2-8", "tbench -t 200ms 4");
    assert!((metric(&outcome, "time_s") - 0.2).abs() < 1e-6);
    let each = metric(&outcome, "throughput_mb_per_s") * 1e6 / metric(&outcome, "requests_per_s");
    assert!((each / 5428.4 - 1.0).abs() < 0.1, "{each}");
    assert_eq!(
        form(&printed),
        "Throughput #.# MB/sec # clients # procs  max_latency=#.# ms\n"
    );
}

#[test]
fn will_it_scale_warms_up_and_counts_two_for_each_round() {
    let line = "context_switch1_processes -t 2 -s 3 --interval 10ms";
    let (outcome, printed) = simulate("smt2-8", line);
    let expected = format!(
        "testcase:Context switch via pipes\nwarmup\n{measured}{measured}{measured}{measured}{measured}{measured}\
         measurement\n{measured}{measured}{measured}average:#\n",
        measured = "min:# max:# total:#\n"
    );
    assert_eq!(form(&printed), expected);
    let total = |line: &str| line.rsplit_once(':').unwrap().1.parse::<f64>().unwrap();
    let totals: Vec<f64> = printed
        .lines()
        .map(|line| {
            if line.contains("total:") {
                total(line)
            } else {
                0.0
            }
        })
        .collect();
    let counted: f64 = totals[9..12].iter().sum();
    let average = total(printed.lines().last().unwrap());
    assert!((average - counted / 3.0).abs() < 1.0);
    let rate = metric(&outcome, "switches_per_s");
    assert!(
        (rate * 0.03 / counted - 1.0).abs() < 0.01,
        "{rate} {counted}"
    );
    // Each pair stays on its core, so that nothing migrates but between its two CPUs.
    assert!(metric(&outcome, "search_cpus_scanned") <= 2.0 * metric(&outcome, "searches"));
}

#[test]
fn sysbench_prints_rates_latencies_and_fairness() {
    let (outcome, printed) = simulate("smt2-8", "sysbench cpu --threads=2 --time=100ms run");
    // Two threads on cores of their own: an event of 0.430 ms each.
    let rate = metric(&outcome, "events_per_s");
    assert!((rate / (2.0 / 0.430e-3) - 1.0).abs() < 0.02, "{rate}");
    let expected = include_str!("sysbench-cpu.txt");
    assert_eq!(form(&printed), form(expected), "{printed}");
    let (outcome, printed) = simulate("smt2-8", "sysbench memory --memory-total-size=10M run");
    let expected = include_str!("sysbench-memory.txt");
    assert_eq!(form(&printed), form(expected), "{printed}");
    assert!(printed.contains("Total operations: 10240 ("));
    assert!((metric(&outcome, "events_per_s") * 379e-9 - 1.0).abs() < 0.02);
}

/// By the machine's own figure: a thread beside a busy sibling does 0.63 of what it does alone.
#[test]
fn siblings_share_a_core_as_the_machine_says() {
    let rate = |threads| {
        let line = format!("sysbench cpu --threads={threads} --time=200ms run");
        metric(&simulate("smt2-8", &line).0, "events_per_s")
    };
    let yields = rate(8) / rate(4);
    assert!((1.2..1.3).contains(&yields), "{yields}");
}

#[test]
fn the_others_print_what_they_print() {
    let printed = |line| simulate("smt2-8", line).1;
    assert_eq!(
        form(&printed("hackbench -g 2 -f 3 -l 10 -T")),
        "Running in threaded mode with # groups using # file descriptors each (== # tasks)\n\
         Each sender will pass # messages of # bytes\nTime: #.#\n"
    );
    assert_eq!(
        printed("stress-ng --cpu 0 -t 1"),
        "stress-ng: info:  [1] setting to a 1 second run per stressor\n\
         stress-ng: info:  [1] dispatching hogs: 8 cpu\n\
         stress-ng: info:  [1] successful run completed in 1.00s\n"
    );
    assert_eq!(printed("spin -n 1 -t 10ms"), "");
    assert_eq!(
        form(&printed("worksleep -t 2 -n 2")),
        "time until the last thread was done: #.# s\n"
    );
    assert_eq!(printed("vms --vms 1 --busy 1 -t 100ms"), "0.100 s\n");
}
