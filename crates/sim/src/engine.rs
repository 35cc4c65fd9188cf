//! The engine: events in the order of time, and what each does.
//!
//! Every CPU has one slot in the event queue: the earliest of the end of what it does now, its next
//! interrupt, and its next tick. One more slot is for timers. All state changes happen at event
//! time; what an event costs its CPU is added to the time of its next one.

mod core_sched;
mod cpu;
mod cpu_lock;
mod old_pipe;
mod ops;
mod queueing;
mod schedule;
mod session;
mod setting;
mod sync;
mod task;
mod tick;
mod timed;
mod wake;

use crate::forced_idle::ForcedIdle;
use crate::lines::{LINE_KINDS, Lines};
use crate::object::Chan;
use crate::object::sync::SyncObjects;
use crate::outcome::{HostCost, Outcome};
use crate::price::Prices;
use crate::queue::{EventQueue, NEVER};
use crate::rng::{Rng, mix};
use crate::stats::Stats;
use crate::work::Workload;
use cpu::{Cpu, Phase};
use cpu_lock::CpuLocks;
use session::Session;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::Arc;
use task::{Stage, TaskSim, Waits};
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::topology::{self, Machine};
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::balance::CpuIdle;
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::features::FeatureSet;
use wakelab_sched::placement::wf;
use wakelab_sched::{Cookie, Release, Rules, Sched, TaskId, TgId, Tunables};

/// How tasks are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each command in an autogroup of its own, as one started by `setsid` or from a terminal of its
    /// own on a desktop or server default.
    Autogroup,
    /// All in the root group.
    Root,
    /// Each command in a cgroup of its own with these shares (1024 is the default weight).
    Cgroup {
        /// `cpu.shares`.
        shares: u64,
    },
}

/// Where the tasks are when the measured part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Where making them left them: packed, since each has gone to sleep before the next is made.
    /// Balancing takes seconds to spread them over a big machine.
    Forked,
    /// Spread evenly over the CPUs that they may use, by chance from the seed, and running: where
    /// balancing gets them within the first seconds. For runs that are too short to wait for it.
    Spread,
}

/// What a run simulates, apart from the workload.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Its domains, built by the release's rules.
    pub topology: Arc<SchedTopology>,
    /// The kernel.
    pub release: Release,
    /// `sched_features`.
    pub features: FeatureSet,
    /// Groups.
    pub grouping: Grouping,
    /// Where tasks are when the measured part begins.
    pub start: Start,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Why a run gave no result.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RunError {
    /// All tasks sleep, and nothing will ever wake one.
    #[error(
        "the workload can never end: at {at} all {tasks} tasks left sleep and no timer is armed; task {task} waits {what}"
    )]
    Stuck {
        /// When.
        at: Ns,
        /// How many tasks are left.
        tasks: usize,
        /// One of them.
        task: u32,
        /// What it waits for.
        what: String,
    },
    /// It cannot be run on this machine, or came to a point from which it cannot go on.
    #[error("{0}")]
    Refused(String),
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// The state of a run.
pub struct Engine<W> {
    sched: Sched,
    prices: Prices,
    lines: Lines,
    queue: EventQueue,
    cpus: Vec<Cpu>,
    tasks: Vec<TaskSim>,
    chans: Vec<Chan>,
    work: W,
    timers: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    timer_seq: u64,
    siblings: Vec<Vec<CpuId>>,
    cpu_locks: CpuLocks,
    now: u64,
    start: Start,
    seed: u64,
    tick_ns: u64,
    /// Kernel work before `schedule`, to be paid with the switch, ns.
    lead: u64,
    in_irq: bool,
    preempting: bool,
    sessions: Vec<Session>,
    /// The measured session has ended.
    over: bool,
    sync: SyncObjects,
    groups: Vec<TgId>,
    stats: Stats,
    started_at: u64,
    ended_at: u64,
    pulled_at_start: [u64; 3],
    events: u64,
    switches_before: u64,
}

/// When the workload starts: a machine that has been up and idle for a while, so that no time stamp
/// is 0, which the kernel takes for "none".
const BOOTED_NS: u64 = 1_000_000_000;

/// The random stream that spreads tasks; those of tasks are their numbers.
const SPREAD_STREAM: u64 = 1 << 40;

/// How many events pass between two looks at whether to stop.
const CANCEL_INTERVAL: u64 = 1 << 16;

