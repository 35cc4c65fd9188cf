//! The steps of a thread, from its start through delay, phases and events to its end (`thread_body`,
//! `run` and `run_event` of `rt-app.c`).

use super::log::Line;
use super::{Run, Thread, done, mask};
use crate::rtapp::file::{Class, Event, Properties, Timer};
use crate::worksleep::TIMER_SLACK;
use wakelab_machine::Ns;
use wakelab_sched::TaskId;
use wakelab_sim::{Op, Setting, SyncOp};

/// What `runtime` does between two looks at the clock.
const RUNTIME_CHUNK: Ns = Ns(32_000);

/// What rt-app does itself in each turn of a phase: it reads the clock twice and writes a line of its log.
/// A stand-in of the usual order, without which phases of nothing would take no time at all.
const LOOP_NS: Ns = Ns(1_000);

/// What a thread does when it is asked next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Begin,
    /// The barrier that all threads begin at is behind it.
    Started,
    /// Its delay is over.
    Delayed,
    /// A turn of its phase begins.
    Turn,
    /// The turn is set up.
    TurnBegins,
    /// The next event is due.
    Event,
    /// A `run` that began then is over.
    RunOver(Ns),
    /// A look at the clock in a `runtime` that began then and takes so long.
    RuntimeCheck(Ns, Ns),
    /// A timer was to wake it then.
    TimerOver(Ns),
    /// One or two more operations of the event.
    Then(SyncOp, Option<SyncOp>),
    /// It has the mutex of a barrier, by number.
    AtBarrier(u32),
    /// It has woken those that waited at a barrier.
    BarrierOpen(u32),
    /// It was woken at a barrier.
    PastBarrier(u32),
    /// It has let go of the mutex of a barrier.
    LeftBarrier(u32),
    /// It has ended, or the run has.
    End,
}

impl Run {
    pub(super) fn thread_op(&mut self, task: TaskId, thread: &mut Thread) -> Op {
        loop {
            if let Some(op) = self.step(task, thread) {
                return op;
            }
        }
    }

    /// Takes a step; the next one at once if it has no operation.
    fn step(&mut self, task: TaskId, thread: &mut Thread) -> Option<Op> {
        match thread.step {
            Step::Begin => self.begin(task, thread),
            Step::Started => self.started(thread),
            Step::Delayed => self.delayed(task, thread),
            Step::Turn => self.turn(task, thread),
            Step::TurnBegins => {
                thread.line = Line {
                    start: self.now,
                    ..Line::default()
                };
                thread.event = 0;
                thread.step = Step::Event;
                None
            }
            Step::Event => self.event(task, thread),
            Step::RunOver(began) => {
                thread.line.run.0 += self.now.0 - began.0;
                thread.step = Step::Event;
                None
            }
            Step::RuntimeCheck(began, time) => self.runtime_check(thread, began, time),
            Step::TimerOver(at) => {
                let late = thread.line.late.get_or_insert_default();
                late.0 += self.now.0 - at.0;
                thread.step = Step::Event;
                None
            }
            Step::Then(op, next) => {
                thread.step = next.map_or(Step::Event, |next| Step::Then(next, None));
                Some(Op::Sync(op))
            }
            Step::AtBarrier(number) => self.at_barrier(thread, number),
            Step::BarrierOpen(number) => self.leave_barrier(thread, number),
            Step::PastBarrier(number) => {
                self.barriers[number as usize].missing += 1;
                self.leave_barrier(thread, number)
            }
            Step::LeftBarrier(number) => {
                let at_start = number as usize + 1 == self.barriers.len();
                thread.step = if at_start { Step::Started } else { Step::Event };
                None
            }
            Step::End => Some(Op::Exit),
        }
    }

    fn begin(&mut self, task: TaskId, thread: &mut Thread) -> Option<Op> {
        if thread.forked {
            thread.step = Step::Started;
            return None;
        }
        // The first thread that the main task made.
        if task == TaskId(1) {
            self.zero = self.now;
        }
        self.enter_barrier(thread, self.barriers.len() as u32 - 1)
    }

    fn started(&mut self, thread: &mut Thread) -> Option<Op> {
        let delay = self.file.tasks[thread.task].delay;
        thread.first = Ns(self.zero.0 + delay.0);
        thread.step = Step::Delayed;
        (delay.0 > 0).then(|| Op::SleepUntil(Ns(thread.first.0 + TIMER_SLACK.0)))
    }

    /// The properties of the task are set.
    fn delayed(&mut self, task: TaskId, thread: &mut Thread) -> Option<Op> {
        let file = std::sync::Arc::clone(&self.file);
        let properties = &file.tasks[thread.task].properties;
        thread.step = Step::Turn;
        let mut setting = Setting::default();
        thread.take_scheduling(properties, &mut setting);
        thread.take_group(properties, &mut setting);
        thread.set(task, setting)
    }

