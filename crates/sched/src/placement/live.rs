//! A placement decision in the simulator: the view on the scheduler's own state.

use super::Ranks;
use super::decision::{Decision, Reason};
use super::select::select_task_rq_fair;
use super::view::View;
use crate::features::Feat;
use crate::ids::TaskId;
use crate::pelt::update_blocked_se;
use crate::rules::Rules;
use crate::state::{GroupCapacity, Sched};
use crate::touch::Line;
use crate::weight::scale_load_down;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::ids::GroupId;
use wakelab_machine::{CpuId, LlcId};

/// The scheduler's state as one decision sees it.
pub struct Live<'a> {
    sched: &'a mut Sched,
    p: TaskId,
    curr: TaskId,
    this_cpu: CpuId,
    in_task: bool,
    /// The remote run queue read last, so that one decision charges it once.
    looked_at: CpuId,
}

impl<'a> Live<'a> {
    /// The decision on `this_cpu` for the task `p`, woken by `curr` (none for the idle task).
    pub fn new(
        sched: &'a mut Sched,
        p: TaskId,
        this_cpu: CpuId,
        curr: TaskId,
        in_task: bool,
    ) -> Live<'a> {
        Live {
            sched,
            p,
            curr,
            this_cpu,
            in_task,
            looked_at: this_cpu,
        }
    }

    /// Whole seconds of jiffies, to decay `wakee_flips` by.
    fn hz(&self) -> u64 {
        1_000_000_000 / self.sched.tun.tick.0.max(1)
    }
}

