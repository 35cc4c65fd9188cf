//! The cells of the matrix: a machine, a workload and a load.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A kind of workload, in the order of tables.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// hackbench, threads and pipes.
    Hackbench,
    /// perf bench sched messaging, processes and sockets.
    Messaging,
    /// schbench, a message thread for each 16 workers.
    Schbench,
    /// netperf TCP_RR, pairs over loopback.
    Rr,
    /// will-it-scale context_switch1, pairs over pipes.
    Pipe,
    /// Random work and sleep.
    Worksleep,
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less of it.
    Lower,
    /// More of it.
    Higher,
}

impl Kind {
    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Hackbench => "hackbench",
            Kind::Messaging => "messaging",
            Kind::Schbench => "schbench",
            Kind::Rr => "rr",
            Kind::Pipe => "pipe",
            Kind::Worksleep => "worksleep",
        }
    }

    /// What the verdict is about.
    pub fn metric(self) -> (&'static str, Better) {
        match self {
            Kind::Hackbench | Kind::Messaging | Kind::Worksleep => ("time_s", Better::Lower),
            Kind::Schbench => ("schbench_wakeup_p99_us", Better::Lower),
            Kind::Rr => ("transactions_per_s", Better::Higher),
            Kind::Pipe => ("switches_per_s", Better::Higher),
        }
    }

    /// The command line that loads so many CPUs with so many per cent, at the length that a user would
    /// give it; none if it does not come in this size.
    ///
    /// 100 % is, for hackbench and messaging, a task for each CPU; for pairs, of which one of two tasks runs
    /// at a time, a pair; for schbench a worker; for worksleep, whose threads work a quarter of the time,
    /// four threads.
    pub fn command_line(self, ncpu: usize, load_pct: u32) -> Option<String> {
        let active = (ncpu as u64 * u64::from(load_pct)).div_ceil(100).max(1);
        Some(match self {
            Kind::Hackbench => hackbench(active),
            Kind::Messaging => messaging(active)?,
            Kind::Schbench => schbench(active),
            Kind::Rr => format!("netperf -t TCP_RR -l {} --pairs {active}", seconds(active)),
            Kind::Pipe => pipe(active)?,
            Kind::Worksleep => {
                let threads = 4 * active;
                format!("worksleep -t {threads} -n 3000 --work 0-2ms --sleep 0-6ms")
            }
        })
    }
}

/// Messages of a whole run of hackbench or messaging, about: at the default scale some tenths of a
/// second of the host's time.
const MESSAGES: u64 = 15_000_000;

/// Loops under which a run is a transient (docs/model.md), at the default scale of 1 in 100.
const LEAST_LOOPS: u64 = 3_000;
const MOST_LOOPS: u64 = 5_000_000;

/// hackbench's default senders, and receivers, of a group.
const FDS: u64 = 20;

fn loops(groups: u64, fds: u64) -> u64 {
    (MESSAGES / (groups * fds * fds)).clamp(LEAST_LOOPS, MOST_LOOPS)
}

fn hackbench(tasks: u64) -> String {
    let fds = tasks.div_ceil(2).min(FDS);
    let groups = tasks.div_ceil(2 * fds);
    let loops = loops(groups, fds);
    format!("hackbench -g {groups} -f {fds} --threads --pipe -l {loops} -s 100")
}

/// A group of messaging is 40 tasks: half a group's worth of CPUs is the least.
fn messaging(tasks: u64) -> Option<String> {
    let groups = (tasks + FDS) / (2 * FDS);
    (groups > 0).then(|| {
        let loops = loops(groups, FDS);
        format!("perf bench sched messaging -g {groups} -l {loops}")
    })
}

fn schbench(workers: u64) -> String {
    const WORKERS_EACH: u64 = 16;
    let each = workers.min(WORKERS_EACH);
    let message_threads = workers.div_ceil(each);
    format!("schbench -m {message_threads} -t {each} -r 30")
}

/// Its six intervals of warm-up and one that counts. It makes at most 1024 pairs.
fn pipe(pairs: u64) -> Option<String> {
    const INTERVALS: u64 = 7;
    let interval_ms = seconds(pairs) * 1000 / INTERVALS;
    (pairs <= 1024)
        .then(|| format!("context_switch1_threads -t {pairs} -s 1 --interval {interval_ms}ms"))
}

/// Seconds in which so many pairs make some ten million round trips of about 10 us together.
fn seconds(pairs: u64) -> u64 {
    (100 / pairs).clamp(1, 30)
}

/// A place in the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The machine's name.
    pub machine: String,
    /// The workload.
    pub kind: Kind,
    /// The load, per cent of the CPUs.
    pub load_pct: u32,
}

impl Cell {
    /// Every machine with every workload at every load, in this order.
    pub fn all(machines: &[String], kinds: &[Kind], loads: &[u32]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for machine in machines {
            for &kind in kinds {
                cells.extend(loads.iter().map(|&load_pct| Cell {
                    machine: machine.clone(),
                    kind,
                    load_pct,
                }));
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakelab_workload::Workload;

    #[test]
    fn every_command_line_is_one() {
        for kind in Kind::value_variants() {
            for ncpu in [1, 2, 8, 64, 384, 1024] {
                for load in [1, 25, 50, 100, 200] {
                    let Some(line) = kind.command_line(ncpu, load) else {
                        let active = (ncpu * load as usize).div_ceil(100);
                        let unfit = match kind {
                            Kind::Messaging => active < 20,
                            Kind::Pipe => active > 1024,
                            _ => false,
                        };
                        assert!(unfit, "{kind:?} {ncpu} {load}");
                        continue;
                    };
                    assert!(Workload::parse(&line).is_ok(), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_load_of_100_is_a_task_a_cpu() {
        let line = |kind: Kind, ncpu, load| kind.command_line(ncpu, load).unwrap_or_default();
        assert!(line(Kind::Hackbench, 384, 100).starts_with("hackbench -g 10 -f 20 "));
        assert!(line(Kind::Hackbench, 8, 100).starts_with("hackbench -g 1 -f 4 "));
        assert!(line(Kind::Hackbench, 8, 25).starts_with("hackbench -g 1 -f 1 "));
        assert!(line(Kind::Messaging, 80, 50).contains(" -g 1 "));
        assert_eq!(Kind::Messaging.command_line(64, 25), None);
        assert!(line(Kind::Rr, 64, 200).ends_with(" --pairs 128"));
        assert!(line(Kind::Worksleep, 8, 50).starts_with("worksleep -t 16 "));
        assert!(line(Kind::Schbench, 64, 50).starts_with("schbench -m 2 -t 16 "));
    }

    #[test]
    fn cells_go_by_machine_then_workload_then_load() {
        let machines = ["a".to_owned(), "b".to_owned()];
        let cells = Cell::all(&machines, &[Kind::Pipe, Kind::Rr], &[25, 50]);
        let sorted = |cell: &Cell| (cell.machine.clone(), cell.kind != Kind::Pipe, cell.load_pct);
        assert_eq!(cells.len(), 8);
        assert!(cells.is_sorted_by_key(sorted));
    }
}
