//! Makes decisions recorded from a real 6.12 again, through the functions that the simulator runs,
//! and compares every step. `data/oracle/README.md` says what the recordings are.
//!
//! With `WAKELAB_ORACLE_DIR` set to a folder of whole recordings, those are compared too.

mod compare;
mod header;
mod record;

use compare::{Tally, recording};
use flate2::read::GzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

fn read_gz(path: &Path) -> String {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no recordings in {}", folder.display());
    paths
}

/// Compares all recordings of a folder and prints how each step agreed.
fn compare_folder(folder: &Path) -> Tally {
    let mut total = Tally::default();
    for path in recordings(folder) {
        let tally = recording(&read_gz(&path));
        println!(
            "{:<28} agree {:>5} disagree {:>3}   racy: agree {:>4} disagree {:>3}",
            path.file_name().unwrap_or_default().to_string_lossy(),
            tally.decisions.agree,
            tally.decisions.disagree,
            tally.racy.agree,
            tally.racy.disagree
        );
        total.merge(tally);
    }
    for (step, count) in &total.steps {
        println!(
            "{step:<28} agree {:>7} disagree {:>5}",
            count.agree, count.disagree
        );
    }
    for (reason, count) in &total.reasons {
        println!(
            "{:<28} agree {:>7} disagree {:>5}",
            reason.name(),
            count.agree,
            count.disagree
        );
    }
    println!("decisions: {:?}, racy: {:?}", total.decisions, total.racy);
    total
}

#[test]
fn every_recorded_decision_comes_out_as_the_kernel_made_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oracle");
    let total = compare_folder(&folder);
    assert_eq!(total.decisions.disagree, 0, "{}", total.examples.join("\n"));
    assert!(
        total.decisions.agree > 3000,
        "the recordings are not there: {:?}",
        total.decisions
    );
    for step in compare::STEPS {
        let agree = total.steps.get(step).map_or(0, |count| count.agree);
        assert!(agree > 0, "no recorded decision takes the step '{step}'");
    }
}

#[test]
fn whole_recordings_agree_if_there_are_any() {
    let Some(folder) = std::env::var_os("WAKELAB_ORACLE_DIR") else {
        return;
    };
    let total = compare_folder(Path::new(&folder));
    assert_eq!(total.decisions.disagree, 0, "{}", total.examples.join("\n"));
}
