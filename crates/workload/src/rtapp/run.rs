//! What rt-app's threads do: a state machine for each, which takes the events of its phases one by one.

mod log;
mod step;

use super::file::{Barrier, Calibration, Class, Event, File, Loops, Phase, Task};
use crate::options::MAX_TASKS;
use log::{Line, Log};
use std::sync::Arc;
use step::Step;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::TaskId;
use wakelab_sched::state::Policy;
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Group, Metric, Op, Setting, Spawn, SyncCounts, SyncObjects, Workload};

pub(super) use log::METRICS;

/// How often a `fork` of one name may be taken (`FORKS_LIMIT`).
const MAX_FORKS: u32 = 1024;

/// A run of rt-app.
#[derive(Clone, Debug)]
pub(super) struct Run {
    file: Arc<File>,
    costs: Costs,
    main: Main,
    /// The running threads, by task; the main task has none.
    threads: Vec<Option<Thread>>,
    barriers: Vec<BarrierState>,
    /// The timers that all threads share.
    timers: Vec<TimerState>,
    /// How often each name of a `fork` was taken.
    forks: Vec<u32>,
    /// The task that will be spawned next inherits the CPUs of this one.
    forker: TaskId,
    /// Of how many forks of its name it will be the last.
    fork_number: u32,
    now: Ns,
    /// When the first thread said that it starts.
    zero: Ns,
    log: Log,
    /// Why the run came to an end before its time.
    failure: Option<String>,
}

/// What the machine makes of events, ns.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Capacity of the CPU that `run` is calibrated on, or none: loops of so many ns.
    calibration: Calibration,
    calibrated: u64,
    copy_per_kib: u64,
    syscall: u64,
    hop: u64,
    all_cpus: CpuMask,
}

/// The thread that makes the others.
#[derive(Clone, Debug)]
struct Main {
    started: bool,
    /// The task whose next instance is to be made, and how many of it are.
    task: usize,
    instance: u64,
    duration: Option<Ns>,
    joined: bool,
}

/// A `barrier`, or the one at the start.
#[derive(Clone, Copy, Debug)]
struct BarrierState {
    objects: Barrier,
    /// Others that must come before the next one may go on.
    missing: u64,
}

/// A `timer`.
#[derive(Clone, Copy, Debug, Default)]
struct TimerState {
    next: Option<Ns>,
    absolute: bool,
}

/// A thread.
#[derive(Clone, Debug)]
struct Thread {
    task: usize,
    forked: bool,
    /// After the task's name in its own (`<task>-0`, `<task>-2-1`).
    suffix: String,
    step: Step,
    /// It has just taken the time.
    knows_time: bool,
    phase: usize,
    phase_loop: u64,
    thread_loop: u64,
    event: usize,
    timers: Vec<TimerState>,
    /// Its timers count from here.
    first: Ns,
    class: Class,
    nice: i8,
    /// The phase whose scheduling it has taken.
    scheduled_by: Option<usize>,
    group: Option<u32>,
    cpus: CpuMask,
    inherited_cpus: CpuMask,
    setting: Setting,
    line: Line,
}

impl Run {
    /// A run from its start, on a machine that has the CPUs that the file names.
    /// With `logs` it writes what rt-app logs.
    pub fn new(file: &Arc<File>, machine: &Machine, logs: bool) -> Run {
        let costs = Costs::of(file, machine);
        let state = |objects: Barrier| BarrierState {
            objects,
            missing: objects.users.saturating_sub(1),
        };
        let start = Barrier {
            mutex: file.mutexes,
            condvar: file.condvars,
            users: file.tasks.iter().map(|task| task.instances).sum(),
        };
        let barriers = file.barriers.iter().copied().chain([start]);
        Run {
            costs,
            main: Main {
                started: false,
                task: 0,
                instance: 0,
                duration: file.global.duration,
                joined: false,
            },
            threads: Vec::new(),
            barriers: barriers.map(state).collect(),
            timers: file
                .timers
                .iter()
                .map(|&absolute| TimerState::of(absolute))
                .collect(),
            forks: vec![0; file.forks.len()],
            forker: TaskId(0),
            fork_number: 0,
            now: Ns(0),
            zero: Ns(0),
            log: Log::new(file.tasks.iter().any(Task::has_timer), logs),
            failure: None,
            file: Arc::clone(file),
        }
    }

