//! What the command says of input that is anything but what it should be: one line that a terminal can
//! show, with the file's name, and exit code 2.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn wakelab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakelab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    wakelab(arguments).output().expect("the program starts")
}

/// Bytes of all values, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// What a reader may meet: name and content.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    let long = "y".repeat(30_000);
    let text = |text: String| text.into_bytes();
    let after = |start: &[u8]| [start, &noise(20_000)].concat();
    vec![
        (
            "passwd",
            text("root:x:0:0:root:/root:/bin/sh\nbin:x:1:1::/:/bin/sh\n".repeat(40)),
        ),
        ("noise", noise(20_000)),
        ("nothing", Vec::new()),
        ("zeros", vec![0; 20_000]),
        ("gzip", after(b"\x1f\x8b")),
        ("bzip2", after(b"BZh9")),
        ("latin1", after(b"<topology>\n")),
        ("one-word", text(long.clone())),
        ("key", text(format!("{long} = 1\n"))),
        ("escaped-key", text("\"a\\nb\\u001b[2J\" = 1\n".to_owned())),
        (
            "value",
            text(format!("name = [\"{long}\"]\ntitle = [\"{long}\"]\n")),
        ),
        (
            "xml",
            text(format!(
                "<topology version=\"2.0\">\n<object type=\"PU\" cpuset=\"a&#10;&#27;{long}\"/></topology>"
            )),
        ),
        (
            "kind",
            text(format!(
                "{{\"k\":\"hdr\",\"schema\":2,\"kernel\":\"6.12\",\"nrec\":1,\"kind\":\"a\\nb\\u001b[2J{long}\"}}\n"
            )),
        ),
        (
            "schema",
            text(format!(
                "{{\"k\":\"hdr\",\"schema\":\"a\\\"\\n\\u001b[2J{long}\"}}\n"
            )),
        ),
        (
            "not-a-header",
            text(format!(
                "{{\"k\":\"a\\n\\u001b[2J{long}\",\"schema\":1,\"kernel\":\"6.12\",\"nrec\":1}}\n"
            )),
        ),
        (
            "kernel",
            text(format!(
                "{{\"k\":\"hdr\",\"schema\":1,\"kernel\":\"{long}\",\"nrec\":1}}\n"
            )),
        ),
        ("array", text("[".repeat(20_000))),
    ]
}

/// Asserts that the arguments are refused in one line that names the file.
fn refused(arguments: &[&str], name: &str) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8(output.stderr).expect("errors are UTF-8");
    let context = format!("{arguments:?}: {stderr}");
    assert_eq!(output.status.code(), Some(2), "{context}");
    assert!(output.stdout.is_empty(), "{context}");
    let line = stderr.strip_suffix('\n').expect("a line ends");
    assert!(!line.contains(|one: char| one.is_control()), "{context}");
    assert!(
        line.starts_with("error: ") && line.contains(name),
        "{context}"
    );
    assert!(line.len() < 1000, "{context}");
    stderr
}

#[test]
fn whatever_a_file_holds_the_error_is_one_short_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in contents() {
        let plain = folder.path().join(name);
        let toml = folder.path().join(format!("{name}.toml"));
        fs::write(&plain, &bytes).unwrap();
        fs::write(&toml, &bytes).unwrap();
        let [plain, toml] = [&plain, &toml].map(|path| path.to_str().unwrap());
        refused(&["machine", "import", plain], name);
        refused(&["machine", "show", plain], name);
        refused(&["machine", "show", toml], name);
        refused(&["run", toml], name);
        refused(&["verify", plain], name);
        refused(&["verify", "--mutate", plain], name);
    }
}

#[test]
fn files_of_a_tree_may_hold_anything_too() {
    let folder = tempfile::tempdir().unwrap();
    let cpu = folder.path().join("sys/devices/system/cpu");
    fs::create_dir_all(cpu.join("cpu0/topology")).unwrap();
    let tree = folder.path().to_str().unwrap();
    for (file, text) in [
        ("online", "x".repeat(30_000)),
        ("online", "0,a\u{1b}[2J\nb".to_owned()),
        ("online", format!("9{}-1", "0".repeat(15))),
        ("cpu0/topology/physical_package_id", "a\nb".repeat(10_000)),
    ] {
        fs::write(cpu.join("online"), "0").unwrap();
        fs::write(cpu.join(file), text).unwrap();
        refused(&["machine", "import", tree], file);
    }
}

