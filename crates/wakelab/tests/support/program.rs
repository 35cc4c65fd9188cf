//! Running the program in tests.

use std::process::{Command, Output};

pub fn wakelab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wakelab"))
}

pub fn output(arguments: &[&str]) -> Output {
    wakelab()
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Standard output of a command that succeeds.
pub fn stdout(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

/// Standard error of a command that ends with exit code 2 and prints nothing else.
pub fn refused(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

pub const SMALL: &str = "hackbench -g 1 -f 2 --threads --pipe -l 50 -s 100";

pub fn compare<'a>(workload: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "compare",
        "--machine",
        "smt2-8",
        "--kernel",
        "6.5",
        "--workload",
        workload,
    ];
    arguments.extend(more);
    arguments
}
