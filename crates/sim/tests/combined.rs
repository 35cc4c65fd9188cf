//! Several workloads in one run: each is on its own, and the measured one decides the end.

mod support;

use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use support::{Scene, Task, command, run_checked, scene_strategy};
use wakelab_machine::{CpuMask, Ns};
use wakelab_sched::core_sched::prctl::{self, CoreSchedCall, Scope};
use wakelab_sched::{Cookie, Release, TaskId};
use wakelab_sim::combined::{PREFIX_COOKIE, SETTLE};
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{
    Attributes, Combined, Command, Engine, Grouping, Op, Outcome, RunConfig, RunError, Spawn,
    Start, Workload,
};

const MS: u64 = 1_000_000;

/// Each role's operations, then its end; the first role is the main task. Each draws a number first.
#[derive(Default)]
struct Script {
    roles: Vec<Vec<Op>>,
    tasks: Vec<std::vec::IntoIter<Op>>,
    drawn: Rc<RefCell<Vec<(u32, u64)>>>,
    cookie: Option<Cookie>,
}

fn script(roles: &[&[Op]]) -> Script {
    Script {
        roles: roles.iter().map(|ops| ops.to_vec()).collect(),
        ..Script::default()
    }
}

impl Workload for Script {
    fn channels(&self) -> Vec<Chan> {
        vec![Chan::pipe(), Chan::pipe()]
    }

    fn max_tasks(&self) -> usize {
        self.roles.len()
    }

    fn working_set_kib(&self) -> u64 {
        16
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        assert_eq!(
            task.index(),
            self.tasks.len(),
            "tasks have their own numbers"
        );
        self.tasks
            .push(self.roles[role as usize].clone().into_iter());
    }

    fn attributes(&self, role: u32) -> Attributes {
        assert_ne!(role, 0, "the main task has its maker's");
        Attributes {
            cookie: self.cookie,
            ..Attributes::default()
        }
    }

    fn last_cookie(&self) -> Cookie {
        self.cookie.unwrap_or(Cookie::NONE)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        self.drawn.borrow_mut().push((task.0, rng.next_u64()));
        self.tasks[task.index()].next().unwrap_or(Op::Exit)
    }
}

fn fork(role: u32) -> Op {
    Op::Fork(Spawn { role, thread: true })
}

fn compute(ms: u64) -> Op {
    Op::Compute(Ns(ms * MS))
}

/// More than any run here takes.
const FOR_EVER: Op = Op::Compute(Ns(1_000_000 * MS));

fn config(grouping: Grouping) -> RunConfig {
    let release = Release::V6_12;
    let scene = Scene {
        machine: support::machine_of(1, 1, 2, 2, "siblings-last").into(),
        release,
        features: wakelab_sched::features::FeatureSet::defaults(release),
        grouping,
        start: Start::Forked,
        tasks: Vec::new(),
        rounds: 0,
        beside: Default::default(),
        seed: 1,
    };
    scene.config()
}

fn engine(measured: Script, beside: Vec<Script>) -> Engine<Combined> {
    let beside = beside.into_iter().map(command).collect();
    let combined = Combined::new(command(measured), beside);
    Engine::new(&config(Grouping::Autogroup), combined)
}

fn to_the_end(mut engine: Engine<Combined>) -> Engine<Combined> {
    while engine.step().expect("it ends") {}
    engine
}

fn metric(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.metrics.iter().find(|metric| metric.name == name);
    found.expect("a metric").value
}

/// Starts the clock, makes the other roles, waits for them.
fn measured(roles: &[&[Op]]) -> Script {
    let mut main = vec![Op::Start];
    main.extend((1..=roles.len() as u32).map(fork));
    main.push(Op::Join);
    script(&[&[&main[..]], roles].concat())
}

#[test]
fn the_measured_workload_ends_the_run_when_its_own_tasks_have_ended() {
    let beside = script(&[&[fork(1), FOR_EVER], &[FOR_EVER]]);
    let outcome = engine(measured(&[&[compute(20)]]), vec![beside])
        .run(&|| false)
        .expect("it ends");
    let time = metric(&outcome, "time_s");
    assert!((0.020..0.045).contains(&time), "{time}");
    let busy = metric(&outcome, "cpus_utilized");
    assert!((2.8..3.2).contains(&busy), "{busy}");
    assert!(outcome.host.simulated.0 > SETTLE.0);
}

