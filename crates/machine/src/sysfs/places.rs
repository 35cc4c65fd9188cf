//! Where each CPU is: masks as sysfs gives them, checked against each other, and then numbered.

use super::tree::CACHES_MAX;
use super::*;

/// The most nodes that are read; distances are a byte, and each can make a level of domains.
const NODES_MAX: usize = 128;

/// The places of the online CPUs in sysfs's own numbers, by position in `online`.
pub(super) struct Places {
    online: Vec<CpuId>,
    isolated: CpuMask,
    cores: Vec<CpuMask>,
    clusters: Vec<Option<CpuMask>>,
    llcs: Vec<CpuMask>,
    packages: Vec<i32>,
    dies: Vec<i32>,
    nodes: Vec<usize>,
    /// Distances of the nodes that have CPUs, in the order of their numbers.
    pub node_distance: Vec<Vec<u32>>,
}

impl Places {
    pub fn read(tree: &Tree, online: &CpuMask, arch: Arch) -> Result<Places, MachineError> {
        let cpus: Vec<CpuId> = online.iter().collect();
        let topology = |cpu: &CpuId, file: &str| format!("cpu/cpu{cpu}/topology/{file}");
        let ids = |file: &str| -> Result<Vec<i32>, MachineError> {
            let id = |cpu| Ok(tree.id(&topology(cpu, file))?.unwrap_or(0).max(0));
            cpus.iter().map(id).collect()
        };
        let (packages, dies) = (ids("physical_package_id")?, ids("die_id")?);
        let (nodes, node_distance) = nodes(tree, online)?;
        let mut places = Places {
            isolated: tree.cpulist("cpu/isolated")?.unwrap_or_default(),
            cores: Vec::new(),
            clusters: Vec::new(),
            llcs: Vec::new(),
            packages,
            dies,
            nodes,
            node_distance,
            online: cpus,
        };
        places.read_cores(tree, online)?;
        places.read_llcs(tree, online, arch)?;
        Ok(places)
    }

    fn read_cores(&mut self, tree: &Tree, online: &CpuMask) -> Result<(), MachineError> {
        for cpu in &self.online {
            let files = ["core_cpus_list", "thread_siblings_list"];
            let paths = files.map(|file| format!("cpu/cpu{cpu}/topology/{file}"));
            let path = paths
                .iter()
                .find(|path| tree.exists(path))
                .unwrap_or(&paths[0]);
            let mask = tree
                .cpulist(path)?
                .unwrap_or(CpuMask::single(*cpu))
                .and(online);
            self.check_member(tree, path, *cpu, &mask, &self.cores)?;
            let place = |cpu: CpuId| {
                let position = self.position(cpu);
                (self.packages[position], self.nodes[position])
            };
            if mask.iter().any(|sibling| place(sibling) != place(*cpu)) {
                let expected = "siblings in the same package and node";
                return Err(tree.wrong(path, &mask.to_string(), expected));
            }
            self.cores.push(mask);
        }
        Ok(())
    }

    /// A list of CPUs must contain the CPU whose list it is, and be the same for all in it.
    fn check_member(
        &self,
        tree: &Tree,
        path: &str,
        cpu: CpuId,
        mask: &CpuMask,
        known: &[CpuMask],
    ) -> Result<(), MachineError> {
        if !mask.contains(cpu) {
            return Err(tree.wrong(
                path,
                &mask.to_string(),
                &format!("a list with CPU {cpu} in it"),
            ));
        }
        for earlier in mask.iter().take_while(|&earlier| earlier < cpu) {
            let theirs = known[self.position(earlier)];
            if theirs != *mask {
                let expected = format!("the same list as CPU {earlier} has, {theirs}");
                return Err(tree.wrong(path, &mask.to_string(), &expected));
            }
        }
        // An earlier CPU may claim this one without being claimed back.
        let claimed = known.iter().position(|theirs| theirs.contains(cpu));
        match claimed.map(|position| self.online[position]) {
            Some(earlier) if !mask.contains(earlier) => {
                let expected = format!("a list with CPU {earlier} in it, whose list has CPU {cpu}");
                Err(tree.wrong(path, &mask.to_string(), &expected))
            }
            _ => Ok(()),
        }
    }

    fn position(&self, cpu: CpuId) -> usize {
        self.online
            .binary_search(&cpu)
            .expect("masks are cut to the online CPUs")
    }

    fn read_llcs(&mut self, tree: &Tree, online: &CpuMask, arch: Arch) -> Result<(), MachineError> {
        for (position, &cpu) in self.online.iter().enumerate() {
            let path = format!("cpu/cpu{cpu}/topology/cluster_cpus_list");
            let cluster = tree.cpulist(&path)?.map(|mask| mask.and(online));
            let (cache_path, cache) = last_level_cache(tree, cpu)?;
            let mut llc = match cache {
                Some(mask) => mask.and(online),
                None => self.same_package_and_node(position),
            };
            // A cluster without a cache of its own is taken for one on Arm (cpu_coregroup_mask()).
            if arch == Arch::Arm64
                && let Some(cluster) = &cluster
                && llc.is_subset(cluster)
            {
                llc = *cluster;
            }
            self.check_member(tree, &cache_path, cpu, &llc, &self.llcs)?;
            if !self.cores[position].is_subset(&llc) {
                let expected = format!("all of the core's CPUs {} in it", self.cores[position]);
                return Err(tree.wrong(&cache_path, &llc.to_string(), &expected));
            }
            let below = |cluster: &CpuMask| {
                cluster.is_subset(&llc)
                    && *cluster != llc
                    && self.cores[position].is_subset(cluster)
            };
            self.clusters.push(cluster.filter(below));
            self.llcs.push(llc);
        }
        Ok(())
    }

