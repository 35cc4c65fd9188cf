use super::*;
use crate::domains::{DomainRules, SchedTopology, sd};
use crate::ids::CpuId;
use crate::topology::Distance;

/// Name, CPUs, cores, LLCs, packages, nodes, CPUs of an LLC.
const DOCUMENTED: [(&str, usize, usize, usize, usize, usize, u32); 12] = [
    ("altra-80", 80, 80, 40, 1, 1, 2),
    ("epyc-7763-2s", 256, 128, 16, 2, 2, 16),
    ("epyc-9654-2s", 384, 192, 24, 2, 2, 16),
    ("hypervisor-64", 64, 32, 1, 1, 1, 64),
    ("kunpeng-920", 128, 128, 4, 2, 4, 32),
    ("power10-llc4", 64, 16, 16, 1, 1, 4),
    ("power9-2s44c", 176, 44, 22, 2, 2, 8),
    ("smt2-8", 8, 4, 1, 1, 1, 8),
    ("xeon-2s96c", 192, 96, 4, 2, 4, 48),
    ("xeon-8360y-2s", 144, 72, 2, 2, 2, 72),
    ("xeon-8480-1s", 112, 56, 1, 1, 1, 112),
    ("xeon-8480-2s", 224, 112, 2, 2, 2, 112),
];

fn topology(name: &str, rules: &DomainRules) -> SchedTopology {
    SchedTopology::build(&Machine::preset(name).unwrap(), rules)
}

fn names(topology: &SchedTopology) -> Vec<&'static str> {
    topology.domains[0]
        .iter()
        .map(|domain| domain.name)
        .collect()
}

#[test]
fn every_preset_has_the_counts_that_it_documents() {
    assert_eq!(presets().len(), DOCUMENTED.len());
    for (name, cpus, cores, llcs, packages, nodes, llc_size) in DOCUMENTED {
        let machine = Machine::preset(name).unwrap();
        assert_eq!(machine.name, name);
        let counts = (machine.ncpu(), machine.ncores(), machine.nllcs());
        assert_eq!(counts, (cpus, cores, llcs), "{name}");
        assert_eq!(
            (machine.npackages(), machine.nnodes()),
            (packages, nodes),
            "{name}"
        );
        assert_eq!(
            machine.costs.smt_throughput.len(),
            machine.threads_per_core(),
            "{name}"
        );
        let topology = topology(name, &DomainRules::v6_12());
        assert!(
            topology.cpus.iter().all(|cpu| cpu.llc_size == llc_size),
            "{name}"
        );
        assert_eq!(topology.llcs.len(), llcs, "{name}");
    }
}

#[test]
fn every_figure_has_a_source_and_a_range_around_its_value() {
    for (name, _) in presets() {
        let machine = Machine::preset(name).unwrap();
        for (cost, figure) in machine.costs.figures() {
            assert!(!figure.source.is_empty(), "{name}: {cost}");
            assert!(
                figure.low <= figure.value && figure.value <= figure.high,
                "{name}: {cost}"
            );
        }
    }
}

#[test]
fn transfers_grow_with_distance() {
    for (name, _) in presets() {
        let costs = Machine::preset(name).unwrap().costs;
        let transfers = [
            costs.transfer_smt_ns.value,
            costs.transfer_cluster_ns.value,
            costs.transfer_llc_ns.value,
            costs.transfer_package_ns.value,
            costs.transfer_remote_ns.value,
        ];
        assert!(transfers.is_sorted(), "{name}: {transfers:?}");
    }
}

#[test]
fn epyc_9654_is_numbered_and_cut_as_linux_does() {
    let machine = Machine::preset("epyc-9654-2s").unwrap();
    assert_eq!(machine.siblings(CpuId(0)).to_string(), "0,192");
    assert_eq!(machine.distance_class(CpuId(0), CpuId(192)), Distance::Smt);
    assert_eq!(machine.distance_class(CpuId(0), CpuId(7)), Distance::Llc);
    assert_eq!(
        machine.distance_class(CpuId(0), CpuId(8)),
        Distance::Package
    );
    assert_eq!(
        machine.distance_class(CpuId(0), CpuId(96)),
        Distance::Remote
    );
    let topology = topology("epyc-9654-2s", &DomainRules::v6_5());
    assert_eq!(names(&topology), ["SMT", "MC", "DIE", "NUMA"]);
    assert_eq!(topology.nodes[0].to_string(), "0-95,192-287");
    let numa = topology.sd_numa(CpuId(0)).unwrap();
    // Zen raises the reclaim distance to 32, so wake-ups stay affine across sockets.
    assert_ne!(numa.flags & sd::WAKE_AFFINE, 0);
    assert_eq!(numa.imb_numa_nr, 12, "as many tasks as a node has LLCs");
    assert_eq!(topology.domains[0][2].groups.len(), 12);
}

