//! Clocks, jiffies, and the idle bits that searches use.

use crate::state::Sched;
use wakelab_machine::{CpuId, Ns};

/// A jiffy and when it begins: most questions are about the same one, and dividing is slow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jiffy {
    number: u64,
    start: u64,
    tick: u64,
}

impl Jiffy {
    fn of(clock: u64, tick: u64) -> Jiffy {
        let length = tick.max(1);
        let ticks = clock / length;
        Jiffy {
            number: (1 << 32) - 300_000_000_000 / length + ticks,
            start: ticks * length,
            tick,
        }
    }

    /// Whether the time is within it.
    #[inline(always)]
    fn has(&self, clock: u64, tick: u64) -> bool {
        // A time before the start wraps and is far.
        clock.wrapping_sub(self.start) < tick && tick == self.tick
    }
}

impl Sched {
    /// `update_rq_clock`: tells a run queue the time. A time before its clock changes nothing.
    #[inline]
    pub fn update_rq_clock(&mut self, cpu: CpuId, now: Ns) {
        self.now = self.now.max(now.0);
        let rq = &mut self.rqs[cpu.index()];
        if now.0 <= rq.clock {
            return;
        }
        let delta = now.0 - rq.clock;
        rq.clock = now.0;
        rq.clock_task += delta;
        rq.update_rq_clock_pelt(delta);
        if !self.jiffy.has(now.0, self.tun.tick.0) {
            self.jiffy = Jiffy::of(now.0, self.tun.tick.0);
        }
    }

    /// `jiffies` as the CPU's clock has it. They begin five minutes before 2^32 (`INITIAL_JIFFIES`).
    #[inline]
    pub fn jiffies(&self, cpu: CpuId) -> u64 {
        let (clock, tick) = (self.rqs[cpu.index()].clock, self.tun.tick.0);
        if self.jiffy.has(clock, tick) {
            return self.jiffy.number;
        }
        Jiffy::of(clock, tick).number
    }

    /// Brings the CPU's bits in its LLC's idle masks up to date (`idle_cpu`, `sched_idle_cpu`). To be
    /// called after any change of `curr`, `nr_running` or `ttwu_pending`; queueing and switching do.
    #[inline]
    pub fn sync_idle(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu.index()];
        let idle = rq.curr.is_none() && rq.nr_running == 0 && !rq.ttwu_pending;
        let sched_idle = self.sched_idle_rq(cpu) && self.rules.sched_idle_is_idle;
        let bits = u8::from(idle) | u8::from(sched_idle) << 1;
        if bits == rq.idle_bits {
            return;
        }
        let (llc, rank) = (usize::from(rq.llc), CpuId(rq.llc_rank));
        self.rqs[cpu.index()].idle_bits = bits;
        let llc = &mut self.llc[llc];
        if idle {
            llc.idle.set(rank);
        } else {
            llc.idle.clear(rank);
        }
        if sched_idle {
            llc.sched_idle.set(rank);
        } else {
            llc.sched_idle.clear(rank);
        }
    }
}
