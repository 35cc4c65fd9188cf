//! hackbench (rt-tests 2.x): groups of senders and receivers over pipes or socket pairs.
//!
//! *Measures* wake-ups and the idle search under heavy task switching. *Does not measure* much
//! else: with pipes it is dominated by the mutex that guards each pipe.
//!
//! A group has f receivers, each with a channel of its own, and f senders that write to all f
//! channels of the group in order, one message each, `loops` times. Every task reports ready by a
//! byte, then polls for the go; the clock runs from the go until all have ended.

mod options;

pub(crate) use options::MAX_LOOPS;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::printed;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Engine, Op, Outcome, RunConfig, RunError, Spawn, Workload};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hackbench {
    /// `-g`: groups.
    pub groups: u32,
    /// `-f`: senders, and receivers, in a group.
    pub fds: u32,
    /// `-l`: loops of each sender.
    pub loops: u64,
    /// `-s`: bytes of a message.
    pub datasize: u32,
    /// `-p`, `-i` or neither: what messages go through.
    pub transport: Transport,
    /// `-T`: threads instead of processes.
    pub threads: bool,
    /// `-F`: the main thread under SCHED_FIFO. It sleeps through the measured part, so that the
    /// model, which has the fair class only, runs it there.
    pub fifo: bool,
}

/// What messages go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Unix stream socket pairs.
    #[default]
    Socket,
    /// `-p`: pipes. They win over `-i`.
    Pipe,
    /// `-i`: TCP connections over loopback.
    Inet,
}

impl Default for Hackbench {
    fn default() -> Self {
        Hackbench {
            groups: 10,
            fds: 20,
            loops: 100,
            datasize: 100,
            transport: Transport::Socket,
            threads: false,
            fifo: false,
        }
    }
}

impl Hackbench {
    /// Reads the words after `hackbench`, as `getopt_long` does.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, more tasks than can be simulated.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Hackbench, WorkloadError> {
        options::parse(words)
    }

    /// Tasks without the main one.
    pub fn tasks(&self) -> u64 {
        2 * u64::from(self.groups) * u64::from(self.fds)
    }

    /// The same with its loops multiplied.
    pub(crate) fn times(&self, factor: f64) -> Hackbench {
        let loops = (self.loops as f64 * factor).round();
        Hackbench {
            loops: loops.clamp(1.0, MAX_LOOPS as f64) as u64,
            ..self.clone()
        }
    }

    /// Messages of a whole run.
    pub fn messages(&self) -> u128 {
        u128::from(self.groups) * u128::from(self.fds).pow(2) * u128::from(self.loops)
    }
}

impl Benchmark for Hackbench {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(self.times(factor))
    }

    fn command_line(&self) -> String {
        let mut line = format!(
            "hackbench -g {} -f {} {} {}-l {} -s {}",
            self.groups,
            self.fds,
            if self.threads {
                "--threads"
            } else {
                "--process"
            },
            match self.transport {
                Transport::Socket => "",
                Transport::Pipe => "--pipe ",
                Transport::Inet => "--inet ",
            },
            self.loops,
            self.datasize
        );
        if self.fifo {
            line.push_str(" --fifo");
        }
        line
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    fn run(&self, config: &RunConfig, cancelled: &dyn Fn() -> bool) -> Result<Outcome, RunError> {
        Engine::new(config, Run::new(self)).run(cancelled)
    }

    fn printed(&self, outcome: &Outcome) -> String {
        format!(
            "Running in {} mode with {} groups using {} file descriptors each (== {} tasks)\n\
             Each sender will pass {} messages of {} bytes\n\
             Time: {}\n",
            if self.threads { "threaded" } else { "process" },
            self.groups,
            2 * self.fds,
            self.tasks(),
            self.loops,
            self.datasize,
            printed::seconds(printed::micros(outcome)),
        )
    }
}

/// The pipe by which tasks report ready.
const READY: ChanId = ChanId(0);
/// The pipe by which the go is given.
const WAKE: ChanId = ChanId(1);
const FIRST_CHANNEL: u32 = 2;

