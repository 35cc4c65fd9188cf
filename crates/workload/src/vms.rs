//! Virtual machines on a host, as the host's scheduler sees them: a thread a vCPU, all threads of a
//! machine with one core-scheduling cookie, a VMM thread beside them, and the hwlat tracer in a guest.
//!
//! *Measures* how often a guest does not get its CPU though the host has enough: noise and run delay.
//! *Does not measure* what virtualisation itself costs: exits and guest ticks take no time.
//!
//! A vCPU thread blocks when its guest has nothing to do there, and a timer or an interrupt of the
//! guest wakes it. `stress-ng --cpu 0` in a guest keeps each of its vCPUs busy: guest ticks are handled
//! in the thread, which does not block for them, so that to the host it never sleeps. To the host the
//! same set-up of plain threads, without any guest, is the same.

mod cores;
mod hwlat;
mod options;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::main_task::MainTask;
use crate::printed;
use crate::quantity::{Cycle, Written, below};
use crate::spin::FOR_EVER;
use crate::worksleep::TIMER_SLACK;
use cores::Census;
pub use hwlat::Hwlat;
use hwlat::Noise;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::core_sched::prctl::{Command, CoreSchedCall, Scope};
use wakelab_sched::{Cookie, Sched, TaskId};
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Metric, Op, Outcome, Workload};

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vms {
    /// `--vms`: virtual machines.
    pub vms: u32,
    /// `--vcpus`: vCPUs of each.
    pub vcpus: u32,
    /// `--busy`: machines, from the first on, whose vCPUs are busy. The others' are idle.
    pub busy: u32,
    /// `--load`: what a busy vCPU does, if it blocks now and then; none: it never does.
    pub load: Option<Cycle>,
    /// `--vmm`: what each machine's VMM thread does, if there is one.
    pub vmm: Option<Cycle>,
    /// `--hwlat`: the tracer in the last machine.
    pub hwlat: Option<Hwlat>,
    /// `--cookies`: whether each machine has a cookie, and since when.
    pub cookies: Cookies,
    /// `--start`: where busy vCPUs are at the start.
    pub start: StartPlace,
    /// `-t`: how long; none is for ever, for what runs beside another workload.
    pub time: Option<Ns>,
}

/// Whether each machine has a core-scheduling cookie, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// It has none.
    None,
    /// Its threads are made with it.
    Vm,
    /// The main task gives it to them by `prctl` when all are made: by then they run where they were placed
    /// without cookies.
    VmByPrctl,
}

impl Cookies {
    /// As `--cookies` says it, if there are any.
    fn word(self) -> Option<&'static str> {
        match self {
            Cookies::None => None,
            Cookies::Vm => Some("vm"),
            Cookies::VmByPrctl => Some("prctl"),
        }
    }
}

/// Where busy vCPUs are at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPlace {
    /// Where making them puts them.
    AsItComes,
    /// Machine by machine on whole cores.
    Matched,
}

/// The metrics of a run with the tracer.
pub const METRICS: &[(&str, &str)] = {
    let [a, b, c, d] = hwlat::METRICS;
    let [e, f, g] = cores::METRICS;
    &[a, b, c, d, e, f, g]
};

impl Vms {
    /// Reads the words after `vms`.
    ///
    /// # Errors
    /// Unknown, missing or valueless options, values out of range or that do not fit each other.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vms, WorkloadError> {
        options::parse(words)
    }

    /// Threads of all machines.
    pub fn tasks(&self) -> u64 {
        u64::from(self.vms) * u64::from(self.threads_of_each())
    }

    fn threads_of_each(&self) -> u32 {
        self.vcpus + u32::from(self.vmm.is_some())
    }

    /// The call of this number by which the main task gives cookies, if there are so many: of each machine
    /// one to its first thread, which the main task then takes over and hands on to the others.
    fn prctl(&self, number: u32) -> Option<CoreSchedCall> {
        let calls = self.threads_of_each() + 1;
        let (vm, call) = (number / calls, number % calls);
        let (command, thread) = match call {
            0 => (Command::Create, 0),
            1 => (Command::ShareFrom, 0),
            _ => (Command::ShareTo, call - 1),
        };
        (vm < self.vms).then_some(CoreSchedCall {
            command,
            pid: Some(TaskId(vm * self.threads_of_each() + thread + 1)),
            scope: Scope::Thread,
        })
    }

    /// The thread that a role is: its machine, and its vCPU or none for the VMM thread.
    fn thread(&self, role: u32) -> (u32, Option<u32>) {
        let (vm, thread) = (
            (role - 1) / self.threads_of_each(),
            (role - 1) % self.threads_of_each(),
        );
        (vm, (thread < self.vcpus).then_some(thread))
    }
}

