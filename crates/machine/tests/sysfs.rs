//! Reading sysfs trees: whole ones, ones with parts missing, and broken ones.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wakelab_machine::{Arch, CpuId, DomainRules, Machine, MachineError, Ns, SchedTopology};

/// A tree in a directory of its own, relative to `devices/system`.
struct Tree(TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(TempDir::new().unwrap())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("devices/system").join(file)
    }

    fn write(&self, file: &str, text: &str) -> &Tree {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn remove(&self, file: &str) -> &Tree {
        let path = self.path(file);
        if path.is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        }
        .unwrap();
        self
    }

    fn read(&self) -> Result<Machine, MachineError> {
        Machine::from_sysfs(self.0.path())
    }
}

/// 2 packages of 2 cores of 2 threads, siblings N and N+4, an LLC and a node a package.
fn two_sockets() -> Tree {
    let tree = Tree::new();
    tree.write("cpu/online", "0-7");
    for cpu in 0..8u32 {
        let (core, package) = (cpu % 4, cpu % 4 / 2);
        let siblings = format!("{core},{}", core + 4);
        let shared = format!(
            "{}-{},{}-{}",
            package * 2,
            package * 2 + 1,
            package * 2 + 4,
            package * 2 + 5
        );
        let at = |file: &str| format!("cpu/cpu{cpu}/{file}");
        tree.write(&at("topology/core_cpus_list"), &siblings);
        tree.write(&at("topology/physical_package_id"), &package.to_string());
        tree.write(&at("topology/die_id"), "0");
        tree.write(&at("topology/cluster_cpus_list"), &siblings);
        for (index, level, kind, list) in [
            (0, 1, "Data", &siblings),
            (1, 1, "Instruction", &siblings),
            (2, 2, "Unified", &siblings),
            (3, 3, "Unified", &shared),
        ] {
            tree.write(
                &at(&format!("cache/index{index}/level")),
                &level.to_string(),
            );
            tree.write(&at(&format!("cache/index{index}/type")), kind);
            tree.write(&at(&format!("cache/index{index}/shared_cpu_list")), list);
        }
    }
    tree.write("node/node0/cpulist", "0-1,4-5")
        .write("node/node0/distance", "10 32");
    tree.write("node/node1/cpulist", "2-3,6-7")
        .write("node/node1/distance", "32 10");
    let state = |index: u32, file: &str| format!("cpu/cpu0/cpuidle/state{index}/{file}");
    for (index, name, desc, latency, residency) in [
        (0, "POLL", "CPUIDLE CORE POLL IDLE", "0", "0"),
        (1, "C1", "ACPI FFH MWAIT 0x0", "1", "2"),
        (2, "C2", "ACPI IOPORT 0x814", "800", "1600"),
    ] {
        tree.write(&state(index, "name"), name)
            .write(&state(index, "desc"), desc);
        tree.write(&state(index, "latency"), latency);
        tree.write(&state(index, "residency"), residency);
    }
    tree
}

#[test]
fn a_whole_tree_is_read() {
    let machine = two_sockets().read().unwrap();
    assert_eq!(
        (machine.ncpu(), machine.ncores(), machine.nllcs()),
        (8, 4, 2)
    );
    assert_eq!(
        (machine.npackages(), machine.nnodes(), machine.arch),
        (2, 2, Arch::X86)
    );
    assert_eq!(machine.siblings(CpuId(1)).to_string(), "1,5");
    assert_eq!(machine.node_distance, [[10, 32], [32, 10]]);
    assert_eq!(machine.node_reclaim_distance, 32, "as AMD Zen");
    assert_eq!(machine.cpu(CpuId(4)).thread, 1);
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    let names: Vec<_> = topology.domains[0]
        .iter()
        .map(|domain| domain.name)
        .collect();
    assert_eq!(names, ["SMT", "MC", "NUMA"]);
}

#[test]
fn idle_states_tell_latency_and_whether_they_poll() {
    let tree = two_sockets();
    let states = tree.read().unwrap().idle_states;
    let polling: Vec<bool> = states.iter().map(|state| state.polling).collect();
    assert_eq!(polling, [true, true, false]);
    assert_eq!(states[2].exit_latency, Ns::from_us(800));
    tree.write("cpu/cpu0/cpuidle/state2/disable", "1");
    assert_eq!(tree.read().unwrap().idle_states.len(), 2);
}

