//! Small inputs of each format; hwloc's own are read by `tests/hwloc.rs`.

use super::*;
use crate::domains::{DomainRules, SchedTopology};
use proptest::prelude::*;
use std::io::Write as _;

const V2: &str = include_str!("../../tests/data/hwloc-2.xml");
const V1: &str = include_str!("../../tests/data/hwloc-1.xml");

fn xml(text: &str) -> Result<Import, MachineError> {
    Import::from_reader(text.as_bytes(), "small.xml")
}

/// Cores, clusters, LLCs, dies, packages, nodes.
fn counts(machine: &Machine) -> [usize; 6] {
    [
        machine.ncores(),
        machine.count_of(|cpu| cpu.cluster),
        machine.nllcs(),
        machine.count_of(|cpu| cpu.die),
        machine.npackages(),
        machine.nnodes(),
    ]
}

fn synthetic(text: &str) -> Machine {
    Import::from_synthetic(text).unwrap().machine
}

#[test]
fn a_synthetic_string_becomes_a_machine() {
    let machine = synthetic("Package:2 [NUMANode] L3Cache:12 L2Cache:8 L1dCache:1 Core:1 PU:2");
    assert_eq!(machine.ncpu(), 384);
    assert_eq!(counts(&machine), [192, 192, 24, 2, 2, 2]);
    let domains = SchedTopology::build(&machine, &DomainRules::v6_12()).domains;
    let names: Vec<_> = domains[0].iter().map(|domain| domain.name).collect();
    assert_eq!(names, ["SMT", "MC", "PKG", "NUMA"]);
}

#[test]
fn types_that_are_left_out_are_those_that_hwloc_takes() {
    // Package, node, core and PU, then L2, L1, L3, L1i, and groups.
    assert_eq!(counts(&synthetic("2 3 4 5")), [24, 1, 6, 2, 2, 6]);
    assert_eq!(counts(&synthetic("2 3 2 2 2"))[0..3], [24, 1, 12]);
    assert_eq!(
        counts(&synthetic("2 2 2 2 2 2 2 2 2")),
        [256, 32, 16, 4, 4, 8]
    );
    assert_eq!(counts(&synthetic("4")), [4, 1, 1, 1, 1, 1]);
}

#[test]
fn indexes_number_cpus_as_hwloc_does() {
    for (text, siblings) in [
        ("pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)", "0,4"),
        ("pack:2 core:2 pu:2(indexes=4*2:2*2:1*2)", "0,4"),
        ("pack:2 core:2 pu:2(indexes=2*4:1*2)", "0,4"),
        ("pack:2 core:2 pu:2(indexes=pack:core)", "0,4"),
        ("pack:2 core:2 pu:2(indexes=core)", "0,4"),
        ("pack:2 core:2 pu:2", "0-1"),
    ] {
        let machine = synthetic(text);
        assert_eq!(
            machine.siblings(crate::ids::CpuId(0)).to_string(),
            siblings,
            "{text}"
        );
    }
    // Nodes below others come before them, and the smallest is the CPUs'.
    let nodes = "pack:2 [numa] core:2 [numa(indexes=1,0,4,3,2,5)] pu:1";
    let nodes: Vec<u16> = synthetic(nodes).cpus.iter().map(|cpu| cpu.node.0).collect();
    assert_eq!(
        nodes,
        [1, 0, 3, 2],
        "the numbers 1, 0, 3, 2 of the nodes of cores"
    );
}