impl Benchmark for Vms {
    fn cookies(&self) -> Option<String> {
        self.cookies.word().map(|word| format!("--cookies {word}"))
    }

    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Vms {
            time: self.time.map(|time| crate::scaled_time(time, factor)),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let mut line = format!(
            "vms --vms {} --vcpus {} --busy {}",
            self.vms, self.vcpus, self.busy
        );
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                line.push_str(&format!(" --{option} {value}"));
            }
        };
        add("load", self.load.map(|cycle| cycle.to_string()));
        add("hwlat", self.hwlat.map(|hwlat| hwlat.to_string()));
        add("vmm", self.vmm.map(|cycle| cycle.to_string()));
        let cookies = match self.cookies {
            Cookies::Vm => None,
            other => Some(other.word().unwrap_or("none")),
        };
        add("cookies", cookies.map(str::to_owned));
        let matched = self.start == StartPlace::Matched;
        add("start", matched.then(|| "matched".to_owned()));
        if let Some(time) = self.time {
            line.push_str(&format!(" -t {}", Written(time)));
        }
        line
    }

    fn lacks_end(&self) -> Option<WorkloadError> {
        crate::lacks_timeout(options::NAME, self.time)
    }

    fn begin(&self, machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self, machine))
    }

    /// The noise, if the tracer is there.
    fn printed(&self, outcome: &Outcome) -> String {
        let time = printed::seconds(printed::micros(outcome));
        let noise = outcome
            .metrics
            .iter()
            .find(|metric| metric.name == "noise_pct");
        match (self.hwlat, noise) {
            (Some(_), Some(noise)) => format!("hwlat: noise {:.3} % in {time} s\n", noise.value),
            (Some(_), None) => format!("hwlat: no window ended in {time} s\n"),
            (None, _) => format!("{time} s\n"),
        }
    }
}

/// What moving on to the next vCPU takes the guest: its timer's interrupt, the tracer's wake-up, and
/// its migration to the next vCPU with an interrupt there. A stand-in: some exits of about 1 us each.
const GUEST_MOVE: Ns = Ns(10_000);

/// What a thread does next.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The main task.
    Main,
    /// A vCPU of an idle guest.
    Idle,
    /// A vCPU that never blocks.
    Busy,
    /// Work that comes back: at first a part of a period passes, so that threads are not in step.
    Offset(Cycle, Ns),
    Run(Cycle, Ns),
    Rest(Cycle, Ns),
    /// A vCPU of the tracer's machine: waits for the tracer,
    Await,
    /// looks around at its start,
    WindowBegins,
    /// has it for a window,
    Window,
    /// looks around at its end,
    WindowEnds,
    /// and for the rest of the period,
    WindowOver,
    /// moves it on to the next,
    Move,
    /// which it wakes.
    Kick,
}

/// A run of virtual machines.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Vms,
    main: MainTask,
    /// How many calls of `prctl` the main task has made.
    prctl: u32,
    states: Vec<State>,
    /// CPUs of each core.
    cores: Vec<Vec<CpuId>>,
    noise: Option<Noise>,
    census: Census,
    /// The first vCPU thread of the tracer's machine.
    first_vcpu: u32,
}

impl Run {
    /// A run from its start on a machine.
    pub fn new(spec: &Vms, machine: &Machine) -> Run {
        let cpus = (0..machine.ncpu()).map(CpuId::from_index);
        let first_vcpu = (spec.vms - 1) * spec.threads_of_each() + 1;
        // The tracer wakes others of its machine, so that all must be there when it starts.
        let tracer = spec.hwlat.map(|_| TaskId(first_vcpu));
        let main = MainTask::new(spec.tasks() as u32, true).stopping_after(spec.time);
        let firsts = cpus.filter(|&cpu| machine.siblings(cpu).first() == Some(cpu));
        let cores: Vec<Vec<CpuId>> = firsts
            .map(|cpu| machine.siblings(cpu).iter().collect())
            .collect();
        Run {
            spec: *spec,
            main: main.unparking(tracer),
            prctl: 0,
            states: Vec::new(),
            census: Census::new(&cores),
            cores,
            noise: spec.hwlat.map(Noise::new),
            first_vcpu,
        }
    }

    /// What a thread begins with.
    fn first_state(&self, role: u32) -> State {
        if role == 0 {
            return State::Main;
        }
        let (vm, vcpu) = self.spec.thread(role);
        let busy = vm < self.spec.busy;
        let traced = self.spec.hwlat.is_some() && vm + 1 == self.spec.vms;
        match (vcpu, self.spec.vmm, self.spec.load) {
            (None, Some(vmm), _) => State::Offset(vmm, TIMER_SLACK),
            // A vCPU's timer is the kernel's own, which has no slack.
            (Some(_), _, Some(load)) if busy => State::Offset(load, Ns(0)),
            (Some(_), _, None) if busy => State::Busy,
            (Some(_), ..) if traced => State::Await,
            _ => State::Idle,
        }
    }

