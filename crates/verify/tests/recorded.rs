//! Makes everything recorded from a real 6.12 again, through the functions that the simulator runs.
//! `recordings/README.md` says what the repository's recordings are. Whole recordings are compared
//! too where WAKELAB_ORACLE_DIR, WAKELAB_ORACLE2 or WAKELAB_RECORDINGS names a folder of them.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use wakelab_verify::{Count, FileReport, KINDS, Problem, ReadError, Recording, Step, verify};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../recordings")
        .join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no recordings in {}", folder.display());
    files
}

/// Compares all files of a folder whose kind is known; nothing may differ.
fn all_agree(folder: &Path) -> Vec<FileReport> {
    let mut reports = Vec::new();
    for file in files(folder) {
        let recording = match Recording::open(&file) {
            Ok(recording) => recording,
            Err(ReadError {
                problem: Problem::UnknownKind(kind),
                ..
            }) => {
                println!("{}: no comparison for '{kind}'", file.display());
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let report = verify(recording, 1, &|| false).unwrap().unwrap();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (counted, racy, undetermined) = (report.counted, report.racy, &report.undetermined);
        println!("{name}: {counted:?}, racy {racy:?}, undetermined {undetermined:?}");
        if let Some(first) = report.shown.first() {
            panic!("{}:{} differs: {first:#?}", file.display(), first.line);
        }
        reports.push(report);
    }
    let agree: u64 = reports.iter().map(|report| report.counted.agree).sum();
    println!("{} files, {agree} agree", reports.len());
    reports
}

#[test]
fn every_recorded_decision_comes_out_as_the_kernel_made_it() {
    let reports = all_agree(&folder("decisions"));
    let agree: u64 = reports.iter().map(|report| report.counted.agree).sum();
    assert!(agree > 3000, "only {agree} decisions");
    for step in Step::ALL {
        let of_step = reports.iter().flat_map(|report| &report.by_step);
        let mut count = Count::default();
        of_step
            .filter(|(of, _)| *of == step)
            .for_each(|(_, of)| count.merge(*of));
        assert!(
            count.agree > 0,
            "no decision takes the step '{}'",
            step.name()
        );
    }
}

#[test]
fn every_recorded_call_comes_out_to_the_last_digit() {
    let reports = all_agree(&folder("arithmetic"));
    for kind in KINDS {
        let of_kind = reports.iter().filter(|report| report.kind == kind.name);
        let agree: u64 = of_kind.map(|report| report.counted.agree).sum();
        assert!(agree > 0, "no records of kind '{}'", kind.name);
    }
}

#[test]
fn whole_recordings_agree_if_there_are_any() {
    for variable in [
        "WAKELAB_ORACLE_DIR",
        "WAKELAB_ORACLE2",
        "WAKELAB_RECORDINGS",
    ] {
        if let Some(folder) = std::env::var_os(variable) {
            all_agree(Path::new(&folder));
        }
    }
}
