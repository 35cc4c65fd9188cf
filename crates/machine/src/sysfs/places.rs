//! Where each CPU is: sets of CPUs as sysfs gives them, checked against each other.

use super::tree::CACHES_MAX;
use super::*;
use crate::layout::{DISTANCE_MAX, LOCAL_DISTANCE, NODES_MAX, REMOTE_DISTANCE, dense};

/// The places of the online CPUs in sysfs's own numbers.
pub(super) fn read(tree: &Tree, online: &CpuMask, arch: Arch) -> Result<Layout, MachineError> {
    let cpus: Vec<CpuId> = online.iter().collect();
    let ids = |file: &str| -> Result<Vec<i32>, MachineError> {
        let path = |cpu: &CpuId| format!("cpu/cpu{cpu}/topology/{file}");
        let id = |cpu| Ok(tree.id(&path(cpu))?.unwrap_or(0).max(0));
        cpus.iter().map(id).collect()
    };
    let packages = packages(tree, &cpus, &ids("physical_package_id")?)?;
    let capacities = cpus.iter().map(|&cpu| capacity(tree, cpu));
    let nodes = nodes(tree, online)?;
    // A CPU that no node lists is taken to the first, as the kernel does at boot.
    let node = |cpu: &CpuId| nodes.of_cpu.get(cpu).copied().unwrap_or(0);
    let layout = Layout {
        packages,
        dies: ids("die_id")?,
        capacities: capacities.collect::<Result<_, _>>()?,
        isolated: tree.cpulist("cpu/isolated")?.unwrap_or_default(),
        nodes: cpus.iter().map(node).collect(),
        node_distance: nodes.distance,
        notes: nodes.notes,
        numbers: cpus,
        ..Layout::default()
    };
    let mut places = Places { layout, tree };
    places.read_cores(online)?;
    places.layout.cut_cores_at_nodes();
    places.read_llcs(arch)?;
    Ok(places.layout)
}

/// A package of each CPU: those that have both the number and the list in common. The number may be
/// the same in several nodes or -1 in all, and old kernels have no list.
fn packages(tree: &Tree, cpus: &[CpuId], ids: &[i32]) -> Result<Vec<i32>, MachineError> {
    let first = |cpu: &CpuId| -> Result<Option<CpuId>, MachineError> {
        let files = [
            "package_cpus_list",
            "core_siblings_list",
            "package_cpus",
            "core_siblings",
        ];
        let paths = files.map(|file| format!("cpu/cpu{cpu}/topology/{file}"));
        let read = tree.cpu_set(&paths, Some(*cpu))?;
        Ok(read.and_then(|(_, mask)| mask.first()))
    };
    let firsts = cpus.iter().map(first).collect::<Result<Vec<_>, _>>()?;
    let packages = dense(ids.iter().zip(firsts));
    Ok(packages.into_iter().map(i32::from).collect())
}

/// What is known so far of the places.
struct Places<'a> {
    layout: Layout,
    tree: &'a Tree,
}

/// What a CPU's caches say.
struct Caches {
    /// The path of the LLC's list of CPUs, or of where it should be.
    path: String,
    /// The CPUs of the LLC: the highest cache that holds data.
    llc: Option<CpuMask>,
    /// The CPUs of the L2.
    l2: Option<CpuMask>,
}

