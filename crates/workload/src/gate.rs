//! The main task of a benchmark whose tasks await a common go.

use wakelab_machine::Ns;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::{Op, Spawn};

/// The pipe by which the go is given: who polls it waits.
pub(crate) const GO: ChanId = ChanId(0);

/// The channels of a benchmark: the pipe of the go, then its own.
pub(crate) fn channels(own: impl IntoIterator<Item = Chan>) -> Vec<Chan> {
    std::iter::once(Chan::pipe()).chain(own).collect()
}

/// How long the main task waits for the last of its tasks to be ready. (tbench looks every 100 ms, netperf
/// exchanges messages with its server.) Nothing of it is measured.
const SETTLE: Ns = Ns(10_000_000);

/// Makes roles 1, 2, 3..., waits until they poll, starts the measured part and gives the go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate {
    tasks: u32,
    thread: bool,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fork(u32),
    Start,
    Go,
    Done,
}

impl Gate {
    /// The maker of so many threads or processes.
    pub fn new(tasks: u32, thread: bool) -> Gate {
        Gate {
            tasks,
            thread,
            step: Step::Fork(0),
        }
    }

    /// What the main task does next; none once the go is given.
    pub fn next_op(&mut self) -> Option<Op> {
        let (op, step) = match self.step {
            Step::Fork(made) if made < self.tasks => {
                let role = made + 1;
                let thread = self.thread;
                (Op::Fork(Spawn { role, thread }), Step::Fork(role))
            }
            Step::Fork(_) => (Op::Sleep(SETTLE), Step::Start),
            Step::Start => (Op::Start, Step::Go),
            Step::Go => (Op::Write(GO, 1), Step::Done),
            Step::Done => return None,
        };
        self.step = step;
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_made_and_given_time_before_the_clock_starts() {
        let mut gate = Gate::new(2, true);
        let ops: Vec<Op> = std::iter::from_fn(|| gate.next_op()).collect();
        let fork = |role| Op::Fork(Spawn { role, thread: true });
        assert_eq!(
            ops,
            [
                fork(1),
                fork(2),
                Op::Sleep(SETTLE),
                Op::Start,
                Op::Write(GO, 1)
            ]
        );
    }
}
