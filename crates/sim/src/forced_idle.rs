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
    /// free for the task that had to wait: anywhere on the machine where it may run, even if the
    /// decision could not have put it there.
    pub better_cpu_free: u64,
    /// For how long CPUs were forced idle so, each time until it ended, whoever waited by then.
    pub time: Ns,
}

/// Moves between cores that made or unmade a pair of tasks with one cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRow {
    /// The kind of balancing, or `placement`.
    pub how: &'static str,
    /// Tasks that went to another core while one with their cookie ran on theirs.
    pub split: u64,
    /// Tasks that came to a core from another while one with their cookie ran there.
    pub joined: u64,
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
    /// Pairs of tasks with one cookie, split and joined by moves, by kind; those that occurred.
    pub moves: Vec<MoveRow>,
}

/// Counts of what force idle came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes {
    counts: BTreeMap<&'static str, Counts>,
    /// What the last force idle of each CPU came from, and its forced-idle time when that began, ns.
    last: Vec<Option<(&'static str, u64)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    began: u64,
    better_cpu_free: u64,
    time: u64,
}

impl Causes {
    /// Force idle begins on a CPU that was forced idle for so much time before, ns.
    pub fn began(&mut self, cpu: CpuId, cause: &'static str, better_cpu_free: bool, before: u64) {
        let counts = self.counts.entry(cause).or_default();
        counts.began += 1;
        counts.better_cpu_free += u64::from(better_cpu_free);
        let seen = self.last.len().max(cpu.index() + 1);
        self.last.resize(seen, None);
        if let Some((cause, since)) = self.last[cpu.index()].replace((cause, before)) {
            self.counts.entry(cause).or_default().time += before - since;
        }
    }

    /// All counts from nothing, like the CPUs' times, but for what goes on.
    pub fn restarted(self) -> Causes {
        let last = self.last.into_iter();
        Causes {
            counts: BTreeMap::new(),
            last: last.map(|last| last.map(|(cause, _)| (cause, 0))).collect(),
        }
    }

    fn rows(&self, sched: &Sched) -> Vec<CauseRow> {
        let mut counts = self.counts.clone();
        for (last, rq) in self.last.iter().zip(&sched.core.rqs) {
            if let Some((cause, since)) = last {
                counts.entry(cause).or_default().time += rq.forceidle_sum - since;
            }
        }
        let occurred = |counts: &Counts| counts.began > 0 || counts.time > 0;
        let counts = counts.into_iter().filter(|(_, counts)| occurred(counts));
        let row = |(cause, counts): (_, Counts)| CauseRow {
            cause,
            began: counts.began,
            better_cpu_free: counts.better_cpu_free,
            time: Ns(counts.time),
        };
        let mut rows: Vec<CauseRow> = counts.map(row).collect();
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
            causes: causes.rows(sched),
            moves: moves(sched),
        })
    }
}

fn moves(sched: &Sched) -> Vec<MoveRow> {
    let rows = sched.core.moves.rows().map(|(how, counts)| MoveRow {
        how,
        split: counts.split,
        joined: counts.joined,
    });
    rows.filter(|row| row.split + row.joined > 0).collect()
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
