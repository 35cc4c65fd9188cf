use super::*;
use crate::ids::CpuId;
use proptest::prelude::*;

const SMALL: &str = r#"
name = "small"
description = "two nodes"
arch = "arm64"

[topology]
packages = 2
llcs_per_die = 1
cores_per_llc = 4
cores_per_cluster = 2
threads_per_core = 1
numbering = "consecutive"
node_distance = [[10, 20], [20, 10]]
isolated = "7"
capacity = [{ cpus = "0-3", capacity = 512 }]

[[idle_state]]
name = "WFI"
exit_latency_us = 1.5
target_residency_us = 1
source = "test"

[costs]
like = "kunpeng-920"
transfer_llc_ns = { value = 30, high = 40, source = "test" }
"#;

fn error_of(from: &str, to: &str) -> MachineError {
    assert!(SMALL.contains(from), "{from}");
    Machine::from_toml(&SMALL.replace(from, to), "small.toml").unwrap_err()
}

#[test]
fn a_description_becomes_cpus() {
    let machine = Machine::from_toml(SMALL, "small.toml").unwrap();
    assert_eq!((machine.ncpu(), machine.nllcs(), machine.hz), (8, 2, 250));
    assert_eq!(machine.cpu(CpuId(3)).cluster.unwrap().0, 1);
    assert_eq!(machine.cpu(CpuId(3)).capacity, 512);
    assert_eq!(machine.cpu(CpuId(4)).node.0, 1);
    assert!(machine.cpu(CpuId(7)).isolated && !machine.cpu(CpuId(6)).isolated);
    assert_eq!(machine.idle_states[0].exit_latency, Ns(1500));
    assert_eq!(machine.node_reclaim_distance, 30);
}

#[test]
fn costs_come_from_the_file_then_from_the_machine_it_is_like() {
    let costs = Machine::from_toml(SMALL, "small.toml").unwrap().costs;
    assert_eq!(
        (costs.transfer_llc_ns.low, costs.transfer_llc_ns.high),
        (30.0, 40.0)
    );
    assert_eq!(
        costs.transfer_cluster_ns, costs.transfer_llc_ns,
        "no clusters in the costs"
    );
    assert_eq!(costs.transfer_package_ns.value, 80.5);
    let source = &costs.transfer_package_ns.source;
    assert!(
        source.starts_with("stand-in: as on kunpeng-920: Kunpeng"),
        "{source}"
    );
    assert_eq!(costs.smt_throughput.len(), 1);
}

/// What is replaced in [`SMALL`], by what, and a part of the error.
const WRONG: [(&str, &str, &str); 25] = [
    (
        "packages = 2",
        "packages = 0",
        "small.toml:7: packages = 0: expected a number from 1",
    ),
    ("packages = 2", "packages = -1", "small.toml:7: "),
    ("packages = 2", "packages = 99999999999", "small.toml:7: "),
    (
        "packages = 2",
        "packages = 1000",
        "at most 1024 CPUs in all, not 4000",
    ),
    ("packages = 2", "pakages = 2", "unknown field `pakages`"),
    ("packages = 2", "packages = \"two\"", "at '\"two\"'"),
    ("\"consecutive\"", "\"sideways\"", "sideways"),
    (
        "= [[10, 20], [20, 10]]",
        "= [[10, 20]]",
        "2 rows of 2 distances",
    ),
    ("[20, 10]]", "[9, 10]]", "a distance from 10 to 255"),
    ("[20, 10]]", "[20, 11]]", "10 from a node to itself"),
    (
        "isolated = \"7\"",
        "isolated = \"8\"",
        "isolated = \"8\": expected CPUs below 8",
    ),
    (
        "isolated = \"7\"",
        "isolated = \"x\"",
        "'x' is not a CPU number",
    ),
    (
        "capacity = 512",
        "capacity = 2000",
        "a capacity from 1 to 1024",
    ),
    (
        "cpus = \"0-3\"",
        "cpus = \"0-7\"",
        "some CPU with capacity 1024",
    ),
    (
        "cores_per_cluster = 2",
        "cores_per_cluster = 3",
        "a divisor of the LLC's 4 cores",
    ),
    (
        "exit_latency_us = 1.5",
        "exit_latency_us = -1",
        "times from 0 to 1e9 us",
    ),
    ("value = 30", "value = 50", "low <= value <= high"),
    ("value = 30", "value = nan", "numbers from 0 to 1e9"),
    ("high = 40", "hihg = 40", "unknown field `hihg`"),
    (
        "transfer_llc_ns",
        "transfer_lcl_ns",
        "unknown field `transfer_lcl_ns`",
    ),
    (
        "source = \"test\" }",
        "source = \" \" }",
        "a source that is not empty",
    ),
    (
        "\"kunpeng-920\"",
        "\"kunpeng-930\"",
        "did you mean kunpeng-920",
    ),
    (
        "like = \"kunpeng-920\"",
        "",
        "costs.smt_throughput: nothing there",
    ),
    ("name = \"small\"", "name = \"\"", "small.toml:2: name"),
    ("[topology]", "[topology", "small.toml:6: "),
];

