//! The CPUs of each last-level cache by rank, so that an idle search is bit operations on a few
//! words.
//!
//! The rank of a CPU is its place among the CPUs of its LLC in ascending order, so a rotation of
//! ranks visits CPUs in the order of the kernel's `for_each_cpu_wrap()`.

use wakelab_machine::domains::{SchedTopology, sd};
use wakelab_machine::{CpuId, CpuMask, LlcId};

/// Ranks of all CPUs, and the shape of their LLCs. Read-only once built.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    rank: Vec<u16>,
    llcs: Vec<LlcRanks>,
}

/// One LLC by rank.
#[derive(Clone, Debug, Default)]
pub struct LlcRanks {
    /// Its CPUs, by rank.
    pub cpus: Vec<CpuId>,
    /// How many words hold its ranks.
    pub words: usize,
    /// SMT siblings of each rank, itself included, as ranks.
    pub smt: Vec<CpuMask>,
    /// Cores as ranks, in the order of their lowest rank.
    pub cores: Vec<CpuMask>,
    /// The ranks of the cluster of each rank; empty without clusters.
    pub cluster: Vec<CpuMask>,
    /// The smallest distance on the ring of ranks between two siblings: a run of at most so many
    /// ranks holds no two of one core. The LLC's size if no core has two CPUs.
    pub core_gap: usize,
}

impl Ranks {
    /// The ranks of a topology.
    pub fn of(topo: &SchedTopology) -> Ranks {
        let mut rank = vec![0; topo.cpus.len()];
        for span in &topo.llcs {
            for (index, cpu) in span.iter().enumerate() {
                rank[cpu.index()] = index as u16;
            }
        }
        let llcs = topo
            .llcs
            .iter()
            .map(|span| LlcRanks::of(topo, &rank, span))
            .collect();
        Ranks { rank, llcs }
    }

    /// The rank of a CPU.
    #[inline(always)]
    pub fn rank(&self, cpu: CpuId) -> usize {
        usize::from(self.rank[cpu.index()])
    }

    /// The rank of a CPU in the form in which [`CpuMask`] takes it.
    #[inline(always)]
    pub fn bit(&self, cpu: CpuId) -> CpuId {
        CpuId(self.rank[cpu.index()])
    }

    /// An LLC.
    #[inline(always)]
    pub fn llc(&self, llc: LlcId) -> &LlcRanks {
        &self.llcs[llc.index()]
    }
}

impl LlcRanks {
    fn of(topo: &SchedTopology, rank: &[u16], span: &CpuMask) -> LlcRanks {
        let cpus: Vec<CpuId> = span.iter().collect();
        let to_ranks = |mask: &CpuMask| -> CpuMask {
            mask.and(span)
                .iter()
                .map(|cpu| CpuId(rank[cpu.index()]))
                .collect()
        };
        let smt: Vec<CpuMask> = cpus
            .iter()
            .map(|&cpu| to_ranks(&topo.cpus[cpu.index()].smt))
            .collect();
        let cores = (0..cpus.len())
            .filter(|&index| smt[index].first().map(CpuId::index) == Some(index))
            .map(|index| smt[index])
            .collect();
        let cluster = if topo.cluster_active {
            cpus.iter()
                .filter_map(|&cpu| cluster_of(topo, cpu).map(|mask| to_ranks(&mask)))
                .collect()
        } else {
            Vec::new()
        };
        let cluster = if cluster.len() == cpus.len() {
            cluster
        } else {
            Vec::new()
        };
        let core_gap = core_gap(&smt);
        LlcRanks {
            words: cpus.len().div_ceil(64),
            cpus,
            smt,
            cores,
            cluster,
            core_gap,
        }
    }

    /// How many CPUs it has.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether it has none, which no LLC is.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }
}

/// The span of the CPU's own group in its LLC domain, if that group is a cluster.
fn cluster_of(topo: &SchedTopology, cpu: CpuId) -> Option<CpuMask> {
    let llc = topo.cpus[cpu.index()].sd_llc?;
    let own = *topo.domains[cpu.index()][llc].groups.first()?;
    let group = &topo.groups[own.index()];
    (group.flags & sd::CLUSTER != 0).then_some(group.span)
}

fn core_gap(smt: &[CpuMask]) -> usize {
    let ring = smt.len();
    let gap = |rank: usize| {
        smt[rank]
            .iter()
            .filter(|sibling| sibling.index() != rank)
            .map(|sibling| (sibling.index() + ring - rank) % ring)
            .min()
            .unwrap_or(ring)
    };
    (0..ring).map(gap).min().unwrap_or(ring)
}
