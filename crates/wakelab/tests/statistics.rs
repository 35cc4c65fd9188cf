//! Precision, factorials, sensitivity and the document of experiments, end to end.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn wakelab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wakelab"))
}

fn output(arguments: &[&str]) -> Output {
    let output = wakelab().args(arguments).output();
    output.expect("the program starts")
}

/// Standard output of a command that succeeds.
fn stdout(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).expect("the program writes JSON")
}

/// Standard error of a command that ends with exit code 2 and prints nothing else.
fn refused(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    stderr
}

/// Long enough that features and costs do something.
const SMALL: &str = "hackbench -g 2 -f 4 --threads --pipe -l 300 -s 100";

fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let common = [
        "compare",
        "--machine",
        "smt2-8",
        "--kernel",
        "6.5",
        "--workload",
        SMALL,
    ];
    [&common, more].concat()
}

/// What text says of a run, without the line that tells what it cost the host.
fn without_host(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("host:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn runs_are_added_until_the_interval_is_narrow() {
    let with_jobs = |jobs: &str| {
        let more = [
            "NO_WA_IDLE",
            "--precision",
            "3%",
            "--jobs",
            jobs,
            "--format",
            "json",
        ];
        let mut json = json(&compare(&more));
        json["host"] = Value::Null;
        json
    };
    let found = with_jobs("1");
    assert_eq!(found, with_jobs("2"));
    assert_eq!(found, with_jobs("7"));
    let runs = found["runs"].as_u64().unwrap();
    assert!((11..200).contains(&runs), "{runs}");
    assert!(found.get("runs_asked").is_none(), "it is whole");
    let reached = found["precision"]["reached_pp"].as_f64().unwrap();
    assert!(reached <= 3.0, "{reached}");
    let ci95 = &found["comparisons"][0]["ci95"];
    let half = (ci95[1].as_f64().unwrap() - ci95[0].as_f64().unwrap()) / 2.0;
    assert!((half - reached).abs() < 1e-9, "{half} {reached}");
}

#[test]
fn a_cap_ends_what_is_never_narrow_and_says_so() {
    let more = ["NO_WA_IDLE", "--precision", "0.0001", "--max-runs", "12"];
    let output = output(&compare(&more));
    assert_eq!(output.status.code(), Some(0));
    let (text, stderr) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("NOT REACHED") && text.contains("after 12 runs of at most 12"),
        "{text}"
    );
    assert!(stderr.contains("not reached after 12 runs"), "{stderr}");
}

#[test]
fn a_factorial_tells_effects_and_interactions_in_every_format() {
    let features = ["NO_WA_IDLE", "NO_SIS_UTIL", "--factorial", "--runs", "3"];
    let text = stdout(&compare(&features));
    assert!(text.contains("main effects and interactions"), "{text}");
    assert!(text.contains("NO_WA_IDLE x NO_SIS_UTIL"), "{text}");
    assert!(
        text.contains("NO_WA_IDLE and NO_SIS_UTIL interact"),
        "{text}"
    );
    let csv = stdout(&compare(&[&features[..], &["--format", "csv"]].concat()));
    let effects = csv.lines().filter(|line| line.ends_with(",effect")).count();
    assert_eq!(effects, 3 * wakelab_sim::METRICS.len());
    let json = json(&compare(&[&features[..], &["--format", "json"]].concat()));
    assert_eq!(
        json["factorial"]["factors"],
        serde_json::json!(["NO_WA_IDLE", "NO_SIS_UTIL"])
    );
    let effects = json["factorial"]["effects"].as_array().unwrap();
    assert_eq!(
        (&effects[0]["metric"], &effects[2]["of"][1]),
        (&"time_s".into(), &"NO_SIS_UTIL".into())
    );
    // Without the word, the same variants are the same factorial; two variants are none.
    let by_hand = [
        "NO_WA_IDLE",
        "NO_SIS_UTIL",
        "NO_SIS_UTIL NO_WA_IDLE",
        "--runs",
        "3",
    ];
    assert!(stdout(&compare(&by_hand)).contains("main effects"));
    assert!(!stdout(&compare(&["NO_WA_IDLE", "--runs", "1"])).contains("main effects"));
}