#[test]
fn a_workload_alone_begins_at_once() {
    let outcome = engine(measured(&[&[compute(3)]]), Vec::new());
    let outcome = outcome.run(&|| false).expect("it ends");
    let booted = 1_000_000_000;
    let before = outcome.host.simulated.0 - booted;
    assert!(before < 3 * MS + 10 * MS, "{before}");
}

#[test]
fn the_shell_sleeps_before_a_command_as_long_as_it_is_told() {
    let after = |script: Script, ms: u64| Command {
        after: Ns(ms * MS),
        ..command(script)
    };
    let run = |measured_after, beside: Vec<u64>| {
        let measured = after(measured(&[&[compute(1)]]), measured_after);
        let beside = beside.into_iter();
        let beside = beside.map(|ms| after(script(&[&[FOR_EVER]]), ms)).collect();
        let combined = Combined::new(measured, beside);
        let engine = Engine::new(&config(Grouping::Autogroup), combined);
        let outcome = engine.run(&|| false).expect("it ends");
        (outcome.host.simulated.0 - 1_000_000_000) / MS
    };
    let settle = SETTLE.0 / MS;
    assert!((300..310).contains(&run(300, vec![])));
    // The sleep begins when those beside have settled, and they are waited for after theirs.
    for (measured, beside) in [(300, vec![0]), (0, vec![300, 50]), (700, vec![150])] {
        let told = measured + beside.iter().sum::<u64>();
        let began = run(measured, beside);
        assert!(
            (told + settle..told + settle + 20).contains(&began),
            "{began}"
        );
    }
}

#[test]
fn it_begins_when_those_beside_have_made_their_tasks() {
    // One that makes a task every 60 ms five times.
    let slow: Vec<Op> = (1..=5)
        .flat_map(|n| [Op::Sleep(Ns(60 * MS)), fork(n)])
        .collect();
    let mut roles: Vec<&[Op]> = vec![&slow];
    roles.extend([&[FOR_EVER][..]; 5]);
    let outcome = engine(measured(&[&[compute(1)]]), vec![script(&roles)]);
    let outcome = outcome.run(&|| false).expect("it ends");
    let before = outcome.host.simulated.0 - 1_000_000_000;
    assert!((400 * MS..520 * MS).contains(&before), "{before}");
    // One that makes tasks for ever is not waited for.
    let ops: Vec<Op> = (0..400)
        .flat_map(|_| [fork(1), Op::Sleep(Ns(50 * MS))])
        .collect();
    let outcome = engine(measured(&[&[compute(1)]]), vec![script(&[&ops, &[]])]);
    let outcome = outcome.run(&|| false).expect("it ends");
    let before = outcome.host.simulated.0 - 1_000_000_000;
    assert!(
        (100 * SETTLE.0..102 * SETTLE.0).contains(&before),
        "{before}"
    );
}

#[test]
fn channels_and_wake_ups_stay_in_their_workload() {
    // Both use the same numbers. The one beside reads what its own partner never writes.
    let pairs: [&[Op]; 2] = [
        &[Op::Read(ChanId(1), 5), Op::Unpark(TaskId(2))],
        &[Op::Sleep(Ns(MS)), Op::Write(ChanId(1), 5), Op::Park],
    ];
    let deaf = script(&[
        &[fork(1), fork(2), Op::Join],
        &[Op::Read(ChanId(1), 5)],
        &[Op::Park],
    ]);
    let engine = to_the_end(engine(measured(&pairs), vec![deaf]));
    // The shell, three beside, three measured.
    let ended: Vec<bool> = engine
        .sched()
        .tasks
        .iter()
        .map(|task| task.exiting)
        .collect();
    assert_eq!(ended, [false, false, false, false, true, true, true]);
}

#[test]
fn a_stopped_workload_beside_ends_whatever_its_tasks_do() {
    let workers: [&[Op]; 6] = [
        &[FOR_EVER],
        &[Op::Work(Ns(1_000_000 * MS))],
        &[Op::SpinFor(Ns(1_000_000 * MS))],
        &[Op::Sleep(Ns(1_000 * MS)), FOR_EVER],
        &[Op::Read(ChanId(0), 1), FOR_EVER],
        &[Op::Poll(ChanId(1)), Op::Park, FOR_EVER],
    ];
    let mut main = vec![Op::StopAfter(Ns(150 * MS))];
    // Twice as many as there are CPUs, so that some wait for one.
    main.extend((1..=6).chain(1..=6).map(fork));
    main.extend([Op::Join, FOR_EVER]);
    let beside = script(&[&[&main[..]], &workers[..]].concat());
    let long = measured(&[&[Op::Sleep(Ns(1_500 * MS))]]);
    let engine = to_the_end(engine(long, vec![beside]));
    let states = &engine.sched().tasks;
    let running: Vec<usize> = (0..14).filter(|&n| !states[n].exiting).collect();
    assert_eq!(running, [0], "only the shell is left: {states:#?}");
    let ran = |n: usize| engine.sched().se[states[n].se.index()].sum_exec_runtime;
    let all: u64 = (1..14).map(ran).sum();
    assert!(
        (400 * MS..610 * MS).contains(&all),
        "four CPUs for 150 ms: {all}"
    );
}

