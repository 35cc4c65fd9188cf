//! Pipes before 5.5: readers and writers sleep in one queue, and whoever did something wakes them all.
//!
//! A write counts as something, a read if it emptied a page (kernel 5.2 `fs/pipe.c`, `pipe_read()` and
//! `pipe_write()`). Waits are not exclusive (`pipe_wait()`), so that a wake-up is one of every sleeper,
//! the last to come first; each of them takes the mutex before it looks whether there is something for it.
//! A task that must wait for more wakes the others while it holds the mutex.

use super::Engine;
use super::task::{Kind, Stage, Waits};
use crate::object::{ChanId, Content};
use crate::work::Workload;
use wakelab_machine::CpuId;
use wakelab_sched::TaskId;
use wakelab_sched::placement::wf;

impl<W: Workload> Engine<W> {
    /// The effect of a read. What was read in part goes on in another system call, though the kernel
    /// stays in the same one as long as writers wait.
    pub(super) fn old_pipe_read(&mut self, cpu: CpuId, p: TaskId) {
        let task = &mut self.tasks[p.index()];
        let chan = &mut self.chans[task.chan.index()];
        let Content::Pipe(ring) = &mut chan.content else {
            return;
        };
        let pages = ring.pages();
        let read = ring.read(task.left);
        let emptied = ring.pages() < pages;
        task.left -= read;
        if read == 0 {
            return self.old_pipe_op_ends(cpu, p, emptied, false);
        }
        let stage = match task.left {
            0 => Stage::Next,
            _ => Stage::Again,
        };
        self.old_pipe_leaves(cpu, p, emptied, stage);
    }

    /// An operation did something or not, and is over or must wait for more.
    pub(super) fn old_pipe_op_ends(&mut self, cpu: CpuId, p: TaskId, did: bool, done: bool) {
        if done {
            return self.old_pipe_leaves(cpu, p, did, Stage::Next);
        }
        let task = &mut self.tasks[p.index()];
        task.first = false;
        let (id, kind) = (task.chan, task.kind);
        let woken = if did { self.wake_all(cpu, id, 0) } else { 0 };
        let waiting = &mut self.chans[id.index()].waiting;
        let waits = match kind {
            Kind::Read => {
                waiting.readers.push_back(p);
                Waits::ToRead(id)
            }
            Kind::Write => {
                waiting.writers.push_back(p);
                Waits::ToWrite(id)
            }
        };
        let lead = woken + self.unlock(cpu, id);
        self.block(cpu, p, waits, Stage::Lock, self.now + lead);
    }

    fn old_pipe_leaves(&mut self, cpu: CpuId, p: TaskId, did: bool, stage: Stage) {
        let id = self.tasks[p.index()].chan;
        let mut lead = self.unlock(cpu, id);
        if did {
            lead += self.wake_all(cpu, id, lead);
        }
        self.op_ends(cpu, p, stage, lead);
    }

    /// Wakes all that sleep for the pipe, and all that poll it.
    fn wake_all(&mut self, cpu: CpuId, id: ChanId, lead: u64) -> u64 {
        let mut cost = 0;
        for _ in 0..self.chans[id.index()].waiting.pollers.len() {
            if let Some(p) = self.chans[id.index()].waiting.pollers.pop() {
                cost += self.wake(cpu, p, wf::SYNC, lead + cost);
            }
        }
        loop {
            let waiting = &mut self.chans[id.index()].waiting;
            let Some(p) = waiting
                .readers
                .pop_back()
                .or_else(|| waiting.writers.pop_back())
            else {
                return cost;
            };
            cost += self.wake(cpu, p, wf::SYNC, lead + cost);
        }
    }
}
