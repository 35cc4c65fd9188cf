//! Reading a machine from a sysfs tree: `/sys` of the running machine, or a copy of one anywhere, in
//! directories or in a tar archive.
//!
//! | what | from `devices/system/...` | where that is missing |
//! | --- | --- | --- |
//! | CPUs | `cpu/online`, else each `cpu/cpuN` with a `topology` and no `online` of 0, else `cpu/present`, else `cpu/possible` | error |
//! | core | `cpu/cpuN/topology/core_cpus_list`, else `thread_siblings_list` | each CPU is a core |
//! | cluster | `cpu/cpuN/topology/cluster_cpus_list`, on x86 else the L2's CPUs, if below the LLC | no clusters |
//! | LLC | `cpu/cpuN/cache/indexM`, the highest level that holds data | all CPUs of the package and node |
//! | package | `cpu/cpuN/topology/physical_package_id` and `package_cpus_list`, else `core_siblings_list` | one |
//! | die | `cpu/cpuN/topology/die_id` | a die a package |
//! | node | `node/nodeN/cpulist` | one node |
//! | distance | `node/nodeN/distance` | 20 between nodes |
//! | capacity | `cpu/cpuN/cpu_capacity` | 1024 |
//! | isolated | `cpu/isolated` | none |
//! | idle states | `cpu/cpuN/cpuidle` of the first CPU | one halt state, a stand-in |
//!
//! Of each list the bit mask (`core_cpus`, `shared_cpu_map`, `cpumap`) will do: old kernels have no
//! lists. Numbers are made dense: offline CPUs and nodes without CPUs are left out, and the description tells
//! the CPUs' own numbers if they had gaps. sysfs names no architecture: the `regs` of a CPU tell Arm,
//! its `dscr` or `purr` POWER, and else it is x86. Costs cannot be read at all; those of a preset
//! stand in. `node_reclaim_distance` is 32 on x86 if that distance occurs, as AMD Zen sets it (kernel
//! arch/x86/kernel/cpu/amd.c).

use crate::error::MachineError;
use crate::ids::{CpuId, Ns};
use crate::layout::{Layout, halt_state};
use crate::mask::{CpuMask, MAX_CPUS};
use crate::topology::{Arch, IdleState, Machine};
use archive::Archive;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use tree::Tree;

pub(crate) mod archive;
mod places;
mod tree;

impl Machine {
    /// The machine that the sysfs tree describes; see [`sysfs`](crate::sysfs) for what is read and
    /// what holds where something is missing.
    ///
    /// # Errors
    /// If no CPU is found, or a file has something else in it than it should have: the error names
    /// the file and the word.
    pub fn from_sysfs(root: &Path) -> Result<Machine, MachineError> {
        Ok(machine(&Tree::new(root), "host", "The running machine")?.0)
    }
}

/// The machine of a tree in directories, and where its CPUs are.
pub(crate) fn read_directory(
    root: &Path,
    name: &str,
    what: &str,
) -> Result<(Machine, Layout), MachineError> {
    machine(&Tree::new(root), name, what)
}

/// The machine of a tree in a tar archive that is not compressed, and where its CPUs are; `file` is
/// what errors call the archive.
pub(crate) fn read_archive(
    reader: impl Read,
    file: &str,
    name: &str,
    what: &str,
) -> Result<(Machine, Layout), MachineError> {
    machine(&Tree::Archive(Archive::read(reader, file)?), name, what)
}

fn machine(tree: &Tree, name: &str, what: &str) -> Result<(Machine, Layout), MachineError> {
    let online = online(tree)?;
    let arch = arch(tree, &online);
    let mut layout = places::read(tree, &online, arch)?;
    // A tree that does not tell which CPUs are present has them all online.
    let present = tree.cpulist("cpu/present")?.unwrap_or(online);
    layout.offline = present.and_not(&online);
    let text = description(what, &online);
    let machine = layout.machine(name, &text, arch, idle_states(tree, &online)?)?;
    Ok((machine, layout))
}

fn online(tree: &Tree) -> Result<CpuMask, MachineError> {
    if let Some(online) = some_cpus(tree, "cpu/online")? {
        return Ok(online);
    }
    let mut online = CpuMask::EMPTY;
    for cpu in tree.numbered("cpu", "cpu")? {
        let here = format!("cpu/cpu{cpu}");
        let runs = tree.number(&format!("{here}/online"))? != Some(0);
        if !runs || !tree.exists(&format!("{here}/topology")) {
            continue;
        }
        if cpu as usize >= MAX_CPUS {
            let expected = format!("CPUs below {MAX_CPUS}");
            return Err(tree.wrong(&here, &cpu.to_string(), &expected));
        }
        online.set(CpuId::from_index(cpu as usize));
    }
    if !online.is_empty() {
        return Ok(online);
    }
    for list in ["cpu/present", "cpu/possible"] {
        if let Some(mask) = some_cpus(tree, list)? {
            return Ok(mask);
        }
    }
    let expected = "this file, or cpu/present or cpu/possible";
    Err(tree.wrong("cpu/online", "", expected))
}

fn some_cpus(tree: &Tree, list: &str) -> Result<Option<CpuMask>, MachineError> {
    match tree.cpulist(list)? {
        Some(mask) if mask.is_empty() => Err(tree.wrong(list, "", "at least one CPU")),
        mask => Ok(mask),
    }
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

fn description(what: &str, online: &CpuMask) -> String {
    let count = online.weight();
    if *online == CpuMask::first_n(count) {
        return format!("{what}, {count} CPUs online");
    }
    format!(
        "{what}, {count} CPUs online: its CPUs {online} are 0-{} here",
        count - 1
    )
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
        states.push(halt_state("no cpuidle driver"));
    }
    Ok(states)
}
