//! Load balancing: newly idle, periodic, NOHZ idle and active.
//!
//! One pass over one domain (`load_balance`) goes: may this CPU balance at all ([`should`]); what do
//! the groups look like ([`group`]); which is busiest and by how much ([`busiest`]); which of its
//! CPUs ([`queue`]); which tasks of that may move ([`migrate`]). The steps that decide are functions
//! of what they look at, so that recorded decisions can drive them.
//!
//! A pass happens at one instant: what it costs in time is in [`Touches`](crate::Touches), for the
//! engine to price.

mod active;
pub mod busiest;
pub mod by_load;
mod capacity;
pub mod cost;
pub mod env;
mod force_idle;
pub mod group;
pub mod migrate;
mod newidle;
mod nohz;
pub mod pass;
mod periodic;
pub mod queue;
pub mod scan;
pub mod should;
pub mod stats;
mod tables;

pub use env::{CpuIdle, LbEnv, MigrationType};
pub use nohz::kick;
pub use periodic::TickBalance;
pub use stats::BalanceStats;

use crate::ids::TaskId;
use crate::rules::Tunables;
use tables::Tables;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::{CpuId, Ns};

/// What balancing keeps of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuBalance {
    /// `nohz_flags`: what this CPU was kicked for, see [`kick`].
    pub nohz_flags: u8,
    /// `sd_llc->nohz_idle`: this CPU is not in its LLC's `nr_busy_cpus`.
    pub llc_idle: bool,
}

/// What load balancing keeps besides the kernel's own state: tables that make a pass quick, active
/// balances that wait for their stopper, and statistics.
#[derive(Clone, Debug)]
pub struct Balance {
    /// CPUs on which [`Sched::active_load_balance`](crate::Sched::active_load_balance) must run, in
    /// the order of the requests. The engine takes them off when it has scheduled the stopper.
    pub pending_active: Vec<CpuId>,
    /// What the passes did.
    pub stats: BalanceStats,
    pub(crate) tables: std::sync::Arc<Tables>,
    pub(crate) cpus: Vec<CpuBalance>,
    /// CPUs to which the last call of an entry point brought tasks, or that found on the way that they
    /// must reschedule, in order; a CPU may be there more than once. Where `need_resched` is set the engine has to see to it that the CPU switches.
    pub arrivals: Vec<CpuId>,
    /// Tasks detached in the pass under way.
    pub(crate) detached: Vec<TaskId>,
    /// `max_load_balance_interval`, jiffies.
    pub(crate) max_interval: u64,
    /// Ticks a second.
    pub(crate) hz: u64,
    /// `INITIAL_JIFFIES`.
    first_jiffy: u64,
    /// The jiffy last asked for and when it began: most calls come within one, and dividing is slow.
    jiffy: (u64, Ns),
    /// How long the softirq under way has taken so far.
    pub(crate) elapsed: Ns,
    /// Until when some CPU balances a domain with SD_SERIALIZE.
    pub(crate) serialized_until: Ns,
    /// State of the dice of NI_RANDOM.
    pub(crate) dice: u64,
}

impl Balance {
    /// The state at boot, for a machine and its tick.
    pub fn new(topo: &SchedTopology, tun: &Tunables) -> Balance {
        let ncpu = topo.cpus.len();
        let hz = 1_000_000_000 / tun.tick.0.max(1);
        let levels = topo.domains.iter().map(Vec::len).max().unwrap_or(0);
        Balance {
            pending_active: Vec::with_capacity(ncpu),
            stats: BalanceStats::new(levels),
            tables: std::sync::Arc::new(Tables::new(topo)),
            cpus: vec![CpuBalance::default(); ncpu],
            arrivals: Vec::with_capacity(tun.nr_migrate as usize),
            detached: Vec::with_capacity(tun.nr_migrate as usize),
            max_interval: (hz * ncpu as u64 / 10).max(1),
            hz,
            first_jiffy: (1 << 32) - 300 * hz,
            jiffy: ((1 << 32) - 300 * hz, Ns::ZERO),
            elapsed: Ns::ZERO,
            serialized_until: Ns::ZERO,
            dice: 0,
        }
    }

    /// `msecs_to_jiffies`: rounded up.
    #[inline]
    pub(crate) fn msecs_to_jiffies(&self, ms: u64) -> u64 {
        (ms * self.hz).div_ceil(1000)
    }
}

impl crate::Sched {
    /// `jiffies` at this time; as [`Sched::jiffies`](crate::Sched::jiffies), for all CPUs at once.
    #[inline(always)]
    pub(crate) fn jiffies_at(&mut self, now: Ns) -> u64 {
        let tick = self.tun.tick.0.max(1);
        let (jiffy, start) = self.lb.jiffy;
        // A time before the start wraps and is far.
        if now.0.wrapping_sub(start.0) < tick {
            return jiffy;
        }
        let ticks = now.0 / tick;
        self.lb.jiffy = (self.lb.first_jiffy + ticks, Ns(ticks * tick));
        self.lb.jiffy.0
    }

    /// `is_core_idle()`: the CPU's SMT siblings are idle. Says nothing of the CPU itself.
    pub(crate) fn lb_is_core_idle(&self, cpu: CpuId) -> bool {
        self.lb.tables.siblings[cpu.index()]
            .iter()
            .all(|&other| self.rq(other).is_idle())
    }
}
