//! Compares EEVDF as the model has it, to the last digit, with calls recorded from a real 6.12.
//!
//! `tests/data/eevdf` holds a sample; with `WAKELAB_ORACLE2` set to a directory, all files
//! `KIND__*.jsonl.gz` there are read instead. Every check takes one parsed record and calls the very
//! functions that the simulator calls.

mod entity;
mod pick;
mod queue;
mod record;
mod scene;
#[path = "../support/mod.rs"]
mod support;
mod vtime;

use flate2::read::GzDecoder;
use record::{Checked, Record, Verdict};
use scene::Stage;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Check = fn(&Stage, &Record<'_>) -> Checked;

fn files(kind: &str) -> Vec<PathBuf> {
    let Some(dir) = std::env::var_os("WAKELAB_ORACLE2") else {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/eevdf");
        return vec![data.join(format!("{kind}.jsonl.gz"))];
    };
    let entries = std::fs::read_dir(dir).expect("the directory can be read");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{kind}__"))
        })
        .collect();
    files.sort();
    files
}

/// All records of a kind must agree.
fn all_agree(kind: &str, check: Check) {
    let stage = Stage::new(Arc::new(support::flat(1, 1)));
    let (mut seen, mut differ) = (0, 0);
    for path in files(kind) {
        let mut header = Value::Null;
        let file = File::open(&path).expect("the recording can be read");
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.expect("the recording can be read");
            let value: Value = serde_json::from_str(&line).expect("a record is JSON");
            if value["k"] == "hdr" {
                header = value;
                continue;
            }
            let record = Record {
                header: &header,
                value: &value,
            };
            seen += 1;
            let verdict = check(&stage, &record).expect("a record is as the format says");
            if let Verdict::Differs(how) = verdict {
                differ += 1;
                if differ <= 3 {
                    println!("{kind} differs: {how}\n  {line}");
                }
            }
        }
    }
    println!("{kind}: {seen} records, {differ} differ");
    assert!(seen > 0, "no records of {kind}");
    assert_eq!(differ, 0, "{kind}: of {seen}");
}

#[test]
fn the_average_virtual_time() {
    all_agree("avgv", vtime::avgv);
}

#[test]
fn eligibility() {
    all_agree("elig", vtime::elig);
}

#[test]
fn the_lag_of_what_leaves() {
    all_agree("lag", vtime::lag);
}

#[test]
fn the_least_slice_of_a_queue() {
    all_agree("msl", vtime::msl);
}

#[test]
fn where_an_entity_joins() {
    all_agree("place", entity::place);
}

#[test]
fn the_next_request() {
    all_agree("updl", entity::updl);
}

#[test]
fn accounting() {
    all_agree("curr", entity::curr);
}

#[test]
fn yielding() {
    all_agree("yield", entity::yields);
}

#[test]
fn a_new_weight() {
    all_agree("rewt", entity::rewt);
}

#[test]
fn leaving_a_queue() {
    all_agree("deq", queue::deq);
}

#[test]
fn being_woken_while_still_queued() {
    all_agree("reqd", queue::reqd);
}

#[test]
fn picks() {
    all_agree("pick", pick::pick);
}

#[test]
fn preemption_by_a_wake_up() {
    all_agree("preempt", pick::preempt);
}

mod the_checks_themselves {
    use super::*;

    /// A check that could not fail would prove nothing: any number of the outcome changed is seen.
    #[test]
    fn see_a_difference_and_a_malformed_record() {
        let stage = Stage::new(Arc::new(support::flat(1, 1)));
        let header = serde_json::json!({"hz": 250, "sets": [{"feats": {}, "base_slice": 1}]});
        let queue = [100, 60, 4, 2, 0, 0, 0, 2];
        let mut value = serde_json::json!({"s": 0, "q": queue, "z1": 115, "s1": 0, "r": 115});
        let check = |value: &Value| {
            let header = &header;
            vtime::avgv(&stage, &Record { header, value })
        };
        assert_eq!(check(&value), Ok(Verdict::Agrees));
        for name in ["z1", "s1", "r"] {
            let right = value[name].take();
            value[name] = 7.into();
            assert!(matches!(check(&value), Ok(Verdict::Differs(how)) if how.contains("kernel 7")));
            value[name] = right;
        }
        value["q"] = Value::Null;
        assert!(check(&value).is_err());
        // What is queued on an empty queue would count it below nothing.
        let entity = [1, 0, 0, 0, 1024, 0, 1, 28];
        let value = serde_json::json!({"s": 0, "fl": 1, "q0": [0, 0, 0, 0, 0, 0, 0, 0], "e0": entity, "e1": entity});
        let (header, value) = (&header, &value);
        assert!(queue::deq(&stage, &Record { header, value }).is_err());
    }
}