#[test]
fn each_workload_has_its_group_and_its_cookies() {
    let with_cookie = |mut script: Script| {
        script.cookie = Some(Cookie(1));
        script
    };
    let groups = |grouping| {
        let one = || with_cookie(measured(&[&[compute(1)], &[compute(1)]]));
        let combined = Combined::new(command(one()), vec![command(one())]);
        let engine = to_the_end(Engine::new(&config(grouping), combined));
        let tasks = &engine.sched().tasks;
        // The shell; three of the one beside; three of the measured one.
        let cookies: Vec<u64> = tasks.iter().map(|task| task.cookie.0).collect();
        assert_eq!(
            [cookies[0], cookies[1], cookies[4]],
            [0; 3],
            "main tasks have none"
        );
        assert_eq!((cookies[2], cookies[5]), (cookies[3], cookies[6]));
        assert_ne!(cookies[2], cookies[5]);
        tasks.iter().map(|task| task.tg.0).collect::<Vec<_>>()
    };
    assert_eq!(groups(Grouping::Autogroup), [3, 2, 2, 2, 1, 1, 1]);
    assert_eq!(
        groups(Grouping::Cgroup { shares: 10 }),
        [3, 2, 2, 2, 1, 1, 1]
    );
    assert_eq!(groups(Grouping::Root), [0; 7]);
}

#[test]
fn a_measured_workload_that_can_never_go_on_is_found_out_beside_others() {
    // 65536 events, the interval of looks, come soon.
    let beside = script(&[&[Op::Sleep(Ns(10_000)); 40_000]]);
    let error = engine(measured(&[&[Op::Read(ChanId(0), 1)]]), vec![beside]);
    let error = error.run(&|| false).expect_err("nobody writes");
    assert!(matches!(error, RunError::Stuck { .. }), "{error}");
    assert!(
        error.to_string().ends_with("waits to read from channel 0"),
        "{error}"
    );
}

#[test]
fn random_numbers_do_not_depend_on_what_runs_beside() {
    let drawn = |beside: Vec<Script>| {
        let script = measured(&[&[compute(1)], &[compute(2)]]);
        let drawn = Rc::clone(&script.drawn);
        to_the_end(engine(script, beside));
        let mut drawn = drawn.take();
        drawn.sort_unstable();
        drawn
    };
    let alone = drawn(Vec::new());
    assert!(alone.len() > 8);
    assert_eq!(drawn(vec![script(&[&[FOR_EVER]])]), alone);
    let single = measured(&[&[compute(1)], &[compute(2)]]);
    let of_single = Rc::clone(&single.drawn);
    Engine::new(&config(Grouping::Autogroup), single)
        .run(&|| false)
        .expect("it ends");
    let mut of_single = of_single.take();
    of_single.sort_unstable();
    assert_eq!(of_single, alone);
}

#[test]
fn waiting_before_the_go_does_not_count() {
    // Eight that never stop on four CPUs: each waits half of the time.
    let beside = script(&[
        &[
            fork(1),
            fork(1),
            fork(1),
            fork(1),
            fork(1),
            fork(1),
            fork(1),
            FOR_EVER,
        ],
        &[FOR_EVER],
    ]);
    let outcome = engine(measured(&[&[Op::Sleep(Ns(30 * MS))]]), vec![beside]);
    let outcome = outcome.run(&|| false).expect("it ends");
    let waited = metric(&outcome, "rq_wait_s") / metric(&outcome, "time_s");
    assert!((3.0..5.0).contains(&waited), "{waited}");
}

