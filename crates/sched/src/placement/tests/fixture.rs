//! Small machines and situations: a recorded call in which all CPUs are busy, to be changed.

use crate::features::{Feat, FeatureSet};
use crate::placement::{
    Decision, Ranks, Recorded, RecordedCall, RecordedMachine, select_task_rq_fair, wf,
};
use crate::rules::{Release, Rules};
use wakelab_machine::domains::{CpuTopo, SchedDomain, SchedGroup, SchedTopology, sd};
use wakelab_machine::ids::{CoreId, CpuId, GroupId, LlcId, NodeId};
use wakelab_machine::{CpuMask, mask::MAX_CPUS};

/// A regular machine, one node to an LLC.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub llcs: usize,
    pub cores: usize,
    pub threads: usize,
    /// Siblings have consecutive numbers, else they are as many apart as there are cores.
    pub consecutive: bool,
    /// Cores in a cluster, 0 for no clusters.
    pub cluster: usize,
}

/// Two LLCs of four cores of two threads, siblings 8 apart: CPUs 0-3,8-11 and 4-7,12-15.
pub const TWO_LLCS: Shape = Shape {
    llcs: 2,
    cores: 4,
    threads: 2,
    consecutive: false,
    cluster: 0,
};

impl Shape {
    pub fn ncpu(&self) -> usize {
        let ncpu = self.llcs * self.cores * self.threads;
        assert!(ncpu <= MAX_CPUS);
        ncpu
    }

    fn core(&self, cpu: usize) -> usize {
        if self.consecutive {
            cpu / self.threads
        } else {
            cpu % (self.llcs * self.cores)
        }
    }

    fn span(&self, same: impl Fn(usize) -> bool) -> CpuMask {
        (0..self.ncpu())
            .filter(|&cpu| same(self.core(cpu)))
            .map(CpuId::from_index)
            .collect()
    }

    /// The machine with domains SMT, CLS, MC and NUMA where they have more than one CPU to a child.
    pub fn topology(&self) -> SchedTopology {
        let mut groups = Vec::new();
        let domains: Vec<Vec<SchedDomain>> = (0..self.ncpu())
            .map(|cpu| self.domains(self.core(cpu), cpu, &mut groups))
            .collect();
        let of = |llc: usize| self.span(|core| core / self.cores == llc);
        let llcs: Vec<CpuMask> = (0..self.llcs).map(of).collect();
        SchedTopology {
            cpus: (0..self.ncpu())
                .map(|cpu| self.place(cpu, &domains))
                .collect(),
            cores: (0..self.llcs * self.cores)
                .map(|own| self.span(|core| core == own))
                .collect(),
            nodes: llcs.clone(),
            llcs,
            node_distance: Vec::new(),
            smt_active: self.threads > 1,
            cluster_active: self.cluster > 0,
            asym_cpucap: false,
            domains,
            groups,
        }
    }

    fn place(&self, cpu: usize, domains: &[Vec<SchedDomain>]) -> CpuTopo {
        let core = self.core(cpu);
        let llc = core / self.cores;
        let width = if self.cluster > 0 {
            self.cluster
        } else {
            self.cores
        };
        let share = core - core % width;
        CpuTopo {
            core: CoreId::from_index(core),
            llc: LlcId::from_index(llc),
            llc_size: (self.cores * self.threads) as u32,
            share: self.span(|other| other == share).first().unwrap(),
            node: NodeId::from_index(llc),
            package: llc as u16,
            capacity: 1024,
            smt: self.span(|other| other == core),
            llc_span: self.span(|other| other / self.cores == llc),
            sd_llc: domains[cpu]
                .iter()
                .rposition(|domain| domain.flags & sd::SHARE_LLC != 0),
            sd_numa: None,
            sd_asym: None,
        }
    }

    fn domains(&self, core: usize, cpu: usize, arena: &mut Vec<SchedGroup>) -> Vec<SchedDomain> {
        let common = sd::BALANCE_NEWIDLE | sd::BALANCE_EXEC | sd::BALANCE_FORK | sd::WAKE_AFFINE;
        let llc = common | sd::SHARE_LLC;
        let smt = llc | sd::SHARE_CPUCAPACITY;
        let cluster = llc | sd::CLUSTER;
        // Cores to a domain of each level, its flags, and its imbalance_pct.
        let levels = [
            ("SMT", 1, smt, 110),
            ("CLS", self.cluster, cluster, 117),
            ("MC", self.cores, llc, 117),
            ("NUMA", self.cores * self.llcs, common | sd::NUMA, 117),
        ];
        let mut child = (CpuMask::single(CpuId::from_index(cpu)), 0);
        let mut domains = Vec::new();
        for (level, (name, cores, flags, pct)) in levels.into_iter().enumerate() {
            let width = cores.max(1);
            let span = self.span(|other| other / width == core / width);
            if cores == 0 || span.weight() == child.0.weight() {
                continue;
            }
            domains.push(SchedDomain {
                name,
                level: level as u32,
                span,
                span_weight: span.weight() as u32,
                flags,
                imbalance_pct: pct,
                min_interval: 0,
                max_interval: 0,
                busy_factor: 0,
                cache_nice_tries: 0,
                imb_numa_nr: u32::from(name == "NUMA") * (self.cores as u32 / 4),
                groups: ring(
                    &span,
                    child,
                    cpu,
                    |member| self.child(domains.last(), member),
                    arena,
                ),
            });
            child = (span, flags);
        }
        domains
    }

