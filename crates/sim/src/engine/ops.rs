//! What a running task does: system calls on channels, computing, sleeping, making tasks, ending.

use super::Engine;
use super::cpu::{Cpu, Phase};
use super::task::{Kind, Stage, TaskSim, Waits};
use crate::object::mutex::Next;
use crate::object::{Chan, ChanId, Content};
use crate::price::{Place, Prices};
use crate::queue::NEVER;
use crate::work::{Op, Workload};
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::TaskId;
use wakelab_sched::placement::wf;

/// Cache lines that a pipe operation moves from the CPU that last held the pipe, one after the
/// other: `struct pipe_inode_info` has the mutex and `rd_wait` in its first line, `wr_wait`, `head`
/// and `tail` in its second; then the `pipe_buffer` entry, and the message itself, whose lines
/// stream and count as one. (Layout of 64-bit kernels, include/linux/pipe_fs_i.h.)
const PIPE_LINES: u64 = 4;

/// The same for a stream socket: the socket's lock and queue, `sk_wmem_alloc`, two lines of
/// `sk_buff`, and the message. (net/unix/af_unix.c, include/linux/skbuff.h.)
const SOCKET_LINES: u64 = 5;

/// The same for TCP: the sender's lock and write queue, the receiver's lock and receive queue, two
/// lines of `sk_buff`, and the message. (include/net/sock.h, include/linux/skbuff.h.)
const TCP_LINES: u64 = 5;

/// The same for UDP: the receiver's queue with its account of memory, two lines of `sk_buff`, and the
/// datagram.
const UDP_LINES: u64 = 4;

/// Spread of the instructions' time from one operation to the next, parts of 1024 either way. A
/// stand-in: real paths differ by cache and branch misses; with none, all senders walk in step.
const JITTER: u64 = 102;

/// An operation goes straight on to the next if its wake-ups took no longer than this. Longer ones
/// end in an event of their own, so that nothing is taken far ahead of its time.
pub(super) const MAX_LEAD: u64 = 200;

impl<W: Workload> Engine<W> {
    /// The running task of a CPU starts or goes on, `lead` ns after the event.
    pub(super) fn run_task(&mut self, cpu: CpuId, lead: u64) {
        let p = self.sched.rq(cpu).curr;
        debug_assert!(p.is_some());
        if self.sched.rq(cpu).need_resched {
            return self.preempt(cpu);
        }
        match self.tasks[p.index()].stage {
            Stage::Next => self.next_op(cpu, p, lead),
            Stage::Again => self.enter(cpu, p, lead),
            Stage::Lock => self.lock(cpu, p, lead),
            Stage::Recheck => self.recheck(cpu, p, lead),
            Stage::LockSlow => self.lock_slow(cpu, p),
            Stage::LockWaiter => self.lock_waiter(cpu, p),
            Stage::Granted => self.hold(cpu, p, self.now + lead),
            Stage::Compute(left) => self.compute(cpu, p, left, lead),
            Stage::Work(left) => self.work_for(cpu, p, left, lead),
            Stage::SpinUntil(end) => self.spin_again(cpu, p, end, lead),
            Stage::Mutex(id) => self.lock_mutex(cpu, p, id, true, lead),
            Stage::Semaphore(id) => self.acquire(cpu, p, id, lead),
            Stage::Yield => self.give_way(cpu, p),
            Stage::Leave(number) => self.leave_cpu(cpu, p, number),
            Stage::LockCpu(of) => self.lock_cpu(cpu, p, of, lead),
        }
    }

    #[inline(always)]
    fn next_op(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        let task = &mut self.tasks[p.index()];
        let op = loop {
            match self.work.next_op(p, &mut task.rng) {
                Op::Time => self.work.time_is(p, Ns(self.now + lead)),
                op => break op,
            }
        };
        match op {
            Op::Write(chan, bytes) => self.begin_channel_op(cpu, p, Kind::Write, chan, bytes, lead),
            Op::Read(chan, bytes) => self.begin_channel_op(cpu, p, Kind::Read, chan, bytes, lead),
            other => self.begin_other_op(cpu, p, other, lead),
        }
    }

