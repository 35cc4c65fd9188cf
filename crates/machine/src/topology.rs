//! A machine as a value: its CPUs with their places, its idle states and its costs.

use crate::costs::Costs;
use crate::ids::{ClusterId, CoreId, CpuId, LlcId, NodeId, Ns};
use crate::mask::CpuMask;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The architecture, as far as the kernel builds scheduling domains differently for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// Intel and AMD.
    X86,
    /// IBM POWER.
    Power,
    /// 64-bit Arm, and whatever else uses the kernel's default levels.
    Arm64,
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arch::X86 => "x86",
            Arch::Power => "power",
            Arch::Arm64 => "arm64",
        })
    }
}

/// How far two CPUs are from each other, as a cache line travels. Nearer is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Distance {
    /// The same CPU.
    SameCpu,
    /// Hardware threads of one core.
    Smt,
    /// Different cores of one cluster.
    Cluster,
    /// Different cores (or clusters) under one last-level cache.
    Llc,
    /// Different last-level caches of one package.
    Package,
    /// Different packages.
    Remote,
}

/// One logical CPU and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Its number, as Linux numbers it; equal to its index in [`Machine::cpus`].
    pub id: CpuId,
    /// Its place among the hardware threads of its core, from 0.
    pub thread: u16,
    /// Its core.
    pub core: CoreId,
    /// Its cluster, where cores share something below the last-level cache.
    pub cluster: Option<ClusterId>,
    /// Its last-level cache.
    pub llc: LlcId,
    /// Its die, numbered over the whole machine.
    pub die: u16,
    /// Its package (socket).
    pub package: u16,
    /// Its NUMA node.
    pub node: NodeId,
    /// Arch capacity (`arch_scale_cpu_capacity`): 1024 for the biggest CPU, 1..=1024.
    pub capacity: u32,
    /// Whether it is isolated (`isolcpus=domain`): no scheduling domain spans it.
    pub isolated: bool,
}

/// One idle state, as cpuidle describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleState {
    /// Its name, such as `POLL`, `C1`, `C6`, `CEDE`.
    pub name: String,
    /// The time that leaving it takes.
    pub exit_latency: Ns,
    /// How long an idle period must be for this state to be worth it.
    pub target_residency: Ns,
    /// Whether the CPU polls `need_resched` in it, so that a wake-up needs no interrupt.
    pub polling: bool,
    /// Where the figures come from.
    pub source: String,
}

/// A whole machine. Build it with [`Machine::preset`], [`Machine::from_toml`] or
/// [`Machine::from_sysfs`]; what these return satisfies the invariants that the fields state.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Its name: a preset's name, or what the description says.
    pub name: String,
    /// One line of what it is.
    pub description: String,
    /// The architecture.
    pub arch: Arch,
    /// Its CPUs, by [`CpuId`]; at least one, at most [`MAX_CPUS`](crate::mask::MAX_CPUS).
    pub cpus: Vec<Cpu>,
    /// Node distances (SLIT), `[from][to]`, square; 10 for a node to itself.
    pub node_distance: Vec<Vec<u32>>,
    /// `node_reclaim_distance`: wake-ups are not affine beyond it. 30 by default, 32 on AMD Zen
    /// (kernel arch/x86/kernel/cpu/amd.c), 10 on POWER (arch/powerpc/include/asm/topology.h).
    pub node_reclaim_distance: u32,
    /// Idle states from the shallowest; at least one.
    pub idle_states: Vec<IdleState>,
    /// What things cost in time.
    pub costs: Costs,
    /// Ticks a second: a choice of the kernel's build, not of the hardware; 250 unless stated.
    pub hz: u32,
}

impl Machine {
    /// How many CPUs it has.
    pub fn ncpu(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU's place.
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }

    /// The CPU and the other hardware threads of its core (`cpu_smt_mask`).
    ///
    /// # Panics
    /// If the machine has no such CPU.
    pub fn siblings(&self, cpu: CpuId) -> CpuMask {
        let core = self.cpu(cpu).core;
        self.mask_where(|other| other.core == core)
    }

    /// The machine with SMT off (`nosmt`, or `off` in `/sys/devices/system/cpu/smt/control`): of each
    /// core the first thread is left. Linux keeps the numbers of those left, with gaps where siblings
    /// have neighbouring numbers; here CPUs are numbered from 0 without gaps, in the same order.
    pub fn without_smt(&self) -> Machine {
        let left = self.cpus.iter().filter(|cpu| cpu.thread == 0);
        let renumbered = |(index, cpu): (usize, &Cpu)| Cpu {
            id: CpuId::from_index(index),
            ..cpu.clone()
        };
        Machine {
            cpus: left.enumerate().map(renumbered).collect(),
            ..self.clone()
        }
    }

    /// How far a cache line travels from one CPU to the other. Symmetric.
    ///
    /// # Panics
    /// If the machine lacks one of the CPUs.
    pub fn distance_class(&self, a: CpuId, b: CpuId) -> Distance {
        let (a, b) = (self.cpu(a), self.cpu(b));
        if a.id == b.id {
            Distance::SameCpu
        } else if a.core == b.core {
            Distance::Smt
        } else if a.cluster.is_some() && a.cluster == b.cluster {
            Distance::Cluster
        } else if a.llc == b.llc {
            Distance::Llc
        } else if a.package == b.package {
            Distance::Package
        } else {
            Distance::Remote
        }
    }

    /// The CPUs for which the condition holds.
    pub fn mask_where(&self, condition: impl Fn(&Cpu) -> bool) -> CpuMask {
        self.cpus
            .iter()
            .filter(|cpu| condition(cpu))
            .map(|cpu| cpu.id)
            .collect()
    }

    /// How many different values the CPUs have of something: cores, LLCs, packages...
    pub fn count_of<T: Ord>(&self, value: impl Fn(&Cpu) -> T) -> usize {
        self.cpus
            .iter()
            .map(value)
            .collect::<std::collections::BTreeSet<T>>()
            .len()
    }

    /// The number of cores.
    pub fn ncores(&self) -> usize {
        self.count_of(|cpu| cpu.core)
    }

    /// The number of last-level caches.
    pub fn nllcs(&self) -> usize {
        self.count_of(|cpu| cpu.llc)
    }

    /// The number of NUMA nodes that have CPUs.
    pub fn nnodes(&self) -> usize {
        self.count_of(|cpu| cpu.node)
    }

    /// The number of packages.
    pub fn npackages(&self) -> usize {
        self.count_of(|cpu| cpu.package)
    }

    /// The most hardware threads that any of its cores has.
    pub fn threads_per_core(&self) -> usize {
        self.cpus
            .iter()
            .map(|cpu| usize::from(cpu.thread) + 1)
            .max()
            .unwrap_or(1)
    }
}
