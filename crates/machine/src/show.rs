//! A machine for people and for programs: what `wakelab machine show` prints.

use crate::costs::Figure;
use crate::domains::{SchedDomain, SchedTopology, sd};
use crate::ids::CpuId;
use crate::mask::CpuMask;
use crate::topology::{IdleState, Machine};
use serde::Serialize;
use std::collections::BTreeMap;

mod render;

/// A machine with its scheduling domains, ready to be serialised or printed. CPU sets are cpulists.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// The machine's name.
    pub name: String,
    /// One line of what it is.
    pub description: String,
    /// `x86`, `power` or `arm64`.
    pub arch: String,
    /// Ticks a second.
    pub hz: u32,
    /// How many there are of everything.
    pub counts: Counts,
    /// `siblings N and N+192`, `siblings consecutive`, `no SMT` or `irregular`.
    pub numbering: String,
    /// Static keys: `sched_smt_present`.
    pub smt_active: bool,
    /// `sched_cluster_active`.
    pub cluster_active: bool,
    /// `sched_asym_cpucapacity`.
    pub asym_cpucap: bool,
    /// CPUs of each last-level cache, as the kernel sees them.
    pub llcs: Vec<String>,
    /// CPUs of each node.
    pub nodes: Vec<String>,
    /// Node distances, `[from][to]`.
    pub node_distance: Vec<Vec<u32>>,
    /// `node_reclaim_distance`.
    pub node_reclaim_distance: u32,
    /// Capacities that occur, each with its CPUs.
    pub capacities: Vec<(u32, String)>,
    /// The isolated CPUs.
    pub isolated: String,
    /// The domains of the first of all CPUs whose domains have the same shape.
    pub domains: Vec<CpuDomains>,
    /// Idle states.
    pub idle_states: Vec<IdleState>,
    /// Costs by name.
    pub costs: Vec<(String, Figure)>,
}

/// How many there are of everything.
#[derive(Clone, Debug, Serialize)]
pub struct Counts {
    /// Logical CPUs.
    pub cpus: usize,
    /// Cores.
    pub cores: usize,
    /// Hardware threads of a core, at most.
    pub threads_per_core: usize,
    /// Clusters.
    pub clusters: usize,
    /// Last-level caches.
    pub llcs: usize,
    /// Dies.
    pub dies: usize,
    /// Packages.
    pub packages: usize,
    /// Nodes.
    pub nodes: usize,
}

/// The domains of one CPU, which stands for others.
#[derive(Clone, Debug, Serialize)]
pub struct CpuDomains {
    /// The CPU.
    pub cpu: u16,
    /// The CPUs whose domains have the same shape, itself among them.
    pub alike: String,
    /// `sd_llc_size`.
    pub sd_llc_size: u32,
    /// Its domains, lowest first.
    pub domains: Vec<DomainReport>,
}

/// One scheduling domain.
#[derive(Clone, Debug, Serialize)]
pub struct DomainReport {
    /// `SMT`, `CLS`, `MC`, `PKG`, `NUMA`...
    pub name: &'static str,
    /// `sd->level`.
    pub level: u32,
    /// Its CPUs.
    pub span: String,
    /// How many.
    pub span_weight: u32,
    /// Its flags by name, without `SD_`.
    pub flags: Vec<&'static str>,
    /// `imbalance_pct`.
    pub imbalance_pct: u32,
    /// `min_interval` in ms.
    pub min_interval: u32,
    /// `max_interval` in ms.
    pub max_interval: u32,
    /// `busy_factor`.
    pub busy_factor: u32,
    /// `cache_nice_tries`.
    pub cache_nice_tries: u32,
    /// `imb_numa_nr`.
    pub imb_numa_nr: u32,
    /// Whether it is `sd_llc`.
    pub sd_llc: bool,
    /// Its groups in ring order.
    pub groups: Vec<GroupReport>,
}

/// One group of a domain.
#[derive(Clone, Debug, Serialize)]
pub struct GroupReport {
    /// Its CPUs.
    pub span: String,
    /// Those that may balance for it, where not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance_mask: Option<String>,
    /// How many CPUs it has.
    pub weight: u32,
    /// How many cores.
    pub cores: u32,
    /// Its capacity.
    pub capacity: u32,
    /// Its flags by name.
    pub flags: Vec<&'static str>,
}

