//! The header of recorded decisions as the machine that they were made on.

use crate::error::Problem;
use crate::header::Preamble;
use crate::wire::{Flag, cpu, from_line, mask};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use wakelab_machine::CpuMask;
use wakelab_machine::domains::{CpuTopo, SchedDomain, SchedGroup, SchedTopology};
use wakelab_machine::ids::{CoreId, CpuId, GroupId, LlcId, NodeId};
use wakelab_sched::features::{Features, Origin, words_of};
use wakelab_sched::placement::{Ranks, RecordedMachine};
use wakelab_sched::{Release, Rules};

/// Masks are written as words of 64 bits.
const MAX_CPUS: usize = 64;
/// No more nodes than CPUs.
const MAX_NODES: u16 = 64;
/// The kernel's are 110 to 125.
const PCT: RangeInclusive<u32> = 101..=1000;

#[derive(Deserialize)]
struct Header {
    ncpu: usize,
    load_avg_max: u64,
    smt_active: Flag,
    cluster_active: Flag,
    asym_cpucap: Flag,
    feats: BTreeMap<String, u8>,
    llcs: Vec<Llc>,
    cpus: Vec<Cpu>,
}

#[derive(Deserialize)]
struct Llc {
    id: u64,
}

#[derive(Deserialize)]
struct Cpu {
    cpu: u64,
    pkg: u16,
    core: u16,
    node: u16,
    llc: u64,
    share: u64,
    llc_size: u32,
    smt: u64,
    acap: u32,
    llc_span: u64,
    doms: Vec<Domain>,
}

#[derive(Deserialize)]
struct Domain {
    lvl: u32,
    span: u64,
    flags: u32,
    pct: u32,
    imb_numa_nr: u32,
    llc: Flag,
    /// Span, flags and weight.
    groups: Vec<(u64, u32, u32)>,
}

/// The machine of a recording, and what finds a sched group by level and first CPU.
pub(crate) struct Machine {
    pub machine: RecordedMachine,
    groups: Vec<(u32, CpuId, GroupId)>,
}

impl Machine {
    /// Reads the header line.
    ///
    /// # Errors
    /// If a field is missing, or the CPUs do not make up a machine.
    pub fn parse(preamble: &Preamble, line: &[u8]) -> Result<Machine, Problem> {
        let header: Header = from_line(line)?;
        let release = preamble.release()?;
        check_counts(&header)?;
        let mut builder = Builder {
            ncpu: header.ncpu,
            groups: Vec::new(),
            arena: Vec::new(),
        };
        let topo = builder.topology(&header)?;
        check_partition("smt", &topo.cores, topo.cpus.iter().map(|place| place.smt))?;
        check_partition(
            "llc_span",
            &topo.llcs,
            topo.cpus.iter().map(|place| place.llc_span),
        )?;
        let machine = RecordedMachine {
            ranks: Ranks::of(&topo),
            topo,
            rules: Rules::of(release),
            features: features(release, &header.feats)?,
            almost_idle_load: header.load_avg_max / 1000,
        };
        let groups = builder.groups;
        Ok(Machine { machine, groups })
    }

    /// CPUs of the machine.
    pub fn ncpu(&self) -> usize {
        self.machine.topo.cpus.len()
    }

    /// The group of a domain level that starts with this CPU.
    pub fn group(&self, level: u32, first: CpuId) -> Option<GroupId> {
        let found = self
            .groups
            .iter()
            .find(|(l, cpu, _)| (*l, *cpu) == (level, first));
        found.map(|(_, _, group)| *group)
    }
}

fn check_counts(header: &Header) -> Result<(), Problem> {
    if !(1..=MAX_CPUS).contains(&header.ncpu) {
        return Err(Problem::value(
            "ncpu",
            header.ncpu,
            format!("1 to {MAX_CPUS} CPUs"),
        ));
    }
    if header.cpus.len() != header.ncpu {
        let expected = format!("as many CPUs as 'ncpu' says, {}", header.ncpu);
        return Err(Problem::value("cpus", header.cpus.len(), expected));
    }
    for (index, cpu) in header.cpus.iter().enumerate() {
        let field = |name: &str| format!("cpus[{index}].{name}");
        if cpu.cpu != index as u64 {
            return Err(Problem::value(
                field("cpu"),
                cpu.cpu,
                format!("CPU {index}"),
            ));
        }
        if cpu.node >= MAX_NODES {
            let expected = format!("a node below {MAX_NODES}");
            return Err(Problem::value(field("node"), cpu.node, expected));
        }
    }
    Ok(())
}