    /// Where a busy vCPU starts: each machine on whole cores, one after the other, from the first
    /// core again when there are no more.
    fn matched_cpu(&self, role: u32) -> Option<CpuId> {
        let (vm, vcpu) = self.spec.thread(role);
        let threads = self.cores.first()?.len();
        let vcpu = vcpu.filter(|_| vm < self.spec.busy)? as usize;
        let cores_of_each = (self.spec.vcpus as usize).div_ceil(threads);
        let core = vm as usize * cores_of_each + vcpu / threads;
        let core = &self.cores[core % self.cores.len()];
        Some(core[vcpu % threads % core.len()])
    }

    fn main_op(&mut self) -> Op {
        if self.spec.cookies == Cookies::VmByPrctl
            && self.main.has_made_all()
            && let Some(call) = self.spec.prctl(self.prctl)
        {
            self.prctl += 1;
            return Op::CoreSched(call);
        }
        self.main.next_op()
    }

    /// The next operation of a thread, and its state after that.
    fn step(&mut self, task: TaskId, state: State, hwlat: Hwlat, rng: &mut Rng) -> (Op, State) {
        match state {
            State::Main => (self.main_op(), state),
            State::Idle => (Op::Park, state),
            State::Busy => (FOR_EVER, state),
            State::Offset(cycle, slack) => {
                let offset = Ns(below(rng, cycle.period.0));
                (Op::Sleep(offset), State::Run(cycle, slack))
            }
            State::Run(cycle, slack) => (Op::Work(cycle.run), State::Rest(cycle, slack)),
            State::Rest(cycle, slack) => {
                let rest = cycle.period.0 - cycle.run.0 + slack.0;
                (Op::Sleep(Ns(rest)), State::Run(cycle, slack))
            }
            State::Await => (Op::Park, State::WindowBegins),
            State::WindowBegins => (Op::Observe, State::Window),
            State::Window => (Op::SpinFor(hwlat.width), State::WindowEnds),
            State::WindowEnds => (Op::Observe, State::WindowOver),
            State::WindowOver => {
                if let Some(noise) = &mut self.noise {
                    noise.window_over();
                }
                (Op::Sleep(Ns(hwlat.period.0 - hwlat.width.0)), State::Move)
            }
            State::Move if self.spec.vcpus == 1 => (Op::Work(GUEST_MOVE), State::WindowBegins),
            State::Move => (Op::Work(GUEST_MOVE), State::Kick),
            State::Kick => {
                let next = (task.0 - self.first_vcpu + 1) % self.spec.vcpus;
                (Op::Unpark(TaskId(self.first_vcpu + next)), State::Await)
            }
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.spec.tasks() as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(task.0, role, "the main task makes the others in order");
        self.states.push(self.first_state(role));
    }

    fn attributes(&self, role: u32) -> Attributes {
        let cookie = Cookie(u64::from(self.spec.thread(role).0) + 1);
        Attributes {
            cookie: (self.spec.cookies == Cookies::Vm).then_some(cookie),
            start: match self.spec.start {
                StartPlace::AsItComes => None,
                StartPlace::Matched => self.matched_cpu(role),
            },
            ..Attributes::default()
        }
    }

    fn last_cookie(&self) -> Cookie {
        let cookies =
            (1..=self.spec.tasks() as u32).filter_map(|role| self.attributes(role).cookie);
        cookies.max().unwrap_or(Cookie::NONE)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        let state = self.states[task.index()];
        let hwlat = self.spec.hwlat.unwrap_or_default();
        let (op, next) = self.step(task, state, hwlat, rng);
        self.states[task.index()] = next;
        op
    }

    fn ran_again(&mut self, _task: TaskId, gap: Ns) {
        if let Some(noise) = &mut self.noise {
            noise.gap(gap);
        }
    }

    fn observe(&mut self, _task: TaskId, sched: &Sched, task_of: &dyn Fn(TaskId) -> TaskId) {
        let spec = self.spec;
        let vcpu = |role| {
            let (vm, vcpu) = spec.thread(role);
            vcpu.map(|_| (task_of(TaskId(role)), vm < spec.busy))
        };
        self.census
            .look(sched, (1..=spec.tasks() as u32).filter_map(vcpu));
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        let Some(noise) = self.noise else {
            return Vec::new();
        };
        let mut metrics = noise.metrics(time);
        metrics.extend(self.census.metrics());
        metrics
    }
}

#[cfg(test)]
mod tests;