#[test]
fn bad_synthetic_strings_are_named_with_their_place() {
    let many = "[numa]".repeat(1100);
    let deep = "group:1 ".repeat(200);
    let cases = [
        ("", "character 1: '': expected PUs as the last"),
        (
            "pack:2 core:2",
            "character 8: 'core:2': expected PUs as the last",
        ),
        (
            "pack:2 cor:2 pu:x",
            "character 17: 'x': expected a count from 1 to 1024",
        ),
        (
            "pack:2 chore:2 pu:1",
            "character 8: 'chore': expected a type",
        ),
        ("machine:2 pu:1", "expected a type"),
        ("l9:2 pu:1", "'l9': expected a type"),
        ("pack:0 pu:1", "'0': expected a count"),
        ("pack:99999999999999999999999 pu:1", "expected a count"),
        (
            "pack:64 core:32 pu:2",
            "character 14: '32': expected at most 1024 CPUs in all, not 2048",
        ),
        ("pack 2 pu:1", "expected ':' and a count"),
        (
            "pack:2 2 pu:1",
            "character 8: '2': expected a type, as other levels have one",
        ),
        (
            "pack:2 pack:2 pu:1",
            "character 8: 'pack:2': expected one level of this type only",
        ),
        ("numa:2 [numa] pu:1", "nodes either as a level or attached"),
        ("[core] pu:1", "'core': expected NUMANode"),
        ("[numa pu:1", "']' after what is attached"),
        ("pu:2(indexes=0,1", "expected ')', or indexes"),
        ("pu:2(colour=red)", "'colour=red': expected ')', or indexes"),
        ("pu:2(indexes=0,0)", "each once, not 0"),
        (
            "pu:2(indexes=0,1024)",
            "CPUs below 1024, each once, not 1024",
        ),
        ("pu:2(indexes=0)", "expected 2 numbers"),
        ("pu:4(indexes=3*2)", "expected loops over 4 objects"),
        ("pu:4(indexes=1*2:1*2)", "loops that give each number once"),
        ("pu:4(indexes=2*0)", "loops STEP*COUNT"),
        ("pack:2 pu:2(indexes=die)", "not 'die'"),
        (
            "pack:2(indexes=core) core:2 pu:2",
            "types of objects that contain those numbered",
        ),
        (many.as_str(), "at most 1024 nodes"),
        (deep.as_str(), "at most 128 levels"),
    ];
    for (text, part) in cases {
        let error = Import::from_synthetic(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: no '{part}' in '{error}'");
    }
}

#[test]
fn xml_2_is_read_with_clusters_dies_distances_and_capacities() {
    let import = xml(V2).unwrap();
    let machine = &import.machine;
    assert_eq!(
        (import.format, machine.arch),
        (Format::HwlocXml2, crate::Arch::Arm64)
    );
    assert_eq!(machine.name, "small");
    assert_eq!(counts(machine), [6, 4, 2, 2, 1, 2]);
    assert_eq!(machine.node_distance, [[10, 12], [12, 10]]);
    let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [400, 400, 1024, 1024, 1024, 1024, 1024, 1024]);
    assert_eq!(
        (import.cpus.as_str(), import.offline.as_str()),
        ("0-3,5-8", "4")
    );
    assert!(
        machine.description.contains("Big & Small"),
        "{}",
        machine.description
    );
}

#[test]
fn xml_1_is_read_with_its_distances_and_offline_cpus() {
    let import = xml(V1).unwrap();
    let machine = &import.machine;
    assert_eq!(
        (import.format, machine.arch),
        (Format::HwlocXml1, crate::Arch::X86)
    );
    assert_eq!(counts(machine), [3, 3, 2, 2, 2, 2]);
    assert_eq!(machine.node_distance, [[10, 21], [21, 10]]);
    assert_eq!(
        (import.cpus.as_str(), import.offline.as_str()),
        ("0-2", "3")
    );
}

#[test]
fn version_3_is_read_as_version_2() {
    let import = xml(&V2.replace("version=\"2.0\"", "version=\"3.0\"")).unwrap();
    assert_eq!(import.format, Format::HwlocXml3);
    assert_eq!(import.machine.ncpu(), 8);
}