#[test]
fn costs_of_the_host_are_stand_ins() {
    let machine = two_sockets().read().unwrap();
    assert!(
        machine
            .costs
            .figures()
            .all(|(_, figure)| figure.is_stand_in())
    );
    assert_eq!(machine.costs.smt_throughput.len(), 2);
}

#[test]
fn offline_cpus_are_left_out_and_the_rest_renumbered() {
    let tree = two_sockets();
    tree.write("cpu/online", "0-1,4-7");
    let machine = tree.read().unwrap();
    assert_eq!(machine.ncpu(), 6);
    assert!(
        machine.description.contains("0-1,4-7"),
        "{}",
        machine.description
    );
    assert_eq!(machine.siblings(CpuId(0)).to_string(), "0,2");
    assert_eq!(
        machine.siblings(CpuId(4)).to_string(),
        "4",
        "its sibling is offline"
    );
}

#[test]
fn each_missing_part_has_its_fallback() {
    let tree = two_sockets();
    tree.remove("node").remove("cpu/cpu0/cpuidle");
    for cpu in 0..8 {
        tree.remove(&format!("cpu/cpu{cpu}/topology"))
            .remove(&format!("cpu/cpu{cpu}/cache"));
    }
    let machine = tree.read().unwrap();
    assert_eq!(
        (
            machine.ncpu(),
            machine.ncores(),
            machine.nllcs(),
            machine.nnodes()
        ),
        (8, 8, 1, 1)
    );
    assert_eq!(
        (
            machine.idle_states[0].name.as_str(),
            machine.idle_states[0].polling
        ),
        ("HALT", false)
    );
    tree.remove("cpu/online").write("cpu/possible", "0-3");
    assert_eq!(tree.read().unwrap().ncpu(), 4);
}

#[test]
fn missing_distances_are_20_and_empty_nodes_disappear() {
    let tree = two_sockets();
    tree.remove("node/node0/distance")
        .write("node/node1/distance", "21 10 40");
    tree.write("node/node2/cpulist", "")
        .write("node/node2/distance", "40 40 10");
    let machine = tree.read().unwrap();
    assert_eq!(machine.nnodes(), 2);
    assert_eq!(machine.node_distance, [[10, 20], [21, 10]]);
}

