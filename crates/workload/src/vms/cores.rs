//! How the busy vCPUs lie on the cores while the tracer has a window.

use wakelab_machine::CpuId;
use wakelab_sched::{Cookie, Sched, TaskId};
use wakelab_sim::Metric;

/// Their names and what they mean.
pub(super) const METRICS: [(&str, &str); 3] = [
    (
        "cores_pair",
        "cores with two runnable busy vCPUs of one cookie, mean of the starts and ends of windows",
    ),
    (
        "cores_single",
        "cores with one runnable busy vCPU, in the same way",
    ),
    (
        "cores_none",
        "cores with no runnable vCPU at all, the tracer's neither, in the same way",
    ),
];

/// What is on one core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    /// Runnable vCPUs of busy machines.
    busy: u32,
    /// The cookie of the last of them.
    cookie: Cookie,
    /// They differ in their cookies.
    mixed: bool,
    /// A runnable vCPU of another machine.
    other: bool,
}

/// The sums over all looks so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    looks: u64,
    pairs: u64,
    singles: u64,
    nones: u64,
    /// The core of each CPU.
    core_of: Vec<usize>,
    cores: Vec<Core>,
}

impl Census {
    pub fn new(cores: &[Vec<CpuId>]) -> Census {
        let mut core_of = vec![0; cores.iter().map(Vec::len).sum()];
        for (core, cpus) in cores.iter().enumerate() {
            cpus.iter().for_each(|cpu| core_of[cpu.index()] = core);
        }
        Census {
            core_of,
            cores: vec![Core::default(); cores.len()],
            ..Census::default()
        }
    }

    /// Looks where the vCPUs are; of each is told whether it is a busy machine's.
    pub fn look(&mut self, sched: &Sched, vcpus: impl Iterator<Item = (TaskId, bool)>) {
        self.cores.fill(Core::default());
        for (vcpu, busy) in vcpus {
            let task = &sched.tasks[vcpu.index()];
            if !task.on_rq || sched.is_delayed(vcpu) {
                continue;
            }
            let core = &mut self.cores[self.core_of[task.cpu.index()]];
            if busy {
                core.mixed |= core.busy > 0 && core.cookie != task.cookie;
                core.busy += 1;
                core.cookie = task.cookie;
            } else {
                core.other = true;
            }
        }
        self.looks += 1;
        for core in &self.cores {
            self.pairs += u64::from(core.busy == 2 && !core.mixed);
            self.singles += u64::from(core.busy == 1);
            self.nones += u64::from(core.busy == 0 && !core.other);
        }
    }

    pub fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        let sums = [self.pairs, self.singles, self.nones];
        let looks = self.looks.max(1) as f64;
        METRICS
            .into_iter()
            .zip(sums)
            .map(move |((name, _), sum)| Metric {
                name,
                value: sum as f64 / looks,
            })
    }
}
