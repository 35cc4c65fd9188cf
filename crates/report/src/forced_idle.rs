//! Forced idle of a variant, over all its runs.

use crate::metric::Unit;
use crate::number;
use crate::table::{Align, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use wakelab_sim::{ForcedIdle, Outcome};

/// How many pairs and tasks the text shows.
const SHOWN: usize = 8;

/// Forced idle, summed over the runs of a variant in which tasks had cookies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForcedIdleTotal {
    /// Time for which CPUs were forced idle, s, all runs.
    pub time_s: f64,
    /// That of the machine's capacity, %, the mean of the runs.
    pub share_pct: f64,
    /// Tasks that CPUs which were forced idle took from others, all runs.
    pub stolen: u64,
    /// Tasks that such CPUs sent to others, all runs (FORCE_IDLE_PUSH).
    pub pushed: u64,
    /// Tasks that idle CPUs took from such CPUs, all runs (FORCE_IDLE_LB).
    pub pulled: u64,
    /// By core, s.
    pub cores: Vec<CoreTotal>,
    /// By pair of cookies, the longest first.
    pub pairs: Vec<PairTotal>,
    /// By the task that ran meanwhile, the most first.
    pub tasks: Vec<TaskTotal>,
    /// The decisions that it came from, the most frequent first.
    pub causes: Vec<CauseTotal>,
    /// Pairs of tasks with one cookie, split and joined by moves between cores, by kind.
    pub moves: Vec<MoveTotal>,
}

/// Forced idle of a core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreTotal {
    /// Its lowest CPU.
    pub cpu: u16,
    /// Time, s.
    pub time_s: f64,
}

/// Forced idle between two cookies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairTotal {
    /// The cookie that ran, 0 for none.
    pub ran: u64,
    /// The cookie that had to wait, 0 for none.
    pub kept_waiting: u64,
    /// Time, s.
    pub time_s: f64,
}

/// Forced idle that a task caused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskTotal {
    /// The task, in the order of their making.
    pub task: u32,
    /// Time, s.
    pub time_s: f64,
}

/// Force idle that a kind of decision led to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseTotal {
    /// The reason of a placement, or the kind of balancing.
    pub cause: &'static str,
    /// Times that force idle began.
    pub began: u64,
    /// Of these, times at which a CPU was free that fitted, anywhere on the machine.
    pub better_cpu_free: u64,
    /// For how long, s.
    pub time_s: f64,
}

/// Moves of a kind that made or unmade a pair of tasks with one cookie.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveTotal {
    /// The kind of balancing, or `placement`.
    pub how: &'static str,
    /// Tasks that went to another core while one with their cookie ran on theirs.
    pub split: u64,
    /// Tasks that came to a core while one with their cookie ran there.
    pub joined: u64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Times by what they are of.
fn sums<K: Ord>(rows: impl Iterator<Item = (K, u64)>) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (key, ns) in rows {
        *sums.entry(key).or_insert(0) += ns;
    }
    sums
}

fn causes(runs: &[&ForcedIdle]) -> Vec<CauseTotal> {
    let mut totals: BTreeMap<&'static str, CauseTotal> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.causes) {
        let total = totals.entry(row.cause).or_insert(CauseTotal {
            cause: row.cause,
            began: 0,
            better_cpu_free: 0,
            time_s: 0.0,
        });
        total.began += row.began;
        total.better_cpu_free += row.better_cpu_free;
        total.time_s += seconds(row.time.0);
    }
    let mut totals: Vec<CauseTotal> = totals.into_values().collect();
    totals.sort_by_key(|row| std::cmp::Reverse(row.began));
    totals
}

fn moves(runs: &[&ForcedIdle]) -> Vec<MoveTotal> {
    let mut totals: Vec<MoveTotal> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.moves) {
        match totals.iter_mut().find(|total| total.how == row.how) {
            Some(total) => {
                total.split += row.split;
                total.joined += row.joined;
            }
            None => totals.push(MoveTotal {
                how: row.how,
                split: row.split,
                joined: row.joined,
            }),
        }
    }
    totals.sort_by_key(|row| (std::cmp::Reverse(row.split + row.joined), row.how));
    totals
}

