//! What balancing did, in numbers.

use super::env::CpuIdle;

/// Passes over the domains of one level, by one kind of balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassStats {
    /// Passes begun (`lb_count`).
    pub calls: u64,
    /// Passes that another CPU of the group shall do (`should_we_balance` said no).
    pub not_ours: u64,
    /// Passes that found nothing to move (`lb_balanced`), those of `not_ours` included.
    pub balanced: u64,
    /// Passes that found an imbalance and moved nothing (`lb_failed`).
    pub failed: u64,
    /// Tasks moved (`lb_gained`).
    pub pulled: u64,
    /// Of these, tasks that were forced idle (FORCE_IDLE_LB).
    pub force_idle_pulled: u64,
    /// Active balances asked for.
    pub active: u64,
}

/// All statistics of balancing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalanceStats {
    /// By level (index of the domain, lowest first) and [`CpuIdle`]: busy, idle, newly idle.
    pub passes: Vec<[PassStats; 3]>,
    /// CPUs that became idle and asked.
    pub newidle_calls: u64,
    /// Of those, turned away because no CPU has more than one task, or because the CPU's average
    /// idle time is shorter than a pass takes.
    pub newidle_gated: u64,
    /// Balances done by a kicked idle CPU for all idle CPUs.
    pub nohz_runs: u64,
    /// Kicks sent.
    pub nohz_kicks: u64,
    /// Stoppers run for an active balance (`alb_count`).
    pub active_runs: u64,
    /// Tasks that they moved (`alb_pushed`).
    pub active_pushed: u64,
}

impl BalanceStats {
    pub(crate) fn new(levels: usize) -> Self {
        BalanceStats {
            passes: vec![Default::default(); levels],
            ..Self::default()
        }
    }

    pub(crate) fn pass(&mut self, level: usize, idle: CpuIdle) -> &mut PassStats {
        &mut self.passes[level][idle as usize]
    }

    /// Tasks moved by one kind of balancing, over all levels.
    pub fn pulled(&self, idle: CpuIdle) -> u64 {
        self.passes
            .iter()
            .map(|level| level[idle as usize].pulled)
            .sum()
    }
}
