//! The domains built here against those that a real kernel built, field by field.
//!
//! The places of the CPUs are given by the record. Node distances are not recorded: two nodes at
//! distance 20 (what the emulator reports unless told otherwise) are inferred, and the record agrees:
//! one NUMA level, with `SD_WAKE_AFFINE`, so at most `RECLAIM_DISTANCE`.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use wakelab_machine::domains::sd;
use wakelab_machine::{
    Cpu, CpuId, CpuMask, DomainRules, Machine, NodeId, SchedDomain, SchedTopology,
};

const TOPOLOGIES: [(&str, &str); 10] = [
    ("A", include_str!("data/topology-A.json")),
    ("B", include_str!("data/topology-B.json")),
    ("C", include_str!("data/topology-C.json")),
    ("D", include_str!("data/topology-D.json")),
    ("E", include_str!("data/topology-E.json")),
    ("F", include_str!("data/topology-F.json")),
    ("H", include_str!("data/topology-H.json")),
    ("I", include_str!("data/topology-I.json")),
    ("J", include_str!("data/topology-J.json")),
    ("L", include_str!("data/topology-L.json")),
];

fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} is a number in {value}"))
}

/// Numbers the values by first appearance.
fn renumber(values: impl Iterator<Item = u64>) -> Vec<u16> {
    let mut known = BTreeMap::new();
    values
        .map(|value| {
            let next = known.len() as u16;
            *known.entry(value).or_insert(next)
        })
        .collect()
}

fn machine(recorded: &Value) -> Machine {
    let cpus = recorded["cpus"].as_array().unwrap();
    let ids = |key: &str| renumber(cpus.iter().map(|cpu| number(cpu, key)));
    let (cores, clusters, llcs) = (ids("smt"), ids("l2"), ids("llc"));
    let dies = renumber(
        cpus.iter()
            .map(|cpu| number(cpu, "pkg") << 32 | number(cpu, "die")),
    );
    let nodes = 1 + cpus.iter().map(|cpu| number(cpu, "node")).max().unwrap() as usize;
    let mut machine = Machine::preset("smt2-8").unwrap();
    machine.cpus = (0..cpus.len())
        .map(|index| {
            let smt = number(&cpus[index], "smt");
            Cpu {
                id: CpuId::from_index(index),
                thread: (smt & ((1 << index) - 1)).count_ones() as u16,
                core: wakelab_machine::CoreId(cores[index]),
                cluster: Some(wakelab_machine::ClusterId(clusters[index])),
                llc: wakelab_machine::LlcId(llcs[index]),
                die: dies[index],
                package: number(&cpus[index], "pkg") as u16,
                node: NodeId(number(&cpus[index], "node") as u16),
                capacity: number(&cpus[index], "acap") as u32,
                isolated: false,
            }
        })
        .collect();
    machine.node_distance = (0..nodes)
        .map(|a| (0..nodes).map(|b| if a == b { 10 } else { 20 }).collect())
        .collect();
    machine
}

fn check_domain(at: &str, topology: &SchedTopology, domain: &SchedDomain, recorded: &Value) {
    assert_eq!(domain.name, recorded["name"], "{at}");
    assert_eq!(
        u64::from(domain.level),
        number(recorded, "lvl"),
        "{at}: level"
    );
    assert_eq!(domain.span.word(0), number(recorded, "span"), "{at}: span");
    assert_eq!(
        u64::from(domain.flags),
        number(recorded, "flags"),
        "{at}: flags"
    );
    assert_eq!(
        u64::from(domain.imbalance_pct),
        number(recorded, "pct"),
        "{at}: imbalance_pct"
    );
    assert_eq!(
        u64::from(domain.imb_numa_nr),
        number(recorded, "imb_numa_nr"),
        "{at}: imb_numa_nr"
    );
    let groups: Vec<Vec<u64>> = domain
        .groups
        .iter()
        .map(|id| &topology.groups[id.index()])
        .map(|group| vec![group.span.word(0), group.flags.into(), group.weight.into()])
        .collect();
    let expected: Vec<Vec<u64>> = serde_json::from_value(recorded["groups"].clone()).unwrap();
    assert_eq!(groups, expected, "{at}: groups");
}

