//! Forced idle of a run: how much, where, between which cookies, and what it came from.

use std::collections::BTreeMap;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::{Cookie, Sched, TaskId};

/// Forced-idle time while the core ran one cookie and kept another waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairRow {
    /// The cookie that ran; none if tasks without one ran.
    pub ran: Cookie,
    /// That of the task that the CPU would have run by itself.
    pub kept_waiting: Cookie,
    /// For how long, over all CPUs.
    pub time: Ns,
}

/// What brought together the tasks that could not share a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The later of the two arrivals: the reason of its placement, or the kind of balancing.
    pub cause: &'static str,
    /// Times that force idle began.
    pub began: u64,
    /// Of these, times at which an idle CPU of a core with the right cookie, or of an idle core, was
    /// free for the task that had to wait.
    pub better_cpu_free: u64,
}

/// Forced idle of a run in which tasks had cookies.
#[derive(Clone, Debug, PartialEq)]
pub struct ForcedIdle {
    /// Time for which CPUs were forced idle, all together.
    pub time: Ns,
    /// That of the machine's capacity, %.
    pub share_pct: f64,
    /// By core (its lowest CPU), those that had any.
    pub cores: Vec<(CpuId, Ns)>,
    /// By pair of cookies, the longest first.
    pub pairs: Vec<PairRow>,
    /// What tasks caused while they ran (`core_forceidle_sum`), the most first. With SMT2 it adds up
    /// to the whole.
    pub tasks: Vec<(TaskId, Ns)>,
    /// Tasks that CPUs which were forced idle took from others.
    pub stolen: u64,
    /// Tasks that such CPUs sent to others (FORCE_IDLE_PUSH).
    pub pushed: u64,
    /// Tasks that idle CPUs took from such CPUs (FORCE_IDLE_LB).
    pub pulled: u64,
    /// What it came from, the most frequent first.
    pub causes: Vec<CauseRow>,
}

/// Counts of what force idle came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(BTreeMap<&'static str, (u64, u64)>);

impl Causes {
    pub fn began(&mut self, cause: &'static str, better_cpu_free: bool) {
        let (began, better) = self.0.entry(cause).or_default();
        *began += 1;
        *better += u64::from(better_cpu_free);
    }

    fn rows(&self) -> Vec<CauseRow> {
        let row = |(&cause, &(began, better_cpu_free))| CauseRow {
            cause,
            began,
            better_cpu_free,
        };
        let mut rows: Vec<CauseRow> = self.0.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.began));
        rows
    }
}

impl ForcedIdle {
    /// What a scheduler and the counts have after a run of `time` ns, if any task had a cookie.
    pub(crate) fn of(sched: &Sched, causes: &Causes, time: u64) -> Option<ForcedIdle> {
        if !sched.core.enabled {
            return None;
        }
        let of_core = |leader: CpuId| {
            let members = &sched.core.of(leader).members;
            let sums = members
                .iter()
                .map(|cpu| sched.core.rqs[cpu.index()].forceidle_sum);
            (leader, Ns(sums.sum()))
        };
        let leaders = sched.topo.cores.iter().filter_map(|core| core.first());
        let cores: Vec<(CpuId, Ns)> = leaders.map(of_core).filter(|(_, ns)| ns.0 > 0).collect();
        let total: u64 = cores.iter().map(|(_, ns)| ns.0).sum();
        let capacity = time as f64 * sched.ncpu() as f64;
        Some(ForcedIdle {
            time: Ns(total),
            share_pct: if capacity > 0.0 {
                100.0 * total as f64 / capacity
            } else {
                0.0
            },
            cores,
            pairs: pairs(sched),
            tasks: tasks(sched),
            stolen: sched.core.stolen,
            pushed: sched.core.pushed,
            pulled: sched.core.pulled,
            causes: causes.rows(),
        })
    }
}

fn pairs(sched: &Sched) -> Vec<PairRow> {
    let row = |(&(ran, kept_waiting), &time)| PairRow {
        ran,
        kept_waiting,
        time: Ns(time),
    };
    let mut rows: Vec<PairRow> = sched.core.pairs.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    rows
}

fn tasks(sched: &Sched) -> Vec<(TaskId, Ns)> {
    let sums = sched.tasks.iter().enumerate();
    let sums = sums.map(|(index, task)| (TaskId::from_index(index), Ns(task.core_forceidle_sum)));
    let mut rows: Vec<(TaskId, Ns)> = sums.filter(|(_, ns)| ns.0 > 0).collect();
    rows.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    rows
}
