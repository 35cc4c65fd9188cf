//! What threads promise that wait for each other and change how they are scheduled, on a machine of one
//! core with two threads.

#[path = "support/core.rs"]
mod core_of_two;

use core_of_two::{MS, config};
use std::cell::RefCell;
use std::rc::Rc;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::state::Policy;
use wakelab_sched::{Release, TaskId};
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{
    Attributes, Engine, Group, Op, Outcome, RunError, Setting, Spawn, SyncCounts, SyncObjects,
    SyncOp, Workload,
};

/// What a task is asked at which time.
type Told = Rc<RefCell<Vec<(u32, u64)>>>;

/// Each role's operations one after the other, then its end. The first role, the main task, makes the
/// others.
struct Script {
    roles: Vec<Vec<Op>>,
    inherit: bool,
    settings: Vec<Setting>,
    states: Vec<std::vec::IntoIter<Op>>,
    now: u64,
    knows_time: bool,
    told: Told,
}

impl Script {
    /// The main task makes these and waits for them.
    fn new(roles: Vec<Vec<Op>>) -> Script {
        let fork = |role: usize| {
            Op::Fork(Spawn {
                role: role as u32,
                thread: true,
            })
        };
        let mut main = vec![Op::Start];
        main.extend((1..=roles.len()).map(fork));
        main.push(Op::Join);
        Script {
            roles: [vec![main], roles].concat(),
            inherit: false,
            settings: Vec::new(),
            states: Vec::new(),
            now: 0,
            knows_time: false,
            told: Rc::default(),
        }
    }
}

impl Workload for Script {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.roles.len()
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, role: u32, _task: TaskId) {
        self.states
            .push(self.roles[role as usize].clone().into_iter());
    }

    /// All on one CPU, but for the main task.
    fn attributes(&self, _role: u32) -> Attributes {
        Attributes {
            cpus: Some(CpuMask::single(CpuId(0))),
            ..Attributes::default()
        }
    }

    fn sync_objects(&self) -> SyncObjects {
        SyncObjects::new(SyncCounts {
            mutexes: 2,
            inherit: self.inherit,
            condvars: 1,
            semaphores: 1,
        })
    }

    fn groups(&self) -> Vec<Group> {
        vec![Group {
            name: "/group".to_owned(),
            parent: None,
        }]
    }

    fn setting(&self, number: u32) -> Setting {
        self.settings[number as usize]
    }

    fn time_is(&mut self, _task: TaskId, now: Ns) {
        self.now = now.0;
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        self.knows_time = !self.knows_time;
        if self.knows_time {
            return Op::Time;
        }
        self.told.borrow_mut().push((task.0, self.now));
        self.states[task.index()].next().unwrap_or(Op::Exit)
    }
}

fn engine(script: Script, release: Release) -> Engine<Script> {
    Engine::new(&config(release), script)
}

fn run(script: Script) -> Result<Outcome, RunError> {
    engine(script, Release::V6_12).run(&|| false)
}

/// When each task was asked, ms since the first of them was.
fn times(script: Script) -> Vec<(u32, u64)> {
    let told = Rc::clone(&script.told);
    run(script).expect("it ends");
    let told = told.borrow();
    let first = told[0].1;
    told.iter()
        .map(|(task, at)| (*task, (at - first) / MS))
        .collect()
}

/// Those of one task.
fn times_of(task: u32, script: Script) -> Vec<u64> {
    let of = |(one, at)| (one == task).then_some(at);
    times(script).into_iter().filter_map(of).collect()
}

const fn ms(n: u64) -> Ns {
    Ns(n * MS)
}

const LOCK: Op = Op::Sync(SyncOp::Lock(0));
const UNLOCK: Op = Op::Sync(SyncOp::Unlock(0));
const WAIT: Op = Op::Sync(SyncOp::Wait(0, 0));
const SIGNAL: Op = Op::Sync(SyncOp::Signal(0));
const BROADCAST: Op = Op::Sync(SyncOp::Broadcast(0));
const POST: Op = Op::Sync(SyncOp::Post(0));
const ACQUIRE: Op = Op::Sync(SyncOp::Acquire(0));