    fn same_package_and_node(&self, position: usize) -> CpuMask {
        let place = |position: usize| (self.packages[position], self.nodes[position]);
        let same = |&other: &usize| place(other) == place(position);
        (0..self.online.len())
            .filter(same)
            .map(|other| self.online[other])
            .collect()
    }

    /// The CPUs with dense numbers.
    pub fn cpus(&self, tree: &Tree) -> Result<Vec<Cpu>, MachineError> {
        let first = |masks: &[CpuMask]| dense(masks.iter().map(CpuMask::first));
        let (cores, llcs) = (first(&self.cores), first(&self.llcs));
        // Where one CPU has a cluster all do: those without one are a cluster of their core.
        let some_cluster = self.clusters.iter().any(Option::is_some);
        let cluster_masks = self.clusters.iter().zip(&self.cores);
        let clusters = dense(cluster_masks.map(|(cluster, core)| cluster.unwrap_or(*core).first()));
        let packages = dense(self.packages.iter());
        let dies = dense(self.packages.iter().zip(&self.dies));
        let cpu = |position: usize| -> Result<Cpu, MachineError> {
            let host = self.online[position];
            let threads = self.cores[position]
                .iter()
                .take_while(|&sibling| sibling < host);
            Ok(Cpu {
                id: CpuId::from_index(position),
                thread: threads.count() as u16,
                core: CoreId(cores[position]),
                cluster: some_cluster.then_some(ClusterId(clusters[position])),
                llc: LlcId(llcs[position]),
                die: dies[position],
                package: packages[position],
                node: NodeId::from_index(self.nodes[position]),
                capacity: capacity(tree, host)?,
                isolated: self.isolated.contains(host),
            })
        };
        (0..self.online.len()).map(cpu).collect()
    }
}

/// Numbers the keys from 0 in the order of their first appearance.
fn dense<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<u16> {
    let mut known = BTreeMap::new();
    keys.map(|key| {
        let next = known.len() as u16;
        *known.entry(key).or_insert(next)
    })
    .collect()
}

fn capacity(tree: &Tree, cpu: CpuId) -> Result<u32, MachineError> {
    let path = format!("cpu/cpu{cpu}/cpu_capacity");
    match tree.number(&path)?.unwrap_or(1024) {
        capacity @ 1..=1024 => Ok(capacity as u32),
        other => Err(tree.wrong(&path, &other.to_string(), "a capacity from 1 to 1024")),
    }
}

/// The path of the shared_cpu_list of the highest cache that holds data, and the list.
fn last_level_cache(tree: &Tree, cpu: CpuId) -> Result<(String, Option<CpuMask>), MachineError> {
    let mut best = (0, format!("cpu/cpu{cpu}/cache"), None);
    for index in 0..CACHES_MAX {
        let dir = format!("cpu/cpu{cpu}/cache/index{index}");
        let Some(level) = tree.number(&format!("{dir}/level"))? else {
            break;
        };
        let instructions = tree
            .text(&format!("{dir}/type"))?
            .is_some_and(|kind| kind == "Instruction");
        let path = format!("{dir}/shared_cpu_list");
        if instructions || level <= best.0 {
            continue;
        }
        if let Some(mask) = tree.cpulist(&path)? {
            best = (level, path, Some(mask));
        }
    }
    Ok((best.1, best.2))
}

/// Node of each online CPU and the distances, of the nodes that have CPUs online.
fn nodes(tree: &Tree, online: &CpuMask) -> Result<(Vec<usize>, Vec<Vec<u32>>), MachineError> {
    let all = tree.numbered("node", "node")?;
    let mut node_of = BTreeMap::<CpuId, usize>::new();
    // Positions among all nodes of those that have CPUs: a distance file lists all nodes.
    let mut with_cpus = Vec::new();
    for (position, node) in all.iter().enumerate() {
        let path = format!("node/node{node}/cpulist");
        let mask = tree.cpulist(&path)?.unwrap_or_default().and(online);
        if mask.is_empty() {
            continue;
        }
        for cpu in mask.iter() {
            if node_of.insert(cpu, with_cpus.len()).is_some() {
                let expected = format!("CPU {cpu} in one node only");
                return Err(tree.wrong(&path, &mask.to_string(), &expected));
            }
        }
        with_cpus.push(position);
    }
    if with_cpus.is_empty() {
        return Ok((vec![0; online.weight()], vec![vec![10]]));
    }
    if with_cpus.len() > NODES_MAX {
        let expected = format!("at most {NODES_MAX} nodes with CPUs");
        return Err(tree.wrong("node", &with_cpus.len().to_string(), &expected));
    }
    let row = |&from: &usize| distances(tree, &all, &with_cpus, from);
    let rows = with_cpus.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    // A CPU that no node lists is taken to the first, as the kernel does at boot.
    let nodes = online
        .iter()
        .map(|cpu| node_of.get(&cpu).copied().unwrap_or(0))
        .collect();
    Ok((nodes, rows))
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
            .map(|&to| if to == from { 10 } else { 20 })
            .collect());
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != all.len() {
        let expected = format!("{} distances, as there are {0} nodes", all.len());
        return Err(tree.wrong(&path, &text, &expected));
    }
    let distance = |&to: &usize| {
        let number = words[to]
            .parse()
            .ok()
            .filter(|distance| (10..=255).contains(distance));
        number.ok_or_else(|| tree.wrong(&path, words[to], "a distance from 10 to 255"))
    };
    with_cpus.iter().map(distance).collect()
}
