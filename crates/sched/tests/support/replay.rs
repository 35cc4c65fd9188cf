//! Recorded calls, read from files and decided again.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What came out of deciding a recorded call again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model does what the kernel did.
    Agrees,
    /// It does not, and in what.
    Differs(String),
}

impl Verdict {
    /// Compares what the model has with what the kernel had, by name.
    pub fn of(compared: &[(&str, u64, u64)]) -> Verdict {
        let differs: Vec<String> = compared
            .iter()
            .filter(|(_, model, kernel)| model != kernel)
            .map(|(name, model, kernel)| format!("{name}: model {model}, kernel {kernel}"))
            .collect();
        if differs.is_empty() {
            Verdict::Agrees
        } else {
            Verdict::Differs(differs.join("; "))
        }
    }

    /// Both must agree.
    pub fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Agrees, verdict) | (verdict, Verdict::Agrees) => verdict,
            (Verdict::Differs(one), Verdict::Differs(two)) => {
                Verdict::Differs(format!("{one}; {two}"))
            }
        }
    }
}

/// A record that is not as the format says: the field that is missing or of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// A verdict, if the record can be read.
pub type Checked = Result<Verdict, Malformed>;

/// An integer, modulo 2^64.
pub fn integer(value: &Value, name: &str) -> Result<u64, Malformed> {
    let signed = || value.as_i64().map(|n| n as u64);
    let number = value.as_u64().or_else(signed);
    number.ok_or_else(|| Malformed(name.to_owned()))
}

/// The files of a kind: the sample in a directory of `tests/data`, or all of `WAKELAB_ORACLE2`.
fn files(sample: &str, kind: &str) -> Vec<PathBuf> {
    let Some(dir) = std::env::var_os("WAKELAB_ORACLE2") else {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        return vec![data.join(sample).join(format!("{kind}.jsonl.gz"))];
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

/// All records of a kind must agree. The check is given the header in force and the record.
pub fn all_agree(sample: &str, kind: &str, check: impl Fn(&Value, &Value) -> Checked) {
    let (mut seen, mut differ) = (0, 0);
    for path in files(sample, kind) {
        let mut header = Value::Null;
        let file = File::open(&path).expect("the recording can be read");
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.expect("the recording can be read");
            let value: Value = serde_json::from_str(&line).expect("a record is JSON");
            if value["k"] == "hdr" {
                header = value;
                continue;
            }
            seen += 1;
            let verdict = check(&header, &value).expect("a record is as the format says");
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
