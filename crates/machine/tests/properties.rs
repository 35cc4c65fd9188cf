//! What must hold of the domains of any machine.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use proptest::prelude::*;
use wakelab_machine::domains::sd;
use wakelab_machine::{Cpu, CpuId, CpuMask, DomainRules, Machine, NodeId, SchedTopology};

#[derive(Clone, Debug)]
struct Shape {
    arch: &'static str,
    packages: usize,
    dies: usize,
    llcs: usize,
    clusters: usize,
    cores: usize,
    threads: usize,
    consecutive: bool,
    nodes_per_package: bool,
    distances: Vec<u32>,
    small: Vec<bool>,
    isolated: Vec<bool>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let numbers = (
        1usize..4,
        1usize..3,
        1usize..4,
        1usize..3,
        1usize..5,
        1usize..5,
    );
    let arch = prop::sample::select(vec!["x86", "arm64", "power"]);
    let kinds = (arch, any::<bool>(), any::<bool>());
    let distances = prop::collection::vec(prop::sample::select(vec![12u32, 20, 21, 32, 40]), 36);
    let flags = || prop::collection::vec(prop::bool::weighted(0.1), 8);
    (numbers, kinds, distances, flags(), flags()).prop_map(
        |(n, (arch, consecutive, nodes_per_package), distances, small, isolated)| Shape {
            arch,
            packages: n.0,
            dies: n.1,
            llcs: n.2,
            clusters: n.3,
            cores: n.4,
            threads: n.5,
            consecutive,
            nodes_per_package,
            distances,
            small,
            isolated,
        },
    )
}

fn description(shape: &Shape) -> String {
    let per_package = if shape.nodes_per_package {
        shape.dies
    } else {
        1
    };
    let nodes = shape.packages * per_package;
    let distance = |a: usize, b: usize| match a == b {
        true => 10,
        false => shape.distances[a.min(b) * 6 + a.max(b)],
    };
    let rows: Vec<Vec<u32>> = (0..nodes)
        .map(|a| (0..nodes).map(|b| distance(a, b)).collect())
        .collect();
    let numbering = if shape.consecutive {
        "consecutive"
    } else {
        "siblings-last"
    };
    format!(
        "name = 'random'\ndescription = 'random'\narch = '{}'\n[topology]\npackages = {}\n\
         dies_per_package = {}\nllcs_per_die = {}\ncores_per_llc = {}\ncores_per_cluster = {}\n\
         threads_per_core = {}\nnumbering = '{numbering}'\nnodes_per_package = {per_package}\n\
         node_distance = {rows:?}\n[[idle_state]]\nname = 'POLL'\nexit_latency_us = 0\n\
         target_residency_us = 0\nsource = 'test'\n[costs]\nlike = 'power9-2s44c'\n",
        shape.arch,
        shape.packages,
        shape.dies,
        shape.llcs,
        shape.clusters * shape.cores,
        shape.cores,
        shape.threads,
    )
}

fn machine(shape: &Shape) -> Machine {
    let mut machine = Machine::from_toml(&description(shape), "random.toml").unwrap();
    let flag = |flags: &[bool], cpu: &Cpu| flags[cpu.core.index() % flags.len()];
    for cpu in &mut machine.cpus {
        cpu.isolated = flag(&shape.isolated, cpu);
        // The kernel has no asymmetric capacity on SMT machines.
        if shape.threads == 1 && flag(&shape.small, cpu) {
            cpu.capacity = 512;
        }
    }
    machine
}

