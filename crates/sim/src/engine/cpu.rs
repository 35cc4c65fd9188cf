//! A CPU of the engine: what it does now, until when, and how fast.

use crate::price::FULL_SPEED;
use crate::queue::NEVER;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;
use wakelab_sched::core_sched::StealSearch;

/// What `op_at` of a CPU means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The idle loop; nothing is to come but interrupts.
    Idle,
    /// The running task starts or goes on.
    Resume,
    /// The running task's operation on a channel is done.
    Op,
    /// The running task has computed enough.
    Compute,
    /// The running task has worked for enough CPU time, or to the end of its [`Op::SpinFor`].
    ///
    /// [`Op::SpinFor`]: crate::work::Op::SpinFor
    Timed,
    /// The running task spins for a mutex; its owner will say when.
    Spin,
    /// The running task goes to sleep, unless it was woken meanwhile.
    Block,
    /// The task that ran has gone, and the CPU looks for another to pull (`newidle_balance`). It is
    /// not idle yet for others, and takes no interrupt until the pass is over.
    NewIdle,
    /// The CPU is forced idle and looks for a task to steal, before it enters the idle loop. The phase
    /// ends when it has the locks for the next CPU to look at.
    CoreBalance,
    /// The running task ends.
    Exit,
}

/// A CPU: what its events touch, in one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Cpu {
    /// When the phase ends.
    pub op_at: u64,
    /// The next interrupt from another CPU, or the end of an idle state's exit.
    pub irq_at: u64,
    /// The next tick.
    pub tick_at: u64,
    /// When the task that it wakes is queued where it chose to.
    pub queue_at: u64,
    /// Instructions of the running segment at full speed, ns.
    compute: u64,
    /// Its waiting for memory, which a busy sibling does not stretch, ns.
    memory: u32,
    /// The running task, as the scheduler has it while the phase is one of a task's: kept here since
    /// every event begins with it.
    pub curr: TaskId,
    /// What happens in it more rarely.
    pub rare: Box<Rare>,
    pub phase: Phase,
    /// What it does of full-speed work with as many busy siblings as it has, of [`FULL_SPEED`].
    speed: u16,
    /// Number of busy siblings.
    pub busy_siblings: u8,
    /// It is in a task (or in the kernel between tasks), not in the idle loop.
    pub is_busy: bool,
    /// The pending interrupt is a kick for idle balancing.
    pub kicked: bool,
    /// The stopper must run: active balancing wants the running task.
    pub stop_pending: bool,
    /// Whether the idle state that it is in polls.
    pub idle_polls: bool,
}

/// What a CPU needs to go idle and back.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    /// Its capacity, 1024 for the biggest CPU of the machine: what it does of full-speed work alone.
    capacity: u64,
    /// Kernel work after the last event lasts until then.
    pub ready_at: u64,
    /// Exit latency of the idle state that it is in, ns.
    pub idle_exit: u64,
    /// When it became busy or idle.
    pub since: u64,
    /// Moving average of idle times, ns.
    pub idle_avg: u64,
    /// Time in tasks, ns.
    pub busy: u64,
    /// The CPU that a task was last sent to from here because it may not run here any more.
    pub distributed: usize,
    /// When each domain of the newly-idle balance under way is done with, ns.
    pub newidle_steps: Vec<u64>,
    /// How far it is in its search for a task to steal.
    pub stealing: StealSearch,
    /// The task that it wakes, until `queue_at`.
    pub chosen: Chosen,
}

/// A woken task between the choice of a CPU for it and its queueing there (TASK_WAKING).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    pub task: TaskId,
    pub target: CpuId,
    /// WF_SYNC, WF_MIGRATED.
    pub wake_flags: u32,
    /// The target was idle when it was chosen.
    pub was_idle: bool,
}

impl Cpu {
    /// An idle CPU; `speeds` are by the number of busy siblings, of [`FULL_SPEED`].
    pub fn new(capacity: u32, speeds: &[u64]) -> Cpu {
        let mut cpu = Cpu {
            op_at: NEVER,
            irq_at: NEVER,
            tick_at: NEVER,
            queue_at: NEVER,
            compute: 0,
            memory: 0,
            curr: TaskId::NONE,
            rare: Box::default(),
            phase: Phase::Idle,
            speed: 0,
            busy_siblings: 0,
            is_busy: false,
            kicked: false,
            stop_pending: false,
            idle_polls: true,
        };
        cpu.rare.capacity = u64::from(capacity).clamp(1, FULL_SPEED);
        cpu.set_busy_siblings(0, speeds);
        cpu
    }