#[test]
fn bad_xml_is_named_with_its_line() {
    let deep = "<object type=\"Misc\">".repeat(400);
    let entity = "<!DOCTYPE topology [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>";
    for (good, bad, part) in [
        (
            "version=\"2.0\"",
            "version=\"7\"",
            "'7': expected version 1, 2 or 3",
        ),
        (
            "<topology",
            "<topography",
            "expected one element 'topology' around all",
        ),
        ("</topology>", "", "expected the ends of all elements"),
        ("</topology>", "</topologies>", "expected well-formed XML"),
        (
            "type=\"Machine\"",
            "typ=\"Machine\"",
            "expected an attribute 'type'",
        ),
        (
            "os_index=\"8\" cpuset=\"0x00000100\"",
            "os_index=\"8\"",
            "'PU': expected an attribute 'cpuset'",
        ),
        (
            "os_index=\"8\" cpuset=\"0x00000100\"",
            "os_index=\"8\" cpuset=\"0x1g\"",
            "'0x1g': expected a set of CPUs",
        ),
        (
            "os_index=\"8\" cpuset=\"0x00000100\"",
            "os_index=\"9\" cpuset=\"0x00000100\"",
            "'8': expected a PU with CPU 9 alone",
        ),
        (
            "os_index=\"8\" cpuset=\"0x00000100\"",
            "os_index=\"7\" cpuset=\"0x00000080\"",
            "'7': expected each PU's number once",
        ),
        (
            "os_index=\"8\"",
            "os_index=\"2000\"",
            "'2000': expected CPUs below 1024",
        ),
        (
            "os_index=\"8\"",
            "os_index=\"eight\"",
            "'eight': expected a number as os_index",
        ),
        (
            "type=\"L3Cache\" cpuset=\"0x000001e0\"",
            "type=\"L3Cache\" cpuset=\"0x000001ef\"",
            "CPU 0 in one Cache(3) only",
        ),
        (
            "type=\"L3Cache\"",
            "type=\"L8Cache\"",
            "'8': expected a cache level from 1 to 5",
        ),
        (
            "value=\"400\"",
            "value=\"4000\"",
            "'4000': expected a capacity from 1 to 1024",
        ),
        ("10 12 12 10", "10 12 x 10", "'x': expected a number"),
        (
            "<topology",
            &format!("<topology>{deep}<topology"),
            "at most 256 elements",
        ),
        ("Big &amp; Small", "Big &b; Small", "an attribute's value"),
    ] {
        let text = V2.replace("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">", entity);
        let text = text.replacen(good, bad, 1);
        let error = xml(&text).unwrap_err().to_string();
        assert!(error.starts_with("small.xml:"), "{error}");
        assert!(error.contains(part), "{bad}: no '{part}' in '{error}'");
    }
    let line = xml(&V2.replacen("value=\"400\"", "value=\"0\"", 1))
        .unwrap_err()
        .to_string();
    let expected = 1 + V2
        .lines()
        .position(|line| line.contains("value=\"400\""))
        .unwrap();
    assert!(
        line.starts_with(&format!("small.xml:{expected}: ")),
        "{line}"
    );
}

#[test]
fn distances_that_no_slit_can_hold_are_noted() {
    for (good, bad, part) in [
        ("10 12 12 10", "1 2 2 1", "none of a SLIT"),
        (
            "10 12 12 10",
            "10 12 12",
            "no distances between nodes are told",
        ),
        ("10 12 12 10", "10 99999999999 12 10", "none of a SLIT"),
        (
            "kind=\"5\" name",
            "kind=\"9\" name",
            "no distances between nodes are told",
        ),
        (
            ">0 1 </indexes>",
            ">0 7 </indexes>",
            "not told for all nodes",
        ),
    ] {
        let text = V2.replacen(good, bad, 1);
        assert_ne!(text, V2, "{good}");
        let import = xml(&text).unwrap();
        assert_eq!(import.machine.node_distance, [[10, 20], [20, 10]], "{bad}");
        assert!(
            import.notes.iter().any(|note| note.contains(part)),
            "{bad}: {:?}",
            import.notes
        );
    }
}

/// A tar archive of files.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        // The crate refuses to write what it should be refused to read.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}

const TREE: [(&str, &[u8]); 6] = [
    ("pc/sys/devices/system/cpu/online", b"0-3\n"),
    ("pc/sys/devices/system/cpu/present", b"0-5\n"),
    ("pc/sys/devices/system/cpu/isolated", b"3\n"),
    (
        "pc/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
        b"0-1\n",
    ),
    (
        "pc/sys/devices/system/cpu/cpu1/topology/core_cpus_list",
        b"0-1\n",
    ),
    ("./pc/proc/cpuinfo", b"processor : 0\n"),
];

#[test]
fn an_archive_is_read_plain_or_compressed() {
    let plain = archive(&TREE);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&plain).unwrap();
    for bytes in [plain, gzip.finish().unwrap(), bzip2.finish().unwrap()] {
        let import = Import::from_reader(&*bytes, "dir/pc.tar.gz").unwrap();
        let machine = &import.machine;
        assert_eq!(
            (machine.name.as_str(), import.format),
            ("pc", Format::SysfsArchive)
        );
        assert_eq!(
            (machine.ncpu(), machine.ncores(), import.offline.as_str()),
            (4, 3, "4-5")
        );
        assert!(machine.cpus[3].isolated);
    }
}