#[test]
fn spread_and_percentiles_are_shown_on_request() {
    let more = ["NO_WA_IDLE", "--runs", "6"];
    let plain = without_host(&stdout(&compare(&more)));
    let with = without_host(&stdout(&compare(&[&more[..], &["--stats"]].concat())));
    assert!(
        !plain.contains("median") && with.starts_with(&plain),
        "{with}"
    );
    assert!(with.contains("runs of NO_WA_IDLE") && with.contains("median's 95 %"));
    let json = json(&compare(&[&more[..], &["--format", "json"]].concat()));
    let time = &json["variants"][0]["metrics"]["time_s"];
    let value = |key: &str| time[key].as_f64().unwrap();
    assert!(value("min") <= value("median") && value("median") <= value("max"));
    // Of six runs the smallest and the largest are the interval.
    assert_eq!(
        time["median_ci95"],
        serde_json::json!([time["min"], time["max"]])
    );
    assert!(time["p90_ci95"].is_null() && time["cv_pct"].is_f64());
}

#[test]
fn sensitivity_moves_every_figure_and_says_what_it_rests_on() {
    let more = ["NO_WA_IDLE", "--runs", "2", "--sensitivity"];
    let text = stdout(&compare(&more));
    for part in [
        "sensitivity: ",
        "time of NO_WA_IDLE at the machine's own figures",
        "stand-in",
        "sign",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    let with_jobs = |jobs: &str| {
        let format = [
            "--format",
            "json",
            "--metric",
            "time_s,context_switches",
            "--jobs",
            jobs,
        ];
        let mut json = json(&compare(&[&more[..], &format].concat()));
        json["host"] = Value::Null;
        json
    };
    let found = with_jobs("1");
    assert_eq!(found, with_jobs("3"));
    let figures = found["sensitivity"]["figures"].as_array().unwrap();
    assert_eq!(
        figures.len() as u64,
        found["sensitivity"]["figures_asked"].as_u64().unwrap()
    );
    let of = |name: &str| {
        figures
            .iter()
            .find(|figure| figure["figure"] == name)
            .unwrap()
    };
    // All sits under one cache; pipes are what it works with.
    assert_eq!(of("transfer_remote_ns")["acts"], false);
    assert_eq!(of("pipe_op_ns")["acts"], true);
    assert_eq!(of("pipe_op_ns")["changes"].as_array().unwrap().len(), 4);
    assert!(
        figures
            .iter()
            .all(|figure| figure["source"].as_str().is_some_and(|s| !s.is_empty()))
    );
    assert_eq!(
        found["sensitivity"]["conclusions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let csv = stdout(&compare(&[&more[..], &["--format", "csv"]].concat()));
    assert_eq!(csv.lines().count(), 2 + 2 * figures.len());
    assert!(
        csv.lines().all(|line| line.split(',').count() == 13),
        "{csv}"
    );
}

#[test]
fn an_experiment_names_its_main_metric_and_notes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = format!(
        "title = \"Mine\"\nsource = \"me\"\nnotes = \"Some.\"\nmetric = \"cpu_migrations\"\nmachine = \"smt2-8\"\n\
         kernel = \"6.5\"\ngrouping = \"root\"\nworkload = \"{SMALL}\"\nvariants = [\"baseline\", \"NO_WA_IDLE\"]\nruns = 1\n"
    );
    fs::write(&file, &text).unwrap();
    let path = file.to_str().unwrap();
    let found = json(&["run", path, "--format", "json"]);
    assert_eq!(found["main_metrics"], serde_json::json!(["cpu_migrations"]));
    let found = json(&["run", path, "--format", "json", "--metric", "idle_s"]);
    assert_eq!(found["main_metrics"], serde_json::json!(["idle_s"]));
    fs::write(&file, text.replace("cpu_migrations", "migrations")).unwrap();
    let stderr = refused(&["run", path]);
    assert!(
        stderr.contains("mine.toml:4:10: there is no such metric at 'migrations'"),
        "{stderr}"
    );
}

#[test]
fn bad_statistics_are_refused_with_the_word() {
    let cases: &[(&[&str], &str)] = &[
        (&["NO_WA_IDLE", "--precision", "0"], "'0'"),
        (&["NO_WA_IDLE", "--precision", "x%"], "'x%'"),
        (&["NO_WA_IDLE", "--max-runs", "20"], "--precision"),
        (
            &["NO_WA_IDLE", "--precision", "1", "--max-runs", "9"],
            "'9'",
        ),
        (
            &["NO_WA_IDLE", "--precision", "1", "--runs", "300"],
            "--max-runs",
        ),
        (&["NO_WA_IDLE", "--metric", "times_s"], "'times_s'"),
        (&["NO_WA_IDLE", "--metric", ""], "metric"),
        // A metric of another workload is only seen when there is a run.
        (&["NO_WA_IDLE", "--metric", "noise_pct"], "'noise_pct'"),
    ];
    for (more, word) in cases {
        let stderr = refused(&compare(more));
        assert!(
            stderr.contains(word),
            "{more:?} should name {word}: {stderr}"
        );
    }
}

/// A result of the experiment, with few short runs.
fn result(folder: &Path, experiment: &str) -> String {
    let path = folder.join(format!("{experiment}.json"));
    let path = path.to_str().expect("temporary paths are UTF-8").to_owned();
    let short = [
        "--scale", "0.01", "--runs", "2", "--format", "json", "--output",
    ];
    stdout(&[&["run", experiment], &short[..], &[&path]].concat());
    path
}

#[test]
fn a_document_holds_what_was_published_and_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let cookie = result(folder.path(), "sis-cookie");
    let document = folder.path().join("experiments.md");
    let to = document.to_str().unwrap();
    assert!(stdout(&["document", &cookie, "--output", to]).is_empty());
    let text = fs::read_to_string(&document).unwrap();
    for part in [
        "| [sis-cookie](#sis-cookie) | cookies | time | +6.0 % |",
        "Not run: ",
        "- kernel: 6.12, root\n",
        "    wakelab run sis-cookie --scale 0.01 --runs 2 --format json --output results/sis-cookie.json\n",
        "\nNotes: Patch \"sched/fair",
        "### cookies SIS_COOKIE of sis-cookie",
        "| time | 24.564 | 25.132 | +2.3 % |",
    ] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    assert_eq!(stdout(&["document", &cookie]), text, "the same to the byte");
    for host in ["wall", "cpu_s", "/tmp"] {
        assert!(!text.contains(host), "{host}");
    }
}

#[test]
fn a_document_refuses_what_is_no_result_of_today() {
    let folder = tempfile::tempdir().unwrap();
    let cookie = result(folder.path(), "sis-cookie");
    let good = fs::read_to_string(&cookie).unwrap();
    let stderr = refused(&["document", &cookie, &cookie]);
    assert!(stderr.contains("a second result of sis-cookie"), "{stderr}");
    assert!(refused(&["document", "missing.json"]).contains("missing.json"));
    assert!(refused(&["document"]).contains("FILE"));
    let bad = folder.path().join("bad.json");
    let word = bad.to_str().unwrap();
    for (text, part) in [
        (String::new(), "EOF"),
        ("[1, 2".to_owned(), "line 1"),
        ("{}".to_owned(), "missing field `experiment`"),
        (good.replace("\"sis-cookie\"", "\"my-own\""), "'my-own'"),
        (
            good.replace("\"smt2-8\"", "\"altra-80\""),
            "machine 'altra-80' where it has 'smt2-8'",
        ),
        (good.replace("\"6.12\"", "\"6.5\""), "kernel '6.5'"),
        (good.replace("-t 10 -n 1200", "-t 11 -n 1200"), "workload"),
        (good.replace("\"cookies\"", "\"biscuits\""), "variants"),
        (
            good.replace("\"runs\": 2", "\"runs\": 1, \"runs_asked\": 2"),
            "1 of 2 runs",
        ),
        (
            good.replace("\"metric\": \"idle_s\"", "\"metric\": \"idel_s\""),
            "'idel_s'",
        ),
    ] {
        fs::write(&bad, text).unwrap();
        let stderr = refused(&["document", word]);
        assert!(
            stderr.contains("bad.json") && stderr.contains(part),
            "no '{part}' in {stderr}"
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_figures_that_are_complete() {
    // Ten runs of each of some fifty points take long enough to be interrupted, and the first are short.
    let long = "hackbench -g 1 -f 10 --threads --pipe -l 2000 -s 100";
    let mut arguments = compare(&[
        "NO_WA_IDLE",
        "--runs",
        "10",
        "--sensitivity",
        "--format",
        "json",
        "--jobs",
        "1",
    ]);
    arguments[6] = long;
    let child = wakelab()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (out, err, code) = support::interrupt(child);
    assert_eq!(code, Some(130), "{err}");
    let found: Value = serde_json::from_str(&out).expect("what is complete is reported");
    let moved = &found["sensitivity"];
    if let Some(figures) = moved["figures"].as_array() {
        assert!((figures.len() as u64) < moved["figures_asked"].as_u64().unwrap());
    }
}