#[test]
fn errors_name_file_line_and_word() {
    for (from, to, expected) in WRONG {
        let text = error_of(from, to).to_string();
        assert!(
            text.contains(expected),
            "'{to}': no '{expected}' in '{text}'"
        );
        assert!(text.starts_with("small.toml:"), "{text}");
    }
}

#[test]
fn presets_cannot_lean_on_each_other_for_ever() {
    let reader = Reader {
        text: SMALL,
        file: "small.toml",
        depth: LIKE_DEPTH_MAX,
    };
    let description = reader.parse().unwrap();
    assert!(reader.costs(&description.costs, 1).is_err());
}

proptest! {
    #[test]
    fn no_numbers_make_it_panic(
        packages in any::<u32>(), llcs in 0u32..2000, cores in 0u32..2000, threads in 0u32..9,
        small in any::<bool>(), nodes in 0u32..5,
    ) {
        let packages = if small { packages % 4 } else { packages };
        let text = SMALL
            .replace("packages = 2", &format!("packages = {packages}\nnodes_per_package = {nodes}"))
            .replace("llcs_per_die = 1", &format!("llcs_per_die = {llcs}"))
            .replace("cores_per_llc = 4", &format!("cores_per_llc = {cores}"))
            .replace("threads_per_core = 1", &format!("threads_per_core = {threads}"));
        let _ = Machine::from_toml(&text, "random.toml");
    }

    #[test]
    fn no_text_makes_it_panic(cut in 0usize..900, with in "\\PC{0,12}") {
        let mut text = SMALL.to_owned();
        let cut = cut.min(text.len());
        if text.is_char_boundary(cut) {
            text.replace_range(cut..(cut + 3).min(text.len()), &with);
        }
        let _ = Machine::from_toml(&text, "random.toml");
    }
}

#[test]
fn distances_need_not_be_the_same_both_ways() {
    // The kernel warns of such a table and uses it (sched_init_numa()).
    let text = SMALL.replace("[20, 10]]", "[21, 10]]");
    let machine = Machine::from_toml(&text, "small.toml").unwrap();
    assert_eq!(machine.node_distance, [[10, 20], [21, 10]]);
}

const PLACES: &str = r#"
name = "big.LITTLE"
description = "2 cores and 2 cores of 2 threads"
arch = "arm64"

[places]
cores = ["0", "1", "2,4", "3,5"]
clusters = ["0-1", "2,4", "3,5"]
llcs = ["2-5", "0-1"]
packages = ["0-5"]
nodes = ["2-5", "0-1"]
node_distance = [[10, 12], [12, 10]]
isolated = "5"
capacity = [{ cpus = "0-1", capacity = 400 }]

[[idle_state]]
name = "WFI"
exit_latency_us = 1
target_residency_us = 1
source = "test"

[costs]
like = "smt2-8"
"#;

#[test]
fn cpus_can_be_placed_one_by_one() {
    let machine = Machine::from_toml(PLACES, "places.toml").unwrap();
    let places: Vec<_> = machine
        .cpus
        .iter()
        .map(|cpu| (cpu.thread, cpu.core.0, cpu.llc.0, cpu.node.0, cpu.capacity))
        .collect();
    // LLCs are numbered by their first CPU, nodes as they are written: the distances are in that order.
    assert_eq!(places[0], (0, 0, 0, 1, 400));
    assert_eq!(places[3], (0, 3, 1, 0, 1024));
    assert_eq!(places[4], (1, 2, 1, 0, 1024));
    assert_eq!(machine.cpus[4].cluster, machine.cpus[2].cluster);
    assert!(machine.cpus[5].isolated && !machine.cpus[4].isolated);
    assert_eq!(machine.costs.smt_throughput.len(), 2);
}

