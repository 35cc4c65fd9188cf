//! Whether this CPU is the one that balances for its group (`should_we_balance`).

use super::env::{CpuIdle, LbEnv};
use crate::Sched;
use wakelab_machine::CpuId;

/// What [`should_we_balance`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `group_balance_mask` of the local group, ascending.
    pub balance_cpus: &'a [CpuId],
    /// `rq->nr_running` of the destination.
    pub dst_nr_running: u32,
    /// `rq->ttwu_pending` of the destination.
    pub dst_ttwu_pending: bool,
    /// Work that has arrived does not end a newly idle pass (before 6.0).
    pub always_newly_idle: bool,
}

/// Whether the destination CPU balances: newly idle, unless work has arrived; else the first idle
/// CPU of its group, or if there is none the first CPU of it. With `whole_cores` (6.6 on) a CPU
/// whose SMT siblings are busy comes after all CPUs of idle cores.
pub fn should_we_balance(
    env: &LbEnv,
    asked: &Asked<'_>,
    whole_cores: bool,
    is_idle: impl Fn(CpuId) -> bool,
    busy_sibling: impl Fn(CpuId) -> bool,
) -> bool {
    if env.trimmed && !env.cpus.contains(env.dst_cpu) {
        return false;
    }
    if env.idle == CpuIdle::NewlyIdle {
        return asked.always_newly_idle || asked.dst_nr_running == 0 && !asked.dst_ttwu_pending;
    }
    let mut idle_smt = None;
    for &cpu in asked.balance_cpus {
        let out = env.trimmed && !env.cpus.contains(cpu);
        if out || !is_idle(cpu) {
            continue;
        }
        if whole_cores && !env.is_smt_level() && busy_sibling(cpu) {
            idle_smt = idle_smt.or(Some(cpu));
            continue;
        }
        return cpu == env.dst_cpu;
    }
    match idle_smt {
        Some(cpu) => cpu == env.dst_cpu,
        None => asked.balance_cpus.first() == Some(&env.dst_cpu),
    }
}

impl Sched {
    pub(crate) fn should_we_balance(&self, env: &LbEnv) -> bool {
        let dst = self.rq(env.dst_cpu);
        let asked = Asked {
            balance_cpus: &self.lb.tables.groups[env.dst_group.index()].balance_cpus,
            dst_nr_running: dst.nr_running,
            dst_ttwu_pending: dst.ttwu_pending,
            always_newly_idle: !self.rules.newidle_bails_out,
        };
        should_we_balance(
            env,
            &asked,
            self.rules.smt_balance,
            |cpu| self.rq(cpu).is_idle(),
            |cpu| !self.lb_is_core_idle(cpu),
        )
    }
}