const FLAG_NAMES: [(u32, &str); 15] = [
    (sd::BALANCE_NEWIDLE, "BALANCE_NEWIDLE"),
    (sd::BALANCE_EXEC, "BALANCE_EXEC"),
    (sd::BALANCE_FORK, "BALANCE_FORK"),
    (sd::BALANCE_WAKE, "BALANCE_WAKE"),
    (sd::WAKE_AFFINE, "WAKE_AFFINE"),
    (sd::ASYM_CPUCAPACITY, "ASYM_CPUCAPACITY"),
    (sd::ASYM_CPUCAPACITY_FULL, "ASYM_CPUCAPACITY_FULL"),
    (sd::SHARE_CPUCAPACITY, "SHARE_CPUCAPACITY"),
    (sd::CLUSTER, "CLUSTER"),
    (sd::SHARE_LLC, "SHARE_LLC"),
    (sd::SERIALIZE, "SERIALIZE"),
    (sd::ASYM_PACKING, "ASYM_PACKING"),
    (sd::PREFER_SIBLING, "PREFER_SIBLING"),
    (sd::OVERLAP, "OVERLAP"),
    (sd::NUMA, "NUMA"),
];

/// The names of the flags that are set, without `SD_`, in the order of their bits.
pub fn flag_names(flags: u32) -> Vec<&'static str> {
    FLAG_NAMES
        .iter()
        .filter(|(bit, _)| flags & bit != 0)
        .map(|(_, name)| *name)
        .collect()
}

/// The machine as text.
pub fn machine_show(machine: &Machine, topology: &SchedTopology) -> String {
    render::render(&machine_report(machine, topology))
}

/// The machine as a value to serialise.
pub fn machine_report(machine: &Machine, topology: &SchedTopology) -> MachineReport {
    let lists = |masks: &[CpuMask]| masks.iter().map(CpuMask::to_string).collect();
    let mut capacities = BTreeMap::<u32, CpuMask>::new();
    machine
        .cpus
        .iter()
        .for_each(|cpu| capacities.entry(cpu.capacity).or_default().set(cpu.id));
    MachineReport {
        name: machine.name.clone(),
        description: machine.description.clone(),
        arch: machine.arch.to_string(),
        hz: machine.hz,
        counts: Counts {
            cpus: machine.ncpu(),
            cores: machine.ncores(),
            threads_per_core: machine.threads_per_core(),
            clusters: machine.count_of(|cpu| cpu.cluster.map_or((1, cpu.core.0), |c| (0, c.0))),
            llcs: machine.nllcs(),
            dies: machine.count_of(|cpu| cpu.die),
            packages: machine.npackages(),
            nodes: machine.nnodes(),
        },
        numbering: numbering(machine),
        smt_active: topology.smt_active,
        cluster_active: topology.cluster_active,
        asym_cpucap: topology.asym_cpucap,
        llcs: lists(&topology.llcs),
        nodes: lists(&topology.nodes),
        node_distance: machine.node_distance.clone(),
        node_reclaim_distance: machine.node_reclaim_distance,
        capacities: capacities
            .into_iter()
            .rev()
            .map(|(c, cpus)| (c, cpus.to_string()))
            .collect(),
        isolated: machine.mask_where(|cpu| cpu.isolated).to_string(),
        domains: shapes(topology),
        idle_states: machine.idle_states.clone(),
        costs: machine
            .costs
            .figures()
            .map(|(name, figure)| (name, figure.clone()))
            .collect(),
    }
}

/// How siblings are numbered, from the CPUs of core 0 and confirmed by all others.
fn numbering(machine: &Machine) -> String {
    let threads = machine.threads_per_core();
    if threads == 1 {
        return "no SMT".to_owned();
    }
    let mut siblings = BTreeMap::<u16, Vec<usize>>::new();
    machine
        .cpus
        .iter()
        .for_each(|cpu| siblings.entry(cpu.core.0).or_default().push(cpu.id.index()));
    let apart = |step: usize| {
        let regular = |cpus: &Vec<usize>| cpus.windows(2).all(|pair| pair[1] - pair[0] == step);
        siblings
            .values()
            .all(|cpus| cpus.len() == threads && regular(cpus))
    };
    let cores = machine.ncores();
    if apart(1) {
        "siblings consecutive".to_owned()
    } else if apart(cores) {
        format!("siblings N and N+{cores}")
    } else {
        "irregular".to_owned()
    }
}

/// One CPU for each shape of domains, with all CPUs of that shape.
fn shapes(topology: &SchedTopology) -> Vec<CpuDomains> {
    let mut shapes = Vec::<(Vec<Shape>, CpuMask)>::new();
    for (index, row) in topology.domains.iter().enumerate() {
        let shape: Vec<Shape> = row.iter().map(|domain| shape(topology, domain)).collect();
        let cpu = CpuId::from_index(index);
        match shapes.iter_mut().find(|(known, _)| *known == shape) {
            Some((_, cpus)) => cpus.set(cpu),
            None => shapes.push((shape, CpuMask::single(cpu))),
        }
    }
    shapes
        .iter()
        .map(|(_, cpus)| cpu_domains(topology, cpus))
        .collect()
}