impl Places<'_> {
    fn read_cores(&mut self, online: &CpuMask) -> Result<(), MachineError> {
        for cpu in self.layout.numbers.clone() {
            let files = [
                "core_cpus_list",
                "thread_siblings_list",
                "core_cpus",
                "thread_siblings",
            ];
            let paths = files.map(|file| format!("cpu/cpu{cpu}/topology/{file}"));
            let read = self.tree.cpu_set(&paths, Some(cpu))?;
            let (path, mask) = read.unwrap_or((paths[0].clone(), CpuMask::single(cpu)));
            let mask = mask.and(online);
            self.check_member(&path, cpu, &mask, &self.layout.cores)?;
            let package = |cpu: CpuId| self.layout.packages[self.layout.position(cpu)];
            if mask.iter().any(|sibling| package(sibling) != package(cpu)) {
                let expected = "siblings in the same package";
                return Err(self.tree.wrong(&path, &mask.to_string(), expected));
            }
            self.layout.cores.push(mask);
        }
        Ok(())
    }

    /// A list of CPUs must contain the CPU whose list it is, and be the same for all in it.
    fn check_member(
        &self,
        path: &str,
        cpu: CpuId,
        mask: &CpuMask,
        known: &[CpuMask],
    ) -> Result<(), MachineError> {
        let wrong = |expected: String| Err(self.tree.wrong(path, &mask.to_string(), &expected));
        if !mask.contains(cpu) {
            return wrong(format!("a list with CPU {cpu} in it"));
        }
        for earlier in mask.iter().take_while(|&earlier| earlier < cpu) {
            let theirs = known[self.layout.position(earlier)];
            if theirs != *mask {
                return wrong(format!("the same list as CPU {earlier} has, {theirs}"));
            }
        }
        // An earlier CPU may claim this one without being claimed back.
        let claimed = known.iter().position(|theirs| theirs.contains(cpu));
        match claimed.map(|position| self.layout.numbers[position]) {
            Some(earlier) if !mask.contains(earlier) => wrong(format!(
                "a list with CPU {earlier} in it, whose list has CPU {cpu}"
            )),
            _ => Ok(()),
        }
    }

    fn read_llcs(&mut self, arch: Arch) -> Result<(), MachineError> {
        let numbers = self.layout.numbers.clone();
        let all = numbers.iter().map(|&cpu| caches(self.tree, cpu));
        let all = all.collect::<Result<Vec<Caches>, _>>()?;
        let without = numbers
            .iter()
            .zip(&all)
            .filter(|(_, caches)| caches.llc.is_none());
        self.layout.without_cache = without.map(|(cpu, _)| *cpu).collect();
        for (position, (cpu, caches)) in numbers.into_iter().zip(all).enumerate() {
            let files = ["cluster_cpus_list", "cluster_cpus"];
            let paths = files.map(|file| format!("cpu/cpu{cpu}/topology/{file}"));
            let cluster = self.tree.cpu_set(&paths, Some(cpu))?.map(|(_, mask)| mask);
            let (cluster, llc) = self
                .layout
                .cluster_and_llc(position, arch, cluster, caches.l2, caches.llc);
            self.check_member(&caches.path, cpu, &llc, &self.layout.llcs)?;
            let core = &self.layout.cores[position];
            if !core.is_subset(&llc) {
                let expected = format!("all of the core's CPUs {core} in it");
                return Err(self.tree.wrong(&caches.path, &llc.to_string(), &expected));
            }
            self.layout.clusters.push(cluster);
            self.layout.llcs.push(llc);
        }
        Ok(())
    }
}

fn capacity(tree: &Tree, cpu: CpuId) -> Result<u32, MachineError> {
    let path = format!("cpu/cpu{cpu}/cpu_capacity");
    match tree.number(&path)?.unwrap_or(1024) {
        capacity @ 1..=1024 => Ok(capacity as u32),
        other => Err(tree.wrong(&path, &other.to_string(), "a capacity from 1 to 1024")),
    }
}

/// What the caches of a CPU say.
fn caches(tree: &Tree, cpu: CpuId) -> Result<Caches, MachineError> {
    let mut highest = 0;
    let mut caches = Caches {
        path: format!("cpu/cpu{cpu}/cache"),
        llc: None,
        l2: None,
    };
    for index in 0..CACHES_MAX {
        let dir = format!("cpu/cpu{cpu}/cache/index{index}");
        // Indices may be left out: what some CPU cannot tell of its caches.
        let Some(level) = tree.number(&format!("{dir}/level"))? else {
            continue;
        };
        let kind = tree.text(&format!("{dir}/type"))?;
        if kind.is_some_and(|kind| kind == "Instruction") || level <= highest {
            continue;
        }
        let files = ["shared_cpu_list", "shared_cpu_map"];
        let read = tree.cpu_set(&files.map(|file| format!("{dir}/{file}")), Some(cpu))?;
        if let Some((path, mask)) = read {
            highest = level;
            caches.path = path;
            caches.llc = Some(mask);
            if level == 2 {
                caches.l2 = Some(mask);
            }
        }
    }
    Ok(caches)
}