    fn main_op(&mut self) -> Op {
        let main = &mut self.main;
        if !std::mem::replace(&mut main.started, true) {
            return Op::Start;
        }
        while let Some(task) = self.file.tasks.get(main.task) {
            if main.instance < task.instances {
                main.instance += 1;
                self.forker = TaskId(0);
                return Op::Fork(Spawn {
                    role: 1 + main.task as u32,
                    thread: true,
                });
            }
            (main.task, main.instance) = (main.task + 1, 0);
        }
        if let Some(duration) = main.duration.take() {
            return Op::StopAfter(duration);
        }
        if std::mem::replace(&mut main.joined, true) {
            return Op::Exit;
        }
        Op::Join
    }

    /// Ends the run with an error.
    fn fail(&mut self, why: String) -> Op {
        self.failure = Some(why);
        Op::StopAfter(Ns(0))
    }

    /// A new thread for a `fork` of this number.
    fn fork(&mut self, task: TaskId, number: u32) -> Op {
        let forks = &mut self.forks[number as usize];
        let target = self.file.forks[number as usize];
        let name = &self.file.tasks[target].name;
        *forks += 1;
        if *forks > MAX_FORKS {
            let why = format!("rt-app: task '{name}' is forked more than {MAX_FORKS} times");
            return self.fail(why);
        }
        if self.threads.len() as u64 >= MAX_TASKS {
            let why = format!("rt-app: more than {MAX_TASKS} threads");
            return self.fail(why);
        }
        let fork = *forks;
        self.forker = task;
        self.fork_number = fork;
        Op::Fork(Spawn {
            role: 1 + (self.file.tasks.len() + target) as u32,
            thread: true,
        })
    }
}

impl TimerState {
    fn of(absolute: bool) -> TimerState {
        TimerState {
            next: None,
            absolute,
        }
    }
}

impl Task {
    fn has_timer(&self) -> bool {
        let events = |phase: &Phase| {
            phase
                .events
                .iter()
                .any(|event| matches!(event, Event::Timer(_)))
        };
        self.phases.iter().any(events)
    }
}

impl Costs {
    fn of(file: &File, machine: &Machine) -> Costs {
        let ns = |figure: &wakelab_machine::costs::Figure| figure.value.round().max(0.0) as u64;
        let calibrated = match file.global.calibration {
            Calibration::Cpu(cpu) => machine
                .cpus
                .get(cpu as usize)
                .map_or(1024, |cpu| cpu.capacity),
            Calibration::NsPerLoop(_) => 1024,
        };
        Costs {
            calibration: file.global.calibration,
            calibrated: calibrated.into(),
            copy_per_kib: ns(&machine.costs.copy_ns_per_kib),
            syscall: ns(&machine.costs.syscall_ns),
            hop: ns(&machine.costs.transfer_llc_ns),
            all_cpus: CpuMask::first_n(machine.ncpu()),
        }
    }

    /// How many loops `loadwait` makes in so long. How long a loop takes on a CPU that is to be calibrated no
    /// machine's file tells: there it is a microsecond.
    fn loops(&self, time: Ns) -> u64 {
        match self.calibration {
            Calibration::Cpu(_) => time.0 / 1000,
            Calibration::NsPerLoop(each) => time.0 / each,
        }
    }

