//! `prctl(PR_SCHED_CORE)`: whom each command and scope is about, and what it changes at once.

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::core_sched::prctl::{Command, CoreSchedCall, CoreSchedError, Scope};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::state::Policy;
use wakelab_sched::{Cookie, Features, Release, Rules, Sched, TaskId, TgId, Tunables};

/// Four processes of two threads each on a machine of this name, all queued on CPU 0: task n is a thread
/// of process n / 2, and the first and the last four are a process group each.
fn sched(machine: &str) -> Sched {
    sched_of(machine, Release::V6_12)
}

fn sched_of(machine: &str, release: Release) -> Sched {
    let machine = Machine::preset(machine).expect("a preset");
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    let tun = Tunables::for_machine(machine.ncpu(), 250);
    let features = Features::defaults(release);
    let rules = Rules::of(release);
    let mut sched = Sched::new(Arc::new(topology), rules, features, tun);
    for index in 0..sched.ncpu() {
        sched.update_rq_clock(CpuId::from_index(index), Ns(1_000_000_000));
    }
    for number in 0..8 {
        let p = sched.new_task(&TaskSpec {
            tg: TgId::ROOT,
            mm: number / 2,
            policy: Policy::Normal,
            nice: 0,
            cpus: CpuMask::first_n(sched.ncpu()),
            cpu: CpuId(0),
            kthread: false,
            cookie: Cookie::NONE,
        });
        sched.tasks[p.index()].pgrp = u16::from(number >= 4);
        sched.wake_up_new_task(p, CpuId(0));
    }
    sched.switch_task(CpuId(0));
    sched
}

fn call(
    sched: &mut Sched,
    current: u32,
    command: Command,
    pid: Option<u32>,
    scope: Scope,
) -> Result<Cookie, CoreSchedError> {
    let pid = pid.map(TaskId);
    let call = CoreSchedCall {
        command,
        pid,
        scope,
    };
    sched.sched_core_share_pid(TaskId(current), call)
}

fn cookies(sched: &Sched) -> Vec<u64> {
    sched.tasks.iter().map(|task| task.cookie.0).collect()
}

#[test]
fn a_scope_is_the_thread_its_process_or_its_process_group() {
    for (scope, expected) in [
        (Scope::Thread, [0, 0, 0, 1, 0, 0, 0, 0]),
        (Scope::ThreadGroup, [0, 0, 1, 1, 0, 0, 0, 0]),
        (Scope::ProcessGroup, [1, 1, 1, 1, 0, 0, 0, 0]),
    ] {
        let mut sched = sched("smt2-8");
        assert_eq!(
            call(&mut sched, 0, Command::Create, Some(3), scope),
            Ok(Cookie(1))
        );
        assert_eq!(cookies(&sched), expected);
        let members = expected.iter().sum::<u64>() as u32;
        assert_eq!(
            sched.core.cookies.held().collect::<Vec<_>>(),
            [(Cookie(1), members)]
        );
    }
}

#[test]
fn cookies_are_shared_to_and_from_others_and_told() {
    let mut sched = sched("smt2-8");
    let thread = Scope::Thread;
    call(&mut sched, 0, Command::Create, None, thread).unwrap();
    call(&mut sched, 2, Command::Create, None, thread).unwrap();
    call(&mut sched, 0, Command::ShareTo, Some(4), Scope::ThreadGroup).unwrap();
    assert_eq!(cookies(&sched), [1, 0, 2, 0, 1, 1, 0, 0]);
    assert_eq!(
        call(&mut sched, 7, Command::ShareFrom, Some(2), thread),
        Ok(Cookie(2))
    );
    assert_eq!(
        call(&mut sched, 7, Command::Get, Some(5), thread),
        Ok(Cookie(1))
    );
    assert_eq!(cookies(&sched), [1, 0, 2, 0, 1, 1, 0, 2]);
    // A task without a cookie shares that, too: this is how one is taken away.
    assert_eq!(
        call(&mut sched, 1, Command::ShareTo, Some(2), thread),
        Ok(Cookie::NONE)
    );
    assert_eq!(cookies(&sched), [1, 0, 0, 0, 1, 1, 0, 2]);
}

