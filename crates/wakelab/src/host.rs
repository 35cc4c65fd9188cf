//! The host: how much runs there at the same time, and what this process has cost it.

use std::fs;
use std::thread::available_parallelism;

/// How many of so many jobs to run at the same time: as asked for, or as many as the host has CPUs, but
/// no more than there are. Threads without work take time from those that have some.
pub fn jobs(asked: Option<u32>, all: usize) -> usize {
    let threads = match asked {
        Some(jobs) => jobs as usize,
        None => available_parallelism().map_or(1, usize::from),
    };
    threads.min(all).max(1)
}

/// Clock ticks a second in /proc/self/stat: USER_HZ, 100 on every architecture that the program is
/// built for (proc_pid_stat(5), sysconf(_SC_CLK_TCK)).
const USER_HZ: f64 = 100.0;

/// The CPU time that the process had used at some moment.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock {
    used_s: Option<f64>,
}

impl CpuClock {
    /// Now.
    pub fn now() -> CpuClock {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        CpuClock {
            used_s: stat.and_then(|stat| used_s(&stat)),
        }
    }

    /// CPU time used since then by all threads, s; 0 where the system does not tell.
    pub fn elapsed_s(self) -> f64 {
        match (self.used_s, CpuClock::now().used_s) {
            (Some(then), Some(now)) => now - then,
            _ => 0.0,
        }
    }
}

/// utime + stime. The command's name, field 2, may hold blanks and parentheses, so fields count from
/// the last parenthesis: what follows it is field 3.
fn used_s(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11);
    let user: f64 = ticks.next()?.parse().ok()?;
    let system: f64 = ticks.next()?.parse().ok()?;
    Some((user + system) / USER_HZ)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_threads_than_jobs() {
        assert_eq!(jobs(Some(4096), 3), 3);
        assert_eq!(jobs(Some(2), 3), 2);
        assert_eq!((jobs(Some(4096), 0), jobs(None, 1)), (1, 1));
    }

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "42 (a) (b 1 2) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0";
        assert_eq!(used_s(stat), Some(3.0));
        assert_eq!(used_s(""), None);
    }
}