impl View for Live<'_> {
    #[inline(always)]
    fn topo(&self) -> &SchedTopology {
        &self.sched.topo
    }

    #[inline(always)]
    fn ranks(&self) -> &Ranks {
        &self.sched.ranks
    }

    #[inline(always)]
    fn rules(&self) -> &Rules {
        &self.sched.rules
    }

    #[inline(always)]
    fn feat(&self, feat: Feat) -> bool {
        self.sched.feat.has(feat)
    }

    #[inline(always)]
    fn almost_idle_load(&self) -> u64 {
        self.sched.tun.almost_idle_load
    }

    #[inline(always)]
    fn this_cpu(&self) -> CpuId {
        self.this_cpu
    }

    #[inline(always)]
    fn in_task(&self) -> bool {
        self.in_task
    }

    fn curr_is_per_cpu_kthread(&self) -> bool {
        self.curr.is_none() || {
            let curr = &self.sched.tasks[self.curr.index()];
            curr.kthread && curr.nr_cpus_allowed == 1
        }
    }

    fn curr_is_exiting(&self) -> bool {
        self.curr.is_some() && self.sched.tasks[self.curr.index()].exiting
    }

    fn curr_h_load(&mut self) -> u64 {
        if self.curr.is_none() {
            0
        } else {
            self.sched.task_h_load(self.curr)
        }
    }

    fn curr_wakee_flips(&self) -> u32 {
        match self.curr.is_none() {
            true => self.sched.rq(self.this_cpu).idle_wakee_flips,
            false => self.sched.tasks[self.curr.index()].wakee_flips,
        }
    }

    fn wakee_flips(&self) -> u32 {
        self.sched.tasks[self.p.index()].wakee_flips
    }

    /// Flips halve once if the last halving was more than a second ago (kernel `sched/fair.c`,
    /// `record_wakee()`); a task other than the one woken last is a flip.
    fn record_wakee(&mut self) {
        let (now, hz, p) = (self.sched.jiffies(self.this_cpu), self.hz(), self.p);
        let (last, flips, decayed) = if self.curr.is_none() {
            let rq = self.sched.rq_mut(self.this_cpu);
            (
                &mut rq.idle_last_wakee,
                &mut rq.idle_wakee_flips,
                &mut rq.idle_wakee_flip_decay_ts,
            )
        } else {
            let curr = &mut self.sched.tasks[self.curr.index()];
            (
                &mut curr.last_wakee,
                &mut curr.wakee_flips,
                &mut curr.wakee_flip_decay_ts,
            )
        };
        if now > *decayed + hz {
            *flips >>= 1;
            *decayed = now;
        }
        if *last != p {
            *last = p;
            *flips = flips.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn allowed(&self, cpu: CpuId) -> bool {
        self.sched.tasks[self.p.index()].may_run_on(cpu)
    }

    fn should_migrate_task(&self) -> bool {
        self.sched.now >= self.sched.tasks[self.p.index()].next_migration_time
    }

    #[inline(always)]
    fn allowed_word(&self, llc: LlcId, index: usize) -> u64 {
        let cpus = &self.sched.ranks.llc(llc).cpus;
        let task = &self.sched.tasks[self.p.index()];
        if task.unrestricted {
            let left = cpus.len() - index * 64;
            return if left >= 64 {
                u64::MAX
            } else {
                (1 << left) - 1
            };
        }
        let cpus = cpus[index * 64..].iter().take(64).enumerate();
        cpus.fold(0, |word, (bit, &cpu)| {
            word | u64::from(task.cpus.contains(cpu)) << bit
        })
    }

    fn task_h_load(&mut self) -> u64 {
        self.sched.task_h_load(self.p)
    }

    fn task_util(&self) -> u64 {
        self.sched.task_util(self.p)
    }

    fn task_util_est(&self) -> u64 {
        self.sched.task_util_est(self.p)
    }

    fn sync_entity_load_avg(&mut self) {
        let se = self.sched.tasks[self.p.index()].se.index();
        let se = &mut self.sched.se[se];
        let now = self.sched.cfs[se.cfs_rq.index()].avg.last_update_time;
        match self.sched.rules.runnable_load {
            true => se.update_blocked_runnable_load(now),
            false => {
                update_blocked_se(now, &mut se.avg, scale_load_down(se.weight));
            }
        }
    }

    #[inline(always)]
    fn recent_used_cpu(&self) -> CpuId {
        self.sched.tasks[self.p.index()].recent_used_cpu
    }

    #[inline(always)]
    fn set_recent_used_cpu(&mut self, cpu: CpuId) {
        self.sched.tasks[self.p.index()].recent_used_cpu = cpu;
    }

    fn note_cpu_of_waker(&mut self) {
        if self.curr.is_some() {
            self.sched.tasks[self.curr.index()].recent_used_cpu = self.this_cpu;
        }
    }

    #[inline(always)]
    fn idle_cpu(&self, cpu: CpuId) -> bool {
        self.sched.rq(cpu).is_idle()
    }

    #[inline(always)]
    fn sched_idle_cpu(&self, cpu: CpuId) -> bool {
        let nr_running = self.sched.rq(cpu).nr_running;
        nr_running != 0
            && nr_running == self.sched.cfs[self.sched.root_cfs(cpu).index()].idle_h_nr_running
            && self.sched.rules.sched_idle_is_idle
    }

    #[inline(always)]
    fn idle_word(&self, llc: LlcId, index: usize) -> u64 {
        self.sched.llc[llc.index()].idle.word(index)
    }

    #[inline(always)]
    fn sched_idle_word(&self, llc: LlcId, index: usize) -> u64 {
        self.sched.llc[llc.index()].sched_idle.word(index)
    }

    fn idle_cpu_without(&self, cpu: CpuId) -> bool {
        let rq = self.sched.rq(cpu);
        (rq.curr.is_none() || rq.curr == self.p) && !rq.ttwu_pending
    }

    fn task_running_on(&self, cpu: CpuId) -> bool {
        let task = &self.sched.tasks[self.p.index()];
        task.cpu == cpu
            && task.on_rq
            && !task.migrating
            && self.sched.se[task.se.index()].avg.last_update_time != 0
    }

    #[inline(always)]
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.sched.rq(cpu).nr_running
    }

    #[inline(always)]
    fn nr_delayed(&self, cpu: CpuId) -> u32 {
        self.sched.cfs[self.sched.root_cfs(cpu).index()].h_nr_delayed
    }

    fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.sched.cpu_load(cpu)
    }

    fn cpu_load_avg(&self, cpu: CpuId) -> u64 {
        self.sched.cfs[self.sched.root_cfs(cpu).index()]
            .avg
            .load_avg
    }

    fn cpu_load_without(&mut self, cpu: CpuId) -> u64 {
        self.sched.cpu_load_without(cpu, self.p)
    }

    fn cpu_runnable_without(&self, cpu: CpuId) -> u64 {
        self.sched.cpu_runnable_without(cpu, self.p)
    }

    fn cpu_util_without(&self, cpu: CpuId) -> u64 {
        self.sched.cpu_util_without(cpu, self.p)
    }

    fn util_est_enqueued(&self, cpu: CpuId) -> u64 {
        u64::from(
            self.sched.cfs[self.sched.root_cfs(cpu).index()]
                .avg
                .util_est
                .enqueued,
        )
    }

    #[inline(always)]
    fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.sched.rq(cpu).cpu_capacity
    }

    fn idle_stamp(&self, cpu: CpuId) -> u64 {
        self.sched.rq(cpu).idle_stamp
    }

    fn exit_latency(&self, cpu: CpuId) -> Option<u32> {
        self.sched.rq(cpu).idle_exit_latency
    }

    #[inline(always)]
    fn has_idle_cores(&self, llc: LlcId) -> bool {
        self.sched.llc[llc.index()].has_idle_cores
    }

    fn clear_idle_cores(&mut self, llc: LlcId) {
        self.sched.llc[llc.index()].has_idle_cores = false;
        self.sched.touch.write(Line::LlcShared(llc));
    }

    #[inline(always)]
    fn nr_idle_scan(&self, llc: LlcId) -> i32 {
        self.sched.llc[llc.index()].nr_idle_scan
    }

    fn group_capacity(&self, group: GroupId) -> GroupCapacity {
        self.sched.sgc[group.index()]
    }

    #[inline(always)]
    fn core_sched(&self) -> bool {
        self.sched.core.enabled
    }

    #[inline(always)]
    fn cookie(&self) -> u64 {
        self.sched.tasks[self.p.index()].cookie.0
    }

    #[inline(always)]
    fn core_cookie(&self, cpu: CpuId) -> u64 {
        self.sched.core.cookie(cpu).0
    }

    /// Halves once a jiffy since it was last set: what was idle then is not any more.
    fn wake_avg_idle(&mut self) -> u64 {
        if self.sched.rules.search_in_turns {
            // Idle times vary much, hence so small a part.
            return self.sched.rq(self.this_cpu).avg_idle / 512;
        }
        let now = self.sched.jiffies(self.this_cpu);
        let rq = self.sched.rq_mut(self.this_cpu);
        let passed = now.saturating_sub(rq.wake_stamp);
        if passed > 0 {
            // The kernel stops counting jiffies when nothing is left, which comes to the same.
            rq.wake_avg_idle = rq.wake_avg_idle.checked_shr(passed as u32).unwrap_or(0);
            rq.wake_stamp = now;
        }
        rq.wake_avg_idle
    }

    fn avg_scan_cost(&self) -> u64 {
        let level = self.sched.topo.cpus[self.this_cpu.index()].sd_llc;
        level.map_or(0, |level| {
            self.sched.sd[self.this_cpu.index()][level].avg_scan_cost
        })
    }

    /// Kernel 6.5 `sched/fair.c`, `select_idle_cpu()`: the time is taken off the idle time and
    /// averaged into the cost with weight 1/8.
    fn charge_scan(&mut self, scanned: u32) {
        let time = self.sched.tun.scan_cost.0 * u64::from(scanned);
        let rq = self.sched.rq_mut(self.this_cpu);
        rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
        let Some(level) = self.sched.topo.cpus[self.this_cpu.index()].sd_llc else {
            return;
        };
        let average = &mut self.sched.sd[self.this_cpu.index()][level].avg_scan_cost;
        let step = (time.wrapping_sub(*average) as i64) / 8;
        *average = average.wrapping_add_signed(step);
    }

    #[inline(always)]
    fn look_at(&mut self, cpu: CpuId) {
        let llc = |cpu: CpuId| self.sched.topo.cpus[cpu.index()].llc;
        if cpu != self.looked_at && llc(cpu) != llc(self.this_cpu) {
            self.looked_at = cpu;
            self.sched.touch.read(Line::Rq(cpu));
        }
    }

    #[inline(always)]
    fn look_at_llc(&mut self, llc: LlcId) {
        self.sched.touch.read(Line::LlcShared(llc));
    }

    #[inline(always)]
    fn note_scanned(&mut self, cpus: u32) {
        self.sched.touch.scanned += cpus;
    }

    fn note_stats_read(&mut self, cpus: u32) {
        self.sched.touch.stats_read += cpus;
    }
}