#[test]
fn a_bad_archive_is_refused() {
    let up = archive(&[("../../sys/devices/system/cpu/online", b"0")]);
    let big = archive(&[("sys/devices/system/cpu/online", &[b'0'; 1 << 17])]);
    let none = archive(&[("etc/passwd", b"root")]);
    let wrong = archive(&[("a/sys/devices/system/cpu/online", b"0-x")]);
    let mut cut = archive(&TREE);
    cut.truncate(700);
    for (bytes, part) in [
        (
            &up[..],
            "pc.tar: '../../sys/devices/system/cpu/online': expected a name without '..'",
        ),
        (&big[..], "131072 bytes: expected at most 65536"),
        (
            &none[..],
            "expected a sysfs tree with devices/system/cpu in it",
        ),
        (
            &wrong[..],
            "pc.tar: a/sys/devices/system/cpu/online: '0-x' is not a CPU number",
        ),
        (&cut[..], "no tar archive of sysfs"),
        (b"", "expected a sysfs tree"),
        (
            b"hello, I am a text and no archive",
            "no tar archive of sysfs",
        ),
        (&[0x1f, 0x8b, 8, 0, 1, 2, 3], "pc.tar: "),
        (b"BZh9xxxxxxxxxxxxxxxx", "pc.tar: "),
    ] {
        let error = Import::from_reader(bytes, "pc.tar")
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "no '{part}' in '{error}'");
    }
}

#[test]
fn what_unpacks_to_too_much_is_not_read_to_its_end() {
    let read = |bytes: &[u8], limit| io::copy(&mut Bounded::new(bytes, limit), &mut io::sink());
    assert_eq!(read(&[0; 100], 100).unwrap(), 100);
    let error = read(&[0; 101], 100).unwrap_err().to_string();
    assert_eq!(error, "expected at most 100 bytes, unpacked");
}

#[test]
fn a_name_in_a_comment_cannot_end_it() {
    let mut import = Import::from_synthetic("core:2 pu:2").unwrap();
    import.file = "a\nname = \"b\"".to_owned();
    import.machine.name = "quote \" and \n end".to_owned();
    let again = Machine::from_toml(&import.to_toml(), "again.toml").unwrap();
    assert_eq!(again.name, "quote \" and \\n end");
}

#[test]
fn a_word_is_a_file_or_else_a_synthetic_string() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pu:2");
    std::fs::write(&path, V2).unwrap();
    let word = path.to_str().unwrap();
    assert_eq!(Import::read(word).unwrap().format, Format::HwlocXml2);
    assert_eq!(Import::read("pu:2").unwrap().machine.ncpu(), 2);
    let error = Import::read("missing.xml").unwrap_err().to_string();
    assert!(error.starts_with("missing.xml: "), "{error}");
    let tree = directory.path().join("sys/devices/system/cpu");
    std::fs::create_dir_all(&tree).unwrap();
    std::fs::write(tree.join("online"), "0-2").unwrap();
    let import = Import::read(directory.path().to_str().unwrap()).unwrap();
    assert_eq!(
        (import.format, import.machine.ncpu()),
        (Format::SysfsTree, 3)
    );
}

/// Words of synthetic strings, put together in any order.
fn strings() -> impl Strategy<Value = String> {
    let kinds = "(pack|die|numa|core|pu|l3|l2|l1i|group|group3|machine|x)";
    let count = "(1|2|3|4|8|0|2000)";
    let attributes =
        "(|\\(indexes=(0,1|2\\*2|1\\*2:2\\*2|core|pack:core|numa:pu|9)\\)|\\(size=1kB\\)|\\()";
    let word = format!("({kinds}:{count}{attributes}|{count}|\\[numa{attributes}\\])");
    prop::collection::vec(prop::string::string_regex(&word).unwrap(), 0..8)
        .prop_map(|words| words.join(" ") + " pu:2")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_synthetic_string_is_a_machine_or_an_error(text in strings()) {
        if let Ok(import) = Import::from_synthetic(&text) {
            let again = Machine::from_toml(&import.to_toml(), "again.toml").unwrap();
            prop_assert_eq!(&again.cpus, &import.machine.cpus);
            prop_assert_eq!(&again.costs, &import.machine.costs);
            SchedTopology::build(&again, &DomainRules::v6_12());
        }
    }

    #[test]
    fn changed_xml_is_a_machine_or_an_error(
        changes in prop::collection::vec((0usize..5000, "[0-9a-fx\"<>/ =&]{0,3}"), 1..4),
        first in any::<bool>(),
    ) {
        let mut text = if first { V1 } else { V2 }.to_owned();
        for (place, with) in changes {
            let place = place % text.len();
            if text.is_char_boundary(place) && text.is_char_boundary(place + 1) {
                text.replace_range(place..place + 1, &with);
            }
        }
        if let Ok(import) = xml(&text) {
            let again = Machine::from_toml(&import.to_toml(), "again.toml").unwrap();
            prop_assert_eq!(&again.cpus, &import.machine.cpus);
            SchedTopology::build(&again, &DomainRules::v6_12());
        }
    }
}