#[test]
fn one_llc_a_node_drops_the_package_level_and_allows_an_eighth() {
    let topology = topology("xeon-8480-2s", &DomainRules::v6_12());
    assert_eq!(names(&topology), ["SMT", "MC", "NUMA"]);
    assert_eq!(
        topology.sd_numa(CpuId(0)).unwrap().imb_numa_nr,
        14,
        "an eighth of a node's 112"
    );
}

#[test]
fn power_has_a_cache_level_where_cores_share_one() {
    let power9 = topology("power9-2s44c", &DomainRules::v6_12());
    assert_eq!(names(&power9), ["SMT", "CACHE", "PKG", "NUMA"]);
    let numa = power9.sd_numa(CpuId(0)).unwrap();
    assert_eq!(
        numa.flags & sd::WAKE_AFFINE,
        0,
        "distance 40 is beyond POWER's 10"
    );
    let power10 = topology("power10-llc4", &DomainRules::v6_12());
    assert_eq!(names(&power10), ["SMT", "PKG"]);
    assert_eq!(power10.sd_llc(CpuId(0)).unwrap().name, "SMT");
}

#[test]
fn kunpeng_scans_clusters_and_altra_has_none() {
    let kunpeng = topology("kunpeng-920", &DomainRules::v6_12());
    assert_eq!(names(&kunpeng), ["CLS", "MC", "NUMA", "NUMA", "NUMA"]);
    assert!(kunpeng.cluster_active);
    assert_eq!(kunpeng.cpus[5].share, CpuId(4));
    let altra = topology("altra-80", &DomainRules::v6_12());
    assert_eq!(names(&altra), ["MC", "PKG"]);
    assert!(!altra.cluster_active && !altra.smt_active);
}

#[test]
fn an_unknown_name_lists_those_near_it() {
    let error = Machine::preset("epyc-9645-2s").unwrap_err();
    let MachineError::UnknownPreset { near, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(near[0], "epyc-9654-2s");
    assert!(error.to_string().contains("'epyc-9645-2s'"), "{error}");
    assert_eq!(super::near("kunpeng"), ["kunpeng-920"]);
    let nothing = Machine::preset("completely-different-thing").unwrap_err();
    assert!(nothing.to_string().contains("machine list"), "{nothing}");
    assert!(Machine::preset("").is_err());
}

#[test]
fn without_smt_each_core_is_one_cpu_in_its_place() {
    for (name, _) in presets() {
        let machine = Machine::preset(name).unwrap();
        let off = machine.without_smt();
        let place = |cpu: &crate::topology::Cpu| (cpu.core, cpu.llc, cpu.package, cpu.node);
        assert_eq!(off.ncpu(), machine.ncores(), "{name}");
        assert_eq!(
            (off.ncores(), off.threads_per_core()),
            (off.ncpu(), 1),
            "{name}"
        );
        assert_eq!(
            (off.nllcs(), off.npackages(), off.nnodes()),
            (machine.nllcs(), machine.npackages(), machine.nnodes()),
            "{name}"
        );
        for (index, cpu) in off.cpus.iter().enumerate() {
            assert_eq!(cpu.id.index(), index, "{name}");
            let first = machine.mask_where(|other| other.core == cpu.core).first();
            assert_eq!(place(machine.cpu(first.unwrap())), place(cpu), "{name}");
        }
        // Where siblings come last, what is left keeps its number.
        if machine.cpu(CpuId(1)).core != machine.cpu(CpuId(0)).core {
            assert_eq!(off.cpus, machine.cpus[..off.ncpu()], "{name}");
        }
        assert_eq!(off.without_smt().cpus, off.cpus, "{name}");
    }
}