/// Each CPU must be in its own set, and the sets must be those of the list, none of them twice.
fn check_partition(
    field: &str,
    sets: &[CpuMask],
    of_cpu: impl Iterator<Item = CpuMask>,
) -> Result<(), Problem> {
    let mut members = 0;
    for (index, set) in of_cpu.enumerate() {
        members += usize::from(set.contains(CpuId::from_index(index)));
        if members != index + 1 {
            let expected = format!("a mask with CPU {index}");
            return Err(Problem::value(
                format!("cpus[{index}].{field}"),
                "another",
                expected,
            ));
        }
    }
    if sets.iter().map(CpuMask::weight).sum::<usize>() != members {
        let expected = "masks that do not overlap";
        return Err(Problem::value(
            format!("cpus[].{field}"),
            "overlapping masks",
            expected,
        ));
    }
    Ok(())
}

/// From the lowest on, each domain has the CPUs of the one below.
fn check_widening(cpu: usize, domains: &[SchedDomain]) -> Result<(), Problem> {
    for (level, pair) in domains.windows(2).enumerate() {
        if !pair[0].span.is_subset(&pair[1].span) {
            let field = format!("cpus[{cpu}].doms[{}].span", level + 1);
            return Err(Problem::value(
                field,
                "another",
                "all CPUs of the domain below",
            ));
        }
    }
    Ok(())
}

/// The features in force. A word that the recorded kernel did not have is as a stock kernel behaves: a posted
/// patch is off, CLUSTER_SCAN on.
fn features(release: Release, feats: &BTreeMap<String, u8>) -> Result<Features, Problem> {
    let mut features = Features::defaults(release);
    for word in words_of(release) {
        let on = match feats.get(word.name) {
            Some(on) => *on != 0,
            None if word.origin == Origin::Patch => word.default_in(release) == Some(true),
            None => {
                let missing = format!("no {}", word.name);
                return Err(Problem::value(
                    "feats",
                    missing,
                    "every word of the release",
                ));
            }
        };
        features.set(word.feat, on);
    }
    Ok(features)
}

struct Builder {
    ncpu: usize,
    groups: Vec<(u32, CpuId, GroupId)>,
    arena: Vec<SchedGroup>,
}

impl Builder {
    fn topology(&mut self, header: &Header) -> Result<SchedTopology, Problem> {
        let mut cpus = Vec::with_capacity(self.ncpu);
        let mut domains = Vec::with_capacity(self.ncpu);
        for (index, cpu) in header.cpus.iter().enumerate() {
            cpus.push(self.place(header, index, cpu)?);
            let of_cpu = cpu.doms.iter().enumerate();
            let of_cpu = of_cpu.map(|(level, dom)| {
                self.domain(&format!("cpus[{index}].doms[{level}]"), index, dom)
            });
            let of_cpu = of_cpu.collect::<Result<Vec<_>, _>>()?;
            check_widening(index, &of_cpu)?;
            domains.push(of_cpu);
        }
        Ok(SchedTopology {
            llcs: llcs(&cpus, header.llcs.len())?,
            cores: distinct(cpus.iter().map(|place| place.smt)),
            nodes: nodes(&cpus),
            node_distance: Vec::new(),
            smt_active: header.smt_active.0,
            cluster_active: header.cluster_active.0,
            asym_cpucap: header.asym_cpucap.0,
            domains,
            cpus,
            groups: std::mem::take(&mut self.arena),
        })
    }

    fn place(&self, header: &Header, index: usize, from: &Cpu) -> Result<CpuTopo, Problem> {
        let field = |name: &str| format!("cpus[{index}].{name}");
        let own = CpuMask::single(CpuId::from_index(index));
        let span = mask(&field("llc_span"), from.llc_span, self.ncpu)?;
        let llc = header.llcs.iter().position(|llc| llc.id == from.llc);
        let llc = llc.ok_or_else(|| Problem::value(field("llc"), from.llc, "one of 'llcs'"))?;
        Ok(CpuTopo {
            core: CoreId(from.core),
            llc: LlcId::from_index(llc),
            llc_size: from.llc_size,
            share: cpu(&field("share"), from.share, self.ncpu)?,
            node: NodeId(from.node),
            package: from.pkg,
            capacity: from.acap,
            smt: mask(&field("smt"), from.smt, self.ncpu)?,
            // A CPU without an LLC domain stands alone.
            llc_span: if span.is_empty() { own } else { span },
            sd_llc: from.doms.iter().rposition(|dom| dom.llc.0),
            sd_numa: None,
            sd_asym: None,
        })
    }