/// The nodes that have CPUs online.
struct Nodes {
    /// The node of each CPU, as an index into the others.
    of_cpu: BTreeMap<CpuId, usize>,
    distance: Vec<Vec<u32>>,
    notes: Vec<String>,
}

fn nodes(tree: &Tree, online: &CpuMask) -> Result<Nodes, MachineError> {
    let all = tree.numbered("node", "node")?;
    let mut nodes = Nodes {
        of_cpu: BTreeMap::new(),
        distance: vec![vec![LOCAL_DISTANCE]],
        notes: Vec::new(),
    };
    // Positions among all nodes of those that have CPUs: a distance file lists all nodes.
    let mut with_cpus = Vec::new();
    let mut repeated = CpuMask::EMPTY;
    for (position, node) in all.iter().enumerate() {
        let files = ["cpulist", "cpumap"];
        let paths = files.map(|file| format!("node/node{node}/{file}"));
        let mask = tree
            .cpu_set(&paths, None)?
            .map_or(CpuMask::EMPTY, |(_, mask)| mask);
        let (known, new): (Vec<CpuId>, Vec<CpuId>) = mask
            .and(online)
            .iter()
            .partition(|cpu| nodes.of_cpu.contains_key(cpu));
        known.into_iter().for_each(|cpu| repeated.set(cpu));
        if !new.is_empty() {
            let index = with_cpus.len();
            nodes.of_cpu.extend(new.into_iter().map(|cpu| (cpu, index)));
            with_cpus.push(position);
        }
    }
    if !repeated.is_empty() {
        // With emulated nodes (numa=fake) each of them lists all CPUs of the real one.
        nodes.notes.push(format!(
            "several nodes list the CPUs {repeated}: each is taken to the first of them"
        ));
    }
    if with_cpus.len() > NODES_MAX {
        let expected = format!("at most {NODES_MAX} nodes with CPUs");
        return Err(tree.wrong("node", &with_cpus.len().to_string(), &expected));
    }
    if with_cpus.len() > 1 {
        let row = |&from: &usize| distances(tree, &all, &with_cpus, from);
        nodes.distance = with_cpus.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    }
    Ok(nodes)
}

/// The distances from one node to those that have CPUs.
fn distances(
    tree: &Tree,
    all: &[u32],
    with_cpus: &[usize],
    from: usize,
) -> Result<Vec<u32>, MachineError> {
    let path = format!("node/node{}/distance", all[from]);
    let Some(text) = tree.text(&path)? else {
        return Ok(with_cpus
            .iter()
            .map(|&to| {
                if to == from {
                    LOCAL_DISTANCE
                } else {
                    REMOTE_DISTANCE
                }
            })
            .collect());
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != all.len() {
        let expected = format!("{} distances, as there are {0} nodes", all.len());
        return Err(tree.wrong(&path, &text, &expected));
    }
    let distance = |&to: &usize| {
        let (low, high, expected) = if to == from {
            (LOCAL_DISTANCE, LOCAL_DISTANCE, "10 from a node to itself")
        } else {
            (LOCAL_DISTANCE, DISTANCE_MAX, "a distance from 10 to 255")
        };
        let number = words[to].parse().ok();
        let number = number.filter(|distance| (low..=high).contains(distance));
        number.ok_or_else(|| tree.wrong(&path, words[to], expected))
    };
    with_cpus.iter().map(distance).collect()
}
