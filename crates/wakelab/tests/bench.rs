//! `bench`, end to end.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/program.rs"]
mod program;

use program::{compare, refused, stdout, wakelab};
use serde_json::Value;
use std::io::Write as _;
use std::process::Stdio;

#[test]
fn bench_prints_what_the_benchmark_prints_and_nothing_else() {
    let bench = |seed: &str, line: &[&str]| {
        let mut arguments = vec![
            "bench",
            "--machine",
            "smt2-8",
            "--kernel",
            "6.12",
            "--seed",
            seed,
            "--",
        ];
        arguments.extend(line);
        stdout(&arguments)
    };
    let pipe = ["perf", "bench", "sched", "pipe", "-l", "100"];
    let printed = bench("1", &pipe);
    let start = "# Running 'sched/pipe' benchmark:\n# Executed 100 pipe operations between two processes\n\n";
    assert!(printed.starts_with(start), "{printed}");
    assert_eq!(printed, bench("1", &pipe));
    // A line in quotes is one of words.
    let hackbench = bench("7", &["hackbench -g 1 -f 2 -l 10"]);
    let lines: Vec<&str> = hackbench.lines().collect();
    assert_eq!(lines.len(), 3, "{hackbench}");
    assert!(lines[2].starts_with("Time: 0.0"), "{hackbench}");
}

/// It is the first run of `compare`, features and all.
#[test]
fn bench_is_the_first_run_of_compare() {
    let line = "netperf -t TCP_RR -l 10ms --pairs 4";
    let mut arguments = compare(line, &["NO_WA_IDLE", "--runs", "1", "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&arguments)).expect("JSON");
    for (variant, features) in [(0, ""), (1, "NO_WA_IDLE")] {
        arguments = vec![
            "bench",
            "--machine",
            "smt2-8",
            "--kernel",
            "6.5",
            "--features",
            features,
            "--",
            line,
        ];
        let printed = stdout(&arguments);
        let rates = printed
            .lines()
            .filter(|line| line.starts_with("16384  131072 1"));
        let rate = |line: &str| {
            line.split_whitespace()
                .nth(5)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let sum: f64 = rates.map(rate).sum();
        let metric = &report["variants"][variant]["metrics"]["transactions_per_s"]["mean"];
        assert!(
            (metric.as_f64().unwrap() - sum).abs() < 0.1,
            "{metric} {sum}"
        );
    }
}

#[test]
fn bench_refuses_what_it_does_not_know() {
    let bench = |more: &[&str]| {
        let mut arguments = vec!["bench", "--machine", "smt2-8", "--kernel", "6.12"];
        arguments.extend(more);
        refused(&arguments)
    };
    assert!(bench(&["--", "perf", "stat"]).contains("perf: unknown option 'stat'"));
    assert!(bench(&["--features", "FOO", "--", "hackbench"]).contains("--features: there is no"));
    assert!(bench(&[]).contains("COMMAND LINE"));
}

/// rt-app's log of a load that comes by standard input.
#[test]
fn bench_reads_a_load_of_rt_app_from_standard_input() {
    let bench = |load: &str| {
        let mut program = wakelab();
        program.args(["bench", "--machine", "smt2-8", "--kernel", "6.12", "--"]);
        program.args(["rt-app", "-"]).stdin(Stdio::piped());
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = program.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(load.as_bytes()).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        (
            text(output.stdout),
            text(output.stderr),
            output.status.code(),
        )
    };
    let (log, err, code) = bench("{'tasks': {'t': {'loop': 2, 'run': 500}}}");
    assert_eq!(code, Some(0), "{err}");
    assert!(
        log.starts_with("==> rt-app-t-0.log <==\n# Policy : "),
        "{log}"
    );
    assert_eq!(log.lines().count(), 5, "{log}");
    let (log, err, code) = bench("{'tasks': {'t': {'runs': }}}");
    assert_eq!((log.as_str(), code), ("", Some(2)));
    assert!(err.starts_with("error: -:1:"), "{err}");
}
