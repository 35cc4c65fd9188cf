//! `wakelab verify`, end to end, on the repository's recordings.

#![allow(clippy::unwrap_used)]

mod support;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DECISIONS: &str = "recordings/decisions/A__bias-cg.jsonl.gz";
const CLUSTERS: &str = "recordings/decisions/E__def-mixaff.jsonl.gz";
const BALANCE: &str = "recordings/arithmetic/lbres__J.jsonl.gz";

/// Runs in the repository's root, so that files have the names that users see.
fn verify(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakelab"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .arg("verify")
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Standard output of a comparison that ends with this exit code.
fn stdout(code: i32, arguments: &[&str]) -> String {
    let output = verify(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.is_empty(), "{stderr}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

/// Standard error of one that is refused.
fn refused(arguments: &[&str]) -> String {
    let output = verify(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

fn lines(recording: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(recording);
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The recording of decisions with the choice of its last record changed, as a file of a folder.
fn changed(folder: &Path) -> (PathBuf, Value) {
    let mut lines = lines(DECISIONS);
    let place = lines.len() - 1;
    let mut record: Value = serde_json::from_str(&lines[place]).unwrap();
    assert_eq!(record["racy"], 0);
    record["new"] = u64::from(record["new"] == 0).into();
    lines[place] = record.to_string();
    let path = folder.join("changed.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    (path, record)
}

#[test]
fn text_is_by_file_step_reason_and_kind() {
    insta::assert_snapshot!(stdout(0, &[DECISIONS, CLUSTERS, BALANCE]));
}

#[test]
fn csv_has_a_line_for_each_figure() {
    insta::assert_snapshot!(stdout(0, &[DECISIONS, BALANCE, "--format", "csv"]));
}

#[test]
fn json_has_the_documented_keys() {
    let text = stdout(0, &[DECISIONS, BALANCE, "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["agree_pct"], 100.0);
    let file = &json["files"][0];
    assert_eq!(file["file"], DECISIONS);
    let number = |key: &str| file[key].as_u64().unwrap();
    assert!(number("agree") > 50 && number("racy") > 0);
    assert_eq!(number("disagree"), 0);
    assert_eq!(number("decisions"), number("agree") + number("racy"));
    let reasons = file["by_reason"].as_object().unwrap().values();
    let agree: u64 = reasons.map(|count| count["agree"].as_u64().unwrap()).sum();
    assert_eq!(agree, number("agree"));
    assert_eq!(file["by_step"]["whole decision"]["agree"], file["agree"]);
    assert!(json.get("shown").is_none());
}

#[test]
fn a_disagreement_is_shown_with_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = changed(folder.path());
    let path = path.to_str().unwrap();
    let text = stdout(0, &[path, "--show", "3"]);
    let (_, shown) = text.split_once("they part at: ").unwrap();
    assert!(text.contains(&format!(
        "kernel's choice: CPU {}; the model's",
        record["new"]
    )));
    assert!(shown.contains(&format!("state: {record}")), "{shown}");

    let text = stdout(0, &[path, "--show", "3", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["files"][0]["disagree"], 1);
    let shown = json["shown"].as_array().unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(
        (&shown[0]["record"], &shown[0]["state"]),
        (&record["i"], &record)
    );
    assert_eq!(shown[0]["choice"]["kernel"], record["new"]);
}

#[test]
fn min_decides_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = changed(folder.path());
    let path = path.to_str().unwrap();
    assert!(!stdout(1, &[path, "--min", "100"]).is_empty());
    stdout(0, &[path, "--min", "90"]);
    stdout(0, &[DECISIONS, "--min", "100"]);
    for bad in ["101", "-1", "NaN", "x"] {
        assert!(refused(&[DECISIONS, "--min", bad]).contains(bad));
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.jsonl");
    let name = path.to_str().unwrap();
    let whole = lines(DECISIONS);
    let write = |text: &str| fs::write(&path, text).unwrap();
    write(&whole[..3].join("\n"));
    assert!(refused(&[name]).contains("bad.jsonl:4: the file ends after 2 of"));
    write(&format!(
        "{}
{}",
        whole[0], r#"{"i":1,"cpu":"x"}"#
    ));
    assert!(refused(&[DECISIONS, name]).contains("bad.jsonl:2: field 'cpu': invalid type"));
    write(&whole[0].replacen("\"schema\":1", "\"schema\":3", 1));
    assert!(refused(&[name]).contains("bad.jsonl:1: unknown schema version 3"));
    write("");
    assert!(refused(&[name]).contains("bad.jsonl:1: the file has no header"));
    let missing = folder.path().join("missing.gz");
    assert!(refused(&[missing.to_str().unwrap()]).contains("missing.gz"));
    assert!(refused(&[folder.path().to_str().unwrap()]).contains("cannot be read"));
    assert!(refused(&[]).contains("FILE"));
}

#[test]
fn a_kind_without_comparison_is_no_agreement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.jsonl");
    let mut header: Value = serde_json::from_str(&lines(BALANCE)[0]).unwrap();
    header["kind"] = "newkind".into();
    fs::write(&path, header.to_string()).unwrap();
    let name = path.to_str().unwrap();
    let stderr = refused(&[BALANCE, name]);
    assert!(
        stderr.contains("'newkind'")
            && stderr.contains("--skip-unknown")
            && stderr.contains("lbres"),
        "{stderr}"
    );
    let text = stdout(0, &[BALANCE, name, "--skip-unknown"]);
    assert!(
        text.contains("not compared: ") && text.contains("'newkind'"),
        "{text}"
    );
    // Nothing compared is nothing that agrees.
    stdout(1, &[name, "--skip-unknown", "--min", "0"]);
}

#[test]
fn the_order_does_not_depend_on_the_number_of_jobs() {
    let with = |jobs: &str| {
        let files = [
            BALANCE, CLUSTERS, DECISIONS, "--format", "csv", "--jobs", jobs,
        ];
        stdout(0, &files)
    };
    assert_eq!(with("1"), with("3"));
}

#[test]
fn mutations_are_caught_or_listed() {
    let text = stdout(0, &[DECISIONS, "--mutate", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let mutations = json["mutations"].as_array().unwrap();
    assert!(mutations.len() >= 25);
    let of = |name: &str| mutations.iter().find(|row| row["name"] == name).unwrap();
    let skipped = of("target-skipped");
    assert!(skipped["caught_by"].as_u64().unwrap() > 0);
    assert_eq!(skipped["first"]["file"], DECISIONS);
    assert_eq!(skipped["first"]["parts_at"], "select_idle_sibling, path");
    // The machine has one node: nothing about NUMA can be caught there.
    assert!(of("slow-numa-min+1")["first"].is_null());

    let text = stdout(0, &[DECISIONS, "--mutate"]);
    assert!(
        text.contains("not caught: slow-numa-min+1 (slow path): "),
        "{text}"
    );
    let csv = stdout(0, &[DECISIONS, "--mutate", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + mutations.len());
    assert!(refused(&[BALANCE, "--mutate"]).contains("'lbres'"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_reports_the_files_that_are_complete_and_exits_with_130() {
    let child = Command::new(env!("CARGO_BIN_EXE_wakelab"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["verify", "--mutate", "--jobs", "1", "--format", "json"])
        .args([CLUSTERS].repeat(2000))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Time to install the handler; so many files take minutes.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let (out, err, code) = support::interrupt(child);
    assert_eq!(code, Some(130), "{err}");
    assert!(err.starts_with("interrupted: "), "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["decisions"].is_u64());
    assert_eq!(json["interrupted"], true);
}