#[test]
fn a_mutex_is_waited_for_with_and_without_inheritance() {
    for inherit in [false, true] {
        let first = vec![LOCK, Op::Sleep(ms(10)), UNLOCK, Op::Sleep(ms(5))];
        let second = vec![Op::Sleep(ms(1)), LOCK, Op::Sleep(ms(10)), UNLOCK];
        let script = Script {
            inherit,
            ..Script::new(vec![first, second])
        };
        assert_eq!(times_of(2, script), [0, 1, 10, 20, 20], "{inherit}");
    }
}

#[test]
fn a_plain_mutex_goes_to_who_runs_and_an_inheriting_one_to_who_waits() {
    let holder = vec![
        LOCK,
        Op::Sleep(ms(10)),
        UNLOCK,
        LOCK,
        Op::Sleep(ms(10)),
        UNLOCK,
    ];
    let waiter = vec![Op::Sleep(ms(1)), LOCK, UNLOCK];
    let script = || Script::new(vec![holder.clone(), waiter.clone()]);
    let got = |inherit| {
        times_of(
            2,
            Script {
                inherit,
                ..script()
            },
        )[2]
    };
    assert_eq!(
        got(false),
        20,
        "the holder takes it again before the waiter runs"
    );
    assert_eq!(got(true), 10);
}

#[test]
fn a_plain_mutex_locked_twice_never_ends_and_an_inheriting_one_is_told() {
    let script = || Script::new(vec![vec![LOCK, LOCK, UNLOCK]]);
    let error = run(script()).unwrap_err();
    assert!(
        error.to_string().ends_with("task 1 waits for mutex 0"),
        "{error}"
    );
    let inherit = true;
    assert!(
        run(Script {
            inherit,
            ..script()
        })
        .is_ok()
    );
}

#[test]
fn a_signal_wakes_one_a_broadcast_all_and_both_are_lost_on_nobody() {
    let waiter = || vec![LOCK, WAIT, UNLOCK];
    let wakes = |op: Op, times: usize| {
        let mut waker = vec![op, Op::Sleep(ms(5))];
        waker.extend(vec![op; times]);
        run(Script::new(vec![
            waiter(),
            waiter(),
            waiter(),
            [vec![Op::Sleep(ms(1))], waker].concat(),
        ]))
    };
    // The first comes at 1 ms, the others at 6 ms.
    assert!(wakes(SIGNAL, 2).is_ok());
    assert!(matches!(
        wakes(SIGNAL, 1),
        Err(RunError::Stuck { tasks: 2, .. })
    ));
    assert!(wakes(BROADCAST, 0).is_ok());
    let early = vec![BROADCAST, BROADCAST];
    let late = [vec![Op::Sleep(ms(1))], waiter()].concat();
    assert!(run(Script::new(vec![early, late])).is_err());
}

#[test]
fn who_is_signalled_goes_on_with_the_mutex() {
    let waiter = vec![LOCK, WAIT, UNLOCK];
    let waker = vec![Op::Sleep(ms(1)), LOCK, SIGNAL, Op::Sleep(ms(10)), UNLOCK];
    assert_eq!(
        times_of(1, Script::new(vec![waiter, waker])),
        [0, 0, 11, 11]
    );
}

#[test]
fn posts_are_kept_and_taken_one_by_one() {
    let poster = vec![POST, POST, Op::Sleep(ms(10)), POST];
    let taker = vec![Op::Sleep(ms(1)), ACQUIRE, ACQUIRE, ACQUIRE];
    assert_eq!(
        times_of(2, Script::new(vec![poster, taker])),
        [0, 1, 1, 1, 10]
    );
}