fn check(machine: &Machine, topology: &SchedTopology) -> Result<(), TestCaseError> {
    let mapped = machine.mask_where(|cpu| !cpu.isolated);
    for (index, row) in topology.domains.iter().enumerate() {
        let cpu = CpuId::from_index(index);
        prop_assert!(
            row.is_empty() || mapped.contains(cpu),
            "isolated CPUs have no domains"
        );
        let mut below = CpuMask::single(cpu);
        for domain in row {
            prop_assert!(below.is_subset(&domain.span), "spans are nested");
            prop_assert!(domain.span.is_subset(&mapped));
            prop_assert_eq!(domain.span.weight(), domain.span_weight as usize);
            prop_assert!(domain.span_weight > 1, "one CPU needs no domain");
            let groups: Vec<_> = domain
                .groups
                .iter()
                .map(|id| &topology.groups[id.index()])
                .collect();
            prop_assert!(groups[0].span.contains(cpu), "the own group comes first");
            let union = groups
                .iter()
                .fold(CpuMask::EMPTY, |union, group| union.or(&group.span));
            prop_assert_eq!(union, domain.span, "the groups cover the domain");
            if domain.flags & sd::OVERLAP == 0 {
                let sum: u32 = groups.iter().map(|group| group.weight).sum();
                prop_assert_eq!(sum, domain.span_weight, "each CPU is in one group");
                prop_assert_eq!(groups[0].span, below, "the own group is the child's span");
            }
            for group in groups {
                prop_assert_eq!(group.weight as usize, group.span.weight());
                prop_assert!(!group.balance_mask.is_empty());
                prop_assert!(group.balance_mask.is_subset(&group.span));
            }
            below = domain.span;
        }
        if let Some(top) = row.last() {
            prop_assert_eq!(top.span, mapped, "the highest domain spans everything");
        }
    }
    Ok(())
}