impl<W: Workload> Engine<W> {
    /// A machine at rest, with the workload's first task ready to run on a CPU that the seed chooses.
    pub fn new(config: &RunConfig, work: W) -> Engine<W> {
        let machine = &config.machine;
        let ncpu = machine.ncpu();
        let mut tun = Tunables::for_kernel(config.release, ncpu, machine.hz);
        tun.almost_idle_load = config.features.almost_idle_load;
        let sessions = work.sessions();
        let working_sets: Vec<u64> = sessions.iter().map(|s| s.working_set_kib).collect();
        let mut prices = Prices::of(machine, &working_sets);
        if let Some(limit) = work.idle_exit_limit() {
            prices.limit_idle_exit(limit);
        }
        tun.scan_cost = Ns(prices.scan_cpu);
        let rules = Rules::of(config.release);
        let topology = Arc::clone(&config.topology);
        let mut sched = Sched::new(topology, rules, config.features.features, tun);
        sched.core.cookies.reserve(work.last_cookie());
        let sessions = session::begin(&mut sched, config.grouping, &sessions);
        let groups = setting::add_groups(&mut sched, &work.groups());
        let tick_ns = tun.tick.0;
        let cpu = |cpu: &topology::Cpu| Cpu::new(cpu.capacity, &prices.smt_speed);
        let cpus = machine.cpus.iter().map(cpu).collect();
        let first_place = prices.place(CpuId(0));
        let mut engine = Engine {
            lines: Lines::new(ncpu, sched.llc.len(), sched.tgs.len(), first_place),
            prices,
            queue: EventQueue::new(ncpu + 1),
            cpus,
            tasks: Vec::with_capacity(work.max_tasks()),
            chans: work.channels(),
            sync: work.sync_objects(),
            groups,
            work,
            timers: BinaryHeap::new(),
            timer_seq: 0,
            siblings: siblings(machine),
            cpu_locks: CpuLocks::new(sessions.len(), ncpu),
            now: BOOTED_NS + mix(config.seed) % tick_ns,
            start: config.start,
            seed: config.seed,
            tick_ns,
            lead: 0,
            in_irq: false,
            preempting: false,
            sessions,
            over: false,
            stats: Stats::default(),
            started_at: 0,
            ended_at: 0,
            pulled_at_start: [0; 3],
            events: 0,
            switches_before: 0,
            sched,
        };
        for chan in &mut engine.chans {
            // Whoever made them.
            chan.last_place = first_place;
        }
        engine.boot(ncpu);
        engine
    }

    fn boot(&mut self, ncpu: usize) {
        let session = self.sessions.len() - 1;
        let cpu = CpuId::from_index((mix(self.seed ^ 1) % ncpu as u64) as usize);
        let spec = TaskSpec {
            tg: self.sessions[session].group,
            mm: 0,
            policy: Default::default(),
            nice: 0,
            cpus: CpuMask::first_n(ncpu),
            cpu,
            kthread: false,
            cookie: Cookie::NONE,
        };
        let now = Ns(self.now);
        for index in 0..ncpu {
            self.sched.update_rq_clock(CpuId::from_index(index), now);
            self.sched.touch.clear();
            self.sched.nohz_balance_enter_idle(CpuId::from_index(index));
            self.sched.update_idle_core(CpuId::from_index(index));
            self.cpus[index].rare.since = self.now;
            self.sched.rqs[index].idle_stamp = self.now;
        }
        // What the periodic balance writes while an LLC has nothing to do: look at all of it.
        for (shared, span) in self.sched.llc.iter_mut().zip(&self.sched.topo.llcs) {
            shared.nr_idle_scan = span.weight() as i32;
        }
        let first = self.add_task(&spec, session as u16, 0);
        self.sched.wake_up_new_task(first, cpu);
        self.cpus[cpu.index()].irq_at = self.now + 1;
        self.arm(cpu);
    }

    /// Runs the workload to its end.
    ///
    /// # Errors
    /// [`RunError::Stuck`] if no task can ever run again, [`RunError::Cancelled`] if `cancelled`
    /// said so.
    pub fn run(mut self, cancelled: &dyn Fn() -> bool) -> Result<Outcome, RunError> {
        loop {
            for _ in 0..CANCEL_INTERVAL {
                if !self.step()? {
                    return match self.work.failure() {
                        Some(why) => Err(RunError::Refused(why)),
                        None => Ok(self.outcome()),
                    };
                }
            }
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            if self.measured_sleeps_for_ever() {
                return Err(self.stuck());
            }
        }
    }

