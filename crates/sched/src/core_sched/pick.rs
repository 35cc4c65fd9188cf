//! The core-wide pick (`pick_next_task` under CONFIG_SCHED_CORE).

use crate::ids::{Cookie, TaskId};
use crate::state::{Begun, Pick, Sched};
use wakelab_machine::{CpuId, Ns};

/// For tests of tests.
#[cfg(feature = "fault-injection")]
pub mod fault {
    use std::cell::Cell;

    thread_local! {
        static UNCHECKED: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs something with picks that do not look whether their cookies match.
    pub fn without_the_cookie_check<T>(run: impl FnOnce() -> T) -> T {
        UNCHECKED.set(true);
        let result = run();
        UNCHECKED.set(false);
        result
    }

    pub(super) fn unchecked() -> bool {
        UNCHECKED.get()
    }
}

impl Sched {
    /// Whether a sibling's pick that is still valid has chosen for this CPU, so that it need not pick.
    #[inline]
    pub fn core_pick_ready(&self, cpu: CpuId) -> bool {
        let (rq, core) = (&self.core.rqs[cpu.index()], self.core.of(cpu));
        core.core_pick_seq == core.core_task_seq
            && core.core_pick_seq != rq.core_sched_seq
            && rq.core_pick.is_some()
    }

    /// The next task of a CPU: what a sibling's pick chose, or else a pick of its own.
    pub fn pick_next_task_core(&mut self, cpu: CpuId) -> Pick {
        if self.core_pick_ready(cpu) {
            let seq = self.core.of(cpu).core_pick_seq;
            let rq = &mut self.core.rqs[cpu.index()];
            rq.core_sched_seq = seq;
            if let Some(pick) = rq.core_pick.take() {
                return pick;
            }
        }
        self.pick_anew(cpu)
    }

    /// A pick that does not rely on an earlier one: of this CPU alone as long as no cookie is in
    /// play, else of the whole core. Siblings that must switch have `need_resched` set.
    pub fn pick_anew(&mut self, cpu: CpuId) -> Pick {
        self.core.begun.clear();
        let fi_before = self.end_forceidle(cpu);
        let core = self.core.of_mut(cpu);
        let need_sync = fi_before || core.core_cookie.is_some();
        core.core_cookie = Cookie::NONE;
        core.core_task_seq += 1;
        if !need_sync {
            let own = self.pick_task(cpu);
            if !self.cookie_of(own).is_some() {
                self.core.rqs[cpu.index()].core_pick = None;
                self.task_vruntime_update(cpu, own, false);
                return own;
            }
        }
        let max = self.highest(cpu, fi_before);
        let cookie = self.cookie_of(max);
        self.core.of_mut(cpu).core_cookie = cookie;
        let occupation = self.match_siblings(cpu, max, fi_before);
        self.begin_forceidle(cpu, occupation);
        self.tell_siblings(cpu, occupation, fi_before)
    }

    /// Accounts forced idle up to now. Gives whether there was any.
    fn end_forceidle(&mut self, cpu: CpuId) -> bool {
        let leader = self.core.rqs[cpu.index()].leader;
        if self.core.rqs[leader.index()].core_forceidle_count == 0 {
            return false;
        }
        self.update_rq_clock(leader, Ns(self.now));
        self.account_forceidle(cpu);
        let core = &mut self.core.rqs[leader.index()];
        core.core_forceidle_start = 0;
        core.core_forceidle_count = 0;
        core.core_forceidle_occupation = 0;
        true
    }

    fn begin_forceidle(&mut self, cpu: CpuId, occupation: u32) {
        let leader = self.core.rqs[cpu.index()].leader;
        let now = self.rqs[leader.index()].clock;
        let core = &mut self.core.rqs[leader.index()];
        if core.core_forceidle_count != 0 {
            core.core_forceidle_start = now;
            core.core_forceidle_occupation = occupation;
            self.note_overload_of_forceidle();
        }
    }

    /// `pick_task`: what the CPU would run by itself.
    fn pick_task(&mut self, cpu: CpuId) -> Pick {
        if self.core.rqs[cpu.index()].stop {
            return Pick::Stop;
        }
        let p = self.pick_next_task_fair(cpu);
        if p.is_some() {
            Pick::Task(p)
        } else {
            Pick::Idle
        }
    }

    pub(super) fn cookie_of(&self, pick: Pick) -> Cookie {
        match pick {
            Pick::Task(p) => self.tasks[p.index()].cookie,
            Pick::Idle | Pick::Stop => Cookie::NONE,
        }
    }

    /// Lets every CPU of the core pick for itself, in turn from this one, and gives the pick of the
    /// highest priority; of equals the first.
    fn highest(&mut self, cpu: CpuId, fi_before: bool) -> Pick {
        let count = self.core.of(cpu).members.len();
        let start = (self.core.of(cpu).members.iter()).position(|&member| member == cpu);
        let mut max = None;
        for n in 0..count {
            let member = self.core.of(cpu).members[(start.unwrap_or(0) + n) % count];
            if member != cpu {
                self.update_rq_clock(member, Ns(self.now));
            }
            let own = self.pick_task(member);
            self.core.rqs[member.index()].core_pick = Some(own);
            max = match max {
                Some(max) if !self.prio_less(max, own, fi_before) => Some(max),
                _ => Some(own),
            };
        }
        max.unwrap_or(Pick::Idle)
    }

