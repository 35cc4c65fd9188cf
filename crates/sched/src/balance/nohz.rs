//! Idle CPUs without a tick, and the balancing that others do for them.

use super::env::CpuIdle;
use crate::{Line, Sched, Touches};
use wakelab_machine::domains::sd;
use wakelab_machine::{CpuId, Ns};

/// What an idle CPU is kicked for (`NOHZ_*_KICK`, numbered as the kernel does).
pub mod kick {
    /// Balance the domains of all idle CPUs.
    pub const BALANCE: u8 = 1 << 0;
    /// Update their blocked load.
    pub const STATS: u8 = 1 << 1;
    /// Update blocked load before entering idle (the CPU tells itself).
    pub const NEWILB: u8 = 1 << 2;
    /// Find when the next balance is due.
    pub const NEXT: u8 = 1 << 3;
    /// All that another CPU may kick for (`NOHZ_KICK_MASK`).
    pub const MASK: u8 = BALANCE | STATS | NEXT;
}

/// `LOAD_AVG_PERIOD`, ms.
const LOAD_AVG_PERIOD: u64 = 32;

impl Sched {
    /// A CPU stops its tick to be idle: it joins those that others balance for (kernel
    /// sched/fair.c, `nohz_balance_enter_idle`).
    pub fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        let rq = self.rq_mut(cpu);
        rq.has_blocked_load = true;
        if !rq.nohz_tick_stopped {
            if self.sd[cpu.index()].is_empty() {
                return;
            }
            self.rq_mut(cpu).nohz_tick_stopped = true;
            self.touch.write(Line::NohzMask);
            self.nohz.idle_cpus.set(cpu);
            self.nohz.nr_cpus += 1;
            self.set_llc_idle(cpu, true);
            self.nohz.needs_update = self.rules.nohz_next_kick;
        }
        self.nohz.has_blocked = true;
    }

    /// A CPU has its tick again (`nohz_balance_exit_idle`; the first busy tick does this).
    pub fn nohz_balance_exit_idle(&mut self, cpu: CpuId) {
        let rq = self.rq_mut(cpu);
        if !rq.nohz_tick_stopped {
            return;
        }
        rq.nohz_tick_stopped = false;
        self.touch.write(Line::NohzMask);
        self.nohz.idle_cpus.clear(cpu);
        self.nohz.nr_cpus -= 1;
        self.set_llc_idle(cpu, false);
    }

    /// `set_cpu_sd_state_idle`, `set_cpu_sd_state_busy`.
    fn set_llc_idle(&mut self, cpu: CpuId, idle: bool) {
        let topo = &self.topo.cpus[cpu.index()];
        let mine = &mut self.lb.cpus[cpu.index()].llc_idle;
        if topo.sd_llc.is_none() || *mine == idle {
            return;
        }
        *mine = idle;
        let shared = &mut self.llc[topo.llc.index()];
        shared.nr_busy_cpus = if idle {
            shared.nr_busy_cpus - 1
        } else {
            shared.nr_busy_cpus + 1
        };
        self.touch.write(Line::LlcShared(topo.llc));
    }

    /// Whether a busy CPU's tick shall kick an idle CPU, and which, for what (kernel sched/fair.c,
    /// `nohz_balancer_kick`).
    pub(crate) fn nohz_balancer_kick(&mut self, cpu: CpuId, jiffies: u64) -> Option<(CpuId, u8)> {
        if self.rq(cpu).idle_balance {
            return None;
        }
        self.nohz_balance_exit_idle(cpu);
        self.touch.read(Line::NohzMask);
        if self.nohz.nr_cpus == 0 {
            return None;
        }
        let mut flags = 0;
        if self.nohz.has_blocked && jiffies > self.nohz.next_blocked {
            flags = kick::STATS;
        }
        if jiffies >= self.nohz.next_balance && self.wants_idle_balance(cpu) {
            flags = kick::STATS | kick::BALANCE;
        }
        if self.nohz.needs_update {
            flags |= kick::NEXT;
        }
        if flags == 0 {
            None
        } else {
            self.kick_ilb(cpu, flags, jiffies)
        }
    }

    /// Whether it looks as if an idle CPU could help this one.
    fn wants_idle_balance(&mut self, cpu: CpuId) -> bool {
        let rq = self.rq(cpu);
        if rq.nr_running >= 2 {
            return true;
        }
        let topo = &self.topo.cpus[cpu.index()];
        let domains = &self.topo.domains[cpu.index()];
        let arch = rq.cpu_capacity_orig;
        let reduced =
            |level: usize| rq.cpu_capacity * u64::from(domains[level].imbalance_pct) < arch * 100;
        if self.balanced_tasks(cpu) >= 1 && reduced(0) {
            return true;
        }
        let asym = domains
            .iter()
            .rev()
            .find(|domain| domain.flags & sd::ASYM_PACKING != 0);
        let preferred = asym.and_then(|domain| domain.span.and(&self.nohz.idle_cpus).first());
        if preferred.is_some_and(|idle| super::env::asym_prefer(idle, cpu)) {
            return true;
        }
        if let Some(level) = topo.sd_asym {
            let bigger = || {
                self.topo
                    .cpus
                    .iter()
                    .any(|other| other.capacity > topo.capacity)
            };
            return rq.misfit_task_load > 0 && (bigger() || reduced(level));
        }
        // Others in the LLC are busy: there may be an imbalance between LLCs, or packed cores.
        self.touch.read(Line::LlcShared(topo.llc));
        topo.sd_llc.is_some() && self.llc[topo.llc.index()].nr_busy_cpus > 1
    }

    /// Kicks the first idle CPU, unless it was kicked already (`kick_ilb`).
    fn kick_ilb(&mut self, cpu: CpuId, flags: u8, jiffies: u64) -> Option<(CpuId, u8)> {
        if flags & kick::BALANCE != 0 {
            self.nohz.next_balance = jiffies + 1;
        }
        let target = self
            .nohz
            .idle_cpus
            .iter()
            .find(|&other| other != cpu && self.rq(other).is_idle())?;
        let pending = &mut self.lb.cpus[target.index()].nohz_flags;
        let was = *pending;
        *pending |= flags;
        if was & kick::MASK != 0 {
            return None;
        }
        self.lb.stats.nohz_kicks += 1;
        Some((target, flags))
    }

    /// Takes what the CPU was kicked for.
    pub(crate) fn take_nohz_kick(&mut self, cpu: CpuId) -> Option<u8> {
        let pending = &mut self.lb.cpus[cpu.index()].nohz_flags;
        let flags = *pending;
        if flags & kick::MASK == 0 {
            return None;
        }
        *pending = 0;
        Some(flags & kick::MASK)
    }

    /// `update_nohz_stats`: lets an idle CPU's load fade. True if there is some left.
    fn update_nohz_stats(&mut self, cpu: CpuId, now: Ns) -> bool {
        let jiffies = self.jiffies_at(now);
        let rq = self.rq(cpu);
        if !rq.has_blocked_load || !self.nohz.idle_cpus.contains(cpu) {
            return false;
        }
        if jiffies <= rq.last_blocked_load_update_tick {
            return true;
        }
        self.touch.write(Line::Rq(cpu));
        self.update_rq_clock(cpu, now);
        self.update_blocked_averages(cpu);
        self.rq(cpu).has_blocked_load
    }

    /// Balances for all idle CPUs, this one last (kernel sched/fair.c, `_nohz_idle_balance`).
    pub(crate) fn nohz_idle_balance(
        &mut self,
        this_cpu: CpuId,
        flags: u8,
        now: Ns,
        price: &mut impl FnMut(&mut Touches) -> u64,
    ) {
        let jiffies = self.jiffies_at(now);
        let stats = flags & kick::STATS != 0;
        if stats {
            self.nohz.has_blocked = false;
        }
        if flags & kick::NEXT != 0 {
            self.nohz.needs_update = false;
        }
        let mut next_balance = jiffies + 60 * self.lb.hz;
        let mut update_next = false;
        let mut blocked = false;
        self.touch.read(Line::NohzMask);
        let idle_cpus = self.nohz.idle_cpus;
        for cpu in idle_cpus.iter_wrap(this_cpu.index() + 1) {
            self.touch.stats_read += u32::from(cpu != this_cpu);
            if !self.rq(cpu).is_idle() {
                continue;
            }
            // Work has come for this CPU: another one will go on.
            if !self.rq(this_cpu).is_idle() && self.rq(this_cpu).need_resched {
                self.nohz.needs_update |= flags & kick::NEXT != 0;
                self.nohz.has_blocked |= stats || blocked;
                return;
            }
            if stats {
                blocked |= self.update_nohz_stats(cpu, now);
            }
            if jiffies >= self.rq(cpu).next_balance {
                self.touch.write(Line::Rq(cpu));
                self.update_rq_clock(cpu, now);
                if flags & kick::BALANCE != 0 {
                    self.rebalance_domains(cpu, CpuIdle::Idle, now, price);
                }
            }
            if self.rq(cpu).next_balance < next_balance {
                next_balance = self.rq(cpu).next_balance;
                update_next = true;
            }
        }
        if update_next {
            self.nohz.next_balance = next_balance;
        }
        if stats {
            self.nohz.next_blocked = jiffies + self.lb.msecs_to_jiffies(LOAD_AVG_PERIOD);
        }
        self.nohz.has_blocked |= blocked;
    }

    /// `nohz_newidle_balance`: a CPU that will be idle for a while notes that blocked load is due.
    pub(crate) fn nohz_newidle_balance(&mut self, cpu: CpuId, jiffies: u64) {
        let due = self.nohz.has_blocked && jiffies >= self.nohz.next_blocked;
        if due && self.rq(cpu).avg_idle >= self.tun.migration_cost.0 {
            self.lb.cpus[cpu.index()].nohz_flags |= kick::NEWILB;
        }
    }

    /// A CPU enters idle: updates the blocked load of all idle CPUs if it noted that this is due and
    /// no kick will do it (kernel sched/fair.c, `nohz_run_idle_balance`). `price` as for
    /// [`Sched::newidle_balance`].
    pub fn nohz_run_idle_balance(
        &mut self,
        cpu: CpuId,
        now: Ns,
        mut price: impl FnMut(&mut Touches) -> u64,
    ) {
        self.lb.arrivals.clear();
        self.lb.elapsed = Ns::ZERO;
        let pending = &mut self.lb.cpus[cpu.index()].nohz_flags;
        let flags = *pending;
        *pending &= !kick::NEWILB;
        if flags == kick::NEWILB && !self.rq(cpu).need_resched {
            self.nohz_idle_balance(cpu, kick::STATS, now, &mut price);
        }
    }
}
