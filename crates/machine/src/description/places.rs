//! The places of CPUs that are named one by one.

use super::{CapacityRange, Reader};
use crate::error::MachineError;
use crate::ids::{ClusterId, CoreId, CpuId, LlcId, NodeId};
use crate::layout::{NODES_MAX, dense};
use crate::mask::CpuMask;
use crate::topology::Cpu;
use serde::Deserialize;
use toml::Spanned;

type Lists = Spanned<Vec<String>>;

/// Sets of CPUs, each a cpulist.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlaces {
    cores: Lists,
    clusters: Option<Lists>,
    llcs: Lists,
    dies: Option<Lists>,
    packages: Lists,
    nodes: Option<Lists>,
    node_distance: Option<Spanned<Vec<Vec<u32>>>>,
    isolated: Option<Spanned<String>>,
    #[serde(default)]
    capacity: Vec<Spanned<CapacityRange>>,
}

/// One kind of place: which of its places each CPU is in, by the order of the list.
struct Places<'a> {
    key: &'static str,
    written: &'a Lists,
    of_cpu: Vec<usize>,
    cpus: Vec<CpuMask>,
}

impl Reader<'_> {
    /// The CPUs and the node distances of named places.
    pub(super) fn place(&self, raw: &RawPlaces) -> Result<(Vec<Cpu>, Vec<Vec<u32>>), MachineError> {
        let ncpu = self.ncpu(&raw.cores)?;
        let cores = self.partition("cores", &raw.cores, ncpu)?;
        let llcs = self.partition("llcs", &raw.llcs, ncpu)?;
        let packages = self.partition("packages", &raw.packages, ncpu)?;
        let optional =
            |key, lists: &'_ Option<Lists>| -> Result<Option<Vec<usize>>, MachineError> {
                let Some(lists) = lists else { return Ok(None) };
                let places = self.partition(key, lists, ncpu)?;
                self.check_within(&cores, &places)?;
                Ok(Some(places.of_cpu))
            };
        self.check_within(&cores, &llcs)?;
        self.check_within(&cores, &packages)?;
        let dies = optional("dies", &raw.dies)?.unwrap_or_else(|| packages.of_cpu.clone());
        let clusters = optional("clusters", &raw.clusters)?;
        let nodes = optional("nodes", &raw.nodes)?.unwrap_or_else(|| vec![0; ncpu]);
        let nnodes = raw.nodes.as_ref().map_or(1, |nodes| nodes.get_ref().len());
        if let Some(written) = raw.nodes.as_ref().filter(|_| nnodes > NODES_MAX) {
            let expected = format!("at most {NODES_MAX} nodes");
            return Err(self.value_error("nodes", written, &expected));
        }
        // As in a machine that is expanded from its shape, numbers follow the first CPU; nodes keep
        // theirs, as the distances are in that order.
        let by_first_cpu = |of_cpu: &[usize]| dense(of_cpu.iter());
        let (core_of, llc_of) = (by_first_cpu(&cores.of_cpu), by_first_cpu(&llcs.of_cpu));
        let (die_of, package_of) = (by_first_cpu(&dies), by_first_cpu(&packages.of_cpu));
        let cluster_of = clusters.map(|clusters| by_first_cpu(&clusters));
        let cpu = |index: usize| Cpu {
            id: CpuId::from_index(index),
            thread: thread(&cores.cpus[cores.of_cpu[index]], index),
            core: CoreId(core_of[index]),
            cluster: cluster_of.as_ref().map(|of_cpu| ClusterId(of_cpu[index])),
            llc: LlcId(llc_of[index]),
            die: die_of[index],
            package: package_of[index],
            node: NodeId::from_index(nodes[index]),
            capacity: 1024,
            isolated: false,
        };
        let mut cpus: Vec<Cpu> = (0..ncpu).map(cpu).collect();
        for range in &raw.capacity {
            self.set_capacity(&mut cpus, range)?;
        }
        self.isolate(&mut cpus, &raw.isolated)?;
        Ok((cpus, self.node_distance(&raw.node_distance, nnodes as u32)?))
    }

    /// How many CPUs the cores have in all; their numbers must begin at 0 and have no gaps.
    fn ncpu(&self, cores: &Lists) -> Result<usize, MachineError> {
        let mut all = CpuMask::EMPTY;
        for list in cores.get_ref() {
            all = all.or(&self.list("cores", cores, list)?);
        }
        let ncpu = all.weight();
        if ncpu == 0 || all != CpuMask::first_n(ncpu) {
            let expected = format!("CPUs from 0 on without gaps, not '{all}'");
            return Err(self.value_error("cores", cores, &expected));
        }
        Ok(ncpu)
    }

    fn list(&self, key: &str, place: &Lists, list: &str) -> Result<CpuMask, MachineError> {
        let wrong = |error| self.value_error(key, place, &format!("cpulists: {error}"));
        CpuMask::from_cpulist(list).map_err(wrong)
    }

    /// The places of a kind, checked: each CPU is in exactly one.
    fn partition<'a>(
        &self,
        key: &'static str,
        written: &'a Lists,
        ncpu: usize,
    ) -> Result<Places<'a>, MachineError> {
        let mut of_cpu = vec![usize::MAX; ncpu];
        let mut cpus = Vec::new();
        let wrong = |expected: String| Err(self.value_error(key, written, &expected));
        for (place, list) in written.get_ref().iter().enumerate() {
            let mask = self.list(key, written, list)?;
            if mask.is_empty() || mask.next(ncpu).is_some() {
                return wrong(format!("CPUs below {ncpu} in each, not '{list}'"));
            }
            for cpu in mask.iter() {
                if of_cpu[cpu.index()] != usize::MAX {
                    return wrong(format!("CPU {cpu} once"));
                }
                of_cpu[cpu.index()] = place;
            }
            cpus.push(mask);
        }
        if let Some(cpu) = of_cpu.iter().position(|&place| place == usize::MAX) {
            return wrong(format!("CPU {cpu} in one of them"));
        }
        Ok(Places {
            key,
            written,
            of_cpu,
            cpus,
        })
    }

    fn check_within(&self, cores: &Places<'_>, outer: &Places<'_>) -> Result<(), MachineError> {
        for core in &cores.cpus {
            let first = core.first().expect("no place is empty");
            if !core.is_subset(&outer.cpus[outer.of_cpu[first.index()]]) {
                let expected = format!("all of the core {core} in one of them");
                return Err(self.value_error(outer.key, outer.written, &expected));
            }
        }
        Ok(())
    }

    /// Marks the isolated CPUs.
    pub(super) fn isolate(
        &self,
        cpus: &mut [Cpu],
        isolated: &Option<Spanned<String>>,
    ) -> Result<(), MachineError> {
        if let Some(isolated) = isolated {
            let mask = self.cpulist("isolated", isolated, isolated.get_ref(), cpus.len())?;
            mask.iter()
                .for_each(|cpu| cpus[cpu.index()].isolated = true);
        }
        Ok(())
    }
}

/// The CPU's place among the threads of its core.
fn thread(core: &CpuMask, cpu: usize) -> u16 {
    core.iter().take_while(|other| other.index() < cpu).count() as u16
}