/// The forced idle of runs, none if no run had cookies.
pub fn total(outcomes: &[Outcome]) -> Option<ForcedIdleTotal> {
    let runs: Vec<_> = outcomes
        .iter()
        .filter_map(|run| run.forced_idle.as_ref())
        .collect();
    if runs.is_empty() {
        return None;
    }
    let cores = sums(
        runs.iter()
            .flat_map(|run| &run.cores)
            .map(|(cpu, ns)| (cpu.0, ns.0)),
    );
    let pairs = runs.iter().flat_map(|run| &run.pairs);
    let pairs = sums(pairs.map(|row| ((row.ran.0, row.kept_waiting.0), row.time.0)));
    let tasks = sums(
        runs.iter()
            .flat_map(|run| &run.tasks)
            .map(|(p, ns)| (p.0, ns.0)),
    );
    let core = |(cpu, ns)| CoreTotal {
        cpu,
        time_s: seconds(ns),
    };
    let pair = |((ran, kept_waiting), ns)| PairTotal {
        ran,
        kept_waiting,
        time_s: seconds(ns),
    };
    let task = |(task, ns)| TaskTotal {
        task,
        time_s: seconds(ns),
    };
    let mut total = ForcedIdleTotal {
        time_s: seconds(runs.iter().map(|run| run.time.0).sum()),
        share_pct: runs.iter().map(|run| run.share_pct).sum::<f64>() / runs.len() as f64,
        stolen: runs.iter().map(|run| run.stolen).sum(),
        pushed: runs.iter().map(|run| run.pushed).sum(),
        pulled: runs.iter().map(|run| run.pulled).sum(),
        cores: cores.into_iter().map(core).collect(),
        pairs: pairs.into_iter().map(pair).collect(),
        tasks: tasks.into_iter().map(task).collect(),
        causes: causes(&runs),
        moves: moves(&runs),
    };
    total.pairs.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    total.tasks.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    Some(total)
}

/// Forced idle of a variant as text: the decisions that it came from, and where it was.
pub fn render(name: &str, total: &ForcedIdleTotal) -> String {
    let time = |s: f64| number::value(s, Unit::Seconds);
    let share = number::value(total.share_pct, Unit::Percent);
    let mut text = format!(
        "forced idle of {name}, all runs: {} ({share} of the capacity), {} tasks stolen{}\n",
        time(total.time_s),
        number::count(total.stolen as f64),
        moved_by_patches(total),
    );
    let mut table = Table::new(&[
        ("came from", Align::Left),
        ("began", Align::Right),
        ("better CPU free", Align::Right),
        ("time", Align::Right),
    ]);
    for row in &total.causes {
        table.row(vec![
            row.cause.to_owned(),
            number::count(row.began as f64),
            number::count(row.better_cpu_free as f64),
            time(row.time_s),
        ]);
    }
    text += &table.render();
    text += &pairs_moved(&total.moves);
    let cores = total
        .cores
        .iter()
        .map(|row| format!("CPU {} {}", row.cpu, time(row.time_s)));
    text += &listed("by core", cores, total.cores.len());
    let pairs = total
        .pairs
        .iter()
        .map(|row| format!("{} over {} {}", row.ran, row.kept_waiting, time(row.time_s)));
    text += &listed("by cookies", pairs, total.pairs.len());
    let tasks = total
        .tasks
        .iter()
        .map(|row| format!("task {} {}", row.task, time(row.time_s)));
    text + &listed("by task", tasks, total.tasks.len())
}

/// What moves did to pairs of tasks with one cookie, if they did.
fn pairs_moved(moves: &[MoveTotal]) -> String {
    if moves.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("pairs of one cookie moved by", Align::Left),
        ("split", Align::Right),
        ("joined", Align::Right),
    ]);
    for row in moves {
        table.row(vec![
            row.how.to_owned(),
            number::count(row.split as f64),
            number::count(row.joined as f64),
        ]);
    }
    table.render()
}

/// What the features FORCE_IDLE_PUSH and FORCE_IDLE_LB moved, if they did.
fn moved_by_patches(total: &ForcedIdleTotal) -> String {
    let moved = [("pushed", total.pushed), ("pulled", total.pulled)];
    let moved = moved.iter().filter(|(_, tasks)| *tasks > 0);
    moved
        .map(|(how, tasks)| format!(", {} {how}", number::count(*tasks as f64)))
        .collect()
}

/// The first of a list on one line.
fn listed(title: &str, rows: impl Iterator<Item = String>, count: usize) -> String {
    let shown: Vec<String> = rows.take(SHOWN).collect();
    let more = count - shown.len();
    let rest = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("  {title}: {}{rest}\n", shown.join(", "))
}
