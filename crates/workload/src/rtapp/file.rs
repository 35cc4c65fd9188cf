//! What a file says, once it is read.

use wakelab_machine::Ns;
use wakelab_sched::state::Policy;
use wakelab_sim::Group;

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub global: Global,
    pub tasks: Vec<Task>,
    /// How many mutexes, condition variables and semaphores there are.
    pub mutexes: u32,
    pub condvars: u32,
    pub semaphores: u32,
    /// Those that all tasks share, and for each whether it is absolute.
    pub timers: Vec<bool>,
    pub barriers: Vec<Barrier>,
    /// The task that each name of a `fork` is.
    pub forks: Vec<usize>,
    pub groups: Vec<Group>,
    /// The highest CPU that is named, with the place.
    pub highest_cpu: Option<(u32, String)>,
    /// What the user should know before trusting the result.
    pub warnings: Vec<String>,
}

/// `global`.
#[derive(Clone, Debug)]
pub(super) struct Global {
    /// None: as long as the tasks take.
    pub duration: Option<Ns>,
    pub calibration: Calibration,
    pub policy: Class,
    pub pi_enabled: bool,
    pub cumulative_slack: bool,
    pub mem_buffer_size: u64,
}

impl Default for Global {
    fn default() -> Self {
        Global {
            duration: None,
            calibration: Calibration::Cpu(0),
            policy: Class::Fair(Policy::Normal),
            pi_enabled: false,
            cumulative_slack: false,
            mem_buffer_size: 4 << 20,
        }
    }
}

/// What a microsecond of `run` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calibration {
    /// What this CPU does in a microsecond.
    Cpu(u32),
    /// As many loops of so many ns as fit in it.
    NsPerLoop(u64),
}

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Fair(Policy),
    /// SCHED_FIFO and SCHED_RR.
    RealTime,
    Deadline,
}

impl Class {
    /// By its name.
    pub fn named(name: &str) -> Option<Class> {
        Some(match name {
            "SCHED_OTHER" => Class::Fair(Policy::Normal),
            "SCHED_BATCH" => Class::Fair(Policy::Batch),
            "SCHED_IDLE" => Class::Fair(Policy::Idle),
            "SCHED_FIFO" | "SCHED_RR" => Class::RealTime,
            "SCHED_DEADLINE" => Class::Deadline,
            _ => return None,
        })
    }
}

/// How often something is repeated; none: for ever.
pub(super) type Loops = Option<u64>;

/// An object of `tasks`.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub name: String,
    pub instances: u64,
    pub delay: Ns,
    pub loops: Loops,
    pub properties: Properties,
    pub phases: Vec<Phase>,
    /// Its timers that each instance has of its own, and for each whether it is absolute.
    pub timers: Vec<bool>,
}

/// An object of `phases`, or the events that stand in the task itself.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub loops: Loops,
    pub properties: Properties,
    pub events: Vec<Event>,
}

/// How a task is scheduled from the start, or from a phase on; what is none stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Properties {
    pub class: Option<Class>,
    /// Given, or the policy's default; of the fair policies a nice level.
    pub priority: Option<i32>,
    pub slice: Option<Ns>,
    pub cpus: Option<Vec<u32>>,
    pub group: Option<u32>,
}

/// A `barrier` is a mutex and a condition variable with a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Barrier {
    pub mutex: u32,
    pub condvar: u32,
    /// How many must come: each instance for each place where it is named.
    pub users: u64,
}

/// One thing that a task does. What it names is a number in the tables of [`File`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Run(Ns),
    Runtime(Ns),
    Sleep(Ns),
    /// So many bytes are written to memory.
    Memory(u64),
    /// So many lines are fetched, each only when the one before is there.
    Chase(u64),
    /// So many bytes are written to the device.
    Io(u64),
    Lock(u32),
    Unlock(u32),
    Signal(u32),
    Broadcast(u32),
    Wait(u32, u32),
    SignalAndWait(u32, u32),
    Barrier(u32),
    Timer(Timer),
    Suspend(u32, u32),
    Resume(u32, u32),
    Yield,
    Fork(u32),
    Post(u32),
    Acquire(u32),
}

/// A `timer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timer {
    /// Each instance has its own, among [`Task::timers`]; else it is among [`File::timers`].
    pub unique: bool,
    pub number: u32,
    pub period: Ns,
}