    /// The span of another CPU's domain of the same level as `like`, or itself.
    fn child(&self, like: Option<&SchedDomain>, cpu: CpuId) -> CpuMask {
        let width = match like.map(|domain| domain.name) {
            None => return CpuMask::single(cpu),
            Some("SMT") => 1,
            Some("CLS") => self.cluster,
            Some(_) => self.cores,
        };
        let core = self.core(cpu.index());
        self.span(|other| other / width == core / width)
    }

    /// A situation on this machine under the rules of a release: CPU 0 wakes a task that was on CPU
    /// `prev`; all CPUs run one task.
    pub fn situation(&self, release: Release, prev: usize) -> Situation {
        let topo = self.topology();
        let (ncpu, nllc) = (self.ncpu(), self.llcs);
        let call = RecordedCall {
            prev_cpu: CpuId::from_index(prev),
            recent_used_cpu: CpuId::from_index(prev),
            wake_flags: wf::TTWU,
            in_task: true,
            allowed: CpuMask::first_n(ncpu),
            nr_running: vec![1; ncpu],
            nr_delayed: vec![0; ncpu],
            load: vec![1024; ncpu],
            load_without: vec![1024; ncpu],
            runnable_without: vec![1024; ncpu],
            util_without: vec![1024; ncpu],
            util_est: vec![1024; ncpu],
            capacity: vec![1024; ncpu],
            has_idle_cores: vec![false; nllc],
            nr_idle_scan: vec![ncpu as i32; nllc],
            task_h_load: 100,
            ..RecordedCall::default()
        };
        let machine = RecordedMachine {
            ranks: Ranks::of(&topo),
            topo,
            rules: Rules::of(release),
            features: FeatureSet::defaults(release).features,
            almost_idle_load: 47,
        };
        Situation {
            machine,
            call,
            recent_after: CpuId(0),
        }
    }
}

/// The groups of a domain in ring order from the CPU's own; equal groups are one.
fn ring(
    span: &CpuMask,
    child: (CpuMask, u32),
    cpu: usize,
    child_of: impl Fn(CpuId) -> CpuMask,
    arena: &mut Vec<SchedGroup>,
) -> Vec<GroupId> {
    let mut left = *span;
    let mut ids = Vec::new();
    for member in span.iter_wrap(cpu) {
        if !left.contains(member) {
            continue;
        }
        let group = child_of(member);
        left = left.and_not(&group);
        let known = arena
            .iter()
            .position(|other| other.span == group && other.flags == child.1);
        let id = known.unwrap_or_else(|| {
            let weight = group.weight() as u32;
            arena.push(SchedGroup {
                span: group,
                balance_mask: group,
                weight,
                cores: 0,
                flags: child.1,
                capacity: 1024 * weight,
                asym_prefer_cpu: member,
            });
            arena.len() - 1
        });
        ids.push(GroupId::from_index(id));
    }
    ids
}

/// A machine and a call on it.
pub struct Situation {
    pub machine: RecordedMachine,
    pub call: RecordedCall,
    /// `recent_used_cpu` as the last decision left it.
    pub recent_after: CpuId,
}

impl Situation {
    /// Turns a feature on or off.
    pub fn feature(mut self, feat: Feat, on: bool) -> Situation {
        self.machine.features.set(feat, on);
        self
    }

    /// Makes CPUs idle.
    pub fn idle(mut self, cpus: &[usize]) -> Situation {
        for &cpu in cpus {
            self.call.idle.set(CpuId::from_index(cpu));
            self.call.curr_idle.set(CpuId::from_index(cpu));
            self.call.nr_running[cpu] = 0;
        }
        self
    }

    /// Changes the call.
    pub fn call(mut self, change: impl FnOnce(&mut RecordedCall)) -> Situation {
        change(&mut self.call);
        self
    }

    /// The view on it.
    pub fn view(&self) -> Recorded<'_> {
        Recorded::new(&self.machine, &self.call)
    }

    /// The decision.
    pub fn decide(&mut self) -> Decision {
        let mut view = Recorded::new(&self.machine, &self.call);
        let decision = select_task_rq_fair(&mut view, self.call.prev_cpu, self.call.wake_flags);
        self.recent_after = view.recent_used_cpu;
        decision
    }
}
