//! How many CPUs an idle search may look at (`nr_idle_scan`, SIS_UTIL).

use super::env::{CpuIdle, LbEnv};
use crate::{Feat, Line, Sched};

/// `nr_idle_scan` for an LLC of so many CPUs whose utilisations add up to `sum_util`, in a domain
/// with this `imbalance_pct`: falls with the square of the utilisation, to 0 at 100 / pct of the
/// capacity (kernel sched/fair.c, `update_idle_cpu_scan`).
pub fn nr_idle_scan(sum_util: u64, llc_weight: u32, imbalance_pct: u32) -> i32 {
    let (weight, pct) = (u64::from(llc_weight.max(1)), u64::from(imbalance_pct));
    let x = sum_util / weight;
    let lost = (x * x * pct * pct / (10_000 * 1024)).min(1024);
    ((1024 - lost) * weight / 1024) as i32
}

impl Sched {
    /// Writes the LLC's `nr_idle_scan`, if this pass is over the LLC and not by a newly idle CPU.
    pub(crate) fn update_idle_cpu_scan(&mut self, env: &LbEnv, sum_util: u64) {
        if env.idle == CpuIdle::NewlyIdle || !self.feat.has(Feat::SIS_UTIL) {
            return;
        }
        let cpu = &self.topo.cpus[env.dst_cpu.index()];
        let span_weight = self.topo.domains[env.this_cpu.index()][env.level].span_weight;
        if cpu.sd_llc.is_none() || span_weight != cpu.llc_size {
            return;
        }
        let (llc, scan) = (
            cpu.llc,
            nr_idle_scan(sum_util, cpu.llc_size, env.imbalance_pct),
        );
        let shared = &mut self.llc[llc.index()];
        if shared.nr_idle_scan != scan {
            shared.nr_idle_scan = scan;
            self.touch.write(Line::LlcShared(llc));
        }
    }
}
