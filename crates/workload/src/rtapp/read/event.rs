//! Events: a key is one if it begins with an event's name, whatever follows.

use super::{Reader, Scope};
use crate::rtapp::fields::{Checked, Fields, count, int, micros, mismatch, text};
use crate::rtapp::file::{Event, Timer};
use crate::rtapp::json::{Member, Node};
use wakelab_machine::Ns;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// The names, in the order in which they are compared: `runtime` before `run`, `memrun` before `mem`.
const NAMES: [&str; 20] = [
    "runtime", "run", "sleep", "memrun", "mem", "iorun", "lock", "unlock", "signal", "broad",
    "wait", "sync", "barrier", "timer", "resume", "suspend", "yield", "fork", "sem_post",
    "sem_wait",
];

/// The name that a key begins with.
fn name_of(key: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|name| key.starts_with(name))
}

pub(super) fn is_event(key: &str) -> bool {
    name_of(key).is_some()
}

impl Reader<'_> {
    pub(super) fn event(&mut self, member: &Member, scope: &mut Scope) -> Checked<Event> {
        let (key, node) = (member.key.as_str(), &member.node);
        Ok(match name_of(key).unwrap_or_default() {
            "runtime" => Event::Runtime(micros(node, key)?),
            "run" => Event::Run(micros(node, key)?),
            "sleep" => Event::Sleep(micros(node, key)?),
            "memrun" => memrun(Fields::of(node, key)?, node)?,
            "mem" => Event::Memory(count(node, key)?),
            "iorun" => Event::Io(count(node, key)?),
            "lock" => Event::Lock(self.mutexes.number(text(node, key)?)),
            "unlock" => Event::Unlock(self.mutexes.number(text(node, key)?)),
            "signal" => Event::Signal(self.condvars.number(text(node, key)?)),
            "broad" => Event::Broadcast(self.condvars.number(text(node, key)?)),
            "wait" => {
                let (condvar, mutex) = self.wait(Fields::of(node, key)?)?;
                Event::Wait(condvar, mutex)
            }
            "sync" => {
                let (condvar, mutex) = self.wait(Fields::of(node, key)?)?;
                Event::SignalAndWait(condvar, mutex)
            }
            "barrier" => self.barrier(text(node, key)?, scope.instances),
            "timer" => Event::Timer(self.timer(Fields::of(node, key)?, scope)?),
            "resume" => self.resume(text(node, key)?),
            "suspend" => self.suspend(text(node, key)?, scope.name),
            "yield" => Event::Yield,
            "fork" => self.fork(text(node, key)?, node),
            "sem_post" => Event::Post(self.semaphores.number(text(node, key)?)),
            _ => Event::Acquire(self.semaphores.number(text(node, key)?)),
        })
    }

    /// The condition variable and the mutex of a `wait` or `sync`.
    fn wait(&mut self, fields: Fields) -> Checked<(u32, u32)> {
        let condvar = fields.text("ref")?.unwrap_or("unknown");
        let mutex = fields.text("mutex")?.unwrap_or("unknown");
        Ok((self.condvars.number(condvar), self.mutexes.number(mutex)))
    }

    fn barrier(&mut self, name: &str, instances: u64) -> Event {
        let number = self.barriers.number(name);
        if number as usize == self.users.len() {
            self.users.push(0);
        }
        self.users[number as usize] += instances;
        Event::Barrier(number)
    }

    fn timer(&mut self, fields: Fields, scope: &mut Scope) -> Checked<Timer> {
        let name = fields.text("ref")?.unwrap_or("unknown");
        let unique = name.starts_with("unique");
        let (names, absolute) = if unique {
            (&mut scope.timers, &mut scope.absolute)
        } else {
            (&mut self.timers, &mut self.file.timers)
        };
        let number = names.number(name);
        if number as usize == absolute.len() {
            absolute.push(false);
        }
        let mode = fields.text("mode")?.unwrap_or("relative");
        absolute[number as usize] |= mode.starts_with("absolute");
        let period = match fields.get("period") {
            Some(node) => micros(node, "period")?,
            None => Ns(0),
        };
        Ok(Timer {
            unique,
            number,
            period,
        })
    }

    fn resume(&mut self, name: &str) -> Event {
        self.resumed.insert(name.to_owned());
        Event::Resume(self.condvars.number(name), self.mutexes.number(name))
    }

    /// Which name it waits for is known when all are read.
    fn suspend(&mut self, name: &str, task: &str) -> Event {
        self.suspended.push((name.to_owned(), task.to_owned()));
        Event::Suspend(0, 0)
    }

    fn fork(&mut self, name: &str, node: &Node) -> Event {
        let number = self.forks.number(name);
        if number as usize == self.fork_places.len() {
            self.fork_places.push(node.at);
        }
        Event::Fork(number)
    }
}

/// `memrun`: bytes that are read or written one after the other or at random, or lines of which each
/// says where the next one is.
fn memrun(fields: Fields, node: &Node) -> Checked<Event> {
    let number = |key: &str| -> Checked<Option<u64>> {
        fields.get(key).map(|node| count(node, key)).transpose()
    };
    let size = number("size")?.ok_or_else(|| mismatch(node, "memrun", "a key 'size'"))?;
    let all = number("count")?.ok_or_else(|| mismatch(node, "memrun", "a key 'count'"))?;
    if size == 0 {
        return Err(mismatch(node, "size", "a number above 0"));
    }
    let stride = number("stride")?.unwrap_or(LINE);
    if let Some(node) = fields.get("stride")
        && int(node, "stride")? <= 0
    {
        return Err(mismatch(node, "stride", "a number above 0"));
    }
    fields.text("ref")?;
    if let Some(pattern) = fields.text("pattern")?
        && !["random", "sequential"].contains(&pattern)
    {
        return Err(mismatch(node, "pattern", "random or sequential"));
    }
    match fields.text("type")? {
        // Each stride fetches a line or, if it is shorter, a part of one.
        Some("read" | "write") => Ok(Event::Memory(all.div_ceil(stride) * stride.min(LINE))),
        Some("chase") => Ok(Event::Chase(all)),
        _ => Err(mismatch(node, "type", "read, write or chase")),
    }
}
