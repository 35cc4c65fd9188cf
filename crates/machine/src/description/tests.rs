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
    ("[20, 10]]", "[21, 10]]", "the same both ways"),
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
        "times from 0 to 1e6 us",
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
