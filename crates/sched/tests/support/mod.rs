//! Small machines for tests.

use wakelab_machine::domains::{CpuTopo, SchedTopology};
use wakelab_machine::{CoreId, CpuId, CpuMask, LlcId, NodeId};

/// So many CPUs without SMT, in LLCs of so many, with no scheduling domains.
pub fn flat(ncpu: usize, llc_size: usize) -> SchedTopology {
    let one = |cpu: usize| [CpuId::from_index(cpu)].into_iter().collect::<CpuMask>();
    let llc = |llc: usize| {
        let cpus = (llc * llc_size)..((llc + 1) * llc_size).min(ncpu);
        cpus.map(CpuId::from_index).collect::<CpuMask>()
    };
    let place = |cpu: usize| CpuTopo {
        core: CoreId::from_index(cpu),
        llc: LlcId::from_index(cpu / llc_size),
        llc_size: llc_size as u32,
        share: CpuId::from_index(cpu - cpu % llc_size),
        node: NodeId(0),
        package: 0,
        capacity: 1024,
        smt: one(cpu),
        llc_span: llc(cpu / llc_size),
        sd_llc: None,
        sd_numa: None,
        sd_asym: None,
    };
    SchedTopology {
        cpus: (0..ncpu).map(place).collect(),
        domains: vec![Vec::new(); ncpu],
        groups: Vec::new(),
        llcs: (0..ncpu.div_ceil(llc_size)).map(llc).collect(),
        cores: (0..ncpu).map(one).collect(),
        nodes: vec![CpuMask::first_n(ncpu)],
        node_distance: vec![vec![10]],
        smt_active: false,
        cluster_active: false,
        asym_cpucap: false,
    }
}