#[test]
fn a_cpu_that_two_nodes_list_is_in_the_first() {
    let tree = two_sockets();
    // As with numa=fake, where all emulated nodes list the CPUs of the real one.
    tree.write("node/node1/cpulist", "0-7");
    let machine = tree.read().unwrap();
    let nodes: Vec<u16> = machine.cpus.iter().map(|cpu| cpu.node.0).collect();
    assert_eq!(nodes, [0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn old_kernels_have_masks_and_no_lists() {
    let tree = two_sockets();
    let machine = tree.read().unwrap();
    tree.remove("cpu/online");
    let mask = |list: &str| {
        let cpus = list.split(',').flat_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            low.parse::<u32>().unwrap()..=high.parse().unwrap()
        });
        let bits: u32 = cpus.map(|cpu| 1 << cpu).sum();
        format!("00000000,{bits:08x}")
    };
    let node = |n: u32| {
        (
            format!("node/node{n}/cpulist"),
            format!("node/node{n}/cpumap"),
        )
    };
    let mut renamed = vec![node(0), node(1)];
    for cpu in 0..8 {
        let at = |file: &str| format!("cpu/cpu{cpu}/{file}");
        renamed.push((
            at("topology/core_cpus_list"),
            at("topology/thread_siblings"),
        ));
        tree.remove(&at("topology/cluster_cpus_list"));
        for index in 0..4 {
            let cache = |file: &str| at(&format!("cache/index{index}/{file}"));
            renamed.push((cache("shared_cpu_list"), cache("shared_cpu_map")));
        }
    }
    for (list, map) in renamed {
        let text = std::fs::read_to_string(tree.path(&list)).unwrap();
        tree.write(&map, &mask(text.trim())).remove(&list);
    }
    let old = tree.read().unwrap();
    // The clusters are those of the L2, which here are the cores, as the lists had them.
    assert_eq!(old.cpus, machine.cpus);
    assert_eq!(old.node_distance, machine.node_distance);
}

#[test]
fn what_a_copy_of_a_tree_gets_wrong_is_read_over() {
    let tree = two_sockets();
    let machine = tree.read().unwrap();
    tree.write("cpu/cpu0/online", "")
        .write("cpu/cpu3/cpu_capacity", "");
    tree.write("node/node0/cpulist", "0-1,4-5\n\0");
    tree.write("cpu/cpu2/cache/index3/shared_cpu_map", "00000001");
    tree.remove("cpu/cpu2/cache/index0");
    assert_eq!(tree.read().unwrap().cpus, machine.cpus);
}

#[test]
fn a_cpu_that_tells_no_caches_is_alone_with_its_like() {
    let tree = two_sockets();
    tree.remove("cpu/cpu0/cache").remove("cpu/cpu4/cache");
    for cpu in [1, 5] {
        tree.write(&format!("cpu/cpu{cpu}/cache/index3/shared_cpu_list"), "1,5");
    }
    let machine = tree.read().unwrap();
    let llcs: Vec<u16> = machine.cpus.iter().map(|cpu| cpu.llc.0).collect();
    assert_eq!(llcs, [0, 1, 2, 2, 0, 1, 2, 2]);
}

#[test]
fn packages_without_numbers_are_told_apart_by_their_lists() {
    let tree = two_sockets();
    for cpu in 0..8 {
        let at = |file: &str| format!("cpu/cpu{cpu}/topology/{file}");
        let package = if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
        tree.write(&at("physical_package_id"), "-1");
        tree.write(&at("core_siblings_list"), package);
    }
    let packages: Vec<u16> = tree
        .read()
        .unwrap()
        .cpus
        .iter()
        .map(|cpu| cpu.package)
        .collect();
    assert_eq!(packages, [0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn siblings_in_two_nodes_are_none() {
    let tree = two_sockets();
    tree.write("node/node0/cpulist", "0-3")
        .write("node/node1/cpulist", "4-7");
    let machine = tree.read().unwrap();
    assert_eq!((machine.ncores(), machine.threads_per_core()), (8, 1));
}

#[test]
fn arm_and_power_are_recognised() {
    let tree = two_sockets();
    tree.write("cpu/cpu0/regs/identification/midr_el1", "0x413fd0c1");
    tree.write("cpu/cpu1/cpu_capacity", "512")
        .write("cpu/isolated", "3");
    let machine = tree.read().unwrap();
    assert_eq!(
        (machine.arch, machine.cpu(CpuId(1)).capacity),
        (Arch::Arm64, 512)
    );
    assert!(machine.cpu(CpuId(3)).isolated);
    tree.remove("cpu/cpu0/regs").write("cpu/cpu0/dscr", "0");
    assert_eq!(tree.read().unwrap().arch, Arch::Power);
}

#[test]
fn a_cluster_without_a_shared_cache_is_an_llc_on_arm() {
    let tree = Tree::new();
    tree.write("cpu/online", "0-3").write("cpu/cpu0/regs/x", "");
    for cpu in 0..4 {
        let pair = cpu / 2 * 2;
        tree.write(
            &format!("cpu/cpu{cpu}/topology/cluster_cpus_list"),
            &format!("{pair}-{}", pair + 1),
        );
        tree.write(&format!("cpu/cpu{cpu}/cache/index0/level"), "2");
        tree.write(
            &format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"),
            &cpu.to_string(),
        );
    }
    let machine = tree.read().unwrap();
    assert_eq!(machine.nllcs(), 2);
    assert!(machine.cpu(CpuId(0)).cluster.is_none());
}

/// File, what is written into it, and a part of the error.
const MALFORMED: [(&str, &str, &str); 15] = [
    ("cpu/online", "0-x", "'0-x' is not a CPU number"),
    ("cpu/online", "7-0", "ends before it starts"),
    ("cpu/online", "0-4096", "CPU 4096 is past the largest"),
    ("cpu/online", "", "expected at least one CPU"),
    (
        "cpu/cpu1/topology/physical_package_id",
        "one",
        "'one': expected a number",
    ),
    (
        "cpu/cpu1/topology/core_cpus_list",
        "0,4",
        "expected a list with CPU 1 in it",
    ),
    (
        "cpu/cpu1/topology/core_cpus_list",
        "0-1",
        "expected the same list as CPU 0 has, 0,4",
    ),
    (
        "cpu/cpu4/topology/core_cpus_list",
        "4",
        "expected a list with CPU 0 in it",
    ),
    (
        "cpu/cpu0/cache/index3/level",
        "high",
        "'high': expected a number",
    ),
    (
        "cpu/cpu0/cache/index3/shared_cpu_list",
        "0-1",
        "all of the core's CPUs 0,4",
    ),
    (
        "cpu/cpu1/cpu_capacity",
        "0",
        "expected a capacity from 1 to 1024",
    ),
    (
        "cpu/cpu0/cpuidle/state1/latency",
        "-5",
        "'-5': expected a number",
    ),
    ("node/node0/distance", "10", "2 distances"),
    (
        "node/node0/distance",
        "10 9",
        "'9': expected a distance from 10 to 255",
    ),
    (
        "node/node0/distance",
        "11 32",
        "'11': expected 10 from a node to itself",
    ),
];

#[test]
fn malformed_files_are_named_with_their_word() {
    for (file, text, expected) in MALFORMED {
        let tree = two_sockets();
        tree.write(file, text);
        let error = tree.read().unwrap_err().to_string();
        assert!(
            error.contains(expected),
            "{file}: no '{expected}' in '{error}'"
        );
        let named = if file.contains("list") {
            file.rsplit_once('/').unwrap().1
        } else {
            file
        };
        assert!(error.contains(named), "no '{named}' in '{error}'");
    }
}

#[test]
fn a_tree_without_cpus_or_with_binary_files_is_an_error() {
    let error = Machine::from_sysfs(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("/nowhere/at/all/devices/system/cpu/online"),
        "{error}"
    );
    let tree = two_sockets();
    std::fs::write(tree.path("cpu/online"), [0xff, 0xfe]).unwrap();
    assert!(matches!(tree.read(), Err(MachineError::Read { .. })));
}

#[test]
fn the_running_machine_is_read_or_refused() {
    // What it holds is the host's affair; that it is no panic is ours.
    if let Ok(machine) = Machine::from_sysfs(Path::new("/sys")) {
        SchedTopology::build(&machine, &DomainRules::v6_12());
    }
}

/// The file that a random change goes to.
fn changed_file(kind: usize, n: u32) -> String {
    match kind {
        0 => "cpu/online".to_owned(),
        1 => format!("cpu/cpu{n}/topology/core_cpus_list"),
        2 => format!("cpu/cpu{n}/topology/cluster_cpus_list"),
        3 => format!("cpu/cpu{n}/topology/physical_package_id"),
        4 => format!("cpu/cpu{n}/topology/die_id"),
        5 => format!("cpu/cpu{n}/cache/index3/shared_cpu_list"),
        6 => format!("cpu/cpu{n}/cache/index3/level"),
        7 => format!("node/node{n}/cpulist"),
        8 => format!("node/node{n}/distance"),
        9 => format!("cpu/cpu{n}/cpu_capacity"),
        10 => "cpu/isolated".to_owned(),
        _ => format!("cpu/cpu0/cpuidle/state{n}/latency"),
    }
}

/// Reads the changed tree, and puts back what was changed, as writing whole trees is slow.
fn read_changed(tree: &Tree, changes: &[(usize, u32, String)]) -> Result<Machine, MachineError> {
    let mut before = Vec::new();
    for (kind, n, text) in changes {
        let file = changed_file(*kind, *n);
        before.push((file.clone(), std::fs::read_to_string(tree.path(&file)).ok()));
        tree.write(&file, text);
    }
    let machine = tree.read();
    for (file, text) in before.into_iter().rev() {
        match text {
            Some(text) => tree.write(&file, text.trim_end()),
            None => tree.remove(&file),
        };
    }
    machine
}

#[test]
fn no_tree_makes_it_panic() {
    let tree = two_sockets();
    let change = (0usize..12, 0u32..9, "[0-9,-]{0,6}|\\PC{0,6}");
    let changes = prop::collection::vec(change, 1..6);
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..Default::default()
    };
    proptest::test_runner::TestRunner::new(config)
        .run(&changes, |changes| {
            if let Ok(machine) = read_changed(&tree, &changes) {
                for rules in [DomainRules::v6_5(), DomainRules::v6_12()] {
                    SchedTopology::build(&machine, &rules);
                }
            }
            Ok(())
        })
        .unwrap();
}