#[test]
fn a_time_that_is_past_is_not_slept_for() {
    let script = |at: u64| Script::new(vec![vec![Op::Compute(ms(2)), Op::SleepUntil(Ns(at))]]);
    assert_eq!(times_of(1, script(1)), [0, 2, 2]);
    // The clock begins within the first 1004 ms.
    let at = *times_of(1, script(2_000 * MS)).last().expect("it ends");
    assert!((996..=1000).contains(&at), "{at}");
}

#[test]
fn who_yields_lets_the_other_go_first() {
    for release in Release::ALL {
        let task = || [Op::Compute(Ns(100_000)), Op::Yield].repeat(50);
        let with = engine(Script::new(vec![task(), task()]), release);
        let with = with.run(&|| false).expect("it ends");
        let switches = with
            .metrics
            .iter()
            .find(|metric| metric.name == "context_switches");
        let switches = switches.expect("a metric").value;
        assert!(switches > 60.0, "{release:?}: {switches}");
    }
}

#[test]
fn a_setting_is_what_the_scheduler_has_after_it() {
    let settings = vec![
        Setting {
            scheduler: Some((Policy::Batch, 7)),
            slice: Some(ms(1)),
            ..Setting::default()
        },
        Setting {
            cpus: Some(CpuMask::single(CpuId(1))),
            group: Some(0),
            ..Setting::default()
        },
        Setting {
            scheduler: Some((Policy::Normal, 0)),
            ..Setting::default()
        },
    ];
    let ops = vec![
        Op::Set(0),
        Op::Compute(ms(3)),
        Op::Set(1),
        Op::Compute(ms(3)),
        Op::Set(2),
        Op::Compute(ms(3)),
    ];
    let script = Script {
        settings,
        ..Script::new(vec![ops])
    };
    let mut engine = engine(script, Release::V6_12);
    let mut seen = Vec::new();
    while engine.step().expect("it ends") {
        let sched = engine.sched();
        if let Some(task) = sched.tasks.get(1)
            && !task.exiting
        {
            let se = &sched.se[task.se.index()];
            let group = sched.tgs[task.tg.index()].name.clone();
            let slice = se.custom_slice.then_some(se.slice / MS);
            seen.push((
                task.policy,
                task.nice,
                slice,
                task.cpu.0,
                group,
                se.weight >> 10,
            ));
        }
    }
    seen.dedup();
    let root = || "root".to_owned();
    let group = || "/group".to_owned();
    assert_eq!(
        seen,
        [
            (Policy::Normal, 0, None, 0, root(), 1024),
            (Policy::Batch, 7, Some(1), 0, root(), 215),
            (Policy::Batch, 7, Some(1), 0, group(), 215),
            (Policy::Batch, 7, Some(1), 1, group(), 215),
            (Policy::Normal, 0, None, 1, group(), 1024),
        ]
    );
}

/// The kernel inherits the priority and not the weight: a task of nice 19 that holds the mutex does not
/// get more of a CPU because one of nice -20 waits for it.
#[test]
fn an_inherited_priority_is_no_weight() {
    let nice = |nice: i8| Setting {
        scheduler: Some((Policy::Normal, nice)),
        ..Setting::default()
    };
    let holder = vec![Op::Set(0), LOCK, Op::Compute(ms(3)), UNLOCK];
    let waiter = vec![Op::Set(1), Op::Sleep(ms(1)), LOCK, UNLOCK];
    let other = vec![Op::Set(2), Op::Compute(ms(100))];
    let with = |inherit| {
        let script = Script {
            inherit,
            settings: vec![nice(10), nice(-20), nice(0)],
            ..Script::new(vec![holder.clone(), waiter.clone(), other.clone()])
        };
        *times_of(2, script).last().expect("it ends")
    };
    let (plain, inherits) = (with(false), with(true));
    // 110 : 1024, of which the first ms is before the other comes; by the waiter's weight it would be 4 ms.
    assert!(
        (8..60).contains(&plain) && (8..60).contains(&inherits),
        "{plain} {inherits}"
    );
}
