//! Reading a machine from a sysfs tree: `/sys` of the running machine, or a copy of one anywhere.
//!
//! | what | from `devices/system/...` | where that is missing |
//! | --- | --- | --- |
//! | CPUs | `cpu/online`, else `cpu/present`, else `cpu/possible` | error |
//! | core | `cpu/cpuN/topology/core_cpus_list`, else `thread_siblings_list` | each CPU is a core |
//! | cluster | `cpu/cpuN/topology/cluster_cpus_list`, if below the LLC | no clusters |
//! | LLC | `cpu/cpuN/cache/indexM`, the highest level that holds data | all CPUs of the package and node |
//! | package, die | `cpu/cpuN/topology/{physical_package_id,die_id}` | 0 (also for -1) |
//! | node | `node/nodeN/cpulist` | one node |
//! | distance | `node/nodeN/distance` | 20 between nodes |
//! | capacity | `cpu/cpuN/cpu_capacity` | 1024 |
//! | isolated | `cpu/isolated` | none |
//! | idle states | `cpu/cpuN/cpuidle` of the first CPU | one halt state, a stand-in |
//!
//! Numbers are made dense: offline CPUs and nodes without CPUs are left out, and the description tells
//! the CPUs' own numbers if they had gaps. sysfs names no architecture: the `regs` of a CPU tell Arm,
//! its `dscr` or `purr` POWER, and else it is x86. Costs cannot be read at all; those of a preset
//! stand in. `node_reclaim_distance` is 32 on x86 if that distance occurs, as AMD Zen sets it (kernel
//! arch/x86/kernel/cpu/amd.c).

use crate::description::borrowed_costs;
use crate::error::MachineError;
use crate::ids::{ClusterId, CoreId, CpuId, LlcId, NodeId, Ns};
use crate::mask::CpuMask;
use crate::topology::{Arch, Cpu, IdleState, Machine};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tree::Tree;

mod places;
mod tree;

use places::Places;

impl Machine {
    /// The machine that the sysfs tree describes; see [`sysfs`](crate::sysfs) for what is read and
    /// what holds where something is missing.
    ///
    /// # Errors
    /// If no CPU is found, or a file has something else in it than it should have: the error names
    /// the file and the word.
    pub fn from_sysfs(root: &Path) -> Result<Machine, MachineError> {
        let tree = Tree::new(root);
        let online = online(&tree)?;
        let arch = arch(&tree, &online);
        let places = Places::read(&tree, &online, arch)?;
        let cpus = places.cpus(&tree)?;
        let node_distance = places.node_distance.clone();
        let threads = cpus
            .iter()
            .map(|cpu| usize::from(cpu.thread) + 1)
            .max()
            .unwrap_or(1);
        Ok(Machine {
            name: "host".to_owned(),
            description: description(&online),
            arch,
            node_reclaim_distance: reclaim_distance(arch, &node_distance),
            idle_states: idle_states(&tree, &online)?,
            costs: borrowed_costs(costs_like(arch, &cpus), threads)?,
            cpus,
            node_distance,
            hz: 250,
        })
    }
}

fn online(tree: &Tree) -> Result<CpuMask, MachineError> {
    for list in ["cpu/online", "cpu/present", "cpu/possible"] {
        if let Some(mask) = tree.cpulist(list)? {
            if mask.is_empty() {
                return Err(tree.wrong(list, "", "at least one CPU"));
            }
            return Ok(mask);
        }
    }
    Err(tree.wrong(
        "cpu/online",
        "",
        "this file, or cpu/present or cpu/possible",
    ))
}

fn arch(tree: &Tree, online: &CpuMask) -> Arch {
    let has = |file: &str| {
        online
            .first()
            .is_some_and(|cpu| tree.exists(&format!("cpu/cpu{cpu}/{file}")))
    };
    if has("regs") {
        Arch::Arm64
    } else if has("dscr") || has("purr") {
        Arch::Power
    } else {
        Arch::X86
    }
}

fn description(online: &CpuMask) -> String {
    let count = online.weight();
    if *online == CpuMask::first_n(count) {
        return format!("The running machine, {count} CPUs online");
    }
    format!(
        "The running machine, {count} CPUs online: its CPUs {online} are 0-{} here",
        count - 1
    )
}

fn reclaim_distance(arch: Arch, distances: &[Vec<u32>]) -> u32 {
    match arch {
        Arch::Power => 10,
        Arch::X86 if distances.iter().flatten().any(|&distance| distance == 32) => 32,
        Arch::X86 | Arch::Arm64 => 30,
    }
}

/// The preset whose costs stand in: one with the same architecture and, on x86, as many or as few
/// LLCs a package.
fn costs_like(arch: Arch, cpus: &[Cpu]) -> &'static str {
    let places: BTreeSet<_> = cpus.iter().map(|cpu| (cpu.package, cpu.llc)).collect();
    let packages: BTreeSet<_> = cpus.iter().map(|cpu| cpu.package).collect();
    match arch {
        Arch::X86 if places.len() > packages.len() => "epyc-9654-2s",
        Arch::X86 => "xeon-8360y-2s",
        Arch::Power => "power9-2s44c",
        Arch::Arm64 => "kunpeng-920",
    }
}

fn idle_states(tree: &Tree, online: &CpuMask) -> Result<Vec<IdleState>, MachineError> {
    let mut states = Vec::new();
    let first = online.first().unwrap_or_default();
    for index in 0..tree::STATES_MAX {
        let dir = format!("cpu/cpu{first}/cpuidle/state{index}");
        let Some(name) = tree.text(&format!("{dir}/name"))? else {
            break;
        };
        if tree.number(&format!("{dir}/disable"))?.unwrap_or(0) != 0 {
            continue;
        }
        let us = |file: &str| tree.number(&format!("{dir}/{file}"));
        let exit_latency = us("latency")?.unwrap_or(0);
        let text = tree.text(&format!("{dir}/desc"))?.unwrap_or_default();
        states.push(IdleState {
            exit_latency: Ns::from_us(exit_latency),
            target_residency: Ns::from_us(us("residency")?.unwrap_or(exit_latency)),
            // A CPU in MWAIT watches need_resched, and so do the poll loops of x86 and POWER.
            polling: text.contains("MWAIT") || name == "POLL" || name == "snooze",
            source: format!("sysfs cpuidle/state{index}: {text}"),
            name,
        });
    }
    if states.is_empty() {
        states.push(IdleState {
            name: "HALT".to_owned(),
            exit_latency: Ns::from_us(1),
            target_residency: Ns::from_us(1),
            polling: false,
            source: "stand-in: no cpuidle driver, so the architecture's halt instruction"
                .to_owned(),
        });
    }
    Ok(states)
}