    fn domain(&mut self, field: &str, cpu: usize, dom: &Domain) -> Result<SchedDomain, Problem> {
        let span = mask(&format!("{field}.span"), dom.span, self.ncpu)?;
        if !span.contains(CpuId::from_index(cpu)) {
            let found = format!("{:#x}", dom.span);
            let expected = format!("a mask with CPU {cpu}");
            return Err(Problem::value(format!("{field}.span"), found, expected));
        }
        if !PCT.contains(&dom.pct) {
            let expected = format!("{} to {}", PCT.start(), PCT.end());
            return Err(Problem::value(format!("{field}.pct"), dom.pct, expected));
        }
        let groups = dom.groups.iter().enumerate();
        let groups = groups
            .map(|(place, group)| self.group(&format!("{field}.groups[{place}]"), dom.lvl, *group));
        Ok(SchedDomain {
            groups: groups.collect::<Result<_, _>>()?,
            name: "",
            level: dom.lvl,
            span,
            span_weight: span.weight() as u32,
            flags: dom.flags,
            imbalance_pct: dom.pct,
            imb_numa_nr: dom.imb_numa_nr,
            // Placement does not ask for the rest.
            min_interval: 0,
            max_interval: 0,
            busy_factor: 0,
            cache_nice_tries: 0,
        })
    }

    fn group(
        &mut self,
        field: &str,
        level: u32,
        (span, flags, weight): (u64, u32, u32),
    ) -> Result<GroupId, Problem> {
        let span = mask(field, span, self.ncpu)?;
        let Some(first) = span.first() else {
            return Err(Problem::value(field, "no CPU", "a group with a CPU"));
        };
        if weight as usize != span.weight() {
            let expected = format!("the weight of its span, {}", span.weight());
            return Err(Problem::value(field, weight, expected));
        }
        let known = |group: &&(u32, CpuId, GroupId)| (group.0, group.1) == (level, first);
        if let Some((_, _, id)) = self.groups.iter().find(known) {
            return Ok(*id);
        }
        let id = GroupId::from_index(self.arena.len());
        self.arena.push(SchedGroup {
            span,
            balance_mask: span,
            weight,
            cores: 0,
            flags,
            capacity: weight * 1024,
            asym_prefer_cpu: first,
        });
        self.groups.push((level, first, id));
        Ok(id)
    }
}

fn distinct(masks: impl Iterator<Item = CpuMask>) -> Vec<CpuMask> {
    let mut masks: Vec<CpuMask> = masks.collect();
    masks.sort_by_key(CpuMask::first);
    masks.dedup();
    masks
}

/// The span of each LLC of the header's list, as its CPUs tell it.
fn llcs(cpus: &[CpuTopo], count: usize) -> Result<Vec<CpuMask>, Problem> {
    let span_of = |llc: usize| {
        let of_llc = cpus.iter().find(|place| place.llc.index() == llc);
        let missing = || Problem::value(format!("llcs[{llc}]"), "no CPU", "an LLC with CPUs");
        of_llc.map(|place| place.llc_span).ok_or_else(missing)
    };
    let spans: Vec<CpuMask> = (0..count).map(span_of).collect::<Result<_, _>>()?;
    for (index, place) in cpus.iter().enumerate() {
        if place.llc_span != spans[place.llc.index()] {
            let field = format!("cpus[{index}].llc_span");
            return Err(Problem::value(
                field,
                "another",
                "the span of its LLC's other CPUs",
            ));
        }
    }
    Ok(spans)
}

fn nodes(places: &[CpuTopo]) -> Vec<CpuMask> {
    let count = places.iter().map(|place| place.node.index() + 1).max();
    let cpus_of = |node: usize| {
        let cpus = places.iter().enumerate();
        let of_node = cpus.filter(|(_, place)| place.node.index() == node);
        of_node.map(|(cpu, _)| CpuId::from_index(cpu)).collect()
    };
    (0..count.unwrap_or(0)).map(cpus_of).collect()
}