/// What one task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    MainForks { next: u32 },
    MainCounts { left: u32 },
    MainGoes,
    MainJoins,
    Report { base: u32, sender: bool },
    AwaitGo { base: u32, sender: bool },
    Send { base: u32, at: u32, loops: u64 },
    Receive { channel: u32, left: u64 },
    End,
}

/// A run of hackbench.
#[derive(Clone, Debug)]
pub struct Run {
    groups: u32,
    fds: u32,
    loops: u64,
    datasize: u32,
    transport: Transport,
    threads: bool,
    states: Vec<State>,
}

impl Run {
    /// A run from its start.
    pub fn new(hackbench: &Hackbench) -> Run {
        Run {
            groups: hackbench.groups,
            fds: hackbench.fds,
            loops: hackbench.loops,
            datasize: hackbench.datasize,
            transport: hackbench.transport,
            threads: hackbench.threads,
            states: Vec::with_capacity(hackbench.tasks() as usize + 1),
        }
    }

    fn workers(&self) -> u32 {
        2 * self.fds * self.groups
    }

    /// What a worker begins with: in each group the receivers come first.
    fn worker(&self, number: u32) -> State {
        let (group, member) = (number / (2 * self.fds), number % (2 * self.fds));
        let base = FIRST_CHANNEL + group * self.fds;
        if member < self.fds {
            State::Report {
                base: base + member,
                sender: false,
            }
        } else {
            State::Report { base, sender: true }
        }
    }

    fn after_go(&self, base: u32, sender: bool) -> State {
        if sender {
            State::Send {
                base,
                at: 0,
                loops: self.loops,
            }
        } else {
            State::Receive {
                channel: base,
                left: u64::from(self.fds) * self.loops,
            }
        }
    }

    fn main_op(&mut self, state: State) -> (Op, State) {
        match state {
            State::MainForks { next } if next < self.workers() => (
                Op::Fork(Spawn {
                    role: next + 1,
                    thread: self.threads,
                }),
                State::MainForks { next: next + 1 },
            ),
            State::MainForks { .. } => self.main_op(State::MainCounts {
                left: self.workers(),
            }),
            State::MainCounts { left: 0 } => (Op::Start, State::MainGoes),
            State::MainCounts { left } => {
                (Op::Read(READY, 1), State::MainCounts { left: left - 1 })
            }
            State::MainGoes => (Op::Write(WAKE, 1), State::MainJoins),
            _ => (Op::Join, State::End),
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        let one = || match self.transport {
            Transport::Socket => Chan::socket(),
            Transport::Pipe => Chan::pipe(),
            Transport::Inet => Chan::tcp(),
        };
        (0..FIRST_CHANNEL + self.groups * self.fds)
            .map(|_| one())
            .collect()
    }

    fn max_tasks(&self) -> usize {
        self.workers() as usize + 1
    }

    /// Two pages of kernel stack, `task_struct` and its entity (about a page), a page of user stack
    /// and the message.
    fn working_set_kib(&self) -> u64 {
        16 + u64::from(self.datasize) / 1024
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(
            task.index(),
            self.states.len(),
            "tasks are made one after the other"
        );
        let state = match role.checked_sub(1) {
            None => State::MainForks { next: 0 },
            Some(number) => self.worker(number),
        };
        self.states.push(state);
    }

    #[inline(always)]
    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let fds = self.fds;
        let datasize = self.datasize;
        match &mut self.states[task.index()] {
            State::Send { base, at, loops } if *loops > 0 => {
                let channel = ChanId(*base + *at);
                *at += 1;
                if *at == fds {
                    *at = 0;
                    *loops -= 1;
                }
                Op::Write(channel, datasize)
            }
            State::Receive { channel, left } if *left > 0 => {
                *left -= 1;
                Op::Read(ChanId(*channel), datasize)
            }
            State::Send { .. } | State::Receive { .. } | State::End => Op::Exit,
            &mut State::Report { base, sender } => {
                self.states[task.index()] = State::AwaitGo { base, sender };
                Op::Write(READY, 1)
            }
            &mut State::AwaitGo { base, sender } => {
                self.states[task.index()] = self.after_go(base, sender);
                Op::Poll(WAKE)
            }
            &mut state => {
                let (op, next) = self.main_op(state);
                self.states[task.index()] = next;
                op
            }
        }
    }
}