fn check_cpu(topology: &SchedTopology, cpu: CpuId, recorded: &Value) {
    let place = &topology.cpus[cpu.index()];
    assert_eq!(
        u64::from(place.llc_size),
        number(recorded, "llc_size"),
        "llc_size of {cpu}"
    );
    assert_eq!(
        place.llc_span.first(),
        Some(CpuId(number(recorded, "llc") as u16)),
        "llc of {cpu}"
    );
    assert_eq!(
        u64::from(place.share.0),
        number(recorded, "share"),
        "share of {cpu}"
    );
    assert_eq!(place.smt.word(0), number(recorded, "smt"), "smt of {cpu}");
    let llc_span = match number(recorded, "llc_span") {
        0 => CpuMask::single(cpu),
        span => CpuMask::from_u64(span),
    };
    assert_eq!(place.llc_span, llc_span, "llc_span of {cpu}");
    let domains = &topology.domains[cpu.index()];
    let expected = recorded["doms"].as_array().unwrap();
    assert_eq!(domains.len(), expected.len(), "number of domains of {cpu}");
    for (index, (domain, recorded)) in domains.iter().zip(expected).enumerate() {
        let at = format!("CPU {cpu}, domain {index} ({})", domain.name);
        check_domain(&at, topology, domain, recorded);
        assert_eq!(
            place.sd_llc == Some(index),
            number(recorded, "llc") == 1,
            "{at}: sd_llc"
        );
    }
}

/// Names, spans, flags, groups and all else that is recorded of each domain of each CPU.
fn check_topology(name: &str, recorded: &Value) {
    let topology = SchedTopology::build(&machine(recorded), &DomainRules::v6_12());
    for (index, cpu) in recorded["cpus"].as_array().unwrap().iter().enumerate() {
        println!("topology {name}");
        check_cpu(&topology, CpuId::from_index(index), cpu);
    }
    let keys = [
        ("smt_active", topology.smt_active),
        ("cluster_active", topology.cluster_active),
        ("asym_cpucap", topology.asym_cpucap),
    ];
    for (key, value) in keys {
        let recorded = number(recorded, key);
        assert_eq!(u64::from(value), recorded, "{key} of topology {name}");
    }
}

#[test]
fn domains_are_those_of_the_real_kernel() {
    for (name, text) in TOPOLOGIES {
        check_topology(name, &serde_json::from_str(text).unwrap());
    }
}

/// The headers of all recordings of decisions in the directory `WAKELAB_ORACLE_DIR`, if it is set.
#[test]
fn domains_are_those_of_every_recording() {
    let Some(directory) = std::env::var_os("WAKELAB_ORACLE_DIR") else {
        println!("WAKELAB_ORACLE_DIR is not set: nothing is compared");
        return;
    };
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".jsonl.gz") {
            let file = std::fs::File::open(&path).unwrap();
            let mut line = String::new();
            let mut text = BufReader::new(flate2::read::GzDecoder::new(file));
            text.read_line(&mut line).unwrap();
            check_topology(
                &path.display().to_string(),
                &serde_json::from_str(&line).unwrap(),
            );
            count += 1;
        }
    }
    assert!(count > 0, "no *.jsonl.gz there");
}

#[test]
fn before_6_7_the_same_machine_has_die_and_no_cluster_flag() {
    let recorded: Value = serde_json::from_str(TOPOLOGIES[3].1).unwrap();
    let topology = SchedTopology::build(&machine(&recorded), &DomainRules::v6_5());
    let names: Vec<_> = topology.domains[0]
        .iter()
        .map(|domain| domain.name)
        .collect();
    assert_eq!(names, ["SMT", "MC", "DIE", "NUMA"]);
    let recorded: Value = serde_json::from_str(TOPOLOGIES[4].1).unwrap();
    let topology = SchedTopology::build(&machine(&recorded), &DomainRules::v6_5());
    assert!(!topology.cluster_active);
    assert!(
        topology
            .domains
            .iter()
            .flatten()
            .all(|domain| domain.flags & sd::CLUSTER == 0)
    );
    assert_eq!(topology.domains[0][1].name, "CLS");
    assert_eq!(
        topology.cpus[15].share,
        CpuId(0),
        "sd_share_id is the LLC's before 6.7"
    );
}
