//! What the engine keeps of a task beside the scheduler's record.

use crate::object::ChanId;
use crate::rng::Rng;
use wakelab_machine::CpuId;
use wakelab_sched::placement::Reason;

/// Where a task goes on when it runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// With the next thing that the workload says.
    Next,
    /// With the same operation, from its system call on.
    Again,
    /// By taking the channel's lock again, for what is left to write.
    Lock,
    /// By looking whether what it waited for is there, and only then taking the channel's lock
    /// (`wait_event_interruptible_exclusive`).
    Recheck,
    /// By trying the lock once and sleeping for it (spinning ended for a reschedule).
    LockSlow,
    /// By trying the lock as the sleeper that it is.
    LockWaiter,
    /// With the lock in hand.
    Granted,
    /// With so much left to compute, ns at full speed.
    Compute(u64),
    /// With so much CPU time left to work, ns.
    Work(u64),
    /// By reading the clock until then.
    SpinUntil(u64),
    /// By trying for the mutex that it slept for or must have again.
    Mutex(u32),
    /// By trying for the semaphore that it slept for.
    Semaphore(u32),
    /// By giving way to others.
    Yield,
    /// On another CPU, where the stopper takes it: the setting of this number does not let it run here.
    Leave(u32),
    /// By trying the program's lock of a CPU.
    LockCpu(CpuId),
}

/// What an operation on a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Read,
}

/// Why a task sleeps, to tell when nothing can wake it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Nothing,
    ToRead(ChanId),
    ToWrite(ChanId),
    ForLock(ChanId),
    ForTimer,
    ForUnpark,
    ForMutex(u32),
    ForSignal(u32),
    ForPost(u32),
    ForOthers,
}

/// A task: what each of its operations touches, in one cache line, and its last placement and waits
/// in the next one.
#[derive(Clone, Debug)]
#[repr(C, align(128))]
pub(super) struct TaskSim {
    pub rng: Rng,
    pub stage: Stage,
    pub chan: ChanId,
    /// Bytes left of the operation.
    pub left: u32,
    pub waits: Waits,
    pub session: u16,
    pub kind: Kind,
    /// The system call under way has not slept yet.
    pub first: bool,
    /// It has slept for the channel, so it must wake the next one when it is done.
    pub wake_next: bool,
    /// It was unparked and has not parked since.
    pub permit: bool,
    /// It was woken before it slept.
    pub woken: bool,
    /// It is on a wake list, to be queued by its CPU.
    pub waking: bool,
    /// The wake-up that put it there moved it to another CPU (`sched_remote_wakeup`).
    pub remote_wakeup: bool,
    /// Its last placement and waits.
    pub placed: Placed,
}

/// Where a task was placed last, and since when it waits.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Placed {
    /// When it became runnable, ns; for the wait in the run queue.
    pub queued_at: u64,
    /// When it was woken, ns, until it runs.
    pub woken_at: u64,
    /// Since when it does not run in the middle of an [`Op::SpinFor`], ns.
    ///
    /// [`Op::SpinFor`]: crate::work::Op::SpinFor
    pub off_since: Option<u64>,
    /// Why it was placed where it was.
    pub reason: Reason,
    /// Where.
    pub cpu: CpuId,
    /// Whether that CPU was idle.
    pub idle: bool,
    /// The CPU that its caches are warm on.
    pub warm_cpu: CpuId,
}

/// No wake-up to be accounted.
pub(super) const NOT_WOKEN: u64 = u64::MAX;

/// Where a session's number stands in the number of a random stream, above those of all other purposes.
const SESSION_SHIFT: u32 = 42;

impl TaskSim {
    /// The task of a session with this number in it. Its random numbers do not depend on what other
    /// sessions there are.
    pub fn new(seed: u64, session: u16, number: u32, warm_cpu: CpuId) -> TaskSim {
        let stream = u64::from(session) << SESSION_SHIFT | u64::from(number);
        TaskSim {
            rng: Rng::stream(seed, stream),
            stage: Stage::Next,
            placed: Placed {
                queued_at: 0,
                woken_at: NOT_WOKEN,
                off_since: None,
                reason: Reason::SlowPath,
                cpu: warm_cpu,
                idle: false,
                warm_cpu,
            },
            chan: ChanId(0),
            left: 0,
            waits: Waits::Nothing,
            session,
            kind: Kind::Read,
            first: true,
            wake_next: false,
            permit: false,
            woken: false,
            waking: false,
            remote_wakeup: false,
        }
    }
}