    /// Begins what is no operation on a channel.
    #[inline(never)]
    fn begin_other_op(&mut self, cpu: CpuId, p: TaskId, op: Op, lead: u64) {
        let task = &mut self.tasks[p.index()];
        match op {
            Op::Write(..) | Op::Read(..) | Op::Time => unreachable!("`next_op` takes these"),
            Op::Compute(ns) => self.compute(cpu, p, ns.0, lead),
            Op::Work(ns) => self.work_for(cpu, p, ns.0, lead),
            Op::SpinFor(ns) => self.spin_until(cpu, p, self.now + lead + ns.0),
            Op::Fork(spawn) => {
                let cost = self.fork(cpu, p, spawn);
                self.resume_at(cpu, self.now + lead + cost);
            }
            Op::CoreSched(call) => self.core_sched_call(cpu, p, call, lead),
            Op::Observe => {
                self.work.observe(p, &self.sched, &|task| task);
                self.next_op(cpu, p, lead);
            }
            Op::Start => {
                self.start_session(p);
                self.resume_at(cpu, self.now + lead);
            }
            Op::Poll(chan) => {
                let empty = self.chans[chan.index()].is_empty();
                if empty {
                    self.chans[chan.index()].waiting.pollers.push(p);
                    self.block(cpu, p, Waits::ToRead(chan), Stage::Next, self.now + lead);
                } else {
                    self.resume_at(cpu, self.now + lead + self.prices.syscall);
                }
            }
            Op::Sleep(ns) => {
                self.arm_timer(p, self.now + lead + ns.0);
                self.block(cpu, p, Waits::ForTimer, Stage::Next, self.now + lead);
            }
            Op::SleepUntil(at) if at.0 <= self.now + lead => {
                self.resume_at(cpu, self.now + lead + self.prices.syscall);
            }
            Op::SleepUntil(at) => {
                self.arm_timer(p, at.0);
                self.block(cpu, p, Waits::ForTimer, Stage::Next, self.now + lead);
            }
            Op::Sync(op) => self.sync_op(cpu, p, op, lead),
            Op::Set(number) => self.set(cpu, p, number, lead),
            Op::Yield => {
                self.tasks[p.index()].stage = Stage::Yield;
                self.resume_at(cpu, self.now + lead + self.prices.syscall);
            }
            Op::Park if std::mem::take(&mut task.permit) => {
                self.resume_at(cpu, self.now + lead + self.prices.syscall);
            }
            Op::Park => self.block(cpu, p, Waits::ForUnpark, Stage::Next, self.now + lead),
            Op::Unpark(other) => {
                let cost = self.unpark(cpu, other, lead) + self.prices.syscall;
                self.resume_at(cpu, self.now + lead + cost);
            }
            Op::FutexWake(other) => {
                let cost = self.futex_wake(cpu, other, lead) + self.prices.syscall;
                self.resume_at(cpu, self.now + lead + cost);
            }
            Op::LockCpu => self.lock_cpu(cpu, p, cpu, lead),
            Op::UnlockCpu => {
                let cost = self.unlock_cpu(cpu, p);
                self.resume_at(cpu, self.now + lead + cost);
            }
            Op::StopAfter(ns) => {
                self.stop_session_at(p, self.now + lead + ns.0);
                self.resume_at(cpu, self.now + lead);
            }
            Op::Join if self.joins(p) => {
                self.block(cpu, p, Waits::ForOthers, Stage::Next, self.now + lead);
            }
            Op::Join => self.resume_at(cpu, self.now + lead),
            Op::Exit => {
                let at = self.now + lead + self.prices.syscall;
                self.set_phase(cpu, Phase::Exit, at);
            }
        }
    }

    fn compute(&mut self, cpu: CpuId, p: TaskId, ns: u64, lead: u64) {
        self.tasks[p.index()].stage = Stage::Next;
        let start = self.now + lead;
        self.cpus[cpu.index()].begin(Phase::Compute, start, ns, 0);
        self.arm(cpu);
    }

    fn begin_channel_op(
        &mut self,
        cpu: CpuId,
        p: TaskId,
        kind: Kind,
        chan: ChanId,
        bytes: u32,
        lead: u64,
    ) {
        debug_assert!(bytes > 0, "a workload reads and writes something");
        let task = &mut self.tasks[p.index()];
        task.kind = kind;
        task.chan = chan;
        task.left = bytes;
        self.enter(cpu, p, lead);
    }

    /// A system call begins.
    #[inline(always)]
    fn enter(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        let task = &mut self.tasks[p.index()];
        task.first = true;
        task.wake_next = false;
        let lead = lead + self.prices.syscall;
        self.lock(cpu, p, lead);
    }

