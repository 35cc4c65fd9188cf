//! `machine import`, end to end.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/program.rs"]
mod program;

use program::{SMALL, compare, refused, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// `machine import` of the word, and what `machine show` says of the file that it makes.
fn imported(folder: &Path, word: &str) -> (String, Value) {
    let text = stdout(&["machine", "import", word]);
    let path = folder.join("imported.toml");
    fs::write(&path, &text).expect("the folder is there");
    let show = [
        "machine",
        "show",
        path.to_str().expect("temporary paths are UTF-8"),
        "--format",
        "json",
    ];
    let shown: Value = serde_json::from_str(&stdout(&show)).expect("the program writes JSON");
    // What can be imported can be used as it is, and is the same machine.
    let direct = ["machine", "show", word, "--format", "json"];
    let direct: Value = serde_json::from_str(&stdout(&direct)).expect("the program writes JSON");
    assert_eq!(direct, shown);
    (text, shown)
}

#[test]
fn a_machine_is_imported_from_a_synthetic_string() {
    let folder = tempfile::tempdir().unwrap();
    let word = "Package:2 [NUMANode] L3Cache:2 Core:4 PU:2(indexes=2*16:1*2)";
    let (text, shown) = imported(folder.path(), word);
    assert!(text.starts_with("# Read from a synthetic string"), "{text}");
    assert!(
        text.contains("cores_per_llc = 4") && text.contains("like = "),
        "{text}"
    );
    assert_eq!(shown["counts"]["cpus"], 32);
    assert_eq!(shown["numbering"], "siblings N and N+16");
    let json = stdout(&["machine", "import", word, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "hwloc-synthetic");
    assert_eq!(json["machine"]["cpus"].as_array().unwrap().len(), 32);
}

#[test]
fn a_machine_is_imported_from_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let cpu = folder.path().join("sys/devices/system/cpu");
    for (file, text) in [
        ("online", "0-1,3-5"),
        ("present", "0-5"),
        ("isolated", "5"),
        ("cpu0/topology/core_cpus_list", "0-1"),
        ("cpu1/topology/core_cpus_list", "0-1"),
        ("cpu3/cpu_capacity", "512"),
    ] {
        let path = cpu.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (text, shown) = imported(folder.path(), folder.path().to_str().unwrap());
    for part in [
        "CPUs 0-4 here are its CPUs 0-1,3-5",
        "not online: 2",
        "isolated = \"4\"",
        "capacity = 512",
        "[places]",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    assert_eq!(shown["isolated"], "4");
    assert_eq!(shown["counts"]["cores"], 4);
}

#[test]
fn a_machine_is_imported_from_xml_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/data");
    for (file, cpus) in [("hwloc-1.xml", 3), ("hwloc-2.xml", 8)] {
        let path = data.join(file);
        let (_, shown) = imported(folder.path(), path.to_str().unwrap());
        assert_eq!(shown["counts"]["cpus"], cpus);
        assert_eq!(shown["counts"]["nodes"], 2);
    }
    let path = data.join("hwloc-2.xml");
    let mut arguments = compare(SMALL, &["NO_SIS_UTIL", "--runs", "1", "--format", "json"]);
    arguments[2] = path.to_str().unwrap();
    let result: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert_eq!(result["machine"], "hwloc-2");
}

#[test]
fn a_bad_import_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.xml");
    let word = path.to_str().unwrap();
    for (bytes, part) in [
        (
            &b"<topology version=\"2.0\">\n<object type=\"PU\" cpuset=\"0xz\"/>"[..],
            "bad.xml:2: '0xz'",
        ),
        (b"<topology version=\"9\"/>", "bad.xml:1: '9'"),
        (b"no XML at all", "bad.xml: "),
        (b"\x1f\x8b\x08", "bad.xml: "),
        (b"", "bad.xml: "),
    ] {
        fs::write(&path, bytes).unwrap();
        for verb in ["import", "show"] {
            let stderr = refused(&["machine", verb, word]);
            assert!(stderr.contains(part), "no '{part}' in {stderr}");
        }
    }
}
