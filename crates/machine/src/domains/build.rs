//! Building domains and groups from levels, as kernel sched/topology.c does in
//! `build_sched_domains()`: one domain per CPU and level up to the level that spans everything, then
//! the groups, then the NUMA imbalance, then (in `attach`) the removal of what contributes nothing.

use super::attach::attach;
use super::levels::{Level, levels};
use super::{DomainRules, SchedTopology, sd};
use crate::ids::CpuId;
use crate::mask::CpuMask;
use crate::topology::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// A domain under construction. Those of a CPU lie in one row, lowest first, so the child of the
/// domain at a place is the one before it.
#[derive(Clone)]
pub(super) struct RawDomain {
    pub level: usize,
    pub span: CpuMask,
    pub span_weight: u32,
    /// Weight of the level's mask, from which the intervals derive.
    pub mask_weight: u32,
    pub flags: u32,
    pub imbalance_pct: u32,
    pub cache_nice_tries: u32,
    pub imb_numa_nr: u32,
    /// Groups in ring order, as indices into [`Builder::groups`].
    pub groups: Vec<usize>,
}

/// A group under construction.
#[derive(Clone)]
pub(super) struct RawGroup {
    pub level: usize,
    pub span: CpuMask,
    pub balance_mask: CpuMask,
    pub flags: u32,
    pub overlapping: bool,
}

/// Key of an overlapping group: level, place that describes it, span, flags.
type OverlapKey = (usize, usize, CpuMask, u32);

pub(super) struct Builder<'a> {
    pub machine: &'a Machine,
    pub rules: &'a DomainRules,
    pub levels: Vec<Level>,
    /// The CPUs that domains are built for: all but the isolated ones.
    pub cpu_map: CpuMask,
    /// Domains by CPU, lowest first.
    pub domains: Vec<Vec<RawDomain>>,
    pub groups: Vec<RawGroup>,
    /// Groups of the levels that do not overlap, by level and first CPU: one for all CPUs.
    shared_groups: BTreeMap<(usize, CpuId), usize>,
    /// Groups of the levels that overlap. The kernel makes one for each CPU and domain; equal ones
    /// are the same here until a flag change makes them differ.
    overlap_groups: BTreeMap<OverlapKey, usize>,
}

impl SchedTopology {
    /// The scheduling domains, groups and LLCs that a kernel with these rules builds on the machine.
    ///
    /// Source of the rules: kernel sched/topology.c, `build_sched_domains()`. Isolated CPUs have no
    /// domains and are an LLC of their own.
    ///
    /// ```
    /// use wakelab_machine::{DomainRules, Machine, SchedTopology};
    /// let machine = Machine::preset("epyc-9654-2s")?;
    /// let topology = SchedTopology::build(&machine, &DomainRules::v6_5());
    /// let names: Vec<_> = topology.domains[0].iter().map(|domain| domain.name).collect();
    /// assert_eq!(names, ["SMT", "MC", "DIE", "NUMA"]);
    /// # Ok::<(), wakelab_machine::MachineError>(())
    /// ```
    pub fn build(machine: &Machine, rules: &DomainRules) -> SchedTopology {
        let mut builder = Builder {
            machine,
            rules,
            levels: levels(machine, rules),
            cpu_map: machine.mask_where(|cpu| !cpu.isolated),
            domains: vec![Vec::new(); machine.ncpu()],
            groups: Vec::new(),
            shared_groups: BTreeMap::new(),
            overlap_groups: BTreeMap::new(),
        };
        let cpu_map = builder.cpu_map;
        cpu_map.iter().for_each(|cpu| builder.build_domains(cpu));
        cpu_map.iter().for_each(|cpu| builder.build_groups(cpu));
        if rules.numa_imbalance {
            cpu_map
                .iter()
                .for_each(|cpu| builder.allow_numa_imbalance(cpu));
        }
        attach(builder)
    }
}