    /// Handles the next event. Tells whether any task is left.
    ///
    /// # Errors
    /// [`RunError::Stuck`] if no task can ever run again.
    #[inline]
    pub fn step(&mut self) -> Result<bool, RunError> {
        if self.over {
            return Ok(false);
        }
        let (slot, at) = self.queue.pop();
        if at == NEVER {
            return Err(self.stuck());
        }
        debug_assert!(at >= self.now, "time goes forward");
        self.now = at;
        self.events += 1;
        self.look_ahead();
        if slot == self.cpus.len() {
            self.timer_fires();
        } else {
            self.cpu_event(CpuId::from_index(slot));
        }
        Ok(!self.over)
    }

    /// Touches what the next event will begin with, if this one brings none before it: the loads,
    /// each of which gives the address of the next, then go on beside this event's own work.
    #[inline(always)]
    fn look_ahead(&self) {
        let next = self.queue.peek();
        if let (Some(slot), Some(rq)) = (self.cpus.get(next), self.sched.rqs.get(next)) {
            let task = self.tasks.get(slot.curr.0 as usize);
            let chan = task.and_then(|task| self.chans.get(task.chan.index()));
            black_box((rq.need_resched, chan.map(|chan| chan.last_place)));
        }
    }

    /// The scheduler's state, to look at between events.
    pub fn sched(&self) -> &Sched {
        &self.sched
    }

    /// The time of the last event.
    pub fn now(&self) -> Ns {
        Ns(self.now)
    }

    #[inline(always)]
    fn cpu_event(&mut self, cpu: CpuId) {
        let slot = &self.cpus[cpu.index()];
        if slot.queue_at <= self.now {
            return self.queue_woken(cpu);
        }
        if slot.irq_at <= self.now {
            return self.irq(cpu);
        }
        if slot.tick_at <= self.now {
            return self.tick(cpu);
        }
        match slot.phase {
            Phase::Op => self.op_done(cpu),
            Phase::Resume => self.run_task(cpu, 0),
            Phase::Compute | Phase::Timed => self.compute_done(cpu),
            Phase::Block => self.block_done(cpu),
            Phase::Exit => self.exit_done(cpu),
            Phase::NewIdle | Phase::CoreBalance => self.looked_for_work(cpu),
            Phase::Idle | Phase::Spin => unreachable!("these phases wait for others"),
        }
    }

    fn compute_done(&mut self, cpu: CpuId) {
        let p = self.sched.rq(cpu).curr;
        let stage = &mut self.tasks[p.index()].stage;
        if !matches!(stage, Stage::LockCpu(_)) {
            *stage = Stage::Next;
        }
        self.run_task(cpu, 0);
    }