impl Sched {
    /// The CPU for a task that wakes up, was forked, or execs (kernel `sched/core.c`,
    /// `select_task_rq()`). `prev_cpu` is `wake_cpu` for a wake-up, else the task's CPU; `curr` is
    /// the waker, none for the idle task; `wake_flags` are those of [`wf`](super::wf); `in_task` is
    /// false for a wake-up by an interrupt.
    pub fn select_task_rq(
        &mut self,
        p: TaskId,
        prev_cpu: CpuId,
        this_cpu: CpuId,
        curr: TaskId,
        wake_flags: u32,
        in_task: bool,
    ) -> Decision {
        let task = &self.tasks[p.index()];
        let mut decision = if task.nr_cpus_allowed > 1 {
            let mut view = Live::new(self, p, this_cpu, curr, in_task);
            select_task_rq_fair(&mut view, prev_cpu, wake_flags)
        } else {
            Decision::plain(task.cpus.first().unwrap_or(prev_cpu), Reason::OnlyCpu)
        };
        if !self.tasks[p.index()].may_run_on(decision.cpu) {
            decision.cpu = self.select_fallback_rq(p);
            decision.reason = Reason::AffinityFallback;
        }
        decision
    }

    /// Some CPU on which the task may run: of the node that it was on, or else any (kernel
    /// `sched/core.c`, `select_fallback_rq()`; a task always has an allowed CPU here).
    fn select_fallback_rq(&self, p: TaskId) -> CpuId {
        let task = &self.tasks[p.index()];
        let node = self.topo.cpus[task.cpu.index()].node;
        let near = self.topo.nodes[node.index()]
            .iter()
            .find(|&cpu| task.cpus.contains(cpu));
        near.or_else(|| task.cpus.first()).unwrap_or(task.cpu)
    }

