//! Removing the domains that contribute nothing, and the per-CPU pointers into what remains
//! (kernel sched/topology.c: `sd_degenerate()`, `sd_parent_degenerate()`, `cpu_attach_domain()`,
//! `update_top_cache_domain()`).

use super::build::{Builder, RawDomain, RawGroup};
use super::{CpuTopo, SchedDomain, SchedGroup, SchedTopology, sd};
use crate::ids::{CpuId, GroupId, LlcId};
use crate::mask::CpuMask;
use std::collections::{BTreeMap, BTreeSet};

/// Flags that only mean something with at least two groups: all but `SD_WAKE_AFFINE`.
const NEEDS_GROUPS: u32 = ((sd::NUMA << 1) - 1) & !sd::WAKE_AFFINE;

pub(super) fn attach(mut builder: Builder<'_>) -> SchedTopology {
    for cpu in builder.cpu_map.iter() {
        let row = std::mem::take(&mut builder.domains[cpu.index()]);
        builder.domains[cpu.index()] = cpu_attach_domain(&mut builder, row);
    }
    finish(&builder)
}

fn sd_degenerate(domain: &RawDomain) -> bool {
    if domain.span_weight == 1 {
        return true;
    }
    let balances = domain.flags & NEEDS_GROUPS != 0 && domain.groups.len() > 1;
    !balances && domain.flags & sd::WAKE_AFFINE == 0
}

fn sd_parent_degenerate(domain: &RawDomain, parent: &RawDomain) -> bool {
    if sd_degenerate(parent) {
        return true;
    }
    if domain.span != parent.span {
        return false;
    }
    let single = parent.groups.len() == 1;
    let parent_flags = if single {
        parent.flags & !NEEDS_GROUPS
    } else {
        parent.flags
    };
    !domain.flags & parent_flags == 0
}

fn cpu_attach_domain(builder: &mut Builder<'_>, mut row: Vec<RawDomain>) -> Vec<RawDomain> {
    let mut place = 0;
    while place + 1 < row.len() {
        if !sd_parent_degenerate(&row[place], &row[place + 1]) {
            place += 1;
            continue;
        }
        let parent = row.remove(place + 1);
        let flags = row[place].flags;
        if builder.rules.propagate_group_flags
            && let Some(grandparent) = row.get_mut(place + 1)
        {
            builder.set_first_group_flags(grandparent, flags);
        }
        // The spans are the same, so the wish to spread over siblings passes down.
        row[place].flags |= parent.flags & sd::PREFER_SIBLING;
    }
    if row.first().is_some_and(sd_degenerate) {
        row.remove(0);
        // Only the first group loses its flags; the others lose theirs with their own CPUs.
        if let Some(lowest) = row.first_mut() {
            builder.set_first_group_flags(lowest, 0);
        }
    }
    row
}

/// What makes two groups the same for a reader of the finished topology.
type GroupKey = (usize, CpuMask, CpuMask, u32);

struct Arena<'a> {
    builder: &'a Builder<'a>,
    ids: BTreeMap<GroupKey, GroupId>,
    groups: Vec<SchedGroup>,
}

impl Arena<'_> {
    fn id_of(&mut self, raw: usize) -> GroupId {
        let raw = &self.builder.groups[raw];
        let key = (raw.level, raw.span, raw.balance_mask, raw.flags);
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = GroupId::from_index(self.groups.len());
        self.groups.push(self.finished(raw));
        self.ids.insert(key, id);
        id
    }

    fn finished(&self, raw: &RawGroup) -> SchedGroup {
        let machine = self.builder.machine;
        let cores: BTreeSet<_> = raw.span.iter().map(|cpu| machine.cpu(cpu).core).collect();
        SchedGroup {
            span: raw.span,
            balance_mask: raw.balance_mask,
            weight: raw.span.weight() as u32,
            cores: cores.len() as u32,
            flags: raw.flags,
            capacity: raw.span.iter().map(|cpu| machine.cpu(cpu).capacity).sum(),
            // No machine here packs asymmetrically (ITMT, POWER7): the first CPU is as good as any.
            asym_prefer_cpu: raw.span.first().unwrap_or_default(),
        }
    }

    fn domain(&mut self, raw: &RawDomain) -> SchedDomain {
        SchedDomain {
            name: self.builder.levels[raw.level].name,
            level: raw.level as u32,
            span: raw.span,
            span_weight: raw.span_weight,
            flags: raw.flags,
            imbalance_pct: raw.imbalance_pct,
            min_interval: raw.mask_weight,
            max_interval: 2 * raw.mask_weight,
            busy_factor: self.builder.rules.busy_factor,
            cache_nice_tries: raw.cache_nice_tries,
            imb_numa_nr: raw.imb_numa_nr,
            groups: raw.groups.iter().map(|&group| self.id_of(group)).collect(),
        }
    }
}