#[test]
fn words_of_the_command_line_are_repeated_as_one_line() {
    for (arguments, word) in [
        (&["run", "a\nb\u{1b}[2J"][..], "a\\nb"),
        (&["machine", "show", "a\nb"], "a\\nb"),
        (&["features", "--kernel", "6\n5"], "6\\n5"),
        (&["machine", "import", "pu:\u{7}1"], "1"),
    ] {
        refused(arguments, word);
    }
}

#[test]
fn a_text_that_is_none_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin.toml");
    fs::write(&path, b"# one\n# two\ntitle = \"\xe9\"\n").unwrap();
    let word = path.to_str().unwrap();
    for arguments in [["run", word].as_slice(), &["machine", "show", word]] {
        refused(arguments, "latin.toml:3: expected text in UTF-8");
    }
}

#[test]
fn a_machine_that_an_experiment_names_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = "title = \"x\"\nsource = \"y\"\nmachine = \"smt2-9\"\nkernel = \"6.5\"\n\
        grouping = \"root\"\nworkload = \"hackbench\"\nvariants = [\"baseline\"]\n";
    fs::write(&path, text).unwrap();
    let stderr = refused(&["run", path.to_str().unwrap()], "mine.toml:3:11: ");
    assert!(stderr.contains("'smt2-9'; did you mean smt2-8"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_cannot_be_written_changes_no_exit_code() {
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let mut refused = wakelab(&["run", "no-such-experiment"]);
    assert_eq!(refused.stderr(full()).status().unwrap().code(), Some(2));
    let mut warned = wakelab(&[
        "compare",
        "--machine",
        "smt2-8",
        "--kernel",
        "6.5",
        "--runs",
        "1",
        "--workload",
        "hackbench -g 1 -f 1 -l 5",
        "HRTICK",
    ]);
    let warned = warned.stderr(full()).stdout(Stdio::null()).status();
    assert_eq!(warned.unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_recording_can_come_through_a_pipe() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../recordings/decisions/A__bias-cg.jsonl.gz");
    let mut from_file = output(&["verify", recording.to_str().unwrap(), "--format", "json"]);
    let mut child = wakelab(&["verify", "/dev/stdin", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().unwrap();
    std::io::copy(&mut fs::File::open(&recording).unwrap(), &mut pipe).unwrap();
    drop(pipe);
    let from_pipe = child.wait_with_output().unwrap();
    assert_eq!(from_pipe.status.code(), Some(0));
    let without_name = |output: &mut Vec<u8>| {
        let mut json: serde_json::Value = serde_json::from_slice(output).unwrap();
        json["files"][0]["file"] = "".into();
        json
    };
    let mut piped = from_pipe.stdout;
    assert_eq!(
        without_name(&mut piped),
        without_name(&mut from_file.stdout)
    );
}

#[test]
fn cookies_in_a_kernel_without_core_scheduling_are_refused_as_its_missing_words_are() {
    let compare = |line, word| {
        output(&[
            "compare",
            "--machine",
            "smt2-8",
            "--kernel",
            "5.2",
            "--workload",
            line,
            word,
        ])
    };
    for (line, word, said) in [
        (
            "hackbench -g 1 -l 10",
            "SIS_COOKIE",
            "error: kernel 5.2 has no scheduler feature 'SIS_COOKIE'",
        ),
        (
            "worksleep --cookies pairs",
            "NO_WA_IDLE",
            "error: kernel 5.2 has no '--cookies pairs': core scheduling came with 5.14",
        ),
        (
            "coresched new -- hackbench -g 1 -l 10",
            "NO_WA_IDLE",
            "error: kernel 5.2 has no 'coresched new': core scheduling came with 5.14",
        ),
    ] {
        let output = compare(line, word);
        let stderr = String::from_utf8(output.stderr).expect("errors are UTF-8");
        assert_eq!((output.status.code(), stderr.trim_end()), (Some(2), said));
    }
}