    /// A turn of the phase begins, unless all loops are done: what the phase changes is set.
    fn turn(&mut self, task: TaskId, thread: &mut Thread) -> Option<Op> {
        let file = std::sync::Arc::clone(&self.file);
        let of_task = &file.tasks[thread.task];
        if done(thread.thread_loop, of_task.loops) {
            thread.step = Step::End;
            return Some(Op::Exit);
        }
        let properties = &of_task.phases[thread.phase].properties;
        thread.step = Step::TurnBegins;
        let mut setting = Setting::default();
        if thread.scheduled_by != Some(thread.phase)
            && thread.take_scheduling(properties, &mut setting)
        {
            thread.scheduled_by = Some(thread.phase);
        }
        thread.take_group(properties, &mut setting);
        let cpus = properties
            .cpus
            .as_ref()
            .or(of_task.properties.cpus.as_ref());
        let cpus = cpus.map_or(thread.inherited_cpus, |cpus| mask(cpus));
        if cpus != thread.cpus {
            thread.cpus = cpus;
            setting.cpus = Some(cpus);
        }
        thread.set(task, setting)
    }

    /// The next event of the phase, or its end.
    fn event(&mut self, task: TaskId, thread: &mut Thread) -> Option<Op> {
        let phase = &self.file.tasks[thread.task].phases[thread.phase];
        let Some(&event) = phase.events.get(thread.event) else {
            return Some(self.end_turn(task, thread));
        };
        thread.event += 1;
        self.begin_event(task, thread, event)
    }

    /// The turn goes to the log, and the thread to the next one: of this phase, of the next, or of the
    /// first again.
    fn end_turn(&mut self, task: TaskId, thread: &mut Thread) -> Op {
        self.log.add(task.index(), &thread.line, self.now);
        let task = &self.file.tasks[thread.task];
        thread.phase_loop += 1;
        if done(thread.phase_loop, task.phases[thread.phase].loops) {
            thread.phase_loop = 0;
            thread.phase += 1;
        }
        if thread.phase == task.phases.len() {
            thread.phase = 0;
            thread.thread_loop += 1;
        }
        thread.step = Step::Turn;
        Op::Compute(LOOP_NS)
    }

    fn begin_event(&mut self, task: TaskId, thread: &mut Thread, event: Event) -> Option<Op> {
        let op = match event {
            Event::Run(time) => {
                thread.line.c_duration.0 += time.0;
                thread.line.perf += self.costs.loops(time);
                thread.step = Step::RunOver(self.now);
                Op::Compute(self.costs.work(time))
            }
            Event::Runtime(time) => {
                thread.line.c_duration.0 += time.0;
                thread.line.perf += self.costs.loops(RUNTIME_CHUNK);
                thread.step = Step::RuntimeCheck(self.now, time);
                self.chunk()
            }
            Event::Sleep(time) => Op::Sleep(Ns(time.0 + thread.timer_slack().0)),
            Event::Memory(bytes) => Op::Compute(Ns(bytes * self.costs.copy_per_kib / 1024)),
            Event::Chase(hops) => Op::Compute(Ns(hops * self.costs.hop)),
            Event::Io(bytes) => {
                let writes = bytes.div_ceil(self.file.global.mem_buffer_size);
                Op::Compute(Ns(writes * self.costs.syscall))
            }
            Event::Lock(mutex) => Op::Sync(SyncOp::Lock(mutex)),
            Event::Unlock(mutex) => Op::Sync(SyncOp::Unlock(mutex)),
            Event::Signal(condvar) => Op::Sync(SyncOp::Signal(condvar)),
            Event::Broadcast(condvar) => Op::Sync(SyncOp::Broadcast(condvar)),
            Event::Wait(condvar, mutex) => Op::Sync(SyncOp::Wait(condvar, mutex)),
            Event::SignalAndWait(condvar, mutex) => {
                thread.step = Step::Then(SyncOp::Wait(condvar, mutex), None);
                Op::Sync(SyncOp::Signal(condvar))
            }
            Event::Suspend(condvar, mutex) => {
                let unlock = SyncOp::Unlock(mutex);
                thread.step = Step::Then(SyncOp::Wait(condvar, mutex), Some(unlock));
                Op::Sync(SyncOp::Lock(mutex))
            }
            Event::Resume(condvar, mutex) => {
                let unlock = SyncOp::Unlock(mutex);
                thread.step = Step::Then(SyncOp::Broadcast(condvar), Some(unlock));
                Op::Sync(SyncOp::Lock(mutex))
            }
            Event::Barrier(number) => return self.enter_barrier(thread, number),
            Event::Timer(timer) => return self.timer(thread, timer),
            Event::Yield => Op::Yield,
            Event::Fork(number) => {
                let op = self.fork(task, number);
                if matches!(op, Op::StopAfter(_)) {
                    thread.step = Step::End;
                }
                op
            }
            Event::Post(semaphore) => Op::Sync(SyncOp::Post(semaphore)),
            Event::Acquire(semaphore) => Op::Sync(SyncOp::Acquire(semaphore)),
        };
        Some(op)
    }

