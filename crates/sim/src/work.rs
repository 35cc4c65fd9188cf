//! What a workload tells the engine: the next thing that a task does.

use crate::object::sync::{SyncObjects, SyncOp};
use crate::object::{Chan, ChanId};
use crate::outcome::Metric;
use crate::rng::Rng;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::core_sched::prctl::{CoreSchedCall, CoreSchedError};
use wakelab_sched::state::Policy;
use wakelab_sched::{Cookie, Sched, TaskId};

/// One thing that a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Write so many bytes (more than none), in as many system calls as it takes.
    Write(ChanId, u32),
    /// Read so many bytes (more than none), in as many system calls as it takes.
    Read(ChanId, u32),
    /// Wait until there is something to read, and leave it there (`poll`).
    Poll(ChanId),
    /// Compute for so much time of a full-speed CPU.
    Compute(Ns),
    /// Run for so much CPU time, whatever gets done in it: a busy sibling or a small CPU does not
    /// stretch it. For work that watches its thread's CPU clock.
    Work(Ns),
    /// Read the clock over and over until so much wall time has passed since now. Each time that the
    /// task runs again after it did not run for a while, [`Workload::ran_again`] is told.
    SpinFor(Ns),
    /// Sleep for so long.
    Sleep(Ns),
    /// Sleep until a time on the clock that [`Workload::time_is`] tells; not at all if it is past.
    SleepUntil(Ns),
    /// Lock, wait, signal or post.
    Sync(SyncOp),
    /// Change how the task is scheduled, as [`Workload::setting`] says of this number.
    Set(u32),
    /// `sched_yield`.
    Yield,
    /// Take the time, which costs nothing: [`Workload::time_is`] is told.
    Time,
    /// Wait for a wake-up by [`Op::Unpark`]; one that came before is taken at once.
    Park,
    /// Wake a task that is parked, or will be. Wake-ups that a task has not taken yet are one.
    Unpark(TaskId),
    /// `FUTEX_WAKE` on a word that one task waits on by [`Op::Park`]: unlike [`Op::Unpark`] it leaves
    /// nothing to a task that does not wait, which has the word's value to look at.
    FutexWake(TaskId),
    /// Take the lock that the program keeps for the CPU that it runs on, spinning in user space until
    /// it is free, and the lock of the CPU where it is by then if it was moved meanwhile.
    LockCpu,
    /// Let go of the lock taken by [`Op::LockCpu`].
    UnlockCpu,
    /// Make a task; [`Workload::spawned`] is told which.
    Fork(Spawn),
    /// Call `prctl(PR_SCHED_CORE)`; [`Workload::core_sched_done`] is told what came of it.
    CoreSched(CoreSchedCall),
    /// Let the workload look at the scheduler ([`Workload::observe`]), in no time.
    Observe,
    /// The measured part begins, if the task is of the measured session.
    Start,
    /// The session ends so long from now, whatever its tasks do then: for workloads whose tasks never
    /// end. With the measured session the run ends.
    StopAfter(Ns),
    /// Wait until all other tasks of the session have ended.
    Join,
    /// End.
    Exit,
}

impl Op {
    /// The same with other numbers for what it names: for workloads that are put together.
    pub(crate) fn renumbered(
        self,
        chan: impl Fn(ChanId) -> ChanId,
        task: impl Fn(TaskId) -> TaskId,
        role: impl Fn(u32) -> u32,
        sync: impl Fn(SyncOp) -> SyncOp,
        setting: impl Fn(u32) -> u32,
    ) -> Op {
        match self {
            Op::Write(id, bytes) => Op::Write(chan(id), bytes),
            Op::Read(id, bytes) => Op::Read(chan(id), bytes),
            Op::Poll(id) => Op::Poll(chan(id)),
            Op::Unpark(other) => Op::Unpark(task(other)),
            Op::FutexWake(other) => Op::FutexWake(task(other)),
            Op::Fork(spawn) => Op::Fork(Spawn {
                role: role(spawn.role),
                ..spawn
            }),
            Op::Sync(op) => Op::Sync(sync(op)),
            Op::Set(number) => Op::Set(setting(number)),
            Op::CoreSched(call) => Op::CoreSched(CoreSchedCall {
                pid: call.pid.map(task),
                ..call
            }),
            Op::Compute(_)
            | Op::Yield
            | Op::Work(_)
            | Op::SpinFor(_)
            | Op::Sleep(_)
            | Op::SleepUntil(_)
            | Op::Time
            | Op::Park
            | Op::Observe
            | Op::LockCpu
            | Op::UnlockCpu
            | Op::Start
            | Op::StopAfter(_)
            | Op::Join
            | Op::Exit => self,
        }
    }
}

