//! Accounting of forced idle, and the tick that ends it.

use crate::ids::{Cookie, TaskId};
use crate::state::{Pick, Sched};
use crate::{Feat, Line};
use wakelab_machine::{CpuId, Ns};

/// How many tasks at least share the core while a CPU is forced idle
/// (`MIN_NR_TASKS_DURING_FORCEIDLE`).
const SHARERS: u64 = 2;

impl Sched {
    /// `__sched_core_account_forceidle`: charges what ran on the core with the time for which it kept
    /// siblings idle. The leader's clock must be up to date.
    pub(super) fn account_forceidle(&mut self, cpu: CpuId) {
        let leader = self.core.rqs[cpu.index()].leader;
        let now = self.rqs[leader.index()].clock;
        let core = &mut self.core.rqs[leader.index()];
        let passed = now.wrapping_sub(core.core_forceidle_start) as i64;
        if core.core_forceidle_start == 0 || passed <= 0 {
            return;
        }
        core.core_forceidle_start = now;
        let passed = passed as u64;
        let (count, occupied) = (core.core_forceidle_count, core.core_forceidle_occupation);
        // Those that ran share what all that were idle lost.
        let charge = passed * u64::from(count) / u64::from(occupied.max(1));
        let running = core.core_cookie;
        for n in 0..self.core.rqs[leader.index()].members.len() {
            let member = self.core.rqs[leader.index()].members[n];
            self.note_forceidle(member, running, passed);
            if let Some(p) = self.running_or_picked(member) {
                self.tasks[p.index()].core_forceidle_sum += charge;
            }
        }
    }

    fn running_or_picked(&self, cpu: CpuId) -> Option<TaskId> {
        match self.core.rqs[cpu.index()].core_pick {
            Some(Pick::Task(p)) => Some(p),
            Some(_) => None,
            None => Some(self.rqs[cpu.index()].curr).filter(|p| p.is_some()),
        }
    }

    fn note_forceidle(&mut self, cpu: CpuId, running: Cookie, passed: u64) {
        let rq = &mut self.core.rqs[cpu.index()];
        if let Some(blocked) = rq.blocked {
            rq.forceidle_sum += passed;
            *self.core.pairs.entry((running, blocked)).or_default() += passed;
        }
    }

    /// FORCE_IDLE_LB: newly idle CPUs look for tasks only while the root domain has an overloaded CPU,
    /// and one that is forced idle has a task to spare.
    pub(super) fn note_overload_of_forceidle(&mut self) {
        if self.feat.has(Feat::FORCE_IDLE_LB) && !self.rd.overload {
            self.rd.overload = true;
            self.touch.write(Line::RdOverload);
        }
    }

    /// `sched_core_tick`: accounts forced idle so far. Does nothing if the core has none.
    #[inline]
    pub fn sched_core_tick(&mut self, cpu: CpuId) {
        if self.core.enabled && self.core.of(cpu).core_forceidle_count != 0 {
            let leader = self.core.rqs[cpu.index()].leader;
            self.update_rq_clock(leader, Ns(self.now));
            self.account_forceidle(cpu);
        }
    }

    /// Accounts forced idle of all cores up to now.
    pub fn account_forceidle_now(&mut self, now: Ns) {
        for index in 0..self.core.rqs.len() {
            let cpu = CpuId::from_index(index);
            if self.core.rqs[index].core_forceidle_count != 0 {
                self.update_rq_clock(cpu, now);
                self.account_forceidle(cpu);
            }
        }
    }

    /// Forgets the forced idle so far.
    pub fn reset_forceidle(&mut self, now: Ns) {
        self.account_forceidle_now(now);
        self.core.pairs.clear();
        self.core.stolen = 0;
        self.core.pushed = 0;
        self.core.pulled = 0;
        self.core.moves = Default::default();
        self.core.rqs.iter_mut().for_each(|rq| rq.forceidle_sum = 0);
        self.tasks
            .iter_mut()
            .for_each(|task| task.core_forceidle_sum = 0);
    }

    /// Whether a task may run on an idle CPU whose core is idle or has its cookie.
    pub fn better_cpu_free(&self, p: TaskId) -> bool {
        let mut idle = self.rqs.iter().filter(|rq| rq.is_idle()).map(|rq| rq.cpu);
        idle.any(|cpu| self.tasks[p.index()].cpus.contains(cpu) && self.core_cookie_match(cpu, p))
    }

    /// `task_tick_core`: a task that runs alone gives way once it has had the share of its slice that
    /// is its own beside a sibling that is forced idle.
    #[inline(never)]
    pub(crate) fn task_tick_core(&mut self, cpu: CpuId, curr: TaskId) {
        let root = &self.cfs[cpu.index()];
        if self.core.of(cpu).core_forceidle_count == 0 || root.nr_running != 1 {
            return;
        }
        let se_id = self.tasks[curr.index()].se;
        let slice = if self.rules.eevdf {
            self.se[se_id.index()].slice
        } else {
            self.sched_slice(self.se[se_id.index()].cfs_rq, se_id)
        };
        let se = &self.se[se_id.index()];
        if (se.sum_exec_runtime - se.prev_sum_exec_runtime) * SHARERS > slice {
            self.rqs[cpu.index()].need_resched = true;
        }
    }
}
