//! `wakelab matrix`: its table, its going on, and what it refuses.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};

/// A matrix that takes a moment.
const SMALL: [&str; 11] = [
    "matrix",
    "NO_SIS_UTIL",
    "--machine",
    "smt2-8",
    "--workload",
    "hackbench,messaging,pipe",
    "--runs",
    "2",
    "--scale",
    "0.0001",
    "--jobs",
];

fn output(more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakelab"))
        .args(SMALL)
        .args(["2"])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

fn stdout(more: &[&str]) -> String {
    let output = output(more);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refusal(more: &[&str]) -> String {
    let output = output(more);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_cell_has_a_verdict_in_each_format() {
    let json: Value =
        serde_json::from_str(&stdout(&["--load", "50,200", "--format", "json"])).unwrap();
    let cells = json["cells"].as_array().unwrap();
    let place = |cell: &Value| (cell["kind"].to_string(), cell["load_pct"].as_u64().unwrap());
    let places: Vec<_> = cells.iter().map(place).collect();
    let expected = ["hackbench", "messaging", "pipe"]
        .iter()
        .flat_map(|kind| [50, 200].map(|load| (format!("\"{kind}\""), load)));
    assert_eq!(places, expected.collect::<Vec<_>>());
    for cell in cells {
        let verdict = cell["verdict"].as_str().unwrap();
        let unfit = cell["kind"] == "messaging";
        assert_eq!(verdict == "unfit", unfit, "{cell}");
        assert_eq!(cell["baseline"].is_number(), !unfit, "{cell}");
    }
    assert_eq!(
        (&json["kernel"], &json["runs"]),
        (&"6.18".into(), &2.into())
    );
    let csv = stdout(&["--load", "50,200", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 7, "{csv}");
    let text = stdout(&["--load", "50,200"]);
    assert!(text.contains("machine  workload   50 %"), "{text}");
    assert!(text.contains("\nIt helps in "), "{text}");
}

#[test]
fn a_matrix_goes_on_from_its_file_with_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let file = path.to_str().unwrap();
    let whole = stdout(&["--load", "50,100", "--format", "json"]);
    stdout(&["--load", "50", "--results", file]);
    let part = fs::read_to_string(&path).unwrap();
    // What is there is believed and not made again.
    let known: Value = serde_json::from_str(&part).unwrap();
    let made = known["cells"][0]["baseline"].to_string();
    fs::write(&path, part.replacen(&made, "12345.0", 1)).unwrap();
    let again = stdout(&["--load", "50,100", "--results", file, "--format", "json"]);
    assert_eq!(again.replacen("12345.0", &made, 1), whole);
    assert_eq!(fs::read_to_string(&path).unwrap(), again);
}

#[test]
fn what_makes_no_matrix_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let file = path.to_str().unwrap();
    stdout(&["--load", "50", "--workload", "pipe", "--results", file]);
    let other_seed = refusal(&["--load", "50", "--seed", "2", "--results", file]);
    assert!(other_seed.contains("seed 1 and not 2"), "{other_seed}");
    fs::write(&path, "{}").unwrap();
    assert!(refusal(&["--results", file]).contains("results.json"));
    for (words, part) in [
        (["--kernel", "6.13"], "6.13"),
        (["--machine", "pdp-11"], "pdp-11"),
        (["--machine", "smt2-8"], "twice"),
        (["--load", "0"], "0"),
        (["--workload", "doom"], "doom"),
    ] {
        let error = refusal(&words);
        assert!(error.contains(part), "{words:?}: {error}");
    }
    let unknown = Command::new(env!("CARGO_BIN_EXE_wakelab"))
        .args(["matrix", "NO_SUCH_WORD"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let same = Command::new(env!("CARGO_BIN_EXE_wakelab"))
        .args(["matrix", "SIS_UTIL", "--kernel", "6.12"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&same.stderr).contains("there is no change"));
}
