//! Recordings that are not what they should be: each ends in an error that names file, line and
//! field, or is compared as what it says; none ends in a panic.

#![allow(clippy::unwrap_used)]

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::Value;
use std::fs::File;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use wakelab_verify::{FileReport, KINDS, Recording, mutate, verify};

const DECISIONS: &str = "decisions/A__bias-cg.jsonl.gz";

fn read(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../recordings")
        .join(name);
    let mut text = String::new();
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A header and this many of its records.
fn some(name: &str, records: usize) -> Vec<String> {
    let lines = read(name);
    let mut header: Value = serde_json::from_str(&lines[0]).unwrap();
    header["nrec"] = records.into();
    let mut some = vec![header.to_string()];
    some.extend(lines[1..=records].iter().cloned());
    some
}

fn outcome(bytes: Vec<u8>) -> Result<FileReport, String> {
    let recording = Recording::from_reader(&PathBuf::from("x.jsonl"), Cursor::new(bytes));
    let report = recording.and_then(|recording| verify(recording, 1, &|| false));
    report
        .map(Option::unwrap)
        .map_err(|error| error.to_string())
}

fn compare(lines: &[String]) -> Result<FileReport, String> {
    outcome(lines.join("\n").into_bytes())
}

fn refused(lines: &[String]) -> String {
    compare(lines).map(|report| report.counted).unwrap_err()
}

/// The line with another value at a place such as `/fl/1`.
fn with(line: &str, pointer: &str, value: Value) -> String {
    let mut json: Value = serde_json::from_str(line).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    json.to_string()
}

/// Fields that only inform, which nothing is decided by.
const INFORMATIVE: [&str; 26] = [
    "t", "j", "tgid", "comm", "cur", "ccomm", "aff", "sync", "lsz", "nal", "w", "prio", "pol",
    "pl", "pr", "cl", "tg", "kth", "hi", "av", "busy", "sd", "cco", "kck", "cm", "pm",
];
/// Fields that are left out where they say nothing.
const OPTIONAL: [&str; 8] = ["exi", "onrq", "core", "wa", "sis", "slow", "xl", "is"];

#[test]
fn a_field_that_is_missing_is_named_with_its_line() {
    let lines = some(DECISIONS, 2);
    let record: Value = serde_json::from_str(&lines[2]).unwrap();
    let mut named = 0;
    for field in record.as_object().unwrap().keys() {
        let mut without = record.clone();
        without.as_object_mut().unwrap().remove(field);
        let damaged = [lines[0].clone(), lines[1].clone(), without.to_string()];
        let result = compare(&damaged);
        if INFORMATIVE.contains(&field.as_str()) || OPTIONAL.contains(&field.as_str()) {
            assert!(result.is_ok(), "{field}: {result:?}");
            continue;
        }
        let error = result.map(|_| field).unwrap_err();
        assert!(error.starts_with("x.jsonl:3: "), "{error}");
        assert!(
            error.contains(&format!("missing field `{field}`")),
            "{error}"
        );
        named += 1;
    }
    assert!(named > 30, "only {named} fields are needed");
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_what_was_expected() {
    let lines = some(DECISIONS, 1);
    for (pointer, place) in [
        ("/prev", "field 'prev'"),
        ("/fl/1", "field 'fl[1]'"),
        ("/nr/3", "field 'nr[3]'"),
    ] {
        let damaged = [lines[0].clone(), with(&lines[1], pointer, "x".into())];
        let error = refused(&damaged);
        let words = [place, "invalid type: string \"x\"", "expected u"];
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let header = with(&lines[0], "/cpus/3/doms/0/span", Value::Null);
    let error = refused(&[header, lines[1].clone()]);
    assert!(
        error.contains("x.jsonl:1: field 'cpus[3].doms[0].span'"),
        "{error}"
    );
}

#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    let lines = some(DECISIONS, 1);
    for (pointer, value) in [("/prev", 8), ("/cpu", 9), ("/tcpu", 70000), ("/ruc/0", 8)] {
        let damaged = [lines[0].clone(), with(&lines[1], pointer, value.into())];
        let error = refused(&damaged);
        assert!(error.contains("a CPU below 8 was expected"), "{error}");
    }
    for pointer in ["/idl", "/si", "/ci", "/tp"] {
        let damaged = [lines[0].clone(), with(&lines[1], pointer, 256.into())];
        let error = refused(&damaged);
        assert!(
            error.contains("0x100 where a mask of CPUs below 8"),
            "{error}"
        );
    }
    let short = [lines[0].clone(), with(&lines[1], "/ld", vec![1; 7].into())];
    assert!(refused(&short).contains("'ld': a list of 7 where one value for each of 8 CPUs"));
}

#[test]
fn a_header_that_makes_up_no_machine_is_refused() {
    let lines = some(DECISIONS, 1);
    let cases: [(&str, Value, &str); 9] = [
        ("/schema", 7.into(), "unknown schema version 7"),
        ("/kernel", "5.4.0".into(), "'5.4.0'"),
        ("/ncpu", 0.into(), "'ncpu'"),
        ("/ncpu", 9.into(), "'cpus'"),
        ("/cpus/2/smt", 3.into(), "cpus[2].smt"),
        ("/cpus/2/llc", 5.into(), "cpus[2].llc"),
        ("/cpus/2/llc_span", 15.into(), "cpus[2].llc_span"),
        ("/cpus/2/doms/0/span", 3.into(), "cpus[2].doms[0].span"),
        (
            "/cpus/2/doms/0/groups/0/0",
            0.into(),
            "cpus[2].doms[0].groups[0]",
        ),
    ];
    for (pointer, value, word) in cases {
        let error = refused(&[with(&lines[0], pointer, value), lines[1].clone()]);
        assert!(
            error.starts_with("x.jsonl:1: ") && error.contains(word),
            "{pointer}: {error}"
        );
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let lines = some(DECISIONS, 3);
    assert!(refused(&lines[..3]).contains("x.jsonl:4: the file ends after 2 of 3 records"));
    assert!(refused(&[]).contains("the file has no header"));
    assert!(refused(&lines[1..]).contains("missing field `k`"));
    let twice = [&lines[..], &lines[1..2]].concat();
    assert!(refused(&twice).contains("x.jsonl:5: more than the 3 records"));

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(lines.join("\n").as_bytes()).unwrap();
    let whole = gzip.finish().unwrap();
    assert_eq!(outcome(whole.clone()).unwrap().records(), 3);
    for len in [20, whole.len() / 2, whole.len() - 1] {
        let error = outcome(whole[..len].to_vec()).map(|report| report.counted);
        let error = error.unwrap_err();
        assert!(error.contains("the gzip data is cut off"), "{len}: {error}");
    }
}

#[test]
fn a_decision_that_was_not_made_so_differs_and_says_where() {
    let lines = some(DECISIONS, 6);
    for (number, line) in lines.iter().enumerate().skip(1) {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["racy"] != 0 || record["new"] == 0 {
            continue;
        }
        let mut damaged = lines.clone();
        damaged[number] = with(line, "/new", 0.into());
        let report = compare(&damaged).unwrap();
        assert_eq!(report.counted.disagree, 1);
        let shown = &report.shown[0];
        assert_eq!(shown.line, number as u64 + 1);
        assert_eq!(
            (shown.difference.step, shown.difference.kernel.as_str()),
            ("CPU", "0")
        );
        assert_eq!(Value::from(shown.choice.unwrap().ours), record["new"]);
        return;
    }
    panic!("no record to change");
}

#[test]
fn arithmetic_that_is_one_off_differs() {
    let lines = some("arithmetic/cdf__A.jsonl.gz", 1);
    let record: Value = serde_json::from_str(&lines[1]).unwrap();
    let off = record["r"].as_u64().unwrap() + 1;
    let report = compare(&[lines[0].clone(), with(&lines[1], "/r", off.into())]).unwrap();
    assert_eq!(report.shown[0].difference.step, "delta");
    assert_eq!(report.shown[0].difference.kernel, off.to_string());
}

/// A comparison that could not fail would prove nothing.
#[test]
fn every_kind_sees_that_one_of_its_numbers_is_another() {
    for kind in KINDS {
        let lines = some(&format!("arithmetic/{}__A.jsonl.gz", kind.name), 5);
        let differs = |line: usize, place: &String| {
            let mut changed = lines.clone();
            let value: Value = serde_json::from_str(&lines[line]).unwrap();
            let number = value.pointer(place).and_then(Value::as_u64).unwrap_or(0);
            changed[line] = with(&lines[line], place, (number ^ 1).into());
            compare(&changed).is_ok_and(|report| report.counted.disagree > 0)
        };
        let seen = (1..lines.len()).any(|line| {
            let mut places = Vec::new();
            numbers(
                &serde_json::from_str(&lines[line]).unwrap(),
                "",
                &mut places,
            );
            places.iter().any(|place| differs(line, place))
        });
        assert!(seen, "{}", kind.name);
    }
}

#[test]
fn only_decisions_can_be_mutated() {
    let text = some("arithmetic/cdf__A.jsonl.gz", 1).join("\n");
    let recording = Recording::from_reader(Path::new("x"), Cursor::new(text.into_bytes()));
    let error = mutate(recording.unwrap(), &|| false).unwrap_err();
    assert!(error.to_string().contains("'cdf'"), "{error}");
}

/// The files that the next test damages: of each reader one.
fn readers() -> Vec<String> {
    let kinds = KINDS
        .iter()
        .map(|kind| format!("arithmetic/{}__A.jsonl.gz", kind.name));
    let decisions = [
        "A__cookie-rwc",
        "D__def-fb",
        "E__def-mixaff",
        "J__def-mover",
    ];
    let decisions = decisions.map(|name| format!("decisions/{name}.jsonl.gz"));
    kinds.chain(decisions).collect()
}

/// All places of a value that hold a number.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            let each = list.iter().enumerate();
            each.for_each(|(index, value)| numbers(value, &format!("{at}/{index}"), found));
        }
        Value::Object(map) => {
            let each = map.iter();
            each.for_each(|(key, value)| numbers(value, &format!("{at}/{key}"), found));
        }
        Value::Number(_) => found.push(at.to_owned()),
        _ => {}
    }
}

