//! FORCE_IDLE_PUSH and FORCE_IDLE_LB by their rules (docs/patches.md).

#[path = "support/steal.rs"]
mod steal;

use std::sync::Arc;
use steal::steal;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::balance::CpuIdle;
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::state::{Mover, Policy};
use wakelab_sched::{
    Cookie, Feat, Features, Release, Rules, Sched, TaskId, TgId, Touches, Tunables,
};

const START: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn sched(features: &[Feat]) -> Sched {
    // Four cores of two CPUs, in one LLC: CPU n and n + 4 are siblings.
    let machine = Machine::preset("smt2-8").expect("a preset");
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    let tun = Tunables::for_machine(machine.ncpu(), 250);
    let mut on = Features::defaults(Release::V6_12);
    features.iter().for_each(|&feat| on.set(feat, true));
    let mut sched = Sched::new(Arc::new(topology), Rules::of(Release::V6_12), on, tun);
    at(&mut sched, START);
    sched
}

fn at(sched: &mut Sched, now: u64) {
    for index in 0..sched.ncpu() {
        sched.update_rq_clock(CpuId::from_index(index), Ns(now));
    }
}

fn task_on(sched: &mut Sched, cpu: u16, cookie: u64, cpus: CpuMask) -> TaskId {
    let p = sched.new_task(&TaskSpec {
        tg: TgId::ROOT,
        mm: 0,
        policy: Policy::Normal,
        nice: 0,
        cpus,
        cpu: CpuId(cpu),
        kthread: false,
        cookie: Cookie(cookie),
    });
    sched.wake_up_new_task(p, CpuId(cpu));
    p
}

fn task(sched: &mut Sched, cpu: u16, cookie: u64) -> TaskId {
    task_on(sched, cpu, cookie, CpuMask::first_n(8))
}

/// A task that runs alone on a CPU.
fn runs(sched: &mut Sched, cpu: u16, cookie: u64) -> TaskId {
    let p = task(sched, cpu, cookie);
    switch(sched, cpu);
    p
}

/// Lets a CPU switch, and its sibling after it.
fn switch(sched: &mut Sched, cpu: u16) {
    sched.switch_task(CpuId(cpu));
    let sibling = CpuId(cpu ^ 4);
    if sched.rq(sibling).need_resched {
        sched.switch_task(sibling);
    }
}

/// Core 0 runs cookie 1 on CPU 4; on CPU 0 tasks with these cookies are forced idle. Cores 1
/// to 3 run `others`, by CPU and cookie.
fn forced(features: &[Feat], waiting: &[u64], others: &[(u16, u64)]) -> (Sched, Vec<TaskId>) {
    let mut sched = sched(features);
    for &(cpu, cookie) in others {
        runs(&mut sched, cpu, cookie);
    }
    let waiting = (waiting.iter())
        .map(|&cookie| task(&mut sched, 0, cookie))
        .collect();
    // All joined at the same virtual time, and a tie stays with the CPU that picks.
    task(&mut sched, 4, 1);
    sched.switch_task(CpuId(4));
    sched.rq_mut(CpuId(0)).need_resched = false;
    assert!(sched.rq(CpuId(4)).curr.is_some() && sched.needs_core_balance(CpuId(0)));
    (sched, waiting)
}

/// What the CPU that is forced idle does before it sleeps.
fn balance(sched: &mut Sched) -> Option<TaskId> {
    steal(sched, CpuId(0), Ns(START + MS))
}

fn cpu_of(sched: &Sched, p: TaskId) -> u16 {
    sched.tasks[p.index()].cpu.0
}

const PUSH: &[Feat] = &[Feat::FORCE_IDLE_PUSH];
const PULL: &[Feat] = &[Feat::FORCE_IDLE_LB];

#[test]
fn a_blocked_task_goes_to_the_core_of_its_cookie_before_an_idle_one() {
    // Core 1 runs cookie 3, core 2 is idle, core 3 runs cookie 2.
    let (mut sched, waiting) = forced(PUSH, &[2], &[(1, 3), (3, 2)]);
    assert_eq!(balance(&mut sched), None, "nothing was stolen");
    let p = waiting[0];
    assert_eq!(cpu_of(&sched, p), 7);
    assert_eq!(sched.tasks[p.index()].moved_by, Some(Mover::Pushing));
    assert_eq!(sched.core.pushed, 1);
    assert!(sched.lb.arrivals.contains(&CpuId(7)) && sched.rq(CpuId(7)).need_resched);
    assert!(
        sched.rq(CpuId(0)).need_resched,
        "the core is no longer forced idle"
    );
    switch(&mut sched, 7);
    assert_eq!(sched.rq(CpuId(7)).curr, p);
}

#[test]
fn without_a_core_of_its_cookie_it_goes_to_an_idle_core() {
    let (mut sched, waiting) = forced(PUSH, &[2], &[(1, 3), (3, 3)]);
    balance(&mut sched);
    assert_eq!(cpu_of(&sched, waiting[0]), 2);
}

#[test]
fn it_stays_where_there_is_no_place_or_the_word_is_off() {
    // CPU 7 is idle beside a cookie 3; a task waits on each of the others.
    let all = [(1, 3), (2, 3), (3, 3)];
    let (mut sched, waiting) = forced(PUSH, &[2], &all);
    balance(&mut sched);
    assert_eq!((cpu_of(&sched, waiting[0]), sched.core.pushed), (0, 0));
    let (mut sched, waiting) = forced(&[], &[2], &[(1, 3)]);
    balance(&mut sched);
    assert_eq!((cpu_of(&sched, waiting[0]), sched.core.pushed), (0, 0));
}

