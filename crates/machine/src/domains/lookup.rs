//! The kernel's shortcuts into a CPU's domains.

use super::{SchedDomain, SchedTopology};
use crate::ids::{CpuId, GroupId};
use crate::mask::CpuMask;
use std::collections::BTreeMap;

impl SchedTopology {
    /// `sd_llc`: the highest domain whose CPUs all share the last-level cache.
    pub fn sd_llc(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.domain_at(cpu, self.cpus[cpu.index()].sd_llc)
    }

    /// `sd_numa`: the lowest domain that crosses nodes.
    pub fn sd_numa(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.domain_at(cpu, self.cpus[cpu.index()].sd_numa)
    }

    /// `sd_asym_cpucapacity`: the lowest domain that has CPUs of all capacities of the machine.
    pub fn sd_asym_cpucapacity(&self, cpu: CpuId) -> Option<&SchedDomain> {
        self.domain_at(cpu, self.cpus[cpu.index()].sd_asym)
    }

    fn domain_at(&self, cpu: CpuId, index: Option<usize>) -> Option<&SchedDomain> {
        self.domains[cpu.index()].get(index?)
    }

    /// The lowest of the CPU's domains that has the flag.
    pub fn lowest_flag_domain(&self, cpu: CpuId, flag: u32) -> Option<&SchedDomain> {
        self.domains[cpu.index()]
            .iter()
            .find(|domain| domain.flags & flag != 0)
    }

    /// For each group, the group whose capacity record (`sgc`) it uses: the first one with the same
    /// span in domains of the same level.
    ///
    /// Two groups of a NUMA level can have the same CPUs and yet different flags, as the kernel keeps
    /// such groups per CPU; capacity, imbalance and the like are one record for both.
    pub fn capacity_records(&self) -> Vec<GroupId> {
        let mut records = vec![GroupId::default(); self.groups.len()];
        let mut first = BTreeMap::<(u32, CpuMask), GroupId>::new();
        for domain in self.domains.iter().flatten() {
            for &id in &domain.groups {
                let span = self.groups[id.index()].span;
                records[id.index()] = *first.entry((domain.level, span)).or_insert(id);
            }
        }
        records
    }
}
