//! What hwloc tells of a machine, in XML or by a synthetic string: objects with their CPUs.

use super::Format;
use crate::error::MachineError;
use crate::excerpt::excerpt;
use crate::ids::CpuId;
use crate::layout::{Layout, NODES_MAX, default_distances, halt_state, wrong_distance};
use crate::mask::{CpuMask, MAX_CPUS};
use crate::topology::{Arch, Machine};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The highest level of a cache.
pub(super) const CACHE_LEVEL_MAX: u8 = 5;

/// The types that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Package,
    Die,
    Core,
    Pu,
    Node,
    /// A cache that holds data, with its level.
    Cache(u8),
    /// A group of cores that Linux calls a cluster.
    Cluster,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub kind: Kind,
    pub cpus: CpuMask,
    /// Its number as the operating system tells it.
    pub os_index: Option<usize>,
    /// Where it stands in the source, for errors: a line, or a character.
    pub place: usize,
}

/// A machine as hwloc describes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// What errors call the file; none for a synthetic string.
    pub file: Option<String>,
    pub list: Vec<Object>,
    /// The CPUs that are online, where that is told.
    pub online: Option<CpuMask>,
    /// All CPUs, online or not.
    pub complete: CpuMask,
    /// Distances between nodes by number.
    pub distances: Option<Distances>,
    /// CPUs with their capacity.
    pub capacities: Vec<(CpuMask, u32)>,
    pub architecture: Option<String>,
    pub model: Option<String>,
    pub notes: Vec<String>,
}

/// Distances between nodes, `[from][to]`.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    /// The nodes' numbers.
    pub nodes: Vec<usize>,
    pub rows: Vec<Vec<u32>>,
}

impl Objects {
    /// The error that the word should not be at this place.
    pub fn wrong(&self, place: usize, word: &str, expected: &str) -> MachineError {
        let word = excerpt(word);
        let expected = expected.to_owned();
        match &self.file {
            Some(file) => MachineError::Xml {
                file: file.clone(),
                line: place,
                word,
                expected,
            },
            None => MachineError::Synthetic {
                character: place,
                word,
                expected,
            },
        }
    }

    /// The machine, and where its CPUs are.
    pub fn machine(&self, name: &str, what: &str) -> Result<(Machine, Layout), MachineError> {
        let arch = arch(self.architecture.as_deref());
        let layout = self.layout(arch)?;
        let model = self.model.as_deref().unwrap_or(what);
        let count = layout.numbers.len();
        let description = format!("{model}, {count} CPUs online");
        let idle = vec![halt_state("hwloc tells no idle states")];
        let machine = layout.machine(name, &description, arch, idle)?;
        Ok((machine, layout))
    }

    fn layout(&self, arch: Arch) -> Result<Layout, MachineError> {
        let online = self.pus()?;
        let numbers: Vec<CpuId> = online.iter().collect();
        let count = numbers.len();
        let packages = self.owners(Kind::Package, &numbers)?;
        let dies = self.owners(Kind::Die, &numbers)?;
        let cores = self.owners(Kind::Core, &numbers)?;
        let numbered = |owners: &[Option<usize>]| {
            let number = |owner: &Option<usize>| owner.map_or(-1, |owner| owner as i32);
            owners.iter().map(number).collect()
        };
        let core = |position: usize| {
            let owner = cores[position].map(|object| self.list[object].cpus.and(&online));
            owner.unwrap_or(CpuMask::single(numbers[position]))
        };
        let mut layout = Layout {
            packages: numbered(&packages),
            dies: numbered(&dies),
            cores: (0..count).map(core).collect(),
            capacities: numbers.iter().map(|&cpu| self.capacity(cpu)).collect(),
            offline: self.complete.and_not(&online),
            notes: self.notes.clone(),
            numbers: numbers.clone(),
            ..Layout::default()
        };
        self.set_nodes(&mut layout)?;
        layout.cut_cores_at_nodes();
        self.check_cores(&layout, &cores)?;
        self.set_caches(&mut layout, arch)?;
        Ok(layout)
    }

