//! What each operation of a task promises, on a machine of one core with two threads.

#[path = "support/core.rs"]
mod core_of_two;

use core_of_two::{MS, config};
use std::cell::RefCell;
use std::rc::Rc;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::{Release, TaskId};
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Engine, Metric, Op, Outcome, RunError, Spawn, Workload};

/// Each role's operations one after the other, then its end. The first role, the main task, makes
/// the others.
struct Script {
    /// Where each role may run, and what it does.
    roles: Vec<(Option<usize>, Vec<Op>)>,
    states: Vec<std::vec::IntoIter<Op>>,
    /// Gaps of each task.
    gaps: Rc<RefCell<Vec<(u32, u64)>>>,
    /// Times that each task took.
    times: Rc<RefCell<Vec<(u32, u64)>>>,
}

impl Script {
    fn new(roles: Vec<(Option<usize>, Vec<Op>)>) -> Script {
        Script {
            roles,
            states: Vec::new(),
            gaps: Rc::default(),
            times: Rc::default(),
        }
    }
}

impl Workload for Script {
    /// A pipe, a pair of sockets, a TCP connection.
    fn channels(&self) -> Vec<Chan> {
        vec![Chan::pipe(), Chan::socket(), Chan::tcp()]
    }

    fn max_tasks(&self) -> usize {
        self.roles.len()
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, role: u32, _task: TaskId) {
        let (_, ops) = &self.roles[role as usize];
        self.states.push(ops.clone().into_iter());
    }

    fn attributes(&self, role: u32) -> Attributes {
        let (cpu, _) = self.roles[role as usize];
        Attributes {
            cpus: cpu.map(|cpu| CpuMask::single(CpuId::from_index(cpu))),
            start: cpu.map(CpuId::from_index),
            ..Attributes::default()
        }
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        self.states[task.index()].next().unwrap_or(Op::Exit)
    }

    fn ran_again(&mut self, task: TaskId, gap: Ns) {
        self.gaps.borrow_mut().push((task.0, gap.0));
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        self.times.borrow_mut().push((task.0, now.0));
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        vec![Metric {
            name: "own_time_s",
            value: time.as_secs_f64(),
        }]
    }
}

fn run(script: Script) -> Result<Outcome, RunError> {
    run_on(Release::V6_12, script)
}