    /// The next thing to happen here.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        let interrupt = self.irq_at.min(self.tick_at);
        self.op_at.min(self.queue_at).min(interrupt)
    }

    /// Begins a segment of so many ns of instructions and so many of waiting for memory.
    #[inline(always)]
    pub fn begin(&mut self, phase: Phase, start: u64, compute: u64, memory: u64) {
        self.phase = phase;
        self.compute = compute;
        debug_assert!(memory <= u64::from(u32::MAX), "a line takes no seconds");
        self.memory = memory as u32;
        self.op_at = start + self.length();
    }

    fn set_busy_siblings(&mut self, busy: u8, speeds: &[u64]) {
        self.busy_siblings = busy;
        let speed = speeds[usize::from(busy)] * self.rare.capacity / FULL_SPEED;
        self.speed = speed.clamp(1, u64::from(u16::MAX)) as u16;
    }

    #[inline(always)]
    fn length(&self) -> u64 {
        let speed = u64::from(self.speed);
        let memory = u64::from(self.memory);
        if speed == FULL_SPEED {
            self.compute + memory
        } else if self.compute < 1 << 22 {
            // A division of 32 bits is the quicker, and operations are short.
            let stretched = self.compute as u32 * FULL_SPEED as u32;
            u64::from(stretched / u32::from(self.speed)) + memory
        } else {
            self.compute * FULL_SPEED / speed + memory
        }
    }

    /// A sibling became busy or idle: what is left of the running segment is re-timed.
    pub fn sibling_changed(&mut self, now: u64, busy: bool, speeds: &[u64]) {
        let timed = matches!(self.phase, Phase::Op | Phase::Compute);
        let before = self.length();
        let siblings = if busy {
            self.busy_siblings + 1
        } else {
            self.busy_siblings - 1
        };
        self.set_busy_siblings(siblings, speeds);
        let after = self.length();
        if timed && before != after && self.op_at > now && before != 0 {
            let left = u128::from(self.op_at - now);
            self.op_at = now + (left * u128::from(after) / u128::from(before)) as u64;
        }
    }

    /// How much of the running segment's instructions are left at full speed, ns.
    pub fn compute_left(&self, now: u64) -> u64 {
        let length = self.length();
        if length == 0 || self.op_at <= now {
            return 0;
        }
        let left = u128::from(self.op_at - now);
        (left * u128::from(self.compute) / u128::from(length)) as u64
    }
}

// Four time stamps, the segment and the flags fill it: with one field more it takes two.
const _: () = assert!(size_of::<Cpu>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDS: [u64; 2] = [FULL_SPEED, FULL_SPEED / 2];

    fn cpu(capacity: u32) -> Cpu {
        Cpu::new(capacity, &SPEEDS)
    }

    #[test]
    fn a_busy_sibling_stretches_what_is_left_of_the_instructions() {
        let mut cpu = cpu(1024);
        cpu.begin(Phase::Compute, 0, 1000, 0);
        assert_eq!(cpu.op_at, 1000);
        cpu.sibling_changed(400, true, &SPEEDS);
        assert_eq!(cpu.op_at, 400 + 1200);
        cpu.sibling_changed(1000, false, &SPEEDS);
        assert_eq!(cpu.op_at, 1000 + 300);
        assert_eq!(cpu.compute_left(1100), 200);
    }

    #[test]
    fn waiting_for_memory_is_not_stretched() {
        let mut cpu = cpu(1024);
        cpu.begin(Phase::Op, 0, 0, 1000);
        cpu.sibling_changed(500, true, &SPEEDS);
        assert_eq!(cpu.op_at, 1000);
    }

    #[test]
    fn a_small_cpu_takes_longer_and_gives_back_what_is_left_at_full_speed() {
        let mut cpu = cpu(512);
        cpu.begin(Phase::Compute, 0, 1000, 100);
        assert_eq!(cpu.op_at, 2100);
        cpu.begin(Phase::Compute, 0, 1000, 0);
        assert_eq!(cpu.compute_left(1500), 250);
        cpu.sibling_changed(1000, true, &SPEEDS);
        assert_eq!(cpu.op_at, 1000 + 2000);
    }
}