    /// The CPUs that are PUs and online, each of them once.
    fn pus(&self) -> Result<CpuMask, MachineError> {
        let mut all = CpuMask::EMPTY;
        for pu in self.list.iter().filter(|object| object.kind == Kind::Pu) {
            let Some(index) = pu.os_index.or_else(|| Some(pu.cpus.first()?.index())) else {
                continue;
            };
            if index >= MAX_CPUS {
                let expected = format!("CPUs below {MAX_CPUS}");
                return Err(self.wrong(pu.place, &index.to_string(), &expected));
            }
            let cpu = CpuId::from_index(index);
            if pu.cpus != CpuMask::single(cpu) {
                let expected = format!("a PU with CPU {cpu} alone");
                return Err(self.wrong(pu.place, &pu.cpus.to_string(), &expected));
            }
            if all.contains(cpu) {
                return Err(self.wrong(pu.place, &cpu.to_string(), "each PU's number once"));
            }
            all.set(cpu);
        }
        let online = self.online.map_or(all, |online| online.and(&all));
        if online.is_empty() {
            return Err(self.wrong(1, "", "at least one PU that is online"));
        }
        Ok(online)
    }

    /// The object of this kind that each CPU is in.
    fn owners(&self, kind: Kind, numbers: &[CpuId]) -> Result<Vec<Option<usize>>, MachineError> {
        let mut owners = vec![None; numbers.len()];
        for (index, object) in self.list.iter().enumerate() {
            if object.kind != kind {
                continue;
            }
            for (cpu, owner) in numbers.iter().zip(&mut owners) {
                if !object.cpus.contains(*cpu) {
                    continue;
                }
                if owner.replace(index).is_some() {
                    let expected = format!("CPU {cpu} in one {kind:?} only");
                    return Err(self.wrong(object.place, &object.cpus.to_string(), &expected));
                }
            }
        }
        Ok(owners)
    }

    /// A core cannot be in two packages or dies.
    fn check_cores(&self, layout: &Layout, cores: &[Option<usize>]) -> Result<(), MachineError> {
        for (position, owner) in cores.iter().enumerate() {
            let Some(core) = owner.map(|owner| &self.list[owner]) else {
                continue;
            };
            let place = |position: usize| (layout.packages[position], layout.dies[position]);
            let mut siblings = layout.cores[position].iter();
            if siblings.any(|cpu| place(layout.position(cpu)) != place(position)) {
                let expected = "all of a core in one package and die";
                return Err(self.wrong(core.place, &core.cpus.to_string(), expected));
            }
        }
        Ok(())
    }

    fn capacity(&self, cpu: CpuId) -> u32 {
        let told = self.capacities.iter().find(|(cpus, _)| cpus.contains(cpu));
        told.map_or(1024, |(_, capacity)| *capacity)
    }

    /// Nodes of the CPUs and their distances. Nodes with the same CPUs are memory of different kinds:
    /// to Linux, CPUs are in one of them, which is the first.
    fn set_nodes(&self, layout: &mut Layout) -> Result<(), MachineError> {
        let nodes = self.list.iter().filter(|object| object.kind == Kind::Node);
        let mut nodes: Vec<(usize, &Object)> = nodes
            .enumerate()
            .map(|(order, node)| (node.os_index.unwrap_or(order), node))
            .collect();
        nodes.sort_by_key(|(number, node)| (Reverse(node.cpus.weight()), Reverse(*number)));
        let mut owners: Vec<Option<usize>> = vec![None; layout.numbers.len()];
        for (number, node) in &nodes {
            for (cpu, owner) in layout.numbers.iter().zip(&mut owners) {
                if node.cpus.contains(*cpu) {
                    *owner = Some(*number);
                }
            }
        }
        let used: BTreeSet<usize> = owners.iter().copied().flatten().collect();
        let used: Vec<usize> = used.into_iter().collect();
        if used.len() > NODES_MAX {
            let expected = format!("at most {NODES_MAX} nodes with CPUs");
            return Err(self.wrong(nodes[0].1.place, &used.len().to_string(), &expected));
        }
        let with_cpus = nodes.iter().filter(|(_, node)| !node.cpus.is_empty());
        if with_cpus.count() > used.len() {
            let note =
                "of nodes with the same CPUs the first is taken, the others are memory alone";
            layout.notes.push(note.to_owned());
        }
        // A CPU that no node has is taken to the first, as the kernel does at boot.
        let index = |owner: &Option<usize>| {
            let found = owner.and_then(|owner| used.binary_search(&owner).ok());
            found.unwrap_or(0)
        };
        layout.nodes = owners.iter().map(index).collect();
        layout.node_distance = self.node_distance(&used, &mut layout.notes);
        Ok(())
    }