impl Builder<'_> {
    fn build_domains(&mut self, cpu: CpuId) {
        for level in 0..self.levels.len() {
            let child = self.domains[cpu.index()].last().map(|child| child.span);
            let domain = self.sd_init(level, child, cpu);
            // Tasks are not spread over CPUs of different capacities for spreading's sake.
            if domain.flags & sd::ASYM_CPUCAPACITY != 0
                && let Some(child) = self.domains[cpu.index()].last_mut()
            {
                child.flags &= !sd::PREFER_SIBLING;
            }
            let unequal = domain.flags & sd::ASYM_CPUCAPACITY != 0;
            let spans_all = domain.span == self.cpu_map;
            self.domains[cpu.index()].push(domain);
            if unequal && self.rules.balance_wake_asym {
                for domain in &mut self.domains[cpu.index()] {
                    domain.flags |= sd::BALANCE_WAKE;
                }
            }
            if spans_all {
                break;
            }
        }
    }

    /// One domain with the behaviour that its level's description calls for (`sd_init()`).
    fn sd_init(&self, level: usize, child_span: Option<CpuMask>, cpu: CpuId) -> RawDomain {
        let described = &self.levels[level];
        let mask = described.mask(cpu);
        let own_span = mask.and(&self.cpu_map);
        let mut flags = sd::BALANCE_NEWIDLE
            | sd::BALANCE_EXEC
            | sd::BALANCE_FORK
            | sd::WAKE_AFFINE
            | sd::PREFER_SIBLING
            | described.flags
            | self.asym_cpu_capacity_classify(&own_span);
        let (mut imbalance_pct, mut cache_nice_tries) = (self.rules.imbalance_pct, 1);
        if flags & sd::SHARE_CPUCAPACITY != 0 {
            (imbalance_pct, cache_nice_tries) = (110, 0);
        } else if flags & sd::SHARE_LLC != 0 {
            imbalance_pct = 117;
        } else if let Some(distance) = described.numa_distance {
            cache_nice_tries = 2;
            flags &= !sd::PREFER_SIBLING;
            flags |= sd::SERIALIZE | sd::OVERLAP;
            if distance > self.machine.node_reclaim_distance {
                flags &= !(sd::BALANCE_EXEC | sd::BALANCE_FORK | sd::WAKE_AFFINE);
            }
        }
        // A level that does not contain the one below is repaired, as build_sched_domain() does.
        let span = own_span.or(&child_span.unwrap_or_default());
        RawDomain {
            level,
            span,
            span_weight: span.weight() as u32,
            mask_weight: mask.weight() as u32,
            flags,
            imbalance_pct,
            cache_nice_tries,
            imb_numa_nr: 0,
            groups: Vec::new(),
        }
    }

    /// Whether the span has CPUs of several capacities, and of all that there are.
    fn asym_cpu_capacity_classify(&self, span: &CpuMask) -> u32 {
        let capacities = |mask: &CpuMask| {
            mask.iter()
                .map(|cpu| self.machine.cpu(cpu).capacity)
                .collect::<BTreeSet<u32>>()
                .len()
        };
        match capacities(span) {
            0 | 1 => 0,
            here if here < capacities(&self.cpu_map) => sd::ASYM_CPUCAPACITY,
            _ => sd::ASYM_CPUCAPACITY | sd::ASYM_CPUCAPACITY_FULL,
        }
    }

    fn build_groups(&mut self, cpu: CpuId) {
        for place in 0..self.domains[cpu.index()].len() {
            let groups = if self.domains[cpu.index()][place].flags & sd::OVERLAP != 0 {
                self.build_overlap_sched_groups(cpu, place)
            } else {
                self.build_sched_groups(cpu, place)
            };
            self.domains[cpu.index()][place].groups = groups;
        }
    }

    /// The groups of a level whose spans are disjoint: the children's spans, from the CPU's own on.
    fn build_sched_groups(&mut self, cpu: CpuId, place: usize) -> Vec<usize> {
        let span = self.domains[cpu.index()][place].span;
        let mut covered = CpuMask::EMPTY;
        let mut ring = Vec::new();
        for other in span.iter_wrap(cpu.index()) {
            if covered.contains(other) {
                continue;
            }
            let group = self.get_group(other, place);
            covered = covered.or(&self.groups[group].span);
            ring.push(group);
        }
        ring
    }

    fn get_group(&mut self, cpu: CpuId, place: usize) -> usize {
        let (span, flags) = match place.checked_sub(1) {
            Some(below) => {
                let child = &self.domains[cpu.index()][below];
                (child.span, child.flags)
            }
            None => (CpuMask::single(cpu), 0),
        };
        let key = (place, span.first().unwrap_or(cpu));
        if let Some(&known) = self.shared_groups.get(&key) {
            return known;
        }
        let group = RawGroup {
            level: place,
            span,
            balance_mask: span,
            flags,
            overlapping: false,
        };
        self.shared_groups.insert(key, self.groups.len());
        self.push_group(group)
    }

    fn push_group(&mut self, group: RawGroup) -> usize {
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// The groups of a level whose spans may overlap: each not yet covered CPU's child span.
    fn build_overlap_sched_groups(&mut self, cpu: CpuId, place: usize) -> Vec<usize> {
        let span = self.domains[cpu.index()][place].span;
        let mut covered = CpuMask::EMPTY;
        let mut ring = Vec::new();
        for other in span.iter_wrap(cpu.index()) {
            // Trees of unequal depth: some CPUs have no domain at this level.
            if covered.contains(other) || self.domains[other.index()].len() <= place {
                continue;
            }
            let sibling = self.find_descended_sibling(other, place, &span);
            let group = self.overlap_group(other, sibling, place);
            covered = covered.or(&self.groups[group].span);
            ring.push(group);
        }
        ring
    }

    /// The place in the CPU's row whose child does not leave the span, below domains that will be
    /// dropped for adding nothing.
    fn find_descended_sibling(&self, cpu: CpuId, place: usize, span: &CpuMask) -> usize {
        let row = &self.domains[cpu.index()];
        let mut sibling = place;
        if sibling == 0 || row[sibling - 1].span.is_subset(span) {
            return sibling;
        }
        while sibling > 0 && !row[sibling - 1].span.is_subset(span) {
            sibling -= 1;
        }
        while sibling > 0 && row[sibling - 1].span == row[sibling].span {
            sibling -= 1;
        }
        sibling
    }

    fn overlap_group(&mut self, cpu: CpuId, sibling: usize, place: usize) -> usize {
        let row = &self.domains[cpu.index()];
        let (span, flags) = match sibling.checked_sub(1) {
            Some(below) => (row[below].span, row[below].flags),
            None => (row[sibling].span, 0),
        };
        let key = (place, sibling, span, flags);
        if let Some(&known) = self.overlap_groups.get(&key) {
            return known;
        }
        let balance_mask = self.balance_mask(sibling, &span);
        self.overlap_groups.insert(key, self.groups.len());
        self.push_group(RawGroup {
            level: place,
            span,
            balance_mask,
            flags,
            overlapping: true,
        })
    }

    /// Those of the group's CPUs that can arrive at it: whose own child domain is the group. The
    /// kernel warns of an empty mask; the whole span stands in for one.
    fn balance_mask(&self, sibling: usize, span: &CpuMask) -> CpuMask {
        let arrives = |cpu: &CpuId| {
            let row = &self.domains[cpu.index()];
            // A CPU whose tree ends below this level has no child here.
            sibling > 0 && row.len() > sibling && row[sibling - 1].span == *span
        };
        let mask: CpuMask = span.iter().filter(arrives).collect();
        if mask.is_empty() { *span } else { mask }
    }

    /// Sets the flags of a domain's first group, for all who share it.
    pub fn set_first_group_flags(&mut self, domain: &mut RawDomain, flags: u32) {
        let first = domain.groups[0];
        if !self.groups[first].overlapping {
            self.groups[first].flags = flags;
            return;
        }
        // An overlapping group belongs to this CPU alone, so the others' keep their flags.
        let group = RawGroup {
            flags,
            ..self.groups[first].clone()
        };
        domain.groups[0] = self.push_group(group);
    }

    /// How much imbalance between nodes is allowed so that LLCs are not: an eighth of a node with
    /// one LLC, else as many tasks as there are LLCs; more by the factor that higher levels are wider
    /// than the first NUMA level.
    fn allow_numa_imbalance(&mut self, cpu: CpuId) {
        let row = &mut self.domains[cpu.index()];
        let shares_llc: Vec<bool> = row.iter().map(|sd| sd.flags & sd::SHARE_LLC != 0).collect();
        let (mut imbalance, mut imbalance_span) = (0, 1);
        for place in 0..row.len() {
            let weight = row[place].span_weight;
            if !shares_llc[place] && place > 0 && shares_llc[place - 1] {
                let llcs = weight / row[place - 1].span_weight;
                imbalance = if llcs == 1 { weight >> 3 } else { llcs }.max(1);
                let numa = row[place + 1..]
                    .iter()
                    .find(|above| above.flags & sd::NUMA != 0);
                imbalance_span = numa.map_or(weight, |numa| numa.span_weight);
                row[place].imb_numa_nr = imbalance;
            } else {
                row[place].imb_numa_nr = imbalance * (weight / imbalance_span).max(1);
            }
        }
    }
}