fn check_caches(machine: &Machine, topology: &SchedTopology) -> Result<(), TestCaseError> {
    for (cpu, place) in machine.cpus.iter().zip(&topology.cpus) {
        prop_assert!(place.llc_span.contains(cpu.id));
        prop_assert_eq!(place.llc_span.weight(), place.llc_size as usize);
        prop_assert_eq!(topology.llcs[place.llc.index()], place.llc_span);
        prop_assert!(place.llc_span.contains(place.share));
        prop_assert_eq!(place.smt, machine.siblings(cpu.id));
        for sibling in place.smt.iter() {
            prop_assert_eq!(
                topology.cpus[sibling.index()].smt,
                place.smt,
                "SMT is symmetric"
            );
        }
        for other in place.llc_span.iter() {
            prop_assert_eq!(machine.cpu(other).llc, cpu.llc);
            prop_assert_eq!(topology.cpus[other.index()].llc, place.llc);
        }
        let domain = topology.sd_llc(cpu.id).map(|domain| domain.span);
        prop_assert_eq!(domain.unwrap_or(CpuMask::single(cpu.id)), place.llc_span);
    }
    let all = topology
        .nodes
        .iter()
        .fold(CpuMask::EMPTY, |all, node| all.or(node));
    prop_assert_eq!(all, CpuMask::first_n(machine.ncpu()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn domains_of_any_machine_are_sane(shape in shapes()) {
        let machine = machine(&shape);
        for rules in [DomainRules::v6_5(), DomainRules::v6_12()] {
            let topology = SchedTopology::build(&machine, &rules);
            check(&machine, &topology)?;
            check_caches(&machine, &topology)?;
            let records = topology.capacity_records();
            for (id, record) in records.iter().enumerate() {
                prop_assert_eq!(topology.groups[id].span, topology.groups[record.index()].span);
            }
            wakelab_machine::show::machine_show(&machine, &topology);
        }
    }

    #[test]
    fn distance_is_symmetric_and_nested(shape in shapes()) {
        let machine = machine(&shape);
        for a in 0..machine.ncpu().min(24) {
            for b in 0..machine.ncpu().min(24) {
                let (a, b) = (CpuId::from_index(a), CpuId::from_index(b));
                prop_assert_eq!(machine.distance_class(a, b), machine.distance_class(b, a));
            }
        }
    }
}

/// A machine of nodes of two CPUs at these distances.
fn nodes_at(distances: &[&[u32]]) -> SchedTopology {
    let mut machine = Machine::preset("altra-80").unwrap();
    machine.cpus.truncate(2 * distances.len());
    for cpu in &mut machine.cpus {
        cpu.node = NodeId(cpu.id.0 / 2);
    }
    machine.node_distance = distances.iter().map(|row| row.to_vec()).collect();
    SchedTopology::build(&machine, &DomainRules::v6_12())
}

fn group_spans(topology: &SchedTopology, cpu: usize, domain: usize) -> Vec<String> {
    let groups = &topology.domains[cpu][domain].groups;
    groups
        .iter()
        .map(|id| topology.groups[id.index()].span.to_string())
        .collect()
}

#[test]
fn a_ring_of_nodes_gets_overlapping_groups() {
    // Four nodes in a ring: two neighbours at 20, the opposite one at 30.
    let topology = nodes_at(&[
        &[10, 20, 30, 20],
        &[20, 10, 20, 30],
        &[30, 20, 10, 20],
        &[20, 30, 20, 10],
    ]);
    let spans: Vec<_> = topology.domains[0]
        .iter()
        .map(|d| d.span.to_string())
        .collect();
    assert_eq!(spans, ["0-1", "0-3,6-7", "0-7"]);
    assert_eq!(group_spans(&topology, 0, 1), ["0-1", "2-3", "6-7"]);
    assert_eq!(group_spans(&topology, 0, 2), ["0-3,6-7", "2-7"]);
    // Of the group around node 2, only node 2's own CPUs arrive at it.
    let other = topology.domains[0][2].groups[1];
    assert_eq!(
        topology.groups[other.index()].balance_mask.to_string(),
        "4-5"
    );
}

#[test]
fn a_line_of_nodes_uses_descended_siblings() {
    // Four nodes in a line (diameter 3): the groups of an end must not leave its domain.
    let line: [&[u32]; 4] = [
        &[10, 20, 30, 40],
        &[20, 10, 20, 30],
        &[30, 20, 10, 20],
        &[40, 30, 20, 10],
    ];
    let topology = nodes_at(&line);
    let spans: Vec<_> = topology.domains[0]
        .iter()
        .map(|d| d.span.to_string())
        .collect();
    assert_eq!(spans, ["0-1", "0-3", "0-5", "0-7"]);
    for domain in &topology.domains[0] {
        for id in &domain.groups {
            assert!(
                topology.groups[id.index()].span.is_subset(&domain.span),
                "{}",
                domain.name
            );
        }
    }
    assert_eq!(group_spans(&topology, 0, 2), ["0-3", "4-5"]);
    let far = &topology.domains[0][3];
    assert_eq!(
        far.flags & sd::WAKE_AFFINE,
        0,
        "40 is beyond the reclaim distance"
    );
}

#[test]
fn capacity_asymmetry_is_told_at_the_levels_that_see_it() {
    let mut machine = Machine::preset("altra-80").unwrap();
    machine.cpus.truncate(4);
    machine
        .cpus
        .iter_mut()
        .skip(2)
        .for_each(|cpu| cpu.capacity = 512);
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    assert!(topology.asym_cpucap);
    let asym = topology.sd_asym_cpucapacity(CpuId(0)).unwrap();
    assert_eq!(asym.name, "PKG");
    let (mc, pkg) = (&topology.domains[0][0], &topology.domains[0][1]);
    assert_eq!(mc.flags & (sd::ASYM_CPUCAPACITY | sd::PREFER_SIBLING), 0);
    assert_ne!(pkg.flags & sd::ASYM_CPUCAPACITY_FULL, 0);
    assert_eq!(topology.groups[pkg.groups[1].index()].capacity, 1024);
}

#[test]
fn nodes_inside_a_package_replace_its_level_on_x86() {
    let mut machine = Machine::preset("epyc-7763-2s").unwrap();
    for cpu in &mut machine.cpus {
        cpu.node = NodeId(cpu.llc.0 / 4);
    }
    machine.node_distance = (0..4)
        .map(|a| {
            (0..4)
                .map(|b| {
                    if a == b {
                        10
                    } else if a / 2 == b / 2 {
                        12
                    } else {
                        32
                    }
                })
                .collect()
        })
        .collect();
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    let names: Vec<_> = topology.domains[0]
        .iter()
        .map(|d| (d.name, d.level))
        .collect();
    assert_eq!(
        names,
        [("SMT", 0), ("MC", 2), ("NODE", 3), ("NUMA", 4), ("NUMA", 5)]
    );
}

#[test]
fn the_largest_machine_is_built() {
    let text = description(&Shape {
        arch: "x86",
        packages: 2,
        dies: 2,
        llcs: 16,
        clusters: 1,
        cores: 8,
        threads: 2,
        consecutive: false,
        nodes_per_package: true,
        distances: vec![32; 36],
        small: vec![],
        isolated: vec![],
    });
    let machine = Machine::from_toml(&text, "large.toml").unwrap();
    assert_eq!(machine.ncpu(), 1024);
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    check(&machine, &topology).unwrap();
}