    /// `loadwait`: the work that takes so long on the CPU that was calibrated, in time of a full-speed
    /// one. Of loops with a given length only whole ones are done, second by second.
    fn work(&self, time: Ns) -> Ns {
        const SECOND: u64 = 1_000_000_000;
        match self.calibration {
            Calibration::Cpu(_) => {
                Ns((u128::from(time.0) * u128::from(self.calibrated) / 1024) as u64)
            }
            Calibration::NsPerLoop(each) => {
                let (seconds, rest) = (time.0 / SECOND, time.0 % SECOND);
                Ns((seconds * (SECOND / each) + rest / each) * each)
            }
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.file
            .tasks
            .iter()
            .map(|task| task.instances as usize)
            .sum::<usize>()
            + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    /// Those of the file, and of the barrier at the start.
    fn sync_objects(&self) -> SyncObjects {
        SyncObjects::new(SyncCounts {
            mutexes: self.file.mutexes + 1,
            inherit: self.file.global.pi_enabled,
            condvars: self.file.condvars + 1,
            semaphores: self.file.semaphores,
        })
    }

    fn groups(&self) -> Vec<Group> {
        self.file.groups.clone()
    }

    fn setting(&self, number: u32) -> Setting {
        let thread = self.threads.get(number as usize).and_then(Option::as_ref);
        thread.map_or_else(Setting::default, |thread| thread.setting)
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(task.index(), self.threads.len());
        if role == 0 {
            return self.threads.push(None);
        }
        let number = role as usize - 1;
        let forked = number >= self.file.tasks.len();
        let number = number % self.file.tasks.len();
        let forker = self
            .threads
            .get(self.forker.index())
            .and_then(Option::as_ref);
        let cpus = forker.map_or(self.costs.all_cpus, |thread| thread.cpus);
        let timers = &self.file.tasks[number].timers;
        self.threads.push(Some(Thread {
            task: number,
            forked,
            suffix: if forked {
                format!("{}-{}", self.threads.len() - 1, self.fork_number)
            } else {
                (self.threads.len() - 1).to_string()
            },
            step: Step::Begin,
            knows_time: false,
            phase: 0,
            phase_loop: 0,
            thread_loop: 0,
            event: 0,
            timers: timers
                .iter()
                .map(|&absolute| TimerState::of(absolute))
                .collect(),
            first: Ns(0),
            class: Class::Fair(Policy::Normal),
            nice: 0,
            scheduled_by: None,
            group: None,
            cpus,
            inherited_cpus: cpus,
            setting: Setting::default(),
            line: Line::default(),
        }));
    }

    fn time_is(&mut self, _task: TaskId, now: Ns) {
        self.now = now;
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        // Out of its place while it is worked on: it may look at everything else of the run.
        let Some(mut thread) = self.threads[task.index()].take() else {
            return self.main_op();
        };
        // What a thread does next may depend on the time, which it takes first.
        thread.knows_time = !thread.knows_time;
        let op = if thread.knows_time {
            Op::Time
        } else {
            self.thread_op(task, &mut thread)
        };
        self.threads[task.index()] = Some(thread);
        op
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn metrics(&self, _time: Ns) -> Vec<Metric> {
        self.log.metrics()
    }

    /// The log of each thread after the other, each under the name of its file.
    fn log(&self, _time: Ns) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            let (Some(thread), Some(log)) = (thread, self.log.written(index, self.zero)) else {
                continue;
            };
            let task = &self.file.tasks[thread.task];
            lines.push(format!(
                "==> rt-app-{}-{}.log <==",
                task.name, thread.suffix
            ));
            lines.push(thread.policy_line());
            lines.extend(log);
        }
        if self.log.left_out() > 0 && !lines.is_empty() {
            lines.push(format!("# {} lines more", self.log.left_out()));
        }
        lines
    }
}

impl Thread {
    /// The first line of its log, with what it ran as in the end.
    fn policy_line(&self) -> String {
        let policy = match self.class {
            Class::Fair(Policy::Batch) => "SCHED_BATCH",
            Class::Fair(Policy::Idle) => "SCHED_IDLE",
            Class::Fair(Policy::Normal) | Class::RealTime | Class::Deadline => "SCHED_OTHER",
        };
        format!("# Policy : {policy} priority : {}", self.nice)
    }
}

/// Whether so many times are enough.
fn done(times: u64, loops: Loops) -> bool {
    loops.is_some_and(|loops| times >= loops)
}

fn mask(cpus: &[u32]) -> CpuMask {
    let mut mask = CpuMask::default();
    cpus.iter()
        .for_each(|&cpu| mask.set(CpuId::from_index(cpu as usize)));
    mask
}
