//! A recording's header as the machine that its decisions were made on.

use serde_json::Value;
use wakelab_machine::CpuMask;
use wakelab_machine::domains::{CpuTopo, SchedDomain, SchedGroup, SchedTopology};
use wakelab_machine::ids::{CoreId, CpuId, GroupId, LlcId, NodeId};
use wakelab_sched::features::words_of;
use wakelab_sched::placement::{Ranks, RecordedMachine};
use wakelab_sched::{FeatureSet, Release, Rules};

/// A recording: its machine, and what finds a sched group by level and first CPU.
pub struct Header {
    pub machine: RecordedMachine,
    groups: Vec<(u32, CpuId, GroupId)>,
}

impl Header {
    /// Reads the header line.
    pub fn parse(line: &Value) -> Header {
        let release = Release::V6_12;
        let mut builder = Builder {
            groups: Vec::new(),
            arena: Vec::new(),
        };
        let topo = builder.topology(line);
        let mut set = FeatureSet::defaults(release);
        for word in words_of(release) {
            let on = number(&line["feats"][word.name]) != 0;
            set.features.set(word.feat, on);
        }
        let machine = RecordedMachine {
            ranks: Ranks::of(&topo),
            topo,
            rules: Rules::of(release),
            features: set.features,
            almost_idle_load: number(&line["load_avg_max"]) / 1000,
        };
        Header {
            machine,
            groups: builder.groups,
        }
    }

    /// The group of a domain level that starts with this CPU.
    pub fn group(&self, level: u32, first: CpuId) -> GroupId {
        let found = self
            .groups
            .iter()
            .find(|(l, cpu, _)| (*l, *cpu) == (level, first));
        found
            .unwrap_or_else(|| panic!("no group of level {level} starts with CPU {first}"))
            .2
    }
}

/// A number of the recording.
pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("'{value}' is not a number"))
}

/// A mask of the recording.
pub fn mask(value: &Value) -> CpuMask {
    CpuMask::from_u64(number(value))
}

/// A list of the recording.
pub fn list(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("'{value}' is not a list"))
}

struct Builder {
    groups: Vec<(u32, CpuId, GroupId)>,
    arena: Vec<SchedGroup>,
}

impl Builder {
    fn topology(&mut self, header: &Value) -> SchedTopology {
        let cpus = list(&header["cpus"]);
        let domains: Vec<Vec<SchedDomain>> = cpus
            .iter()
            .map(|cpu| {
                list(&cpu["doms"])
                    .iter()
                    .map(|dom| self.domain(dom))
                    .collect()
            })
            .collect();
        let places: Vec<CpuTopo> = cpus.iter().map(|cpu| place(header, cpu)).collect();
        let distinct = |of: &dyn Fn(&CpuTopo) -> CpuMask| {
            let mut masks: Vec<CpuMask> = places.iter().map(of).collect();
            masks.sort_by_key(|mask| mask.first());
            masks.dedup();
            masks
        };
        SchedTopology {
            llcs: distinct(&|place| place.llc_span),
            cores: distinct(&|place| place.smt),
            nodes: nodes(&places),
            node_distance: Vec::new(),
            smt_active: number(&header["smt_active"]) != 0,
            cluster_active: number(&header["cluster_active"]) != 0,
            asym_cpucap: number(&header["asym_cpucap"]) != 0,
            domains,
            cpus: places,
            groups: std::mem::take(&mut self.arena),
        }
    }

    fn domain(&mut self, dom: &Value) -> SchedDomain {
        let level = number(&dom["lvl"]) as u32;
        let groups = list(&dom["groups"])
            .iter()
            .map(|group| self.group(level, group))
            .collect();
        let span = mask(&dom["span"]);
        SchedDomain {
            name: "",
            level,
            span,
            span_weight: span.weight() as u32,
            flags: number(&dom["flags"]) as u32,
            imbalance_pct: number(&dom["pct"]) as u32,
            imb_numa_nr: number(&dom["imb_numa_nr"]) as u32,
            groups,
            // Placement does not ask for the rest.
            min_interval: 0,
            max_interval: 0,
            busy_factor: 0,
            cache_nice_tries: 0,
        }
    }

    fn group(&mut self, level: u32, group: &Value) -> GroupId {
        let span = mask(&group[0]);
        let first = span.first().expect("a group has a CPU");
        if let Some((_, _, id)) = self
            .groups
            .iter()
            .find(|(l, cpu, _)| (*l, *cpu) == (level, first))
        {
            return *id;
        }
        let id = GroupId::from_index(self.arena.len());
        self.arena.push(SchedGroup {
            span,
            balance_mask: span,
            weight: number(&group[2]) as u32,
            cores: 0,
            flags: number(&group[1]) as u32,
            capacity: 1024 * number(&group[2]) as u32,
            asym_prefer_cpu: first,
        });
        self.groups.push((level, first, id));
        id
    }
}

fn place(header: &Value, cpu: &Value) -> CpuTopo {
    let own = CpuMask::single(CpuId(number(&cpu["cpu"]) as u16));
    let span = mask(&cpu["llc_span"]);
    let llc = number(&cpu["llc"]);
    let llcs = list(&header["llcs"]);
    let index = llcs.iter().position(|entry| number(&entry["id"]) == llc);
    CpuTopo {
        core: CoreId(number(&cpu["core"]) as u16),
        llc: LlcId::from_index(index.expect("the LLC is in the list")),
        llc_size: number(&cpu["llc_size"]) as u32,
        share: CpuId(number(&cpu["share"]) as u16),
        node: NodeId(number(&cpu["node"]) as u16),
        package: number(&cpu["pkg"]) as u16,
        capacity: number(&cpu["acap"]) as u32,
        smt: mask(&cpu["smt"]),
        // A CPU without an LLC domain stands alone.
        llc_span: if span.is_empty() { own } else { span },
        sd_llc: list(&cpu["doms"])
            .iter()
            .rposition(|dom| number(&dom["llc"]) != 0),
        sd_numa: None,
        sd_asym: None,
    }
}

fn nodes(places: &[CpuTopo]) -> Vec<CpuMask> {
    let count = places
        .iter()
        .map(|place| place.node.index() + 1)
        .max()
        .unwrap_or(0);
    let cpus_of = |node: usize| {
        let of_node = places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.node.index() == node);
        of_node.map(|(cpu, _)| CpuId::from_index(cpu)).collect()
    };
    (0..count).map(cpus_of).collect()
}