    /// Takes the channel's lock, spins for it, or goes to sleep for it.
    #[inline(always)]
    fn lock(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        let task = &mut self.tasks[p.index()];
        let id = task.chan;
        let chan = &mut self.chans[id.index()];
        let at = self.now + lead;
        if let Content::Pipe(_) = chan.content
            && chan.mutex.try_lock(p)
        {
            let slot = &mut self.cpus[cpu.index()];
            let own = self.prices.pipe_op;
            let memory = begin_held(
                task,
                chan,
                (slot, self.prices.place(cpu)),
                &self.prices,
                at,
                (PIPE_LINES, own),
            );
            self.stats.stalled += memory;
            return self.queue.set(cpu.index(), slot.next());
        }
        self.lock_contended(cpu, p, at)
    }

    /// As [`Self::lock`], for a pipe whose lock is taken and for all other channels.
    fn lock_contended(&mut self, cpu: CpuId, p: TaskId, at: u64) {
        let task = &self.tasks[p.index()];
        let id = task.chan;
        let chan = &mut self.chans[id.index()];
        let locks = chan.content.locks(task.kind == Kind::Write);
        if !locks || chan.mutex.try_lock(p) {
            return self.hold(cpu, p, at);
        }
        if matches!(chan.content, Content::Tcp(_)) {
            // `__lock_sock`: no spinning.
            chan.mutex.wait(p);
            return self.block(cpu, p, Waits::ForLock(id), Stage::LockWaiter, at);
        }
        let sleeps = matches!(chan.content, Content::Pipe(_));
        if sleeps && self.sched.rq(cpu).need_resched {
            self.tasks[p.index()].stage = Stage::LockSlow;
            return self.preempt(cpu);
        }
        chan.mutex.spin(p, cpu, at);
        self.tasks[p.index()].stage = Stage::LockSlow;
        self.set_phase(cpu, Phase::Spin, NEVER);
    }

    /// After the spinning was cut short: one more try, then sleep.
    fn lock_slow(&mut self, cpu: CpuId, p: TaskId) {
        let id = self.tasks[p.index()].chan;
        let mutex = &mut self.chans[id.index()].mutex;
        if mutex.try_lock(p) {
            return self.hold(cpu, p, self.now);
        }
        mutex.wait(p);
        self.block(cpu, p, Waits::ForLock(id), Stage::LockWaiter, self.now);
    }

    /// A sleeper for the lock was woken (or goes on after a preemption).
    fn lock_waiter(&mut self, cpu: CpuId, p: TaskId) {
        let id = self.tasks[p.index()].chan;
        let now = self.now;
        let chan = &mut self.chans[id.index()];
        if chan.mutex.try_lock_waiter(p) {
            return self.hold(cpu, p, now);
        }
        let demands = !matches!(chan.content, Content::Tcp(_));
        if demands && chan.mutex.demand(p, cpu, now) {
            return self.set_phase(cpu, Phase::Spin, NEVER);
        }
        self.block(cpu, p, Waits::ForLock(id), Stage::LockWaiter, now);
    }

    /// The running task's spinning ends without the lock, since its CPU must reschedule.
    pub(super) fn stop_spinning(&mut self, p: TaskId) {
        let id = self.tasks[p.index()].chan;
        self.chans[id.index()].mutex.stop_spinning(p);
    }

    /// The part of an operation under the lock.
    #[inline(always)]
    pub(super) fn hold(&mut self, cpu: CpuId, p: TaskId, start: u64) {
        let task = &mut self.tasks[p.index()];
        let chan = &mut self.chans[task.chan.index()];
        let price = match &chan.content {
            Content::Pipe(_) => (PIPE_LINES, self.prices.pipe_op),
            Content::Socket(_) => (SOCKET_LINES, self.prices.socket_op),
            Content::Tcp(stream) => {
                let emits = match task.kind {
                    Kind::Write => !stream.holds_back(),
                    Kind::Read => stream.acknowledges(task.left),
                };
                let own = [self.prices.socket_op, self.prices.tcp_op][usize::from(emits)];
                (TCP_LINES, own)
            }
            // The way down to the loopback device and up again is the sender's, as with TCP.
            Content::Udp(_) => {
                let emits = task.kind == Kind::Write;
                let own = [self.prices.socket_op, self.prices.tcp_op][usize::from(emits)];
                (UDP_LINES, own)
            }
        };
        let slot = &mut self.cpus[cpu.index()];
        let memory = begin_held(
            task,
            chan,
            (slot, self.prices.place(cpu)),
            &self.prices,
            start,
            price,
        );
        self.stats.stalled += memory;
        self.queue.set(cpu.index(), slot.next());
    }