#[test]
fn a_cookie_lives_as_long_as_a_task_has_it_and_never_comes_again() {
    let mut sched = sched("smt2-8");
    let held = |sched: &Sched| sched.core.cookies.held().collect::<Vec<_>>();
    call(&mut sched, 2, Command::Create, None, Scope::ThreadGroup).unwrap();
    assert_eq!(held(&sched), [(Cookie(1), 2)]);
    sched.tasks[3].exiting = true;
    sched.sched_core_free(TaskId(3));
    assert_eq!(held(&sched), [(Cookie(1), 1)]);
    assert_eq!(
        call(&mut sched, 2, Command::Create, None, Scope::Thread),
        Ok(Cookie(2))
    );
    assert_eq!(held(&sched), [(Cookie(2), 1)]);
    assert!(sched.core.enabled);
}

#[test]
fn errors_are_the_kernels_and_change_nothing() {
    let mut sched = sched("smt2-8");
    sched.tasks[6].exiting = true;
    let (group, thread) = (Scope::ThreadGroup, Scope::Thread);
    for (command, pid, scope, error) in [
        (
            Command::Create,
            Some(8),
            thread,
            CoreSchedError::NoSuchTask(TaskId(8)),
        ),
        (
            Command::ShareTo,
            Some(6),
            thread,
            CoreSchedError::NoSuchTask(TaskId(6)),
        ),
        (
            Command::Get,
            None,
            group,
            CoreSchedError::Scope(Command::Get, group),
        ),
        (
            Command::ShareFrom,
            None,
            group,
            CoreSchedError::Scope(Command::ShareFrom, group),
        ),
    ] {
        assert_eq!(call(&mut sched, 0, command, pid, scope), Err(error));
        assert!(!sched.core.enabled);
        assert_eq!(cookies(&sched), [0; 8]);
    }
    let mut without_smt = self::sched("altra-80");
    let refused = call(&mut without_smt, 0, Command::Create, None, thread);
    assert_eq!(refused, Err(CoreSchedError::NoDevice));
}

#[test]
fn those_who_run_must_reschedule_and_those_who_wait_are_listed_anew() {
    let mut sched = sched("smt2-8");
    let runs = sched.rq(CpuId(0)).curr;
    let waits = TaskId(u32::from(runs.0 == 0));
    call(&mut sched, 7, Command::Create, Some(waits.0), Scope::Thread).unwrap();
    assert!(sched.lb.arrivals.is_empty());
    assert_eq!(sched.core.rqs[0].core_tree, [waits]);
    call(&mut sched, 7, Command::Create, Some(runs.0), Scope::Thread).unwrap();
    assert_eq!(sched.lb.arrivals, [CpuId(0)]);
    assert!(sched.rq(CpuId(0)).need_resched);
    assert_eq!(sched.core.rqs[0].core_tree, [waits, runs]);
    call(
        &mut sched,
        7,
        Command::ShareTo,
        Some(waits.0),
        Scope::Thread,
    )
    .unwrap();
    assert_eq!(sched.core.rqs[0].core_tree, [runs]);
}

#[test]
fn a_kernel_before_core_scheduling_does_not_know_the_call() {
    for release in Release::ALL {
        let mut sched = sched_of("smt2-8", release);
        let made = call(&mut sched, 0, Command::Create, None, Scope::Thread);
        let expected = match release {
            Release::V5_2 => Err(CoreSchedError::NotInRelease(release)),
            _ => Ok(Cookie(1)),
        };
        assert_eq!(made, expected);
        assert_eq!(sched.core.enabled, made.is_ok());
    }
}
