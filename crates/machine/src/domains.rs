//! Scheduling domains and groups, as the kernel's `sched/topology.c` builds them.

use crate::ids::{CoreId, CpuId, GroupId, LlcId, NodeId};
use crate::mask::CpuMask;

mod attach;
mod build;
mod levels;
mod lookup;
mod rules;
mod settings;

pub use rules::DomainRules;
pub use settings::{DomainField, DomainSetting, DomainSettingError};

/// The flag bits of a sched domain, numbered as in kernel 6.12 (`SD_*`).
pub mod sd {
    /// Balance when about to become idle.
    pub const BALANCE_NEWIDLE: u32 = 1 << 0;
    /// Balance on exec.
    pub const BALANCE_EXEC: u32 = 1 << 1;
    /// Balance on fork and clone.
    pub const BALANCE_FORK: u32 = 1 << 2;
    /// Balance on wake-up.
    pub const BALANCE_WAKE: u32 = 1 << 3;
    /// Consider waking a task on the waking CPU.
    pub const WAKE_AFFINE: u32 = 1 << 4;
    /// Members have different CPU capacities.
    pub const ASYM_CPUCAPACITY: u32 = 1 << 5;
    /// Members have all unique CPU capacities.
    pub const ASYM_CPUCAPACITY_FULL: u32 = 1 << 6;
    /// Members share CPU capacity (SMT).
    pub const SHARE_CPUCAPACITY: u32 = 1 << 7;
    /// Members share a cluster's resources.
    pub const CLUSTER: u32 = 1 << 8;
    /// Members share the last-level cache (`SD_SHARE_PKG_RESOURCES` before 6.9).
    pub const SHARE_LLC: u32 = 1 << 9;
    /// Only one load balancing instance at a time.
    pub const SERIALIZE: u32 = 1 << 10;
    /// Place busy groups earlier in the domain.
    pub const ASYM_PACKING: u32 = 1 << 11;
    /// Prefer to place tasks in a sibling domain.
    pub const PREFER_SIBLING: u32 = 1 << 12;
    /// Groups may overlap.
    pub const OVERLAP: u32 = 1 << 13;
    /// Cross-node balancing.
    pub const NUMA: u32 = 1 << 14;
}

/// What the kernel keeps of one CPU's place (`sd_llc`, `sd_llc_size`, `cpu_smt_mask` and so on).
#[derive(Clone, Debug)]
pub struct CpuTopo {
    /// Its core.
    pub core: CoreId,
    /// Its last-level cache (`sd_llc_id`, renumbered from 0).
    pub llc: LlcId,
    /// `sd_llc_size`: CPUs in the LLC domain, 1 without one.
    pub llc_size: u32,
    /// `sd_share_id` as the lowest CPU that shares a cluster or, without clusters, the LLC.
    pub share: CpuId,
    /// Its NUMA node.
    pub node: NodeId,
    /// Its package.
    pub package: u16,
    /// Arch capacity: 1024 for the biggest CPU of the machine.
    pub capacity: u32,
    /// `cpu_smt_mask`: itself and its SMT siblings.
    pub smt: CpuMask,
    /// The CPUs of its LLC (span of `sd_llc`; itself alone without one).
    pub llc_span: CpuMask,
    /// Index into its domains of `sd_llc` (the highest domain that shares the LLC).
    pub sd_llc: Option<usize>,
    /// Index into its domains of the lowest NUMA domain (`sd_numa`).
    pub sd_numa: Option<usize>,
    /// Index into its domains of `sd_asym_cpucapacity`.
    pub sd_asym: Option<usize>,
}

/// One sched domain of one CPU.
#[derive(Clone, Debug)]
pub struct SchedDomain {
    /// `SMT`, `CLS`, `MC`, `PKG` (`DIE` before 6.7), `NUMA`.
    pub name: &'static str,
    /// `sd->level`: the topology level, counted with the levels that were dropped as degenerate.
    pub level: u32,
    /// The CPUs it spans.
    pub span: CpuMask,
    /// How many CPUs it spans.
    pub span_weight: u32,
    /// `SD_*` bits.
    pub flags: u32,
    /// `imbalance_pct`: 110, 117, 125...
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
    /// Its groups in ring order, the CPU's own group first.
    pub groups: Vec<GroupId>,
}

/// One sched group. CPUs whose domains have a group in common share it and its capacity record.
#[derive(Clone, Debug)]
pub struct SchedGroup {
    /// The CPUs it spans.
    pub span: CpuMask,
    /// `group_balance_mask`: those that may balance for it.
    pub balance_mask: CpuMask,
    /// `group_weight`.
    pub weight: u32,
    /// Number of cores in it (`sg->cores`, 6.6 on).
    pub cores: u32,
    /// `SD_*` bits of the child domain it stands for.
    pub flags: u32,
    /// Sum of the arch capacities of its CPUs.
    pub capacity: u32,
    /// `asym_prefer_cpu`.
    pub asym_prefer_cpu: CpuId,
}

/// Everything that the scheduler knows of the machine's shape: domains per CPU, groups, LLCs.
#[derive(Clone, Debug)]
pub struct SchedTopology {
    /// Places, by CPU.
    pub cpus: Vec<CpuTopo>,
    /// Domains by CPU, lowest first.
    pub domains: Vec<Vec<SchedDomain>>,
    /// The arena of groups.
    pub groups: Vec<SchedGroup>,
    /// CPUs of each LLC, by [`LlcId`].
    pub llcs: Vec<CpuMask>,
    /// CPUs of each core, by [`CoreId`].
    pub cores: Vec<CpuMask>,
    /// CPUs of each node, by [`NodeId`].
    pub nodes: Vec<CpuMask>,
    /// Node distances (SLIT), `[from][to]`, 10 for a node to itself.
    pub node_distance: Vec<Vec<u32>>,
    /// Static key `sched_smt_present`.
    pub smt_active: bool,
    /// Static key `sched_cluster_active`.
    pub cluster_active: bool,
    /// Static key `sched_asym_cpucapacity`.
    pub asym_cpucap: bool,
}