#[test]
fn places_that_cannot_be_are_named() {
    for (good, bad, part) in [
        (
            "\"3,5\"]\nclusters",
            "\"3\"]\nclusters",
            "llcs = [\"2-5\", \"0-1\"]: expected CPUs below 5 in each, not '2-5'",
        ),
        ("\"3,5\"]\nclusters", "\"3,7\"]\nclusters", "without gaps"),
        (
            "\"3,5\"]\nclusters",
            "\"3-\"]\nclusters",
            "'3-' is not a CPU number",
        ),
        (
            "\"3,5\"]\nclusters",
            "\"2,3,5\"]\nclusters",
            "expected CPU 2 once",
        ),
        (
            "\"3,5\"]\nclusters",
            "\"3,5\", \"2000\"]\nclusters",
            "CPU 2000 is past the largest",
        ),
        (
            "[\"2-5\", \"0-1\"]\npackages",
            "[\"2-5\"]\npackages",
            "llcs = [\"2-5\"]: expected CPU 0 in one of them",
        ),
        (
            "[\"2-5\", \"0-1\"]\npackages",
            "[\"2-3\", \"0-1,4-5\"]\npackages",
            "expected all of the core 2,4 in one of them",
        ),
        (
            "[\"0-5\"]",
            "[\"0-5\", \"\"]",
            "expected CPUs below 6 in each, not ''",
        ),
        (
            "[\"0-5\"]",
            "[\"0-5,9\"]",
            "expected CPUs below 6 in each, not '0-5,9'",
        ),
        ("[10, 12], ", "", "2 rows of 2"),
        ("[places]", "[place]", "unknown field `place`"),
        ("nodes =", "nods =", "unknown field `nods`"),
    ] {
        let text = PLACES.replace(good, bad);
        assert_ne!(text, PLACES, "{good}");
        let error = Machine::from_toml(&text, "places.toml")
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{bad}: no '{part}' in '{error}'");
    }
    let both = format!(
        "{PLACES}\n[topology]\npackages = 1\nllcs_per_die = 1\ncores_per_llc = 1\nthreads_per_core = 1\nnumbering = \"consecutive\"\n"
    );
    for text in [both, PLACES.replace("[places]", "[other.places]")] {
        assert!(Machine::from_toml(&text, "places.toml").is_err());
    }
}

/// What a description's writer promises for each machine that is read from elsewhere.
#[test]
fn a_description_that_is_written_reads_as_the_same_machine() {
    let mut machines: Vec<Machine> = crate::presets()
        .iter()
        .map(|(name, _)| Machine::preset(name).unwrap())
        .collect();
    machines.push(Machine::from_toml(PLACES, "places.toml").unwrap());
    for machine in machines {
        let text = machine.describe();
        let again = Machine::from_toml(&text, "again.toml").unwrap();
        assert_eq!(again.cpus, machine.cpus, "{text}");
        assert_eq!(again.node_distance, machine.node_distance);
        assert_eq!(again.idle_states, machine.idle_states);
        let regular = machine.name != "big.LITTLE";
        assert_eq!(text.contains("[topology]"), regular, "{text}");
    }
}

#[test]
fn a_lent_cost_of_clusters_is_not_that_of_the_llc() {
    let lender = Machine::preset("kunpeng-920").unwrap().costs;
    let like = PLACES.replace("like = \"smt2-8\"", "like = \"kunpeng-920\"\nsmt_throughput = [{ value = 1.0, source = \"t\" }, { value = 0.5, source = \"t\" }]");
    let costs = Machine::from_toml(&like, "like.toml").unwrap().costs;
    assert_eq!(
        costs.transfer_cluster_ns.value,
        lender.transfer_cluster_ns.value
    );
    assert_ne!(costs.transfer_cluster_ns.value, costs.transfer_llc_ns.value);
    // Its own cost of the LLC is what it has within clusters, too.
    let own = format!("{like}\ntransfer_llc_ns = {{ value = 7, source = \"test\" }}\n");
    let costs = Machine::from_toml(&own, "own.toml").unwrap().costs;
    assert_eq!(costs.transfer_cluster_ns.value, 7.0);
}