    /// The operation under the lock is done: its effect, the unlock, the wake-ups.
    #[inline(always)]
    pub(super) fn op_done(&mut self, cpu: CpuId) {
        let p = self.cpus[cpu.index()].curr;
        debug_assert_eq!(p, self.sched.rq(cpu).curr);
        let task = &mut self.tasks[p.index()];
        let id = task.chan;
        let chan = &mut self.chans[id.index()];
        match (&mut chan.content, task.kind) {
            (Content::Pipe(ring), Kind::Write) => {
                let was_empty = ring.is_empty();
                let written = ring.write(task.left, task.first);
                task.left -= written;
                let done = task.left == 0;
                if self.sched.rules.pipe_wakes_all {
                    return self.old_pipe_op_ends(cpu, p, written > 0, done);
                }
                let wake_writer = done && task.wake_next && !ring.is_full();
                self.pipe_written(cpu, p, id, was_empty && written > 0, wake_writer, done);
            }
            (Content::Pipe(_), Kind::Read) if self.sched.rules.pipe_wakes_all => {
                self.old_pipe_read(cpu, p);
            }
            (Content::Pipe(ring), Kind::Read) => {
                let was_full = ring.is_full();
                let read = ring.read(task.left);
                task.left -= read;
                let wake_reader = read > 0 && task.wake_next && !ring.is_empty();
                let done = task.left == 0;
                let goes_on = if done { Stage::Next } else { Stage::Again };
                let then = (read > 0).then_some(goes_on);
                self.pipe_was_read(cpu, p, id, was_full, wake_reader, then);
            }
            (_, Kind::Write) => self.stream_write_done(cpu, p),
            (_, Kind::Read) => self.stream_read_done(cpu, p),
        }
    }

    /// Something was written to a pipe, or it had no room.
    #[inline(always)]
    fn pipe_written(
        &mut self,
        cpu: CpuId,
        p: TaskId,
        id: ChanId,
        wake_reader: bool,
        wake_writer: bool,
        done: bool,
    ) {
        let mut lead = self.unlock(cpu, id);
        if wake_reader {
            lead += self.wake_readers(cpu, id, lead);
        }
        if wake_writer {
            lead += self.wake_writer(cpu, id, lead);
        }
        if done {
            return self.op_ends(cpu, p, Stage::Next, lead);
        }
        let task = &mut self.tasks[p.index()];
        task.first = false;
        task.wake_next = true;
        self.wait_for_channel(cpu, p, lead);
    }

    /// Something was read from a pipe; `then` is how the task goes on, none if it was empty.
    #[inline(always)]
    fn pipe_was_read(
        &mut self,
        cpu: CpuId,
        p: TaskId,
        id: ChanId,
        wake_writer: bool,
        wake_reader: bool,
        then: Option<Stage>,
    ) {
        let mut lead = self.unlock(cpu, id);
        if wake_writer {
            lead += self.wake_writer(cpu, id, lead);
        }
        if wake_reader {
            lead += self.wake_readers(cpu, id, lead);
        }
        match then {
            Some(stage) => self.op_ends(cpu, p, stage, lead),
            None => {
                self.tasks[p.index()].wake_next = true;
                self.wait_for_channel(cpu, p, lead);
            }
        }
    }

    /// A write to a socket or a network connection is done.
    fn stream_write_done(&mut self, cpu: CpuId, p: TaskId) {
        let task = &mut self.tasks[p.index()];
        let id = task.chan;
        let (written, arrived) = match &mut self.chans[id.index()].content {
            Content::Socket(stream) => {
                let sent = stream.send(task.left);
                (sent, sent > 0)
            }
            Content::Tcp(stream) => stream.send(task.left),
            Content::Udp(queue) => (queue.send(task.left), true),
            Content::Pipe(_) => unreachable!("pipes have their own way"),
        };
        task.left -= written;
        let done = task.left == 0;
        let mut lead = if self.chans[id.index()].content.locks(true) {
            self.unlock(cpu, id)
        } else {
            0
        };
        if arrived {
            lead += self.wake_all_readers(cpu, id, lead);
        }
        if done {
            return self.op_ends(cpu, p, Stage::Next, lead);
        }
        if written > 0 {
            return self.op_ends(cpu, p, Stage::Lock, lead);
        }
        let task = &mut self.tasks[p.index()];
        task.first = false;
        task.wake_next = true;
        self.wait_for_channel(cpu, p, lead);
    }

