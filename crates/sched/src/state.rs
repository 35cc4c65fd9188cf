//! The scheduler's state: everything that the kernel's fair class keeps, in flat tables.

mod core_sched;
mod entity;
mod group;
mod rq;
mod task;

pub use core_sched::{Begun, Cookies, CoreRq, CoreSched, MoveCounts, Moves, Pick};
pub use entity::{SchedAvg, SchedEntity, TreeNode, UtilEst};
pub use group::{DomainState, GroupCapacity, LlcShared, Nohz, RootDomain, TaskGroup};
pub use rq::{CfsRq, Removed, Rq, Timeline, TreeKey};
pub use task::{Mover, Policy, Task};

use crate::balance::Balance;
use crate::fair::Jiffy;
use crate::features::Features;
use crate::ids::{CfsId, SeId, TgId};
use crate::placement::Ranks;
use crate::rules::{Rules, Tunables};
use crate::touch::Touches;
use std::sync::Arc;
use wakelab_machine::CpuId;
use wakelab_machine::domains::SchedTopology;

/// The whole scheduler.
///
/// Time enters only through [`Rq::clock`], which the caller moves with `update_rq_clock` before any
/// operation on a run queue, as the kernel does.
#[derive(Clone, Debug)]
pub struct Sched {
    /// The machine as the scheduler sees it.
    pub topo: Arc<SchedTopology>,
    /// CPUs of each LLC by rank, for idle searches: [`Ranks::of`] the topology.
    pub ranks: Arc<Ranks>,
    /// The rules of the release.
    pub rules: Rules,
    /// `sched_features`.
    pub feat: Features,
    /// Tunables.
    pub tun: Tunables,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Entities of tasks and of groups.
    pub se: Vec<SchedEntity>,
    /// Fair run queues, by [`CfsId`].
    pub cfs: Vec<CfsRq>,
    /// Task groups; the first is the root.
    pub tgs: Vec<TaskGroup>,
    /// Run queues, by CPU.
    pub rqs: Vec<Rq>,
    /// What the CPUs of an LLC share, by LLC.
    pub llc: Vec<LlcShared>,
    /// Capacity records, by sched group.
    pub sgc: Vec<GroupCapacity>,
    /// State of each CPU's domains, lowest first.
    pub sd: Vec<Vec<DomainState>>,
    /// The root domain.
    pub rd: RootDomain,
    /// State of NOHZ idle balancing.
    pub nohz: Nohz,
    /// What load balancing keeps besides: tables, pending active balances, statistics.
    pub lb: Balance,
    /// Core scheduling.
    pub core: CoreSched,
    /// The latest time that any run queue's clock was told, ns (`sched_clock`).
    pub now: u64,
    /// The jiffy that some run queue's clock was last told.
    pub(crate) jiffy: Jiffy,
    /// Shared lines touched by the operation under way.
    pub touch: Touches,
}

impl Sched {
    /// Number of CPUs.
    #[inline(always)]
    pub fn ncpu(&self) -> usize {
        self.rqs.len()
    }

    /// The run queue of a CPU (`cpu_rq`).
    #[inline(always)]
    pub fn rq(&self, cpu: CpuId) -> &Rq {
        &self.rqs[cpu.index()]
    }

    /// The run queue of a CPU, to change.
    #[inline(always)]
    pub fn rq_mut(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.rqs[cpu.index()]
    }

    /// A group's fair run queue on a CPU (`tg->cfs_rq[cpu]`).
    #[inline(always)]
    pub fn cfs_of(&self, tg: TgId, cpu: CpuId) -> CfsId {
        CfsId::from_index(tg.index() * self.rqs.len() + cpu.index())
    }

    /// The root fair run queue of a CPU (`rq->cfs`).
    #[inline(always)]
    pub fn root_cfs(&self, cpu: CpuId) -> CfsId {
        CfsId::from_index(cpu.index())
    }

    /// A group's entity on a CPU (`tg->se[cpu]`), none for the root group.
    #[inline(always)]
    pub fn group_se(&self, tg: TgId, cpu: CpuId) -> SeId {
        let first = self.tgs[tg.index()].first_se;
        if first.is_none() {
            SeId::NONE
        } else {
            SeId(first.0 + u32::from(cpu.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// What is read at every turn begins a cache line, and what is read together shares one.
    #[test]
    fn hot_fields_are_in_few_cache_lines() {
        let line = |offset: usize| offset / 64;
        assert_eq!(size_of::<SchedAvg>(), 64);
        assert_eq!(line(offset_of!(SchedEntity, weight)), 1);
        assert_eq!(line(offset_of!(SchedEntity, sched_delayed)), 1);
        assert_eq!(line(offset_of!(CfsRq, weight)), 1);
        assert_eq!(line(offset_of!(CfsRq, on_list)), 1);
        assert_eq!(
            line(offset_of!(CfsRq, removed) + size_of::<Removed>() - 1),
            2
        );
        assert_eq!(line(offset_of!(Rq, cpu_capacity)), 0);
        assert_eq!(line(offset_of!(Rq, llc_rank)), 1);
        assert_eq!(line(offset_of!(Task, nr_migrations)), 0);
    }
}
