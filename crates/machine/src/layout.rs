//! Where the CPUs are, as a reader found them, and the machine that follows from it.
//!
//! Readers give sets of CPUs in the source's own numbers; here they become dense numbers, and what no
//! source tells (costs, and idle states where there are none) is taken from elsewhere and marked so.

use crate::description::borrowed_costs;
use crate::error::MachineError;
use crate::ids::{ClusterId, CoreId, CpuId, LlcId, NodeId, Ns};
use crate::mask::CpuMask;
use crate::topology::{Arch, Cpu, IdleState, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// The most nodes that are read; distances are a byte, and each can make a level of domains.
pub(crate) const NODES_MAX: usize = 128;
/// `LOCAL_DISTANCE`: a node's distance to itself.
pub(crate) const LOCAL_DISTANCE: u32 = 10;
/// `REMOTE_DISTANCE`: the distance between two nodes that nothing tells (kernel
/// include/linux/topology.h).
pub(crate) const REMOTE_DISTANCE: u32 = 20;
/// The largest distance: the kernel keeps them in a byte.
pub(crate) const DISTANCE_MAX: u32 = 255;

/// The places of CPUs in a source's own numbers. Every list but `numbers` is by position in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The source's numbers of the CPUs, ascending.
    pub numbers: Vec<CpuId>,
    /// The hardware threads of each CPU's core.
    pub cores: Vec<CpuMask>,
    /// The CPUs of which no cache is known.
    pub without_cache: CpuMask,
    /// The CPUs of each CPU's cluster, if it has one.
    pub clusters: Vec<Option<CpuMask>>,
    /// The CPUs of each CPU's last-level cache.
    pub llcs: Vec<CpuMask>,
    /// Each CPU's package, by any number.
    pub packages: Vec<i32>,
    /// Each CPU's die, by any number within its package.
    pub dies: Vec<i32>,
    /// Each CPU's node, as an index into `node_distance`.
    pub nodes: Vec<usize>,
    /// Node distances, `[from][to]`.
    pub node_distance: Vec<Vec<u32>>,
    /// The capacity of each CPU.
    pub capacities: Vec<u32>,
    /// The isolated CPUs.
    pub isolated: CpuMask,
    /// CPUs that the machine has but that are not online.
    pub offline: CpuMask,
    /// What was found and not taken as it is, for people.
    pub notes: Vec<String>,
}

impl Layout {
    /// The place of a CPU in the lists.
    ///
    /// # Panics
    /// If it is not one of `numbers`.
    pub fn position(&self, cpu: CpuId) -> usize {
        self.numbers
            .binary_search(&cpu)
            .expect("masks are cut to the CPUs of the layout")
    }

    /// The CPUs in the same package and node as the CPU at this position.
    fn same_package_and_node(&self, position: usize) -> CpuMask {
        let place = |position: usize| (self.packages[position], self.nodes[position]);
        let same = |&other: &usize| place(other) == place(position);
        (0..self.numbers.len())
            .filter(same)
            .map(|other| self.numbers[other])
            .collect()
    }

    /// The cluster and the LLC of the CPU at this position, from what a source tells of each.
    ///
    /// Without a cache it is all such CPUs of the package and node. Kernels before 5.16 tell no clusters:
    /// on x86 they are the L2's CPUs (`cpu_clustergroup_mask()`). A cluster counts if it is below the
    /// LLC; on Arm one without a cache of its own is taken for one (`cpu_coregroup_mask()`).
    pub fn cluster_and_llc(
        &self,
        position: usize,
        arch: Arch,
        cluster: Option<CpuMask>,
        l2: Option<CpuMask>,
        llc: Option<CpuMask>,
    ) -> (Option<CpuMask>, CpuMask) {
        let online: CpuMask = self.numbers.iter().copied().collect();
        let cut = |mask: Option<CpuMask>| mask.map(|mask| mask.and(&online));
        let core = &self.cores[position];
        let uncached = || {
            self.same_package_and_node(position)
                .and(&self.without_cache)
        };
        let mut llc = cut(llc).unwrap_or_else(uncached);
        let cluster = cut(cluster.or(l2.filter(|_| arch == Arch::X86)));
        if arch == Arch::Arm64
            && let Some(cluster) = &cluster
            && llc.is_subset(cluster)
        {
            llc = *cluster;
        }
        let below = |cluster: &CpuMask| {
            cluster.is_subset(&llc) && *cluster != llc && core.is_subset(cluster)
        };
        (cluster.filter(below), llc)
    }

    /// Cuts cores at the borders of nodes, as the kernel does where firmware contradicts itself
    /// (`topology_sane()` in arch/x86/kernel/smpboot.c), and tells of it.
    pub fn cut_cores_at_nodes(&mut self) {
        for position in 0..self.numbers.len() {
            let node = self.nodes[position];
            let core = self.cores[position];
            let same = |cpu: &CpuId| self.nodes[self.position(*cpu)] == node;
            let cut: CpuMask = core.iter().filter(same).collect();
            if cut != core && core.first() == Some(self.numbers[position]) {
                self.notes.push(format!(
                    "the core of CPUs {core} crosses nodes: the kernel ignores that they are siblings"
                ));
            }
            self.cores[position] = cut;
        }
    }