    fn node_distance(&self, used: &[usize], notes: &mut Vec<String>) -> Vec<Vec<u32>> {
        let fallback = default_distances(used.len().max(1));
        if used.len() <= 1 {
            return fallback;
        }
        let Some(distances) = &self.distances else {
            notes.push("no distances between nodes are told: 20 stands in".to_owned());
            return fallback;
        };
        let place = |number: &usize| distances.nodes.iter().position(|known| known == number);
        let Some(places) = used.iter().map(place).collect::<Option<Vec<usize>>>() else {
            notes.push("distances are not told for all nodes: 20 stands in".to_owned());
            return fallback;
        };
        let row = |&from: &usize| places.iter().map(|&to| distances.rows[from][to]).collect();
        let rows: Vec<Vec<u32>> = places.iter().map(row).collect();
        if wrong_distance(&rows).is_some() {
            notes.push("the distances between nodes are none of a SLIT: 20 stands in".to_owned());
            return fallback;
        }
        rows
    }

    fn set_caches(&self, layout: &mut Layout, arch: Arch) -> Result<(), MachineError> {
        let numbers = layout.numbers.clone();
        let owners = |kind| self.owners(kind, &numbers);
        let levels = (1..=CACHE_LEVEL_MAX).map(|level| owners(Kind::Cache(level)));
        let levels = levels.collect::<Result<Vec<_>, _>>()?;
        let clusters = owners(Kind::Cluster)?;
        let cpus = |owner: Option<usize>| owner.map(|owner| self.list[owner].cpus);
        // A synthetic string can have caches within a core; such a one is no LLC.
        let whole = |position: usize, level: &Vec<Option<usize>>| {
            let core = layout.cores[position];
            cpus(level[position]).filter(|cache| core.is_subset(cache))
        };
        let highest = |position| levels.iter().rev().find_map(|level| whole(position, level));
        let llcs: Vec<Option<CpuMask>> = (0..numbers.len()).map(highest).collect();
        let l2s: Vec<Option<CpuMask>> = (0..numbers.len())
            .map(|position| whole(position, &levels[1]))
            .collect();
        let without = numbers.iter().zip(&llcs).filter(|(_, llc)| llc.is_none());
        layout.without_cache = without.map(|(cpu, _)| *cpu).collect();
        for position in 0..numbers.len() {
            let (cluster, l2, llc) = (cpus(clusters[position]), l2s[position], llcs[position]);
            let (cluster, llc) = layout.cluster_and_llc(position, arch, cluster, l2, llc);
            layout.clusters.push(cluster);
            layout.llcs.push(llc);
        }
        Ok(())
    }
}

/// The architecture as `uname -m` names it.
fn arch(name: Option<&str>) -> Arch {
    match name {
        Some(name) if name.starts_with("ppc") => Arch::Power,
        Some(name) if !name.starts_with('x') && !name.starts_with('i') => Arch::Arm64,
        // ia64 begins as i386 does, but is not of its kind.
        Some("ia64") => Arch::Arm64,
        _ => Arch::X86,
    }
}

impl Format {
    /// The format of XML with this `version` of the topology, as far as it is known.
    pub(super) fn of_xml(version: Option<&str>) -> Option<Format> {
        let major = version.map(|version| version.split('.').next().unwrap_or(version));
        match major {
            None | Some("1") => Some(Format::HwlocXml1),
            Some("2") => Some(Format::HwlocXml2),
            Some("3") => Some(Format::HwlocXml3),
            Some(_) => None,
        }
    }
}
