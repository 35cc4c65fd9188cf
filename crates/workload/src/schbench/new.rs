//! schbench from 2023 on (git.kernel.org, mason/schbench, as of December 2025).
//!
//! A worker posts its message thread, waits to be woken, naps for `-s` us, takes the lock of the CPU that
//! it runs on, multiplies matrices, and lets go of the lock: a preempted worker keeps those who come to
//! its CPU waiting. With `-R` message threads hand out so many requests a second.

mod options;
mod printed;
mod run;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::quantity::Written;
pub use run::Run;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sim::{Outcome, Workload};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schbench {
    /// `-m`: message threads.
    pub messengers: u32,
    /// `-t`: workers of each; 0 is so many that there is one for each CPU.
    pub workers: u32,
    /// `-r`: how long.
    pub time: Ns,
    /// `-w`: after how long what was recorded is forgotten, if at all.
    pub warmup: Option<Ns>,
    /// `-i`: how often it prints.
    pub interval: Ns,
    /// `-z`: how often what was recorded is forgotten, if at all.
    pub zero: Option<Ns>,
    /// `-F`: the matrices of a worker, KiB.
    pub footprint_kib: u64,
    /// `-n`: multiplications a request.
    pub operations: u64,
    /// `-s`: the nap before them, us.
    pub nap_us: u64,
    /// `-R`: requests a second, 0 for as many as are done.
    pub rps: u64,
    /// `-C`: no lock, and the nap is not part of a request.
    pub calibrate: bool,
    /// `-L` is the contrary: whether workers take the lock of their CPU.
    pub locks: bool,
    /// `-M`, `-W`: where threads may run.
    pub pins: Pins,
    /// `-j -`: whether it prints JSON, too.
    pub json: bool,
    /// `-J`: the job's name in it.
    pub job: Option<String>,
}

/// Where threads may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// `-M`: message threads, each on one of these in turn.
    pub messengers: Option<CpuMask>,
    /// `-W`: workers, each on all of these.
    pub workers: Option<CpuMask>,
    /// `auto` for either: message thread n on CPU n, workers on all the others.
    pub auto: bool,
}

impl Default for Schbench {
    fn default() -> Self {
        Schbench {
            messengers: 1,
            workers: 0,
            time: Ns(30_000_000_000),
            warmup: None,
            interval: Ns(10_000_000_000),
            zero: None,
            footprint_kib: 256,
            operations: 5,
            nap_us: 100,
            rps: 0,
            calibrate: false,
            locks: true,
            pins: Pins::default(),
            json: false,
            job: None,
        }
    }
}

const NAME: &str = "schbench";

/// A multiplication and addition of the inner loop on a CPU whose siblings are idle, ps. A stand-in for
/// all machines: the quickest request of the calibration run in schbench's README.md took 9243 us for 5
/// products of matrices of 104 rows.
const STEP_PS: u64 = 1643;

impl Schbench {
    /// Reads the words after `schbench`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, and modes that are not modelled.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Schbench, WorkloadError> {
        options::parse(words)
    }

    /// Rows of a matrix: a worker has three, of 8-byte numbers.
    fn rows(&self) -> u64 {
        (self.footprint_kib * 1024 / 3 / 8).isqrt()
    }

    /// The computing of a request.
    fn work(&self) -> Ns {
        let steps = u128::from(self.rows()).pow(3) * u128::from(self.operations);
        Ns((steps * u128::from(STEP_PS) / 1000) as u64)
    }

    fn workers_each(&self, ncpu: usize) -> u32 {
        match self.workers {
            0 => (ncpu as u32).div_ceil(self.messengers),
            workers => workers,
        }
    }
}

impl Schbench {
    /// The CPUs of a thread, by its number: first the message threads. Workers are free of what their
    /// message thread is bound to.
    fn cpus(&self, thread: u32, ncpu: usize) -> CpuMask {
        let all = CpuMask::first_n(ncpu);
        let messengers = CpuMask::first_n(self.messengers as usize);
        let pins = &self.pins;
        let wanted = match (thread < self.messengers, pins.auto) {
            (true, true) => one_of(&messengers.and(&all), thread),
            (true, false) => pins
                .messengers
                .as_ref()
                .map_or(all, |cpus| one_of(&cpus.and(&all), thread)),
            (false, true) => all.and_not(&messengers),
            (false, false) => pins.workers.unwrap_or(all).and(&all),
        };
        if wanted.is_empty() { all } else { wanted }
    }
}

/// The CPU of a set whose turn it is.
fn one_of(cpus: &CpuMask, turn: u32) -> CpuMask {
    let cpus: Vec<CpuId> = cpus.iter().collect();
    let chosen = cpus.get(turn as usize % cpus.len().max(1));
    chosen.copied().into_iter().collect()
}

impl Benchmark for Schbench {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        let scaled = |time: Ns| crate::scaled_time(time, factor);
        Box::new(Schbench {
            time: scaled(self.time),
            warmup: self.warmup.map(scaled),
            ..self.clone()
        })
    }

    fn command_line(&self) -> String {
        let mut line = format!(
            "{NAME} -m {} -t {} -r {} -i {} -F {} -n {} -s {} -R {}",
            self.messengers,
            self.workers,
            Written(self.time),
            Written(self.interval),
            self.footprint_kib,
            self.operations,
            self.nap_us,
            self.rps
        );
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                line.push_str(&format!(" {option} {value}"));
            }
        };
        add("-w", self.warmup.map(|time| Written(time).to_string()));
        add("-z", self.zero.map(|time| Written(time).to_string()));
        let list = |cpus: &Option<CpuMask>| cpus.as_ref().map(ToString::to_string);
        let auto = self.pins.auto.then(|| "auto".to_owned());
        add("-M", auto.or_else(|| list(&self.pins.messengers)));
        add("-W", list(&self.pins.workers).filter(|_| !self.pins.auto));
        add("-j", self.json.then(|| "-".to_owned()));
        add("-J", self.job.clone());
        for (flag, set) in [(" -L", !self.locks), (" -C", self.calibrate)] {
            if set {
                line.push_str(flag);
            }
        }
        line
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine))
    }

    /// What it wrote itself.
    fn printed(&self, outcome: &Outcome) -> String {
        crate::printed::log(outcome)
    }
}

/// The metrics of a run.
pub const METRICS: &[(&str, &str)] = &[
    ("schbench_wakeup_p50_us", "median wake-up latency, us"),
    ("schbench_wakeup_p90_us", "90th percentile of it, us"),
    ("schbench_wakeup_p99_us", "99th percentile of it, us"),
    ("schbench_wakeup_p99_9_us", "99.9th percentile of it, us"),
    ("schbench_wakeup_max_us", "longest, us"),
    ("schbench_request_p50_us", "median time of a request, us"),
    ("schbench_request_p90_us", "90th percentile of it, us"),
    ("schbench_request_p99_us", "99th percentile of it, us"),
    ("schbench_request_p99_9_us", "99.9th percentile of it, us"),
    ("schbench_request_max_us", "longest, us"),
    (
        "schbench_rps_p20",
        "20th percentile of the requests a second, by second",
    ),
    ("schbench_rps_p50", "median of them"),
    ("schbench_rps_p90", "90th percentile of them"),
    (
        "schbench_rps",
        "requests over the time of the run, a second",
    ),
];

#[cfg(test)]
mod tests;