/// What must be the same for two domains to look alike: everything but which CPUs they span.
type Shape = (&'static str, [u32; 7], Vec<(u32, u32, u32)>);

fn shape(topology: &SchedTopology, domain: &SchedDomain) -> Shape {
    let groups = domain.groups.iter().map(|id| &topology.groups[id.index()]);
    let numbers = [
        domain.level,
        domain.span_weight,
        domain.flags,
        domain.imbalance_pct,
        domain.min_interval,
        domain.cache_nice_tries,
        domain.imb_numa_nr,
    ];
    (
        domain.name,
        numbers,
        groups.map(|g| (g.weight, g.flags, g.capacity)).collect(),
    )
}

fn cpu_domains(topology: &SchedTopology, alike: &CpuMask) -> CpuDomains {
    let cpu = alike
        .first()
        .expect("each shape has the CPU that it was found on");
    let place = &topology.cpus[cpu.index()];
    let row = topology.domains[cpu.index()].iter().enumerate();
    CpuDomains {
        cpu: cpu.0,
        alike: alike.to_string(),
        sd_llc_size: place.llc_size,
        domains: row
            .map(|(i, domain)| domain_report(topology, domain, place.sd_llc == Some(i)))
            .collect(),
    }
}

fn domain_report(topology: &SchedTopology, domain: &SchedDomain, sd_llc: bool) -> DomainReport {
    let group = |id: &crate::ids::GroupId| {
        let group = &topology.groups[id.index()];
        GroupReport {
            span: group.span.to_string(),
            balance_mask: (group.balance_mask != group.span)
                .then(|| group.balance_mask.to_string()),
            weight: group.weight,
            cores: group.cores,
            capacity: group.capacity,
            flags: flag_names(group.flags),
        }
    };
    DomainReport {
        name: domain.name,
        level: domain.level,
        span: domain.span.to_string(),
        span_weight: domain.span_weight,
        flags: flag_names(domain.flags),
        imbalance_pct: domain.imbalance_pct,
        min_interval: domain.min_interval,
        max_interval: domain.max_interval,
        busy_factor: domain.busy_factor,
        cache_nice_tries: domain.cache_nice_tries,
        imb_numa_nr: domain.imb_numa_nr,
        sd_llc,
        groups: domain.groups.iter().map(group).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains::DomainRules;

    fn shown(name: &str) -> String {
        let machine = Machine::preset(name).unwrap();
        machine_show(
            &machine,
            &SchedTopology::build(&machine, &DomainRules::v6_5()),
        )
    }

    #[test]
    fn the_text_tells_counts_domains_and_costs_with_sources() {
        let text = shown("epyc-9654-2s");
        for part in [
            "384 CPUs, 192 cores of 2 threads, 24 LLCs, 2 packages, 2 nodes",
            "siblings N and N+192",
            "0-7,192-199",
            "10 32",
            "MC (level 2, sd_llc)",
            "imbalance_pct 117",
            "WAKE_AFFINE",
            "transfer_package_ns",
            "73 .. 113",
            "EPYC 7R13",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
    }

    #[test]
    fn cores_of_different_width_are_not_told_as_equal() {
        let costs = Machine::preset("smt2-8").unwrap();
        let toml = costs.describe();
        let (head, rest) = toml.split_once("[topology]").unwrap();
        let states = &rest[rest.find("[[idle_state]]").unwrap()..];
        let places = "[places]\ncores = [\"0\", \"1-2\"]\nllcs = [\"0-2\"]\n\
                      packages = [\"0-2\"]\n\n";
        let machine = Machine::from_toml(&format!("{head}{places}{states}"), "small.toml").unwrap();
        let topology = SchedTopology::build(&machine, &DomainRules::v6_5());
        let text = machine_show(&machine, &topology);
        assert!(text.contains("3 CPUs, 2 cores of up to 2 threads, 1 LLC"));
    }

    #[test]
    fn cpus_of_the_same_shape_are_shown_once() {
        let machine = Machine::preset("power9-2s44c").unwrap();
        let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
        let shown = machine_report(&machine, &topology);
        assert_eq!(shown.numbering, "siblings consecutive");
        assert_eq!(shown.domains.len(), 1);
        assert_eq!(shown.domains[0].alike, "0-175");
    }

    #[test]
    fn the_report_serialises_with_its_flags_by_name() {
        let machine = Machine::preset("smt2-8").unwrap();
        let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
        let json = serde_json::to_value(machine_report(&machine, &topology)).unwrap();
        assert_eq!(json["counts"]["cpus"], 8);
        assert_eq!(json["domains"][0]["domains"][0]["name"], "SMT");
        assert!(json.to_string().contains("SHARE_CPUCAPACITY"));
    }
}
