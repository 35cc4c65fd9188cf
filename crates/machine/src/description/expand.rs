//! From the shape in numbers to the list of CPUs.

use super::{CapacityRange, Numbering, Reader, Shape};
use crate::error::MachineError;
use crate::ids::{ClusterId, CoreId, CpuId, LlcId, NodeId};
use crate::layout::{LOCAL_DISTANCE, NODES_MAX, wrong_distance};
use crate::mask::{CpuMask, MAX_CPUS};
use crate::topology::Cpu;
use toml::Spanned;

/// The most nodes that a machine may have.
const MAX_NODES: u32 = NODES_MAX as u32;

/// The shape with all numbers checked: none is zero, and the product fits.
struct Counts {
    dies: u32,
    llcs_per_die: u32,
    cores_per_llc: u32,
    cores_per_cluster: Option<u32>,
    threads: u32,
    nodes: u32,
    llcs_per_package: u32,
    packages: u32,
}

impl Counts {
    fn cores(&self) -> u32 {
        self.dies * self.llcs_per_die * self.cores_per_llc
    }
}

impl Reader<'_> {
    /// The CPUs and the node distances of a shape.
    pub(super) fn expand(&self, shape: &Shape) -> Result<(Vec<Cpu>, Vec<Vec<u32>>), MachineError> {
        let counts = self.counts(shape)?;
        let node_distance = self.node_distance(&shape.node_distance, counts.nodes)?;
        let mut cpus: Vec<Cpu> = (0..counts.cores())
            .flat_map(|core| (0..counts.threads).map(move |thread| (core, thread)))
            .map(|(core, thread)| place(&counts, shape.numbering, core, thread))
            .collect();
        cpus.sort_by_key(|cpu| cpu.id);
        for range in &shape.capacity {
            self.set_capacity(&mut cpus, range)?;
        }
        if !shape.capacity.is_empty() && cpus.iter().all(|cpu| cpu.capacity < 1024) {
            let first = &shape.capacity[0];
            return Err(self.value_error("capacity", first, "some CPU with capacity 1024"));
        }
        self.isolate(&mut cpus, &shape.isolated)?;
        Ok((cpus, node_distance))
    }

    fn counts(&self, shape: &Shape) -> Result<Counts, MachineError> {
        let packages = self.count("packages", &shape.packages)?;
        let dies_per_package = self.optional("dies_per_package", &shape.dies_per_package)?;
        let llcs_per_die = self.count("llcs_per_die", &shape.llcs_per_die)?;
        let cores_per_llc = self.count("cores_per_llc", &shape.cores_per_llc)?;
        let threads = self.count("threads_per_core", &shape.threads_per_core)?;
        let factors = [
            packages,
            dies_per_package,
            llcs_per_die,
            cores_per_llc,
            threads,
        ];
        // Each is at most MAX_CPUS = 2^10, so the product of five fits 64 bits.
        let ncpu: u64 = factors.iter().map(|&factor| u64::from(factor)).product();
        if ncpu > MAX_CPUS as u64 {
            let expected = format!("at most {MAX_CPUS} CPUs in all, not {ncpu}");
            return Err(self.value_error("packages", &shape.packages, &expected));
        }
        let llcs_per_package = dies_per_package * llcs_per_die;
        let nodes_per_package = self.optional("nodes_per_package", &shape.nodes_per_package)?;
        if let Some(written) = &shape.nodes_per_package
            && (!llcs_per_package.is_multiple_of(nodes_per_package)
                || packages * nodes_per_package > MAX_NODES)
        {
            let expected = format!(
                "a divisor of the package's {llcs_per_package} LLCs, and at most {MAX_NODES} nodes in all"
            );
            return Err(self.value_error("nodes_per_package", written, &expected));
        }
        let nodes = packages * nodes_per_package;
        if nodes > MAX_NODES {
            let expected = format!("at most {MAX_NODES}, as each is a node");
            return Err(self.value_error("packages", &shape.packages, &expected));
        }
        Ok(Counts {
            packages,
            dies: packages * dies_per_package,
            llcs_per_die,
            cores_per_llc,
            cores_per_cluster: self.cores_per_cluster(shape, cores_per_llc)?,
            threads,
            nodes,
            llcs_per_package,
        })
    }

    fn cores_per_cluster(&self, shape: &Shape, cores: u32) -> Result<Option<u32>, MachineError> {
        let Some(written) = &shape.cores_per_cluster else {
            return Ok(None);
        };
        let size = self.count("cores_per_cluster", written)?;
        if !cores.is_multiple_of(size) {
            let expected = format!("a divisor of the LLC's {cores} cores");
            return Err(self.value_error("cores_per_cluster", written, &expected));
        }
        Ok(Some(size))
    }

    fn count(&self, key: &str, value: &Spanned<u32>) -> Result<u32, MachineError> {
        if (1..=MAX_CPUS as u32).contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        Err(self.value_error(key, value, &format!("a number from 1 to {MAX_CPUS}")))
    }

    fn optional(&self, key: &str, value: &Option<Spanned<u32>>) -> Result<u32, MachineError> {
        value.as_ref().map_or(Ok(1), |value| self.count(key, value))
    }

    /// The distances between so many nodes, as written or, for one node, as they must be.
    pub(super) fn node_distance(
        &self,
        written: &Option<Spanned<Vec<Vec<u32>>>>,
        nodes: u32,
    ) -> Result<Vec<Vec<u32>>, MachineError> {
        let Some(written) = written else {
            if nodes == 1 {
                return Ok(vec![vec![LOCAL_DISTANCE]]);
            }
            let expected = format!("{nodes} rows of {nodes}");
            return Err(self.missing("node_distance", &expected));
        };
        let (rows, n) = (written.get_ref(), nodes as usize);
        if rows.len() != n || rows.iter().any(|row| row.len() != n) {
            let expected = format!("{nodes} rows of {nodes} distances, as there are {nodes} nodes");
            return Err(self.value_error("node_distance", written, &expected));
        }
        if let Some((from, to, expected)) = wrong_distance(rows) {
            let expected = format!("{expected} (nodes {from} and {to})");
            return Err(self.value_error("node_distance", written, &expected));
        }
        Ok(rows.clone())
    }

    pub(super) fn set_capacity(
        &self,
        cpus: &mut [Cpu],
        range: &Spanned<CapacityRange>,
    ) -> Result<(), MachineError> {
        let CapacityRange {
            cpus: list,
            capacity,
        } = range.get_ref();
        if !(1..=1024).contains(capacity) {
            return Err(self.value_error("capacity", range, "a capacity from 1 to 1024"));
        }
        let mask = self.cpulist("cpus", range, list, cpus.len())?;
        mask.iter()
            .for_each(|cpu| cpus[cpu.index()].capacity = *capacity);
        Ok(())
    }

    pub(super) fn cpulist<T>(
        &self,
        key: &str,
        place: &Spanned<T>,
        list: &str,
        ncpu: usize,
    ) -> Result<CpuMask, MachineError> {
        let mask = CpuMask::from_cpulist(list)
            .map_err(|error| self.value_error(key, place, &format!("a cpulist: {error}")))?;
        if mask.next(ncpu).is_some() {
            let expected = format!("CPUs below {ncpu}");
            return Err(self.value_error(key, place, &expected));
        }
        Ok(mask)
    }
}

/// The place of one hardware thread of the core with this number.
fn place(counts: &Counts, numbering: Numbering, core: u32, thread: u32) -> Cpu {
    let number = match numbering {
        Numbering::SiblingsLast => thread * counts.cores() + core,
        Numbering::Consecutive => core * counts.threads + thread,
    };
    let llc = core / counts.cores_per_llc;
    let package = llc / counts.llcs_per_package;
    let llcs_per_node = counts.packages * counts.llcs_per_package / counts.nodes;
    let id = |number: u32| u16::try_from(number).expect("a machine has at most 1024 of anything");
    Cpu {
        id: CpuId(id(number)),
        thread: id(thread),
        core: CoreId(id(core)),
        cluster: counts
            .cores_per_cluster
            .map(|size| ClusterId(id(core / size))),
        llc: LlcId(id(llc)),
        die: id(llc / counts.llcs_per_die),
        package: id(package),
        node: NodeId(id(llc / llcs_per_node)),
        capacity: 1024,
        isolated: false,
    }
}
