//! hwloc's own test inputs, which are real machines, read here and by hwloc's tools.
//!
//! They are not part of this repository: `.ci/hwloc` fetches them and runs this. Without
//! `WAKELAB_HWLOC=DIR`, the directory of hwloc's source, there is nothing to compare and the test says
//! so. It needs `lstopo-no-graphics`, `hwloc-info` and `tar`.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use wakelab_machine::{Cpu, CpuId, CpuMask, DomainRules, Import, Machine, SchedTopology};

/// Inputs that are refused, with a part of the error and why.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "fakeheterocpunuma.tar.bz2",
        "'1025': expected a capacity from 1 to 1024",
        "made up: no kernel has a capacity above 1024",
    ),
    (
        "test1.fsroot.tar.bz2",
        "expected a sysfs tree with devices/system/cpu in it",
        "it has control groups alone, for use with a synthetic string",
    ),
];

/// What differs from hwloc: the input, the kind of object, and why.
const DIFFERS: &[(&str, &str, &str)] = &[
    (
        "16amd64-8n2c-cpusets.xml.output",
        "NUMANode",
        "as 16amd64-8n2c-cpusets.xml",
    ),
    (
        "64amd64-4p2n4ca2co.tar.bz2",
        "Core",
        "as 64amd64-4s2n4ca2co.tar.bz2",
    ),
    (
        "40intel64-4n10c+pci-conflicts.tar.bz2",
        "LLC",
        "one shared_cpu_map contradicts its list, which all others bear out",
    ),
    (
        "40intel64-4n10c+pci-conflicts.tar.bz2",
        "Package",
        "hwloc drops the package that the same map crosses",
    ),
    (
        "64amd64-4s2n4ca2co.tar.bz2",
        "Core",
        "hwloc splits the compute units of this CPU; to the kernel their halves are SMT siblings",
    ),
    (
        "64intel64-fakeKNL-A2A-cache.tar.bz2",
        "LLC",
        "hwloc shows memory that works as a cache as L3; the kernel's LLC is the L2",
    ),
    (
        "64intel64-fakeKNL-SNC4-hybrid.tar.bz2",
        "Cluster",
        "hwloc calls the quarters of this CPU so; the kernel's clusters are the L2s, here the LLCs",
    ),
    (
        "node:2 core:2 l2:2 l1d:2 pu:2",
        "LLC",
        "an LLC has whole cores; hwloc takes a cache within a core as it is told",
    ),
    (
        "16amd64-8n2c-cpusets.xml",
        "NUMANode",
        "nodes that were not allowed are not in the file; their CPUs are taken to the first",
    ),
    (
        "offline-cpu0-node0.tar.bz2",
        "NUMANode",
        "the node of half of the CPUs is missing; they are taken to the first that there is",
    ),
];

/// Sets of CPUs by kind of object, in the source's numbers.
type Sets = BTreeMap<&'static str, BTreeSet<CpuMask>>;