    /// Whether the wake-up is left to the CPU chosen, by its `wake_list` and an interrupt (kernel
    /// `sched/core.c`, `ttwu_queue_wakelist()` and `ttwu_queue_cond()`): if it is in another cache,
    /// or idle (6.0 on).
    pub fn ttwu_queue_cond(&self, p: TaskId, this_cpu: CpuId, cpu: CpuId) -> bool {
        if !self.feat.has(Feat::TTWU_QUEUE) || !self.tasks[p.index()].may_run_on(cpu) {
            return false;
        }
        if self.topo.cpus[this_cpu.index()].llc != self.topo.cpus[cpu.index()].llc {
            return true;
        }
        self.rules.wakelist_to_idle && cpu != this_cpu && self.rq(cpu).nr_running == 0
    }

    /// A CPU is about to run its idle task: if its siblings are idle too, its LLC has an idle core
    /// (kernel `sched/fair.c`, `update_idle_core()`).
    pub fn update_idle_core(&mut self, cpu: CpuId) {
        let topo = &self.topo;
        let place = &topo.cpus[cpu.index()];
        if !topo.smt_active || place.sd_llc.is_none() {
            return;
        }
        let llc = place.llc;
        self.touch.read(Line::LlcShared(llc));
        if self.llc[llc.index()].has_idle_cores {
            return;
        }
        if place
            .smt
            .iter()
            .all(|sibling| sibling == cpu || self.rqs[sibling.index()].is_idle())
        {
            self.llc[llc.index()].has_idle_cores = true;
            self.touch.write(Line::LlcShared(llc));
        }
    }
}