fn run_on(release: Release, script: Script) -> Result<Outcome, RunError> {
    let config = config(release);
    Engine::new(&config, script).run(&|| false)
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

/// The main task: starts measuring, makes the others, waits for them.
fn main_of(others: u32, more: &[Op]) -> Vec<Op> {
    let fork = |role| Op::Fork(Spawn { role, thread: true });
    let mut ops = vec![Op::Start];
    ops.extend(more);
    ops.extend((1..=others).map(fork));
    ops.push(Op::Join);
    ops
}

/// The time of a run in which both threads of the core do the same.
fn time_of_two(op: Op) -> f64 {
    let script = Script::new(vec![
        (None, main_of(2, &[])),
        (Some(0), vec![op]),
        (Some(1), vec![op]),
    ]);
    metric(&run(script).expect("it ends"), "time_s")
}

#[test]
fn a_busy_sibling_stretches_instructions_but_not_cpu_time_or_wall_time() {
    let span = Ns(100 * MS);
    let instructions = time_of_two(Op::Compute(span));
    assert!(instructions > 0.13, "{instructions}");
    for op in [Op::Work(span), Op::SpinFor(span)] {
        let time = time_of_two(op);
        assert!((0.1..0.101).contains(&time), "{op:?}: {time}");
    }
}

#[test]
fn cpu_time_adds_up_on_a_shared_cpu_and_wall_time_does_not() {
    let time = |op| {
        let script = Script::new(vec![
            (Some(1), main_of(2, &[])),
            (Some(0), vec![op]),
            (Some(0), vec![op]),
        ]);
        metric(&run(script).expect("it ends"), "time_s")
    };
    let work = time(Op::Work(Ns(50 * MS)));
    assert!((0.1..0.102).contains(&work), "{work}");
    // The last to run reads the clock when the span is over already.
    let spin = time(Op::SpinFor(Ns(50 * MS)));
    assert!((0.05..0.06).contains(&spin), "{spin}");
}

#[test]
fn gaps_of_a_spinner_are_the_time_that_it_did_not_run() {
    let script = Script::new(vec![
        (Some(1), main_of(2, &[])),
        (Some(0), vec![Op::SpinFor(Ns(100 * MS))]),
        (Some(0), vec![Op::Work(Ns(30 * MS))]),
    ]);
    let gaps = Rc::clone(&script.gaps);
    let outcome = run(script).expect("it ends");
    let gaps = gaps.borrow();
    assert!(gaps.iter().all(|(task, _)| *task == 1), "{gaps:?}");
    let sum: u64 = gaps.iter().map(|(_, gap)| gap).sum();
    // The other task's 30 ms, less what it may have run before or after the spinner.
    assert!((20 * MS..31 * MS).contains(&sum), "{gaps:?}");
    assert!(gaps.len() > 3, "{gaps:?}");
    let time = metric(&outcome, "time_s");
    assert!((0.1..0.105).contains(&time), "{time}");
    assert_eq!(outcome.metrics[0].name, "own_time_s");
    assert_eq!(metric(&outcome, "own_time_s"), time);
}

#[test]
fn unparking_wakes_the_parked_and_is_kept_for_the_next_to_park() {
    let sleepy = vec![Op::Sleep(Ns(5 * MS)), Op::Park, Op::Park];
    let waker = vec![
        Op::Unpark(TaskId(1)),
        Op::Unpark(TaskId(1)),
        Op::Sleep(Ns(20 * MS)),
        Op::Unpark(TaskId(1)),
    ];
    let script = Script::new(vec![(None, main_of(2, &[])), (None, sleepy), (None, waker)]);
    let time = metric(&run(script).expect("it ends"), "time_s");
    assert!((0.02..0.021).contains(&time), "{time}");
}

#[test]
fn a_task_that_nobody_unparks_is_stuck() {
    let error = run(Script::new(vec![(None, vec![Op::Park])])).unwrap_err();
    assert!(error.to_string().contains("to be unparked"), "{error}");
}

#[test]
fn a_run_of_endless_tasks_stops_on_time_with_what_waits_accounted() {
    let endless = vec![Op::SpinFor(Ns(3600 * 1000 * MS))];
    let script = Script::new(vec![
        (Some(1), main_of(3, &[Op::StopAfter(Ns(200 * MS))])),
        (Some(0), endless.clone()),
        (Some(0), endless),
        (Some(1), vec![Op::Park]),
    ]);
    let outcome = run(script).expect("it stops, though a task is parked for ever");
    assert_eq!(metric(&outcome, "time_s"), 0.2);
    let waited = metric(&outcome, "rq_wait_s");
    assert!((0.19..0.202).contains(&waited), "{waited}");
    let busy = metric(&outcome, "task_clock_s");
    assert!((0.199..0.202).contains(&busy), "{busy}");
}

#[test]
fn a_task_starts_where_the_workload_says() {
    let script = |cpu| {
        let mut script = Script::new(vec![
            (None, main_of(1, &[])),
            (None, vec![Op::Work(Ns(MS))]),
        ]);
        script.roles[1].0 = cpu;
        script
    };
    for cpu in [0, 1] {
        let outcome = run(script(Some(cpu))).expect("it ends");
        let placed: u64 = outcome.audit.iter().map(|row| row.decisions).sum();
        // Only the main task's wake-up from its join is a placement.
        assert_eq!(placed, 1, "{:?}", outcome.audit);
    }
    let outcome = run(script(None)).expect("it ends");
    assert_eq!(
        outcome.audit.iter().map(|row| row.decisions).sum::<u64>(),
        2
    );
}

/// Who sleeps for a socket does not wait exclusively: one wake-up has to do for all, as nothing
/// more is sent. (An exclusive reader of a pipe wakes the next one itself.)
#[test]
fn all_readers_that_sleep_get_their_part_of_one_message() {
    for chan in [0, 1, 2].map(ChanId) {
        let script = Script::new(vec![
            (None, main_of(4, &[])),
            (Some(0), vec![Op::Read(chan, 10)]),
            (Some(0), vec![Op::Read(chan, 10)]),
            (Some(0), vec![Op::Read(chan, 10)]),
            (Some(1), vec![Op::Sleep(Ns(20 * MS)), Op::Write(chan, 30)]),
        ]);
        assert_eq!(run(script).err(), None, "{chan:?}");
    }
}

/// Wake-ups of a run of two tasks on CPU 0 and one on CPU 1.
fn wakeups(release: Release, here: [Vec<Op>; 2], there: Vec<Op>) -> f64 {
    let [first, second] = here;
    let script = Script::new(vec![
        (None, main_of(3, &[])),
        (Some(0), first),
        (Some(0), second),
        (Some(1), there),
    ]);
    metric(&run_on(release, script).expect("it ends"), "wakeups")
}

const PIPE: ChanId = ChanId(0);

/// Kernel 5.2 `fs/pipe.c`, `pipe_write()` and `pipe_wait()`: waits are not exclusive, so that one
/// write wakes both readers, and the second of them sleeps again.
#[test]
fn before_5_5_a_write_to_a_pipe_wakes_all_readers() {
    let count = |release| {
        let reader = || vec![Op::Read(PIPE, 100)];
        let write = [Op::Sleep(Ns(MS)), Op::Write(PIPE, 100)];
        wakeups(release, [reader(), reader()], [write, write].concat())
    };
    assert_eq!(count(Release::V5_2), count(Release::V5_19) + 1.0);
    assert_eq!(count(Release::V5_19), count(Release::V6_12));
}

/// Kernel 5.2 `fs/pipe.c`, `pipe_read()`: a read wakes writers if it emptied a page, where it later
/// does if the pipe was full.
#[test]
fn before_5_5_a_read_wakes_writers_when_a_page_is_empty() {
    let count = |release| {
        let reads =
            [100, 100, 3896, 62_000].map(|bytes| [Op::Sleep(Ns(MS)), Op::Read(PIPE, bytes)]);
        let writer = vec![Op::Write(PIPE, 66_096)];
        wakeups(release, [reads.concat(), Vec::new()], writer)
    };
    // The first two reads of a full pipe leave its first page as it is, and wake nobody.
    assert_eq!(count(Release::V5_2), count(Release::V6_5) - 2.0);
}

#[test]
fn a_sleep_ends_at_its_time_or_is_none_if_that_is_past() {
    let alarm = 1_200 * MS;
    let sleeper = vec![
        Op::SleepUntil(Ns(alarm)),
        Op::Time,
        Op::SleepUntil(Ns(alarm - MS)),
        Op::Time,
    ];
    let script = Script::new(vec![(None, main_of(1, &[])), (None, sleeper)]);
    let times = Rc::clone(&script.times);
    run(script).expect("it ends");
    let times: Vec<u64> = times.borrow().iter().map(|(_, time)| *time).collect();
    assert!((alarm..alarm + 20_000).contains(&times[0]), "{times:?}");
    assert!(
        times[1] > times[0] && times[1] - times[0] < 1000,
        "{times:?}"
    );
}

#[test]
fn a_futex_wakes_who_waits_and_leaves_nothing_to_who_does_not() {
    let sleepy = vec![Op::Time, Op::Sleep(Ns(5 * MS)), Op::Park, Op::Time];
    let waker = vec![
        Op::FutexWake(TaskId(1)),
        Op::Sleep(Ns(20 * MS)),
        Op::FutexWake(TaskId(1)),
    ];
    let script = Script::new(vec![(None, main_of(2, &[])), (None, sleepy), (None, waker)]);
    let times = Rc::clone(&script.times);
    run(script).expect("it ends");
    let times = times.borrow();
    let waited = times[1].1 - times[0].1;
    assert!((20 * MS..21 * MS).contains(&waited), "{times:?}");
}

#[test]
fn a_lock_of_a_cpu_is_held_by_one_task_while_the_other_spins() {
    let holder = |ms: u64| {
        let work = Op::Work(Ns(ms * MS));
        vec![Op::LockCpu, Op::Time, work, Op::Time, Op::UnlockCpu]
    };
    let script = Script::new(vec![
        (Some(1), main_of(2, &[])),
        (Some(0), holder(20)),
        (Some(0), holder(1)),
    ]);
    let times = Rc::clone(&script.times);
    let outcome = run(script).expect("it ends");
    let span = |task: u32| {
        let times = times.borrow();
        let of: Vec<u64> = times
            .iter()
            .filter(|(who, _)| *who == task)
            .map(|(_, time)| *time)
            .collect();
        (of[0], of[1])
    };
    let (first, second) = (span(1), span(2));
    assert!(first.1 <= second.0, "{first:?} {second:?}");
    // The second spins away its share of the CPU until the first is done.
    let busy = metric(&outcome, "task_clock_s");
    assert!(
        first.1 - first.0 > 30 * MS && busy > 0.03,
        "{first:?} {busy}"
    );
}