    /// Gives the tasks of a session that await the go to CPUs in a random order, each CPU in turn, and
    /// starts them there: woken by the one task that gives it, they would first pile up around it.
    fn spread(&mut self, session: u16) {
        let mut cpus: Vec<CpuId> = (0..self.cpus.len()).map(CpuId::from_index).collect();
        let mut rng = Rng::stream(self.seed, SPREAD_STREAM);
        for last in (1..cpus.len()).rev() {
            cpus.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut turn = cpus.iter().cycle();
        let tasks = &self.tasks;
        let awaits = |p: &TaskId| tasks[p.index()].session == session;
        let chans = self.chans.iter_mut();
        let chans = chans.filter(|chan| chan.waiting.pollers.first().is_some_and(awaits));
        let pollers = chans.map(|chan| std::mem::take(&mut chan.waiting.pollers));
        for p in pollers.flatten().collect::<Vec<_>>() {
            if self.sched.is_delayed(p) {
                let cpu = self.sched.tasks[p.index()].cpu;
                self.sched.update_rq_clock(cpu, Ns(self.now));
                self.sched.finish_delayed(p);
            }
            let task = &self.sched.tasks[p.index()];
            if task.on_rq || task.on_cpu || self.tasks[p.index()].waking {
                self.tasks[p.index()].woken = true;
                continue;
            }
            let allowed = task.cpus;
            let mut round = turn.by_ref().take(cpus.len());
            let next = round.find(|&&cpu| allowed.contains(cpu));
            self.start_at(p, next.copied().unwrap_or(task.cpu));
        }
    }

    /// Queues a sleeping task on a CPU, without a placement.
    fn start_at(&mut self, p: TaskId, cpu: CpuId) {
        let moved = self.sched.tasks[p.index()].cpu != cpu;
        if moved {
            self.sched.set_task_cpu(p, cpu);
        }
        let task = &mut self.tasks[p.index()];
        task.waits = Waits::Nothing;
        task.placed.queued_at = self.now;
        task.placed.warm_cpu = cpu;
        self.sched.update_rq_clock(cpu, Ns(self.now));
        let flags = if moved { wf::MIGRATED } else { 0 };
        self.sched.ttwu_do_activate(cpu, p, flags);
        let slot = &mut self.cpus[cpu.index()];
        slot.irq_at = slot.irq_at.min(self.now + 1);
        self.arm(cpu);
    }

    /// The measured part begins: counters start from nothing.
    fn start_measuring(&mut self) {
        self.switches_before += self.stats.switches;
        let forced = std::mem::take(&mut self.stats.forced).restarted();
        self.stats = Stats::default();
        self.stats.forced = forced;
        self.lines.reset_counters();
        self.started_at = self.now;
        self.pulled_at_start = self.pulled();
        self.others_wait_from_here();
        self.sched.reset_forceidle(Ns(self.now));
        for cpu in &mut self.cpus {
            cpu.rare.busy = 0;
            if cpu.is_busy {
                cpu.rare.since = self.now;
            }
        }
    }

    /// Tasks pulled by newly-idle, by periodic and NOHZ, and by active balancing so far.
    fn pulled(&self) -> [u64; 3] {
        let stats = &self.sched.lb.stats;
        let periodic = stats.pulled(CpuIdle::Idle) + stats.pulled(CpuIdle::NotIdle);
        [
            stats.pulled(CpuIdle::NewlyIdle),
            periodic,
            stats.active_pushed,
        ]
    }

    /// The result of a run that is over.
    pub fn outcome(mut self) -> Outcome {
        let end = self.ended_at;
        for cpu in &mut self.cpus {
            if cpu.is_busy {
                cpu.rare.busy += end.saturating_sub(cpu.rare.since);
            }
        }
        let time = end - self.started_at;
        let busy = self.cpus.iter().map(|cpu| cpu.rare.busy).sum();
        let before = self.pulled_at_start;
        let pulled = self.pulled();
        let pulled = std::array::from_fn(|kind| pulled[kind] - before[kind]);
        // A migration is counted where perf counts it: at each change of a task's CPU.
        self.stats.migrations +=
            pulled.iter().sum::<u64>() + self.sched.core.stolen + self.sched.core.pushed;
        self.sched.account_forceidle_now(Ns(self.now));
        let mut metrics = self.work.metrics(Ns(time));
        metrics.extend(self.stats.metrics(time, busy, self.cpus.len(), pulled));
        Outcome {
            metrics,
            audit: self.stats.audit(),
            lines: self.lines.report(time),
            log: self.work.log(Ns(time)),
            forced_idle: ForcedIdle::of(&self.sched, &self.stats.forced, time),
            host: HostCost {
                events: self.events,
                switches: self.switches_before + self.stats.switches,
                simulated: Ns(self.now),
            },
        }
    }

    fn stuck(&self) -> RunError {
        // Of each session one that others wait for: it says more than the one that waits for all.
        let asleep = |session: u16| {
            let of = move |t: &TaskSim| t.session == session && t.waits != Waits::Nothing;
            let all = move || self.tasks.iter().enumerate().filter(move |(_, t)| of(t));
            let blocked = all().find(|(_, task)| task.waits != Waits::ForOthers);
            blocked.or_else(|| all().next())
        };
        let asleep = (0..self.sessions.len()).find_map(|session| asleep(session as u16));
        let (task, what) = asleep.map_or((0, "for a CPU".to_owned()), |(number, task)| {
            let what = match task.waits {
                Waits::ToRead(chan) => format!("to read from channel {}", chan.0),
                Waits::ToWrite(chan) => format!("to write to channel {}", chan.0),
                Waits::ForLock(chan) => format!("for the lock of channel {}", chan.0),
                Waits::ForMutex(id) => format!("for mutex {id}"),
                Waits::ForSignal(id) => format!("for a signal of condition variable {id}"),
                Waits::ForPost(id) => format!("for a post of semaphore {id}"),
                Waits::ForUnpark => "to be unparked".to_owned(),
                Waits::ForTimer => "for a timer".to_owned(),
                Waits::ForOthers => "for the others to end".to_owned(),
                Waits::Nothing => "for nothing".to_owned(),
            };
            (number as u32, what)
        });
        RunError::Stuck {
            at: Ns(self.now),
            tasks: self.sessions.iter().map(|session| session.live).sum(),
            task,
            what,
        }
    }
}

fn siblings(machine: &Machine) -> Vec<Vec<CpuId>> {
    let of = |cpu: CpuId| machine.siblings(cpu).iter().filter(|&s| s != cpu).collect();
    (0..machine.ncpu())
        .map(|index| of(CpuId::from_index(index)))
        .collect()
}

/// Kinds of shared lines, for reports.
pub fn line_kinds() -> &'static [&'static str] {
    &LINE_KINDS
}