    /// A read from a socket or a network connection is done.
    fn stream_read_done(&mut self, cpu: CpuId, p: TaskId) {
        let task = &mut self.tasks[p.index()];
        let id = task.chan;
        let (read, wake_senders, arrived, tcp) = match &mut self.chans[id.index()].content {
            Content::Socket(stream) => {
                let (read, wake_senders) = stream.receive(task.left);
                (read, wake_senders, false, false)
            }
            Content::Tcp(stream) => {
                let received = stream.receive(task.left);
                (
                    received.bytes,
                    received.wake_senders,
                    received.arrived,
                    true,
                )
            }
            Content::Udp(queue) => (queue.receive(task.left), false, false, false),
            Content::Pipe(_) => unreachable!("pipes have their own way"),
        };
        task.left -= read;
        let (done, any) = (task.left == 0, read > 0);
        let mut lead = if self.chans[id.index()].content.locks(false) {
            self.unlock(cpu, id)
        } else {
            0
        };
        if wake_senders {
            // `unix_write_space` wakes in sync, `sk_stream_write_space` does not.
            let flags = if tcp { 0 } else { wf::SYNC };
            lead += self.wake_all_writers(cpu, id, flags, lead);
        }
        if arrived {
            lead += self.wake_all_readers(cpu, id, lead);
        }
        if any {
            return self.op_ends(cpu, p, if done { Stage::Next } else { Stage::Again }, lead);
        }
        self.tasks[p.index()].wake_next = true;
        self.wait_for_channel(cpu, p, lead);
    }

    /// The task joins the end of the channel's readers or writers that wait.
    fn wait_for_channel(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        let id = self.tasks[p.index()].chan;
        let chan = &mut self.chans[id.index()];
        let waits = match self.tasks[p.index()].kind {
            Kind::Write => {
                chan.waiting.writers.push_back(p);
                Waits::ToWrite(id)
            }
            Kind::Read => {
                chan.waiting.readers.push_back(p);
                Waits::ToRead(id)
            }
        };
        self.block(cpu, p, waits, Stage::Recheck, self.now + lead);
    }

    /// A task that waited for the channel was woken: it waits on, without having touched the lock,
    /// if what it waits for is not there. A reader of a full pipe wakes a writer at each read, and a
    /// page comes free only with the last of them.
    fn recheck(&mut self, cpu: CpuId, p: TaskId, lead: u64) {
        let task = &self.tasks[p.index()];
        let chan = &self.chans[task.chan.index()];
        let ready = match task.kind {
            Kind::Write => !chan.is_full(),
            Kind::Read => !chan.is_empty(),
        };
        if ready {
            self.lock(cpu, p, lead);
        } else {
            self.wait_for_channel(cpu, p, lead);
        }
    }

    /// A system call is over; on to the next unless the CPU must reschedule.
    #[inline(always)]
    pub(super) fn op_ends(&mut self, cpu: CpuId, p: TaskId, stage: Stage, lead: u64) {
        self.tasks[p.index()].stage = stage;
        if lead > MAX_LEAD || self.cpus[cpu.index()].queue_at != NEVER {
            self.resume_at(cpu, self.now + lead);
        } else if stage == Stage::Next && !self.sched.rq(cpu).need_resched {
            // As `run_task` does, without another look at what is known here.
            self.next_op(cpu, p, lead);
        } else {
            self.run_task(cpu, lead);
        }
    }

    /// Lets go of a channel's lock and returns what that took, ns.
    #[inline(always)]
    pub(super) fn unlock(&mut self, cpu: CpuId, id: ChanId) -> u64 {
        let mutex = &mut self.chans[id.index()].mutex;
        if !mutex.is_contended() {
            mutex.owner = TaskId::NONE;
            return 0;
        }
        self.unlock_contended(cpu, id)
    }