    /// Replaces what does not match the core's cookie by what does, or by idle. Gives how many CPUs
    /// have something to run.
    fn match_siblings(&mut self, cpu: CpuId, max: Pick, fi_before: bool) -> u32 {
        let cookie = self.cookie_of(max);
        let mut occupation = 0;
        for n in 0..self.core.of(cpu).members.len() {
            let member = self.core.of(cpu).members[n];
            let own = self.core.rqs[member.index()]
                .core_pick
                .unwrap_or(Pick::Idle);
            let pick = self.matching(member, own, cookie);
            let forced = pick == Pick::Idle && self.rq(member).nr_running != 0;
            let blocked = forced.then(|| self.cookie_of(own));
            let rq = &mut self.core.rqs[member.index()];
            rq.core_pick = Some(pick);
            let was_blocked = std::mem::replace(&mut rq.blocked, blocked).is_some();
            if let (true, false, Pick::Task(p)) = (forced, was_blocked, own) {
                self.core.begun.push(Begun {
                    cpu: member,
                    blocked: p,
                    by: max,
                });
            }
            occupation += u32::from(pick != Pick::Idle);
            let core = self.core.of_mut(cpu);
            core.core_forceidle_count += u32::from(forced);
            let begins = u32::from(forced && !fi_before);
            core.core_forceidle_seq = core.core_forceidle_seq.wrapping_add(begins);
        }
        occupation
    }

    fn matching(&self, cpu: CpuId, own: Pick, cookie: Cookie) -> Pick {
        #[cfg(feature = "fault-injection")]
        if fault::unchecked() {
            return own;
        }
        if own == Pick::Idle || self.cookie_of(own) == cookie {
            return own;
        }
        let fits = cookie
            .is_some()
            .then(|| self.core_matching(cpu, cookie).next());
        fits.flatten().map_or(Pick::Idle, Pick::Task)
    }

    /// Tells the siblings what was picked for them. Gives what is for this CPU.
    fn tell_siblings(&mut self, cpu: CpuId, occupation: u32, fi_before: bool) -> Pick {
        let core = self.core.of_mut(cpu);
        let (seq, forced) = (core.core_task_seq, core.core_forceidle_count != 0);
        core.core_pick_seq = seq;
        self.core.rqs[cpu.index()].core_sched_seq = seq;
        let mut next = Pick::Idle;
        for n in 0..self.core.of(cpu).members.len() {
            let member = self.core.of(cpu).members[n];
            let Some(pick) = self.core.rqs[member.index()].core_pick else {
                continue;
            };
            // While force idle goes on, what its tasks are compared by stays.
            if !(fi_before && forced) {
                self.task_vruntime_update(member, pick, forced);
            }
            self.set_occupation(member, pick, occupation);
            if member == cpu {
                next = pick;
                self.core.rqs[member.index()].core_pick = None;
            } else if runs(self.rq(member).curr, pick) {
                self.core.rqs[member.index()].core_pick = None;
            } else {
                self.rq_mut(member).need_resched = true;
            }
        }
        next
    }

    fn set_occupation(&mut self, cpu: CpuId, pick: Pick, occupation: u32) {
        match pick {
            Pick::Idle => self.core.rqs[cpu.index()].idle_occupation = occupation,
            Pick::Task(p) => self.tasks[p.index()].core_occupation = occupation,
            Pick::Stop => {}
        }
    }

    /// [`Sched::switch_task`] with core scheduling: `put_prev_set_next_task`.
    #[inline(never)]
    pub(crate) fn switch_task_core(&mut self, cpu: CpuId) -> TaskId {
        let prev = self.rqs[cpu.index()].curr;
        let next = match self.pick_next_task_core(cpu) {
            Pick::Task(p) => p,
            // The caller has run the stopper before it switches.
            Pick::Idle | Pick::Stop => TaskId::NONE,
        };
        if next == prev {
            self.sync_idle(cpu);
        } else {
            self.put_prev_task(cpu, prev);
            self.set_next_task(cpu, next);
        }
        self.rqs[cpu.index()].need_resched = false;
        next
    }

    /// The stopper is queued on a CPU, or has run: either changes what its core may run.
    pub fn set_stopper(&mut self, cpu: CpuId, queued: bool) {
        self.core.rqs[cpu.index()].stop = queued;
        self.core.of_mut(cpu).core_task_seq += 1;
    }

    /// A CPU has looked for other work before its pick, so that it does not follow an earlier one.
    pub fn forget_core_pick(&mut self, cpu: CpuId) {
        let seq = self.core.of(cpu).core_pick_seq;
        self.core.rqs[cpu.index()].core_sched_seq = seq;
    }
}

/// Whether a CPU that runs `curr` runs what was picked.
fn runs(curr: TaskId, pick: Pick) -> bool {
    match pick {
        Pick::Idle => curr.is_none(),
        Pick::Task(p) => curr == p,
        Pick::Stop => false,
    }
}
