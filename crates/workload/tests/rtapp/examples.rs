//! The example files of rt-app's own source package, read and run.
//!
//! They are not part of this repository: `.ci/rt-app` fetches them and runs this. Without
//! `WAKELAB_RTAPP=DIR`, the directory of rt-app's source, there is nothing to run and the test says so.

use super::support::{config, metric};
use std::path::{Path, PathBuf};
use wakelab_workload::{Workload, run};

/// What the package of Debian 12 has: rt-app 1.0.
const FILES: usize = 25;

/// Files that are refused, with a part of the error and why.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "doc/examples/merge/global.json",
        "expected a key 'tasks'",
        MERGED,
    ),
    (
        "doc/examples/merge/resources.json",
        "expected a key 'tasks'",
        MERGED,
    ),
    ("doc/examples/merge/thread0.json", "for 'lock_order'", OLD),
    ("doc/examples/merge/thread1.json", "for 'lock_order'", OLD),
    ("doc/examples/merge/thread2.json", "for 'lock_order'", OLD),
    ("doc/examples/merge/thread3.json", "for 'lock_order'", OLD),
    ("doc/taskset.json", "for 'lock_order'", OLD),
];
const MERGED: &str = "a part of a file, to be merged with others";
const OLD: &str =
    "of before rt-app 1.0, in which nothing reads it either: 'lock_order' is an array";

/// A part of each run; the longest files say minutes.
const TIME: &str = "-t 2";

#[test]
fn every_example_is_run_or_refused_with_a_reason() {
    let Some(root) = std::env::var_os("WAKELAB_RTAPP").map(PathBuf::from) else {
        println!("nothing to run: WAKELAB_RTAPP is not set (see .ci/rt-app)");
        return;
    };
    let mut files = Vec::new();
    collect(&root.join("doc"), &mut files);
    files.sort();
    let (mut ran, mut refused) = (0, 0);
    for file in &files {
        let name = file
            .strip_prefix(&root)
            .expect("it is below")
            .display()
            .to_string();
        let expected = REFUSED.iter().find(|(refused, ..)| *refused == name);
        let parsed = Workload::parse(&format!("rt-app {TIME} {}", file.display()));
        match (parsed, expected) {
            (Ok(workload), None) => {
                let outcome = run(&workload, &config("smt2-8"), &|| false);
                let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
                let loops = metric(&outcome, "rtapp_loops");
                println!(
                    "{name}: {loops} loops, {} warnings",
                    workload.warnings().len()
                );
                assert!(loops > 0.0, "{name}");
                ran += 1;
            }
            (Err(error), Some((_, part, why))) => {
                println!("{name}: refused ({why}): {error}");
                assert!(error.to_string().contains(part), "{error}");
                refused += 1;
            }
            (Ok(_), Some(_)) => panic!("{name} is read"),
            (Err(error), None) => panic!("{error}"),
        }
    }
    println!("{} files: {ran} run, {refused} refused", files.len());
    assert_eq!((files.len(), refused), (FILES, REFUSED.len()));
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
}