#[test]
fn no_number_however_large_makes_a_panic() {
    let large: [Value; 6] = [
        u64::MAX.into(),
        i64::MAX.into(),
        i64::MIN.into(),
        u32::MAX.into(),
        (-1).into(),
        0.into(),
    ];
    for reader in readers() {
        let lines = some(&reader, 2);
        for (number, line) in lines.iter().enumerate() {
            let mut places = Vec::new();
            numbers(&serde_json::from_str(line).unwrap(), "", &mut places);
            // A header says the same of many CPUs: some of its numbers do.
            let stride = if number == 0 { 37 } else { 1 };
            for place in places.iter().step_by(stride) {
                for value in &large {
                    let mut damaged = lines.clone();
                    damaged[number] = with(line, place, value.clone());
                    let result = std::panic::catch_unwind(|| compare(&damaged).is_ok());
                    assert!(result.is_ok(), "{reader}: {place} = {value}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_damage_makes_a_panic(
        reader in 0..readers().len(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
    ) {
        let lines = some(&readers()[reader], 4);
        let mut bytes = lines.join("\n").into_bytes();
        let begin = if in_header { 0 } else { lines[0].len() };
        for (place, byte) in damages {
            let place = begin + place.index(bytes.len() - begin);
            // Mostly another digit, so that the line stays JSON.
            bytes[place] = if byte < 200 { b'0' + byte % 10 } else { byte };
        }
        let _ = outcome(bytes);
    }
}