/// The CPUs of each of `count` things, where `index` tells each CPU's thing.
fn masks(builder: &Builder<'_>, count: usize, index: impl Fn(CpuId) -> usize) -> Vec<CpuMask> {
    let mut masks = vec![CpuMask::EMPTY; count];
    builder
        .machine
        .cpus
        .iter()
        .for_each(|cpu| masks[index(cpu.id)].set(cpu.id));
    masks
}

fn finish(builder: &Builder<'_>) -> SchedTopology {
    let machine = builder.machine;
    let mut arena = Arena {
        builder,
        ids: BTreeMap::new(),
        groups: Vec::new(),
    };
    let domains: Vec<Vec<SchedDomain>> = builder
        .domains
        .iter()
        .map(|row| row.iter().map(|raw| arena.domain(raw)).collect())
        .collect();
    let any_flag = |flag: u32| {
        domains
            .iter()
            .flatten()
            .any(|domain| domain.flags & flag != 0)
    };
    let (cluster_active, asym_cpucap) = (any_flag(sd::CLUSTER), any_flag(sd::ASYM_CPUCAPACITY));
    let cores = masks(builder, machine.ncores(), |cpu| {
        machine.cpu(cpu).core.index()
    });
    let nodes = masks(builder, machine.node_distance.len(), |cpu| {
        machine.cpu(cpu).node.index()
    });
    let (cpus, llcs) = cpu_topologies(builder, &domains, &cores);
    SchedTopology {
        cpus,
        domains,
        groups: arena.groups,
        llcs,
        cores,
        nodes,
        node_distance: machine.node_distance.clone(),
        smt_active: machine.ncores() < machine.ncpu(),
        cluster_active,
        asym_cpucap,
    }
}

/// How many of the lowest domains share the LLC: the last of them is `sd_llc`.
fn llc_domains(row: &[SchedDomain]) -> usize {
    row.iter()
        .take_while(|domain| domain.flags & sd::SHARE_LLC != 0)
        .count()
}

fn first_with(row: &[SchedDomain], flag: u32) -> Option<usize> {
    row.iter().position(|domain| domain.flags & flag != 0)
}

fn cpu_topologies(
    builder: &Builder<'_>,
    domains: &[Vec<SchedDomain>],
    cores: &[CpuMask],
) -> (Vec<CpuTopo>, Vec<CpuMask>) {
    let mut llcs = Vec::new();
    let mut ids = BTreeMap::<CpuId, LlcId>::new();
    let mut cpus = Vec::new();
    for cpu in &builder.machine.cpus {
        let row = &domains[cpu.id.index()];
        let llc_domain = row[..llc_domains(row)].last();
        let llc_span = llc_domain.map_or(CpuMask::single(cpu.id), |llc| llc.span);
        let first = llc_span.first().unwrap_or(cpu.id);
        let llc = *ids.entry(first).or_insert_with(|| {
            llcs.push(llc_span);
            LlcId::from_index(llcs.len() - 1)
        });
        let cluster = row.iter().find(|domain| domain.flags & sd::CLUSTER != 0);
        cpus.push(CpuTopo {
            core: cpu.core,
            llc,
            llc_size: llc_span.weight() as u32,
            share: cluster
                .and_then(|cluster| cluster.span.first())
                .unwrap_or(first),
            node: cpu.node,
            package: cpu.package,
            capacity: cpu.capacity,
            smt: cores[cpu.core.index()],
            llc_span,
            sd_llc: llc_domains(row).checked_sub(1),
            sd_numa: first_with(row, sd::NUMA),
            sd_asym: first_with(row, sd::ASYM_CPUCAPACITY_FULL),
        });
    }
    (cpus, llcs)
}