    fn unlock_contended(&mut self, cpu: CpuId, id: ChanId) -> u64 {
        let (next, wake) = self.chans[id.index()].mutex.unlock();
        match next {
            Next::Nobody => {}
            Next::Spinner(spinner) => {
                debug_assert_eq!(spinner.cpu, self.sched.tasks[spinner.task.index()].cpu);
                self.hold(spinner.cpu, spinner.task, self.now.max(spinner.since));
            }
            Next::Sleeper(task) => self.tasks[task.index()].stage = Stage::Granted,
        }
        if wake.is_some() {
            self.wake(cpu, wake, 0, 0)
        } else {
            0
        }
    }

    /// Wakes those that wait to read: all that poll, and one reader.
    fn wake_readers(&mut self, cpu: CpuId, id: ChanId, lead: u64) -> u64 {
        let mut cost = 0;
        if !self.chans[id.index()].waiting.pollers.is_empty() {
            for poller in std::mem::take(&mut self.chans[id.index()].waiting.pollers) {
                cost += self.wake(cpu, poller, wf::SYNC, lead + cost);
            }
        }
        if let Some(reader) = self.chans[id.index()].waiting.readers.pop_front() {
            cost += self.wake(cpu, reader, wf::SYNC, lead + cost);
        }
        cost
    }

    /// Wakes one that waits to write (exclusive waiters of a pipe).
    fn wake_writer(&mut self, cpu: CpuId, id: ChanId, lead: u64) -> u64 {
        match self.chans[id.index()].waiting.writers.pop_front() {
            Some(writer) => self.wake(cpu, writer, wf::SYNC, lead),
            None => 0,
        }
    }

    /// Wakes all that wait to write (a socket's waiters are not exclusive).
    fn wake_all_writers(&mut self, cpu: CpuId, id: ChanId, flags: u32, lead: u64) -> u64 {
        let mut cost = 0;
        for _ in 0..self.chans[id.index()].waiting.writers.len() {
            if let Some(writer) = self.chans[id.index()].waiting.writers.pop_front() {
                cost += self.wake(cpu, writer, flags, lead + cost);
            }
        }
        cost
    }

    /// Wakes all that wait for something in a socket (`sock_def_readable`: nobody waits exclusively).
    fn wake_all_readers(&mut self, cpu: CpuId, id: ChanId, lead: u64) -> u64 {
        let mut cost = self.wake_readers(cpu, id, lead);
        for _ in 0..self.chans[id.index()].waiting.readers.len() {
            if let Some(reader) = self.chans[id.index()].waiting.readers.pop_front() {
                cost += self.wake(cpu, reader, wf::SYNC, lead + cost);
            }
        }
        cost
    }

    /// The running task will sleep at `at`, unless it is woken before.
    pub(super) fn block(&mut self, cpu: CpuId, p: TaskId, waits: Waits, then: Stage, at: u64) {
        let task = &mut self.tasks[p.index()];
        task.waits = waits;
        task.stage = then;
        task.woken = false;
        if at == self.now {
            return self.block_done(cpu);
        }
        self.set_phase(cpu, Phase::Block, at);
    }

    /// The running task goes on at `at` in an event of its own.
    pub(super) fn resume_at(&mut self, cpu: CpuId, at: u64) {
        self.set_phase(cpu, Phase::Resume, at);
    }

    #[inline(always)]
    pub(super) fn set_phase(&mut self, cpu: CpuId, phase: Phase, at: u64) {
        let slot = &mut self.cpus[cpu.index()];
        slot.phase = phase;
        slot.op_at = at;
        self.arm(cpu);
    }

    /// Tells the event queue when something happens on a CPU next.
    #[inline(always)]
    pub(super) fn arm(&mut self, cpu: CpuId) {
        self.queue.set(cpu.index(), self.cpus[cpu.index()].next());
    }
}

/// Begins the part of an operation under the lock on a CPU: the lines that it moves, and its own
/// instructions. `price` is how many lines, and the instructions' time without the copy, ns. Returns
/// the time that it waits for the lines, ns.
#[inline(always)]
fn begin_held(
    task: &mut TaskSim,
    chan: &mut Chan,
    (slot, place): (&mut Cpu, Place),
    prices: &Prices,
    start: u64,
    (lines, own): (u64, u64),
) -> u64 {
    let memory = lines * prices.transfer_between(chan.last_place, place);
    chan.last_place = place;
    let own = own + prices.copy(u64::from(task.left));
    let jitter = 1024 - JITTER + task.rng.below(2 * JITTER + 1);
    slot.begin(Phase::Op, start, own * jitter / 1024, memory);
    memory
}