/// A task to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The workload's own number for what the task shall do.
    pub role: u32,
    /// Whether it shares its maker's address space (a thread).
    pub thread: bool,
}

/// How a task is to be scheduled, where it differs from the task that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// -20 ..= 19.
    pub nice: Option<i8>,
    /// SCHED_NORMAL, SCHED_BATCH or SCHED_IDLE.
    pub policy: Option<Policy>,
    /// Where it may run; CPUs that do not exist are left out.
    pub cpus: Option<CpuMask>,
    /// The core-scheduling cookie ([`Cookie::NONE`] takes it away).
    pub cookie: Option<Cookie>,
    /// The CPU to start on, instead of the one that the kernel would choose: as a task that was
    /// pinned there when it was made, and then let go. It must be one where the task may run.
    pub start: Option<CpuId>,
    /// The session that it begins or joins, by its number in [`Workload::sessions`].
    pub session: Option<u16>,
}

/// Tasks that belong together: a command with all that it makes. Each has an autogroup of its own,
/// or a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// See [`Workload::working_set_kib`].
    pub working_set_kib: u64,
    /// They are kernel threads, which are in the root group and have no address space.
    pub kernel: bool,
}

/// What a task changes of how it is scheduled, where it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its policy and nice level, -20 ..= 19.
    pub scheduler: Option<(Policy, i8)>,
    /// With these, the slice that it asks for instead of the default one (EEVDF).
    pub slice: Option<Ns>,
    /// Where it may run. CPUs that do not exist are left out; if none is left, it stays as it was.
    pub cpus: Option<CpuMask>,
    /// The group that it joins, of [`Workload::groups`].
    pub group: Option<u32>,
}

/// A task group (cgroup) of the default weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The group that it is in, of those before it; none: the root.
    pub parent: Option<u32>,
}

/// A workload: what every task does, one thing after the other.
///
/// The engine makes the first task, with role 0, by itself.
pub trait Workload {
    /// The channels that exist at the start, by [`ChanId`].
    fn channels(&self) -> Vec<Chan>;

    /// An upper bound of the number of tasks, for tables.
    fn max_tasks(&self) -> usize;

    /// How much of a task's memory is warm in its CPU's private caches, KiB: what it must fetch
    /// again after it moved.
    fn working_set_kib(&self) -> u64;

    /// The sessions that its tasks are in. The first is the measured one: the run ends when its tasks
    /// have ended. The first task of all is in the last one.
    fn sessions(&self) -> Vec<Session> {
        vec![Session {
            working_set_kib: self.working_set_kib(),
            kernel: false,
        }]
    }

    /// A task was made for this role.
    fn spawned(&mut self, role: u32, task: TaskId);

    /// How the task for this role is to be scheduled.
    fn attributes(&self, _role: u32) -> Attributes {
        Attributes::default()
    }

    /// The highest cookie that [`Workload::attributes`] gives to any role. Those that the kernel makes
    /// ([`Op::CoreSched`]) come after it, so that nobody shares one by chance.
    fn last_cookie(&self) -> Cookie {
        Cookie::NONE
    }

    /// The mutexes, condition variables and semaphores that exist from the start, for [`Op::Sync`].
    fn sync_objects(&self) -> SyncObjects {
        SyncObjects::default()
    }

    /// The groups that tasks may join by [`Op::Set`]. Where tasks are made, [`RunConfig`] says.
    ///
    /// [`RunConfig`]: crate::RunConfig
    fn groups(&self) -> Vec<Group> {
        Vec::new()
    }

