//! The end of a wake-up on the CPU that was chosen (kernel `sched/core.c`).

use crate::fair::flags::{ENQUEUE_MIGRATED, ENQUEUE_WAKEUP, WF_MIGRATED};
use crate::features::Feat;
use crate::ids::TaskId;
use crate::state::{Rq, Sched};
use std::hint::black_box;
use wakelab_machine::CpuId;

impl Sched {
    /// Touches what queueing the task will read, so that this is there when its place is decided.
    #[inline(always)]
    pub fn look_ahead(&self, p: TaskId) {
        let se = &self.se[self.tasks[p.index()].se.index()];
        black_box((se.avg.last_update_time, se.vruntime));
    }

    /// `ttwu_do_activate`: queues a woken task, preempts for it if it should, and accounts the idle
    /// time that it ended. WF_MIGRATED tells that the wake-up took the task to another CPU, so that
    /// its vruntime is relative. The CPU's clock must be up to date.
    #[inline]
    pub fn ttwu_do_activate(&mut self, cpu: CpuId, p: TaskId, wake_flags: u32) {
        let migrated = if wake_flags & WF_MIGRATED != 0 {
            ENQUEUE_MIGRATED
        } else {
            0
        };
        self.activate_task(cpu, p, ENQUEUE_WAKEUP | migrated);
        self.check_preempt_curr(cpu, p, wake_flags);
        let was_idle = self.rq(cpu).idle_stamp != 0;
        self.rq_mut(cpu).account_idle();
        if was_idle && self.feat.has(Feat::SIS_PROP) {
            // Until it idles again, searches from this CPU may cost half of its average idle time.
            let now = self.jiffies(cpu);
            let rq = self.rq_mut(cpu);
            rq.wake_stamp = now;
            rq.wake_avg_idle = rq.avg_idle / 2;
        }
    }
}

impl Rq {
    /// The CPU was idle and is woken: `avg_idle` moves by an eighth towards this idle time, and is
    /// held to twice what a newly-idle balance costs at most.
    #[inline]
    fn account_idle(&mut self) {
        if self.idle_stamp == 0 {
            return;
        }
        let idle = self.clock.saturating_sub(self.idle_stamp) as i64;
        let average = self.avg_idle as i64;
        let average = (average + (idle - average) / 8).max(0) as u64;
        self.avg_idle = average.min(2 * self.max_idle_balance_cost);
        self.idle_stamp = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avg_idle_follows_idle_times_up_to_twice_the_cost() {
        let mut rq = Rq {
            clock: 10_000,
            idle_stamp: 2_000,
            avg_idle: 4_000,
            max_idle_balance_cost: 500_000,
            ..Rq::default()
        };
        rq.account_idle();
        assert_eq!((rq.avg_idle, rq.idle_stamp), (4_500, 0));
        rq.clock = 1_000_000_000;
        rq.idle_stamp = 1;
        rq.account_idle();
        assert_eq!(rq.avg_idle, 1_000_000);
    }
}
