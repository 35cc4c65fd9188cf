//! The topology levels of a machine, bottom-up: which CPUs each level's mask gives to each CPU.
//!
//! Sources of the rules: kernel sched/topology.c (`default_topology`, `sched_init_numa()`),
//! arch/x86/kernel/smpboot.c (`build_sched_topology()`), arch/powerpc/kernel/smp.c, and
//! drivers/base/arch_topology.c (`cpu_coregroup_mask()`, `cpu_clustergroup_mask()`).

use super::{DomainRules, sd};
use crate::ids::CpuId;
use crate::mask::CpuMask;
use crate::topology::{Arch, Cpu, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// One topology level.
pub(super) struct Level {
    /// The name of the domains built from it.
    pub name: &'static str,
    /// The `SD_*` bits that describe the hardware.
    pub flags: u32,
    /// Its NUMA distance, for the levels that may overlap.
    pub numa_distance: Option<u32>,
    /// The mask that it gives to each CPU.
    masks: Vec<CpuMask>,
}

impl Level {
    /// The CPUs that share this level with the CPU, before the domain map is applied.
    pub fn mask(&self, cpu: CpuId) -> &CpuMask {
        &self.masks[cpu.index()]
    }

    fn by_key<K: Ord>(
        machine: &Machine,
        name: &'static str,
        flags: u32,
        key: impl Fn(&Cpu) -> K,
    ) -> Level {
        let mut spans = BTreeMap::<K, CpuMask>::new();
        for cpu in &machine.cpus {
            spans.entry(key(cpu)).or_default().set(cpu.id);
        }
        let masks = machine.cpus.iter().map(|cpu| spans[&key(cpu)]).collect();
        Level {
            name,
            flags,
            numa_distance: None,
            masks,
        }
    }
}

/// The levels of the machine under the rules, lowest first.
pub(super) fn levels(machine: &Machine, rules: &DomainRules) -> Vec<Level> {
    let mut levels = match machine.arch {
        Arch::Power => power_levels(machine, rules),
        Arch::X86 | Arch::Arm64 => default_levels(machine, rules),
    };
    // On x86, nodes inside a package make the package's own level go: the NUMA levels build it.
    if machine.arch != Arch::X86 || !has_numa_in_package(machine) {
        levels.push(Level::by_key(machine, rules.package_name, 0, |cpu| {
            cpu.node
        }));
    }
    levels.push(Level::by_key(machine, "NODE", 0, |cpu| cpu.node));
    levels.extend(numa_levels(machine));
    levels
}

/// SMT, CLS and MC. A cache level never crosses a node or a package (`topology_sane()` on x86,
/// `cpu_coregroup_mask()` elsewhere), and a cluster is at least a core.
fn default_levels(machine: &Machine, rules: &DomainRules) -> Vec<Level> {
    let smt_flags = sd::SHARE_CPUCAPACITY | sd::SHARE_LLC;
    let mut levels = vec![Level::by_key(machine, "SMT", smt_flags, |cpu| cpu.core)];
    if rules.cluster_level {
        let flags = sd::SHARE_LLC | if rules.cluster_flag { sd::CLUSTER } else { 0 };
        let spans_cluster = cluster_below_llc(machine);
        levels.push(Level::by_key(machine, "CLS", flags, |cpu| {
            match cpu.cluster {
                Some(cluster) if spans_cluster => (0, cluster.0),
                _ => (1, cpu.core.0),
            }
        }));
    }
    levels.push(Level::by_key(machine, "MC", sd::SHARE_LLC, cache_key));
    levels
}

/// Whether the CLS level has anything to say. Off x86, `cpu_clustergroup_mask()` gives only the
/// core's threads where a cluster is as large as the LLC.
fn cluster_below_llc(machine: &Machine) -> bool {
    let pairs: BTreeSet<_> = machine
        .cpus
        .iter()
        .map(|cpu| (cache_key(cpu), cpu.cluster))
        .collect();
    machine.arch == Arch::X86 || pairs.len() > machine.count_of(cache_key)
}

/// SMT and CACHE. The MC level needs coregroups from the hypervisor, which no machine here has.
fn power_levels(machine: &Machine, rules: &DomainRules) -> Vec<Level> {
    let smt_flags = sd::SHARE_CPUCAPACITY | sd::SHARE_LLC;
    let mut levels = vec![Level::by_key(machine, "SMT", smt_flags, |cpu| cpu.core)];
    let shared_caches = machine.nllcs() < machine.ncores();
    if shared_caches || rules.power_cache_level_always {
        levels.push(Level::by_key(machine, "CACHE", sd::SHARE_LLC, cache_key));
    }
    levels
}

fn cache_key(cpu: &Cpu) -> (u16, u16, u16) {
    (cpu.llc.0, cpu.node.0, cpu.package)
}

fn has_numa_in_package(machine: &Machine) -> bool {
    machine.count_of(|cpu| (cpu.package, cpu.node)) > machine.npackages()
}

/// One level for each distance beyond the local one, each with the CPUs of all nodes within it.
fn numa_levels(machine: &Machine) -> Vec<Level> {
    let nodes: BTreeSet<_> = machine.cpus.iter().map(|cpu| cpu.node).collect();
    let distance = |a: usize, b: usize| machine.node_distance[a][b];
    let distances: BTreeSet<u32> = nodes
        .iter()
        .flat_map(|a| nodes.iter().map(|b| distance(a.index(), b.index())))
        .collect();
    let within = |node: usize, limit: u32| {
        machine.mask_where(|cpu| distance(node, cpu.node.index()) <= limit)
    };
    let level = |limit: u32| {
        let spans: BTreeMap<_, _> = nodes
            .iter()
            .map(|node| (*node, within(node.index(), limit)))
            .collect();
        let masks = machine.cpus.iter().map(|cpu| spans[&cpu.node]).collect();
        Level {
            name: "NUMA",
            flags: sd::NUMA,
            numa_distance: Some(limit),
            masks,
        }
    };
    distances.into_iter().skip(1).map(level).collect()
}