    /// What [`Op::Set`] of this number changes.
    fn setting(&self, _number: u32) -> Setting {
        Setting::default()
    }

    /// What the task does next. It is asked once each time that it has done the last thing.
    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op;

    /// A task runs again in the middle of an [`Op::SpinFor`], after it did not run for so long.
    fn ran_again(&mut self, _task: TaskId, _gap: Ns) {}

    /// A session that is not the measured one has reached its [`Op::StopAfter`]: its tasks are to end.
    fn stopped(&mut self, _session: u16) {}

    /// Why the workload could not go on and stopped before its time, if it did: the run then fails.
    fn failure(&self) -> Option<String> {
        None
    }

    /// What an [`Op::CoreSched`] of the task gave: the cookie that it told or gave.
    fn core_sched_done(&mut self, _task: TaskId, _result: Result<Cookie, CoreSchedError>) {}

    /// What the scheduler's state is at an [`Op::Observe`] of the task. `task_of` gives the scheduler's number of one of
    /// the workload's tasks.
    fn observe(&mut self, _task: TaskId, _sched: &Sched, _task_of: &dyn Fn(TaskId) -> TaskId) {}

    /// The time that an [`Op::Time`] took.
    fn time_is(&mut self, _task: TaskId, _now: Ns) {}

    /// Lines that the program itself would have written in a run of so much time, beside what follows
    /// from its metrics.
    fn log(&self, _time: Ns) -> Vec<String> {
        Vec::new()
    }

    /// A task got a CPU after it waited for one so long.
    fn waited(&mut self, _task: TaskId, _wait: Ns) {}

    /// The longest exit of an idle state that the workload lets CPUs enter (`/dev/cpu_dma_latency`),
    /// if it limits it.
    fn idle_exit_limit(&self) -> Option<Ns> {
        None
    }

    /// What the workload itself measured in a run of so much time, for the outcome; always the same
    /// names in the same order.
    fn metrics(&self, _time: Ns) -> Vec<Metric> {
        Vec::new()
    }
}

/// Workloads whose operations are long enough not to mind the call share one engine.
impl Workload for Box<dyn Workload> {
    fn channels(&self) -> Vec<Chan> {
        self.as_ref().channels()
    }

    fn max_tasks(&self) -> usize {
        self.as_ref().max_tasks()
    }

    fn working_set_kib(&self) -> u64 {
        self.as_ref().working_set_kib()
    }

    fn sessions(&self) -> Vec<Session> {
        self.as_ref().sessions()
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        self.as_mut().spawned(role, task);
    }

    fn attributes(&self, role: u32) -> Attributes {
        self.as_ref().attributes(role)
    }

    fn last_cookie(&self) -> Cookie {
        self.as_ref().last_cookie()
    }

    fn sync_objects(&self) -> SyncObjects {
        self.as_ref().sync_objects()
    }

    fn groups(&self) -> Vec<Group> {
        self.as_ref().groups()
    }

    fn setting(&self, number: u32) -> Setting {
        self.as_ref().setting(number)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        self.as_mut().next_op(task, rng)
    }

    fn ran_again(&mut self, task: TaskId, gap: Ns) {
        self.as_mut().ran_again(task, gap);
    }

    fn stopped(&mut self, session: u16) {
        self.as_mut().stopped(session);
    }

    fn failure(&self) -> Option<String> {
        self.as_ref().failure()
    }

    fn core_sched_done(&mut self, task: TaskId, result: Result<Cookie, CoreSchedError>) {
        self.as_mut().core_sched_done(task, result);
    }

    fn observe(&mut self, task: TaskId, sched: &Sched, task_of: &dyn Fn(TaskId) -> TaskId) {
        self.as_mut().observe(task, sched, task_of);
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        self.as_mut().time_is(task, now);
    }

    fn log(&self, time: Ns) -> Vec<String> {
        self.as_ref().log(time)
    }

    fn waited(&mut self, task: TaskId, wait: Ns) {
        self.as_mut().waited(task, wait);
    }

    fn idle_exit_limit(&self) -> Option<Ns> {
        self.as_ref().idle_exit_limit()
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        self.as_ref().metrics(time)
    }
}