/// Nor to a CPU of its own cookie that has something queued, which would push or balance it on.
#[test]
fn never_to_a_cpu_with_something_queued() {
    let (mut sched, waiting) = forced(PUSH, &[2], &[(1, 2), (5, 2), (2, 3), (3, 3)]);
    balance(&mut sched);
    assert_eq!(cpu_of(&sched, waiting[0]), 0);
}

#[test]
fn one_task_at_a_time_the_one_that_waits_longest_first() {
    let (mut sched, waiting) = forced(PUSH, &[2, 3], &[]);
    let first = sched.rq(CpuId(0)).cfs_tasks[0];
    balance(&mut sched);
    let moved: Vec<TaskId> = (waiting.iter().copied())
        .filter(|&p| cpu_of(&sched, p) != 0)
        .collect();
    assert_eq!(moved, [first]);
    assert_eq!(sched.rq(CpuId(0)).nr_running, 1);
}

#[test]
fn affinity_is_kept() {
    let (mut sched, waiting) = forced(PUSH, &[2], &[]);
    let p = waiting[0];
    let only: CpuMask = [CpuId(0), CpuId(4), CpuId(6)].into_iter().collect();
    sched.tasks[p.index()].cpus = only;
    balance(&mut sched);
    assert_eq!(cpu_of(&sched, p), 6);
}

/// What can be stolen is: the pushed task would leave the CPU without any.
#[test]
fn stealing_comes_first() {
    let (mut sched, waiting) = forced(PUSH, &[2], &[]);
    let rival = runs(&mut sched, 1, 3);
    let fits = task(&mut sched, 1, 1);
    assert_ne!(rival, fits);
    assert_eq!(balance(&mut sched), Some(fits));
    assert_eq!((cpu_of(&sched, waiting[0]), cpu_of(&sched, fits)), (0, 0));
    assert_eq!((sched.core.pushed, sched.core.stolen), (0, 1));
}

/// A newly idle pass of CPU `cpu`, with all its cost accepted.
fn newly_idle(sched: &mut Sched, cpu: u16) -> i32 {
    let now = Ns(START + 2 * MS);
    at(sched, now.0);
    for domain in &mut sched.sd[usize::from(cpu)] {
        domain.max_newidle_lb_cost = 0;
    }
    sched.feat.set(Feat::NI_RANDOM, false);
    sched.rq_mut(CpuId(cpu)).avg_idle = 100 * MS;
    sched.newidle_balance(CpuId(cpu), now, |_: &mut Touches| 0)
}

#[test]
fn an_idle_cpu_of_its_cookie_pulls_the_only_task_of_a_forced_idle_cpu() {
    let (mut sched, waiting) = forced(PULL, &[2], &[(1, 3), (2, 3), (3, 2)]);
    assert!(
        sched.rd.overload,
        "the gate of newly idle balancing is open"
    );
    assert_eq!(newly_idle(&mut sched, 7), 1);
    assert_eq!((cpu_of(&sched, waiting[0]), sched.core.pulled), (7, 1));
    let pass = sched.lb.stats.passes[1][CpuIdle::NewlyIdle as usize];
    assert_eq!((pass.pulled, pass.force_idle_pulled), (1, 1));
}

#[test]
fn without_the_word_it_stays() {
    let (mut sched, waiting) = forced(&[], &[2], &[(1, 3), (2, 3), (3, 2)]);
    sched.rd.overload = true;
    newly_idle(&mut sched, 7);
    assert_eq!((cpu_of(&sched, waiting[0]), sched.core.pulled), (0, 0));
}

#[test]
fn a_cpu_whose_core_has_another_cookie_does_not_pull_it() {
    // However often it has failed: the task would be forced idle there.
    let (mut sched, waiting) = forced(PULL, &[2], &[(1, 3), (2, 3), (3, 3)]);
    sched.sd[7]
        .iter_mut()
        .for_each(|sd| sd.nr_balance_failed = 100);
    newly_idle(&mut sched, 7);
    assert_eq!((cpu_of(&sched, waiting[0]), sched.core.pulled), (0, 0));
}

/// A CPU about to become idle matches by what its sibling has, not by the cookie that it ran itself.
#[test]
fn the_sibling_tells_what_a_newly_idle_core_will_run() {
    let (mut sched, waiting) = forced(PULL, &[2], &[(1, 3), (2, 3), (3, 2)]);
    sched.core.of_mut(CpuId(7)).core_cookie = Cookie(9);
    assert_eq!(newly_idle(&mut sched, 7), 1);
    assert_eq!(cpu_of(&sched, waiting[0]), 7);
}

/// Of a queue with several tasks only one that can run at the destination goes, whatever its place.
#[test]
fn only_what_can_run_goes() {
    let (mut sched, waiting) = forced(PULL, &[3, 2], &[(1, 4), (2, 4), (3, 2)]);
    assert_eq!(newly_idle(&mut sched, 7), 1);
    assert_eq!(
        (cpu_of(&sched, waiting[0]), cpu_of(&sched, waiting[1])),
        (0, 7)
    );
}