    /// The CPUs with dense numbers, in the order of the source's.
    pub fn cpus(&self) -> Vec<Cpu> {
        let first = |masks: &[CpuMask]| dense(masks.iter().map(CpuMask::first));
        let (cores, llcs) = (first(&self.cores), first(&self.llcs));
        // Where one CPU has a cluster all do: those without one are a cluster of their core.
        let some_cluster = self.clusters.iter().any(Option::is_some);
        let cluster_masks = self.clusters.iter().zip(&self.cores);
        let clusters = dense(cluster_masks.map(|(cluster, core)| cluster.unwrap_or(*core).first()));
        let packages = dense(self.packages.iter());
        let dies = dense(self.packages.iter().zip(&self.dies));
        let cpu = |position: usize| {
            let number = self.numbers[position];
            let siblings = self.cores[position].iter();
            Cpu {
                id: CpuId::from_index(position),
                thread: siblings.take_while(|&sibling| sibling < number).count() as u16,
                core: CoreId(cores[position]),
                cluster: some_cluster.then_some(ClusterId(clusters[position])),
                llc: LlcId(llcs[position]),
                die: dies[position],
                package: packages[position],
                node: NodeId::from_index(self.nodes[position]),
                capacity: self.capacities[position],
                isolated: self.isolated.contains(number),
            }
        };
        (0..self.numbers.len()).map(cpu).collect()
    }

    /// The machine that has these CPUs.
    ///
    /// # Errors
    /// If no preset lends its costs, which cannot be.
    pub fn machine(
        &self,
        name: &str,
        description: &str,
        arch: Arch,
        idle_states: Vec<IdleState>,
    ) -> Result<Machine, MachineError> {
        let cpus = self.cpus();
        let threads = cpus.iter().map(|cpu| usize::from(cpu.thread) + 1).max();
        Ok(Machine {
            name: name.to_owned(),
            description: description.to_owned(),
            arch,
            node_reclaim_distance: reclaim_distance(arch, &self.node_distance),
            idle_states,
            costs: borrowed_costs(costs_like(arch, &cpus), threads.unwrap_or(1))?,
            cpus,
            node_distance: self.node_distance.clone(),
            hz: 250,
        })
    }
}

/// Numbers the keys from 0 in the order of their first appearance.
pub(crate) fn dense<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<u16> {
    let mut known = BTreeMap::new();
    keys.map(|key| {
        let next = known.len() as u16;
        *known.entry(key).or_insert(next)
    })
    .collect()
}

/// What is wrong with a table of node distances: the place and what would be right.
pub(crate) fn wrong_distance(rows: &[Vec<u32>]) -> Option<(usize, usize, &'static str)> {
    for (from, row) in rows.iter().enumerate() {
        for (to, distance) in row.iter().enumerate() {
            if from == to && *distance != LOCAL_DISTANCE {
                return Some((from, to, "10 from a node to itself"));
            }
            if !(LOCAL_DISTANCE..=DISTANCE_MAX).contains(distance) {
                return Some((from, to, "a distance from 10 to 255"));
            }
        }
    }
    None
}

/// Distances where nothing tells them.
pub(crate) fn default_distances(nodes: usize) -> Vec<Vec<u32>> {
    let distance = |from, to| {
        if from == to {
            LOCAL_DISTANCE
        } else {
            REMOTE_DISTANCE
        }
    };
    let row = |from| (0..nodes).map(|to| distance(from, to)).collect();
    (0..nodes).map(row).collect()
}

/// `node_reclaim_distance`, as far as the distances tell whose machine it is.
fn reclaim_distance(arch: Arch, distances: &[Vec<u32>]) -> u32 {
    match arch {
        Arch::Power => 10,
        Arch::X86 if distances.iter().flatten().any(|&distance| distance == 32) => 32,
        Arch::X86 | Arch::Arm64 => 30,
    }
}

/// The preset whose costs stand in: one with the same architecture and, on x86, as many or as few
/// LLCs a package.
pub(crate) fn costs_like(arch: Arch, cpus: &[Cpu]) -> &'static str {
    let places: BTreeSet<_> = cpus.iter().map(|cpu| (cpu.package, cpu.llc)).collect();
    let packages: BTreeSet<_> = cpus.iter().map(|cpu| cpu.package).collect();
    match arch {
        Arch::X86 if places.len() > packages.len() => "epyc-9654-2s",
        Arch::X86 => "xeon-8360y-2s",
        Arch::Power => "power9-2s44c",
        Arch::Arm64 => "kunpeng-920",
    }
}

/// The idle state of a machine of which none is known.
pub(crate) fn halt_state(why: &str) -> IdleState {
    IdleState {
        name: "HALT".to_owned(),
        exit_latency: Ns::from_us(1),
        target_residency: Ns::from_us(1),
        polling: false,
        source: format!("stand-in: {why}, so the architecture's halt instruction"),
    }
}