/// A scene with others beside it, some with cookies.
fn combined_strategy() -> impl Strategy<Value = Scene> {
    let beside = prop::collection::vec((scene_strategy(Release::V5_2), 0u64..3), 1..4);
    (scene_strategy(Release::V5_2), 0u64..3, beside).prop_map(|(mut scene, cookie, beside)| {
        colour(&mut scene.tasks, cookie);
        let all = CpuMask::first_n(scene.machine.ncpu());
        let others = beside.into_iter().map(|(mut other, cookie)| {
            colour(&mut other.tasks, cookie);
            // What they were bound to on another machine may leave nothing on this one.
            for task in &mut other.tasks {
                let cpus = task.attributes.cpus.map(|cpus| cpus.and(&all));
                task.attributes.cpus = cpus.filter(|cpus| !cpus.is_empty());
            }
            (other.tasks, other.rounds)
        });
        scene.beside = others.collect();
        scene
    })
}

/// All tasks but the first get a cookie.
fn colour(tasks: &mut [Task], cookie: u64) {
    for task in tasks.iter_mut().skip(1) {
        task.attributes.cookie = (cookie != 0).then_some(Cookie(cookie));
    }
}

proptest! {
    /// All that holds of one workload holds of several.
    #[test]
    fn nothing_is_lost_and_everybody_runs(scene in combined_strategy()) {
        run_checked(&scene)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome(scene in combined_strategy()) {
        prop_assert_eq!(format!("{:?}", scene.run()), format!("{:?}", scene.run()));
    }
}

/// How a command's tasks come to their cookie.
#[derive(Clone, Copy, Debug)]
enum Way {
    ByNumber,
    Prctl(Scope),
    Coresched,
}

/// A main task that starts the clock if it is `measured` and makes two others, of which one may call
/// `prctl`.
fn cookied(way: Way, measured: bool) -> Command {
    let call = |scope| {
        Op::CoreSched(CoreSchedCall {
            command: prctl::Command::Create,
            pid: None,
            scope,
        })
    };
    let calls = match way {
        Way::Prctl(scope) => vec![call(scope), compute(200)],
        Way::ByNumber | Way::Coresched => vec![compute(200)],
    };
    let mut main = vec![fork(1), fork(2), Op::Join];
    if measured {
        main.insert(0, Op::Start);
    }
    let mut script = script(&[&main, &[compute(200)], &calls]);
    script.cookie = matches!(way, Way::ByNumber).then_some(Cookie(1));
    let mut command = command(script);
    if matches!(way, Way::Coresched) {
        command.attributes.cookie = Some(PREFIX_COOKIE);
    }
    command
}

/// The cookies of each command's tasks, by their process group, as they are when the run ends.
fn cookies_of(ways: [Way; 2]) -> [Vec<Cookie>; 2] {
    let [measured, beside] = [cookied(ways[0], true), cookied(ways[1], false)];
    let combined = Combined::new(measured, vec![beside]);
    let mut engine = Engine::new(&config(Grouping::Root), combined);
    let mut cookies = [Vec::new(), Vec::new()];
    while engine.step().expect("it ends") {
        for task in &engine.sched().tasks {
            if let Some(seen) = cookies.get_mut(usize::from(task.pgrp))
                && task.cookie != Cookie::NONE
                && !seen.contains(&task.cookie)
            {
                seen.push(task.cookie);
            }
        }
    }
    cookies
}

#[test]
fn two_commands_never_share_a_cookie_however_they_get_it() {
    let ways = [
        Way::ByNumber,
        Way::Prctl(Scope::Thread),
        Way::Prctl(Scope::ProcessGroup),
        Way::Coresched,
    ];
    for first in ways {
        for second in ways {
            let [one, other] = cookies_of([first, second]);
            assert!(!one.is_empty() && !other.is_empty(), "{first:?} {second:?}");
            let shared = one.iter().any(|cookie| other.contains(cookie));
            assert!(!shared, "{first:?} {second:?}: {one:?} {other:?}");
        }
    }
}

#[test]
fn a_call_about_a_process_group_is_about_one_command() {
    let [measured, beside] = [
        cookied(Way::Prctl(Scope::ProcessGroup), true),
        command(script(&[&[FOR_EVER]])),
    ];
    let combined = Combined::new(measured, vec![beside]);
    let mut engine = Engine::new(&config(Grouping::Root), combined);
    let mut whole = false;
    while engine.step().expect("it ends") {
        let tasks = &engine.sched().tasks;
        let has = |pgrp| tasks.iter().filter(move |task| task.pgrp == pgrp);
        let given = has(0).filter(|task| task.cookie.is_some()).count();
        whole |= given == 3;
        // The command beside is 1 and the shell 2.
        assert!(!has(1).chain(has(2)).any(|task| task.cookie.is_some()));
    }
    assert!(whole, "all three of the caller's command get it");
}
