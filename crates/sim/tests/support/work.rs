//! A workload of pairs that pass messages, compute and sleep at random, and ends by itself.

use wakelab_machine::{CpuMask, Ns};
use wakelab_sched::core_sched::prctl::{Command, CoreSchedCall, Scope};
use wakelab_sched::{Cookie, TaskId};
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Op, Spawn, Workload};

/// One task to make; tasks 2n and 2n + 1 are a pair.
#[derive(Clone, Debug)]
pub struct Task {
    pub attributes: Attributes,
    /// Whether it calls `prctl(PR_SCHED_CORE)` now and then, about anybody.
    pub prctl: bool,
}

/// The workload.
pub struct Pairs {
    tasks: Vec<Task>,
    rounds: u32,
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Main { made: u32 },
    Worker { number: u32, step: u32 },
}

impl Pairs {
    pub fn new(tasks: Vec<Task>, rounds: u32) -> Pairs {
        Pairs {
            tasks,
            rounds,
            states: Vec::new(),
        }
    }

    fn main_op(&self, made: u32) -> Op {
        match made.cmp(&(self.tasks.len() as u32)) {
            std::cmp::Ordering::Less => Op::Fork(Spawn {
                role: made + 1,
                thread: !made.is_multiple_of(3),
            }),
            std::cmp::Ordering::Equal => Op::Start,
            std::cmp::Ordering::Greater if made == self.tasks.len() as u32 + 1 => Op::Join,
            std::cmp::Ordering::Greater => Op::Exit,
        }
    }

    /// Each round: compute, then pass a message to the other and take one back, or sleep.
    fn worker_op(&self, number: u32, step: u32, rng: &mut Rng) -> Op {
        let round = step / 4;
        if round == self.rounds {
            return Op::Exit;
        }
        let partner = number ^ 1;
        let alone = partner as usize >= self.tasks.len();
        match step % 4 {
            0 => Op::Compute(Ns(rng.below(400_000))),
            1 if alone => Op::Sleep(Ns(rng.below(300_000))),
            1 => Op::Write(ChanId(partner), 1 + (number % 3) * 2000),
            2 if alone => Op::SpinFor(Ns(rng.below(200_000))),
            2 => Op::Read(ChanId(number), 1 + (partner % 3) * 2000),
            _ if self.tasks[number as usize].prctl && rng.below(3) == 0 => {
                Op::CoreSched(any_call(self.tasks.len() as u64, rng))
            }
            _ if rng.below(4) == 0 => Op::Sleep(Ns(rng.below(3_000_000))),
            _ => Op::Work(Ns(rng.below(1000))),
        }
    }
}

impl Workload for Pairs {
    fn channels(&self) -> Vec<Chan> {
        let one = |n: usize| match n / 2 % 3 {
            0 => Chan::pipe(),
            1 => Chan::socket(),
            _ => Chan::tcp(),
        };
        (0..self.tasks.len()).map(one).collect()
    }

    fn max_tasks(&self) -> usize {
        self.tasks.len() + 1
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, role: u32, _task: TaskId) {
        self.states.push(match role {
            0 => State::Main { made: 0 },
            n => State::Worker {
                number: n - 1,
                step: 0,
            },
        });
    }

    fn attributes(&self, role: u32) -> Attributes {
        self.tasks[role as usize - 1].attributes
    }

    fn last_cookie(&self) -> Cookie {
        let cookies = self.tasks.iter().filter_map(|task| task.attributes.cookie);
        cookies.max().unwrap_or(Cookie::NONE)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        match self.states[task.index()] {
            State::Main { made } => {
                self.states[task.index()] = State::Main { made: made + 1 };
                self.main_op(made)
            }
            State::Worker { number, step } => {
                self.states[task.index()] = State::Worker {
                    number,
                    step: step + 1,
                };
                self.worker_op(number, step, rng)
            }
        }
    }
}

/// A call about the caller, a task or nobody: mostly of one thread, seldom of all tasks, which then share
/// a cookie for a while.
fn any_call(tasks: u64, rng: &mut Rng) -> CoreSchedCall {
    let commands = [
        Command::Create,
        Command::ShareTo,
        Command::ShareFrom,
        Command::Get,
    ];
    let scopes = [
        Scope::Thread,
        Scope::Thread,
        Scope::ThreadGroup,
        Scope::ProcessGroup,
    ];
    let pid = rng.below(tasks + 3);
    CoreSchedCall {
        command: commands[rng.below(4) as usize],
        pid: (pid <= tasks + 1).then_some(TaskId(pid as u32)),
        scope: scopes[rng.below(4) as usize],
    }
}

/// Most tasks may run everywhere, some on a few CPUs.
pub fn affinity(bits: u64, ncpu: usize) -> Option<CpuMask> {
    if !bits.is_multiple_of(3) {
        return None;
    }
    let mask = CpuMask::from_u64(bits >> 2).and(&CpuMask::first_n(ncpu));
    (!mask.is_empty()).then_some(mask)
}