/// An input, and what hwloc's tools are told to read it.
struct Input {
    name: String,
    word: String,
    arguments: Vec<String>,
    fsroot: Option<PathBuf>,
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The tarballs, each unpacked for hwloc, which does not read archives.
fn tarballs(tests: &Path, scratch: &Path) -> Vec<Input> {
    let mut paths = files(&tests.join("linux"), ".tar.bz2");
    paths.extend(files(&tests.join("x86+linux"), ".tar.bz2"));
    paths.extend(files(&tests.join("linux/allowed"), ".tar.bz2"));
    let input = |path: PathBuf| {
        let name = name_of(&path);
        let target = scratch.join(&name);
        std::fs::create_dir(&target).unwrap();
        let tar = Command::new("tar")
            .arg("xjf")
            .arg(&path)
            .arg("-C")
            .arg(&target)
            .status();
        assert!(tar.unwrap().success(), "tar xjf {}", path.display());
        Input {
            name,
            word: path.to_str().unwrap().to_owned(),
            arguments: Vec::new(),
            fsroot: root_below(&target),
        }
    };
    paths.into_iter().map(input).collect()
}

/// The directory that has `sys` in it, one or two levels below.
fn root_below(directory: &Path) -> Option<PathBuf> {
    let below = files(directory, "")
        .into_iter()
        .filter(|path| path.is_dir());
    let mut candidates = below.flat_map(|path| [path.clone(), path.join("fsroot")]);
    candidates.find(|root| root.join("sys").is_dir())
}

fn xml_files(tests: &Path) -> Vec<Input> {
    let mut paths = files(&tests.join("xml"), ".xml");
    // What lstopo is expected to write is XML, too.
    paths.extend(files(&tests.join("linux"), ".xml.output"));
    let input = |path: PathBuf| {
        let word = path.to_str().unwrap().to_owned();
        Input {
            name: name_of(&path),
            arguments: ["--if", "xml", "-i", &word].map(str::to_owned).to_vec(),
            word,
            fsroot: None,
        }
    };
    paths.into_iter().map(input).collect()
}

/// The synthetic strings in hwloc's tests, and some more.
fn synthetic_strings(source: &Path) -> Vec<Input> {
    let mut strings: BTreeSet<String> = [
        "Package:2 [NUMANode(memory=400GB)] L3Cache:12(size=33554432) L2Cache:8(size=1048576) \
         L1dCache:1 L1iCache:1 Core:1 PU:2",
        "Package:2 L3Cache:4 Core:8 PU:2(indexes=64*2:1*64)",
        "Package:2 Die:2 L3Cache:2 L2Cache:2 Core:4 PU:4(indexes=package:core)",
        "2 3 2 2 2 2 2 2",
        "Group0:2 Package:2 [NUMANode(indexes=2*2:1*2)] Tile:4 Core:2 1",
    ]
    .map(str::to_owned)
    .into();
    for (directory, ending) in [
        ("tests/hwloc", ".c"),
        ("utils/hwloc", ".sh.in"),
        ("utils/lstopo", ".sh.in"),
    ] {
        for path in files(&source.join(directory), ending) {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            let lines = text
                .lines()
                .filter(|line| line.contains("set_synthetic") || line.contains("--if synthetic"));
            strings.extend(lines.filter_map(|line| Some(line.split('"').nth(1)?.to_owned())));
        }
    }
    let named = strings.into_iter().filter(|string| !string.contains('$'));
    let input = |word: String| Input {
        name: word.clone(),
        arguments: ["--if", "synthetic", "-i", &word]
            .map(str::to_owned)
            .to_vec(),
        word,
        fsroot: None,
    };
    named.map(input).collect()
}

fn run(program: &str, input: &Input, options: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command
        .args(&input.arguments)
        .args(options)
        .env("HWLOC_HIDE_ERRORS", "2");
    if let Some(root) = &input.fsroot {
        command.env("HWLOC_COMPONENTS", "linux,stop");
        command.env("HWLOC_FSROOT", root);
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.success() && !text.trim().is_empty()).then_some(text)
}

/// What lstopo prints of the input: sets of CPUs by its own names of kinds, and the LLCs that follow.
fn lstopo(input: &Input) -> Option<BTreeMap<String, Vec<CpuMask>>> {
    let options = [
        "-v",
        "-p",
        "--cpuset",
        "--no-io",
        "--disallowed",
        "--no-icaches",
    ];
    let text = run("lstopo-no-graphics", input, &options)?;
    let mut objects = BTreeMap::<String, Vec<CpuMask>>::new();
    for line in text.lines() {
        let Some((before, set)) = line.rsplit_once("cpuset=") else {
            continue;
        };
        let word = before.split_whitespace().next().unwrap_or_default();
        // A subtype follows in parentheses: NUMANode(MCDRAM), Group0(Cluster).
        let kind = match word.split_once('(') {
            Some((_, "Cluster)")) => "Cluster",
            Some((kind, _)) => kind,
            None => word,
        };
        if !line.starts_with("CPU kind") {
            // "(disallowed)" may follow.
            let set = set.split_whitespace().next().unwrap_or_default();
            let mask = CpuMask::from_hex_words(set).unwrap();
            objects.entry(kind.to_owned()).or_default().push(mask);
        }
    }
    Some(objects)
}

/// hwloc-info counts what lstopo shows.
fn check_counts(input: &Input, objects: &BTreeMap<String, Vec<CpuMask>>) {
    let text = run("hwloc-info", input, &["--disallowed"]).unwrap_or_default();
    for kind in ["Package", "Core", "PU", "NUMANode"] {
        let line = text
            .lines()
            .find(|line| line.contains(&format!(" {kind} (type")));
        let words = line.and_then(|line| line.split(':').nth(1)?.split_whitespace().next());
        let count = words.map_or(0, |word| word.parse::<usize>().unwrap());
        let shown = objects.get(kind).map_or(0, Vec::len);
        assert_eq!(
            shown, count,
            "{}: lstopo and hwloc-info on {kind}",
            input.name
        );
    }
}

/// hwloc's objects as sets to compare.
fn theirs(objects: &BTreeMap<String, Vec<CpuMask>>) -> Sets {
    let all = |kind: &str| objects.get(kind).cloned().unwrap_or_default();
    let online: CpuMask = all("PU").iter().fold(CpuMask::EMPTY, |a, b| a.or(b));
    let sets = |kind: &str| -> BTreeSet<CpuMask> {
        let cut = all(kind).into_iter().map(|mask| mask.and(&online));
        cut.filter(|mask| !mask.is_empty()).collect()
    };
    let level = |level: u32| {
        let names = ["", "d", "u"].map(|kind| format!("L{level}{kind}Cache"));
        names
            .into_iter()
            .flat_map(|name| all(&name))
            .collect::<Vec<_>>()
    };
    // Linux has each CPU in one node: of several it is the smallest, the others are memory alone.
    let node = |cpu: CpuId| {
        let around = all("NUMANode")
            .into_iter()
            .filter(|node| node.contains(cpu));
        around
            .map(|node| node.and(&online))
            .min_by_key(CpuMask::weight)
    };
    let llc = |cpu: CpuId| {
        let mut caches = (1..=5).rev().flat_map(level);
        caches
            .find(|cache| cache.contains(cpu))
            .map(|cache| cache.and(&online))
    };
    BTreeMap::from([
        ("PU", BTreeSet::from([online])),
        ("Core", sets("Core")),
        ("Die", sets("Die")),
        ("Package", sets("Package")),
        ("NUMANode", online.iter().filter_map(node).collect()),
        ("LLC", online.iter().filter_map(llc).collect()),
        ("Cluster", sets("Cluster")),
    ])
}

/// Our machine's places in the source's numbers.
fn ours(import: &Import) -> Sets {
    let numbers: Vec<CpuId> = CpuMask::from_cpulist(&import.cpus)
        .unwrap()
        .iter()
        .collect();
    let sets = |place: &dyn Fn(&Cpu) -> Option<u16>| {
        let mut sets = BTreeMap::<u16, CpuMask>::new();
        for cpu in &import.machine.cpus {
            if let Some(place) = place(cpu) {
                sets.entry(place).or_default().set(numbers[cpu.id.index()]);
            }
        }
        sets.into_values().collect::<BTreeSet<CpuMask>>()
    };
    BTreeMap::from([
        ("PU", sets(&|_| Some(0))),
        ("Core", sets(&|cpu| Some(cpu.core.0))),
        ("Die", sets(&|cpu| Some(cpu.die))),
        ("Package", sets(&|cpu| Some(cpu.package))),
        ("NUMANode", sets(&|cpu| Some(cpu.node.0))),
        ("LLC", sets(&|cpu| Some(cpu.llc.0))),
        ("Cluster", sets(&|cpu| cpu.cluster.map(|cluster| cluster.0))),
    ])
}

/// The description of the machine reads as the same machine, and domains can be built on it.
fn check_description(name: &str, import: &Import) {
    let text = import.to_toml();
    let again = Machine::from_toml(&text, name).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let json = |machine: &Machine| serde_json::to_value(machine).unwrap();
    let (again, machine) = (json(&again), json(&import.machine));
    for (key, value) in machine.as_object().unwrap() {
        assert_eq!(again[key], *value, "{name}: {key}");
    }
    for rules in [DomainRules::v6_5(), DomainRules::v6_12()] {
        SchedTopology::build(&import.machine, &rules);
    }
}

/// The kinds on which we and hwloc differ, where hwloc tells of the kind.
fn differences(ours: &Sets, theirs: &Sets) -> Vec<(&'static str, String)> {
    let list = |sets: &BTreeSet<CpuMask>| {
        let lists: Vec<String> = sets.iter().map(CpuMask::to_string).collect();
        lists.join(" | ")
    };
    let told = theirs.iter().filter(|(_, sets)| !sets.is_empty());
    told.filter(|(kind, sets)| ours[*kind] != **sets)
        .map(|(kind, sets)| {
            (
                *kind,
                format!("{}\n      hwloc {}", list(&ours[kind]), list(sets)),
            )
        })
        .collect()
}

#[test]
fn hwlocs_inputs_are_read_as_hwloc_reads_them() {
    let Some(source) = std::env::var_os("WAKELAB_HWLOC").map(PathBuf::from) else {
        println!("WAKELAB_HWLOC is not set: nothing is compared");
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let tests = source.join("tests/hwloc");
    let mut inputs = synthetic_strings(&source);
    inputs.extend(xml_files(&tests));
    inputs.extend(tarballs(&tests, scratch.path()));
    let (mut refused, mut differs, mut equal) = (BTreeSet::new(), BTreeSet::new(), 0);
    for input in &inputs {
        let objects = lstopo(input);
        let import = match Import::read(&input.word) {
            Ok(import) => import,
            Err(error) => {
                println!(
                    "refused {}: {error}{}",
                    input.name,
                    if objects.is_none() {
                        " (by hwloc, too)"
                    } else {
                        ""
                    }
                );
                let known = REFUSED.iter().find(|(name, part, _)| {
                    *name == input.name && error.to_string().contains(part)
                });
                refused.insert((input.name.clone(), known.is_some() || objects.is_none()));
                continue;
            }
        };
        check_description(&input.name, &import);
        let Some(objects) = objects else {
            panic!("hwloc does not read {}", input.name);
        };
        check_counts(input, &objects);
        let different = differences(&ours(&import), &theirs(&objects));
        equal += usize::from(different.is_empty());
        for (kind, sets) in different {
            println!("differs {} {kind}: {sets}", input.name);
            differs.insert((input.name.clone(), kind));
        }
    }
    println!(
        "{} inputs: {equal} equal, {} differences, {} refused",
        inputs.len(),
        differs.len(),
        refused.len()
    );
    let unexplained: Vec<_> = refused.iter().filter(|(_, known)| !known).collect();
    assert!(
        unexplained.is_empty(),
        "refused without reason: {unexplained:?}"
    );
    let known: BTreeSet<_> = DIFFERS
        .iter()
        .map(|(name, kind, _)| ((*name).to_owned(), *kind))
        .collect();
    assert_eq!(differs, known, "differences, and those that are explained");
}