    fn chunk(&self) -> Op {
        Op::Compute(self.costs.work(RUNTIME_CHUNK))
    }

    /// Another chunk unless the time is over, in whole microseconds. Chunks of no loop at all take no
    /// time, and then the time is waited for.
    fn runtime_check(&mut self, thread: &mut Thread, began: Ns, time: Ns) -> Option<Op> {
        let passed = self.now.0 - began.0;
        if passed / 1000 < time.0 / 1000 {
            thread.line.perf += self.costs.loops(RUNTIME_CHUNK);
            return Some(match self.chunk() {
                Op::Compute(Ns(0)) => Op::SpinFor(Ns(time.0 - passed)),
                chunk => chunk,
            });
        }
        thread.line.run.0 += passed;
        thread.step = Step::Event;
        None
    }

    /// Sets a timer a period after its last time, and sleeps; or goes on if that is past.
    fn timer(&mut self, thread: &mut Thread, timer: Timer) -> Option<Op> {
        let slack = thread.timer_slack();
        let state = if timer.unique {
            &mut thread.timers[timer.number as usize]
        } else {
            &mut self.timers[timer.number as usize]
        };
        let next = Ns(state.next.unwrap_or(thread.first).0 + timer.period.0);
        state.next = Some(next);
        thread.line.c_period.0 += timer.period.0;
        let left = next.0 as i64 - self.now.0 as i64;
        let before = if self.file.global.cumulative_slack {
            thread.line.slack.unwrap_or(0)
        } else {
            0
        };
        thread.line.slack = Some(before + left);
        if left > 0 {
            thread.step = Step::TimerOver(next);
            return Some(Op::SleepUntil(Ns(next.0 + slack.0)));
        }
        if !state.absolute {
            state.next = Some(self.now);
        }
        thread.line.late = None;
        self.log.missed += 1;
        None
    }

    fn enter_barrier(&mut self, thread: &mut Thread, number: u32) -> Option<Op> {
        thread.step = Step::AtBarrier(number);
        let mutex = self.barriers[number as usize].objects.mutex;
        Some(Op::Sync(SyncOp::Lock(mutex)))
    }

    /// With the mutex in hand: the last to come wakes the others, and they wait.
    fn at_barrier(&mut self, thread: &mut Thread, number: u32) -> Option<Op> {
        let barrier = &mut self.barriers[number as usize];
        let objects = barrier.objects;
        if barrier.missing == 0 {
            thread.step = Step::BarrierOpen(number);
            return Some(Op::Sync(SyncOp::Broadcast(objects.condvar)));
        }
        barrier.missing -= 1;
        thread.step = Step::PastBarrier(number);
        Some(Op::Sync(SyncOp::Wait(objects.condvar, objects.mutex)))
    }

    fn leave_barrier(&mut self, thread: &mut Thread, number: u32) -> Option<Op> {
        let mutex = self.barriers[number as usize].objects.mutex;
        thread.step = Step::LeftBarrier(number);
        Some(Op::Sync(SyncOp::Unlock(mutex)))
    }
}

impl Thread {
    /// Real-time tasks have no timer slack (kernel `__setscheduler_params`), also where they run as fair.
    fn timer_slack(&self) -> Ns {
        match self.class {
            Class::Fair(_) => TIMER_SLACK,
            Class::RealTime | Class::Deadline => Ns(0),
        }
    }

    /// Takes policy, priority and slice over. Tells whether any was given.
    fn take_scheduling(&mut self, properties: &Properties, setting: &mut Setting) -> bool {
        let Properties {
            class,
            priority,
            slice,
            ..
        } = properties;
        if class.is_none() && priority.is_none() && slice.is_none() {
            return false;
        }
        self.class = class.unwrap_or(self.class);
        let policy = match self.class {
            Class::Fair(policy) => {
                self.nice = priority.map_or(self.nice, |nice| nice as i8);
                policy
            }
            Class::RealTime | Class::Deadline => {
                self.nice = -20;
                wakelab_sched::state::Policy::Normal
            }
        };
        setting.scheduler = Some((policy, self.nice));
        setting.slice = *slice;
        true
    }

    fn take_group(&mut self, properties: &Properties, setting: &mut Setting) {
        if properties.group.is_some() && properties.group != self.group {
            self.group = properties.group;
            setting.group = properties.group;
        }
    }

    /// Sets it, if there is anything to set.
    fn set(&mut self, task: TaskId, setting: Setting) -> Option<Op> {
        self.setting = setting;
        (setting != Setting::default()).then_some(Op::Set(task.0))
    }
}
