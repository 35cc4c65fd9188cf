//! Core scheduling by its documented rules: what no recorded call shows.

#[path = "support/steal.rs"]
mod steal;

use std::sync::Arc;
use steal::steal;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::core_sched::{Steal, StealSearch};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, DEQUEUE_SPECIAL, ENQUEUE_WAKEUP};
use wakelab_sched::placement::wf;
use wakelab_sched::state::{MoveCounts, Mover, Pick, Policy};
use wakelab_sched::touch::Touch;
use wakelab_sched::{
    Cookie, Feat, Features, Line, Release, Rules, Sched, TaskId, TgId, Touches, Tunables,
};

const START: u64 = 1_000_000_000;

fn sched() -> Sched {
    // Four cores of two CPUs, in one LLC: CPU n and n + 4 are siblings.
    let machine = Machine::preset("smt2-8").expect("a preset");
    let topology = SchedTopology::build(&machine, &DomainRules::v6_12());
    let tun = Tunables::for_machine(machine.ncpu(), 250);
    let rules = Rules::of(Release::V6_12);
    let features = Features::defaults(Release::V6_12);
    let mut sched = Sched::new(Arc::new(topology), rules, features, tun);
    at(&mut sched, START);
    sched
}

/// Lets it be a time on all CPUs.
fn at(sched: &mut Sched, now: u64) {
    for index in 0..sched.ncpu() {
        sched.update_rq_clock(CpuId::from_index(index), Ns(now));
    }
}

fn task(sched: &mut Sched, cpu: u16, cookie: u64) -> TaskId {
    let p = sched.new_task(&TaskSpec {
        tg: TgId::ROOT,
        mm: 0,
        policy: Policy::Normal,
        nice: 0,
        cpus: CpuMask::first_n(sched.ncpu()),
        cpu: CpuId(cpu),
        kthread: false,
        cookie: Cookie(cookie),
    });
    sched.wake_up_new_task(p, CpuId(cpu));
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

fn curr(sched: &Sched, cpu: u16) -> TaskId {
    sched.rq(CpuId(cpu)).curr
}

#[test]
fn a_sibling_with_another_cookie_is_forced_idle_and_so_is_accounted() {
    let mut sched = sched();
    let first = task(&mut sched, 0, 1);
    switch(&mut sched, 0);
    let second = task(&mut sched, 4, 2);
    switch(&mut sched, 4);
    // Both joined at the same virtual time, and a tie stays with the CPU that picks.
    assert_eq!((curr(&sched, 0), curr(&sched, 4)), (TaskId::NONE, second));
    assert_eq!(sched.core.cookie(CpuId(0)), Cookie(2));
    assert_eq!(sched.core.rqs[0].blocked, Some(Cookie(1)));
    sched.account_forceidle_now(Ns(START + 3_000));
    assert_eq!(sched.core.rqs[0].forceidle_sum, 3_000);
    assert_eq!(sched.core.pairs[&(Cookie(2), Cookie(1))], 3_000);
    assert_eq!(sched.tasks[second.index()].core_forceidle_sum, 3_000);
    assert_eq!(sched.tasks[first.index()].core_forceidle_sum, 0);
    sched.reset_forceidle(Ns(START + 3_000));
    assert_eq!(sched.core.rqs[0].forceidle_sum, 0);
}

#[test]
fn tasks_with_one_cookie_or_none_share_a_core() {
    for cookie in [0, 1] {
        let mut sched = sched();
        sched.core.enabled = true;
        let first = task(&mut sched, 0, cookie);
        switch(&mut sched, 0);
        let second = task(&mut sched, 4, cookie);
        switch(&mut sched, 4);
        assert_eq!((curr(&sched, 0), curr(&sched, 4)), (first, second));
    }
}

#[test]
fn the_stopper_comes_first_and_keeps_cookies_off_its_core() {
    let mut sched = sched();
    task(&mut sched, 0, 1);
    sched.set_stopper(CpuId(4), true);
    assert_eq!(sched.pick_next_task_core(CpuId(0)), Pick::Idle);
    assert!(sched.rq(CpuId(4)).need_resched);
    assert_eq!(sched.pick_next_task_core(CpuId(4)), Pick::Stop);
    sched.set_stopper(CpuId(4), false);
    assert!(!sched.core_pick_ready(CpuId(4)));
    assert!(matches!(sched.pick_next_task_core(CpuId(0)), Pick::Task(_)));
}

#[test]
fn a_pick_for_a_sibling_holds_until_something_is_queued() {
    let mut sched = sched();
    task(&mut sched, 0, 1);
    let other = task(&mut sched, 4, 1);
    sched.switch_task(CpuId(0));
    assert!(sched.core_pick_ready(CpuId(4)));
    let mut changed = sched.clone();
    task(&mut changed, 4, 0);
    assert!(!changed.core_pick_ready(CpuId(4)));
    assert_eq!(sched.switch_task(CpuId(4)), other);
    assert!(!sched.core_pick_ready(CpuId(4)), "it was followed");
}

/// A CPU that is forced idle looks at its sibling first and then from the next CPU on.
#[test]
fn stealing_looks_near_first_and_then_in_turn() {
    for (holders, taken_from) in [(vec![3, 6], 3), (vec![1, 6], 6), (vec![1], 1)] {
        let mut sched = sched();
        // CPU 2 is forced idle beside CPU 6, which runs cookie 1.
        task(&mut sched, 6, 1);
        switch(&mut sched, 6);
        at(&mut sched, START + 1_000_000);
        task(&mut sched, 2, 2);
        at(&mut sched, START + 1_000_000);
        for &cpu in &holders {
            // One that runs there, and one that waits.
            if cpu != 6 {
                task(&mut sched, cpu, 1);
                switch(&mut sched, cpu);
            }
            task(&mut sched, cpu, 1);
        }
        sched.core.of_mut(CpuId(2)).core_cookie = Cookie(1);
        sched.core.of_mut(CpuId(2)).core_forceidle_count = 1;
        sched.rq_mut(CpuId(2)).need_resched = false;
        assert!(sched.needs_core_balance(CpuId(2)));
        let expected = if holders.contains(&6) { 6 } else { taken_from };
        let before = sched.rq(CpuId(expected)).nr_running;
        let p = steal(&mut sched, CpuId(2), Ns(START + 1_000_000));
        let p = p.expect("one is taken");
        assert_eq!(
            sched.rq(CpuId(expected)).nr_running,
            before - 1,
            "{holders:?}"
        );
        assert_eq!(sched.tasks[p.index()].cpu, CpuId(2));
        assert_eq!(sched.tasks[p.index()].moved_by, Some(Mover::Stealing));
        assert!(sched.rq(CpuId(2)).need_resched);
        // From another core, where one with its cookie runs, to CPU 6's core, where one does too.
        let pairs = MoveCounts {
            split: u64::from(expected != 6),
            joined: u64::from(expected != 6),
        };
        assert_eq!(*sched.core.moves.of_mut(Some(Mover::Stealing)), pairs);
    }
}

/// Whoever moves it: what counts are the cores and who runs there.
#[test]
fn a_move_splits_the_pair_that_it_leaves_and_joins_the_one_that_it_meets() {
    let mut sched = sched();
    // Cookie 1 runs on both CPUs of a core and on a third; cookie 2 and no cookie on two others.
    for (cpu, cookie) in [(2, 1), (6, 1), (0, 1), (1, 2), (3, 0)] {
        task(&mut sched, cpu, cookie);
        switch(&mut sched, cpu);
    }
    let on = |sched: &Sched, cpu| sched.rq(CpuId(cpu)).curr;
    let movers = Mover::ALL.map(Some).into_iter().chain([None]);
    for mover in movers {
        for (from, to, split, joined) in [
            (2, 6, 0, 0),
            (2, 4, 1, 1),
            (2, 1, 1, 0),
            (0, 2, 0, 1),
            (0, 5, 0, 0),
            (1, 2, 0, 0),
            (3, 2, 0, 0),
        ] {
            *sched.core.moves.of_mut(mover) = MoveCounts::default();
            let p = on(&sched, from);
            sched.note_core_move(p, CpuId(from), CpuId(to), mover);
            let counts = *sched.core.moves.of_mut(mover);
            assert_eq!(counts, MoveCounts { split, joined }, "{from} to {to}");
        }
    }
    let rows: Vec<_> = sched.core.moves.rows().map(|(how, _)| how).collect();
    assert_eq!(rows.len(), Mover::ALL.len() + 1);
}

/// CPU 2 is forced idle beside CPU 6, which runs cookie 1; another task with that cookie waits on CPU 1,
/// the last to be looked at.
fn forced_idle_with_a_match_far_away() -> Sched {
    let mut sched = sched();
    task(&mut sched, 1, 1);
    switch(&mut sched, 1);
    task(&mut sched, 1, 1);
    task(&mut sched, 2, 2);
    // All joined at the same virtual time, and a tie stays with the CPU that picks.
    task(&mut sched, 6, 1);
    sched.switch_task(CpuId(6));
    sched.rq_mut(CpuId(2)).need_resched = false;
    assert!(sched.needs_core_balance(CpuId(2)));
    sched
}

#[test]
fn the_search_ends_when_its_cpu_must_reschedule() {
    let mut sched = forced_idle_with_a_match_far_away();
    let (cpu, now) = (CpuId(2), Ns(START));
    let mut search = StealSearch::by(cpu);
    let looked: Vec<u16> = std::iter::from_fn(|| sched.next_to_steal_from(&mut search))
        .map(|src| src.0)
        .collect();
    assert_eq!(looked, [6, 3, 4, 5, 6, 7, 0, 1], "its core, then its LLC");
    let mut search = StealSearch::by(cpu);
    for _ in 0..3 {
        let src = sched
            .next_to_steal_from(&mut search)
            .expect("more to look at");
        let stolen = sched.try_steal_cookie(cpu, src, now);
        assert!(
            !matches!(stolen, Steal::Moved(_)),
            "from {src:?}: {stolen:?}"
        );
    }
    task(&mut sched, 2, 1);
    assert!(sched.rq(cpu).need_resched);
    assert_eq!(sched.next_to_steal_from(&mut search), None);
    assert_eq!(sched.core.stolen, 0);
}

#[test]
fn each_look_takes_both_locks() {
    let mut sched = forced_idle_with_a_match_far_away();
    let mut search = StealSearch::by(CpuId(2));
    sched.touch.clear();
    let src = sched.next_to_steal_from(&mut search).expect("the sibling");
    let lock = |cpu| Touch::of(Line::Rq(cpu), true);
    assert_eq!(sched.touch.list, [lock(CpuId(2)), lock(src)]);
    assert_eq!(search.at(), Some(CpuId(6)));
}

#[test]
fn nothing_is_stolen_that_may_not_run_here_or_has_a_fuller_core() {
    let mut sched = sched();
    task(&mut sched, 1, 1);
    switch(&mut sched, 1);
    let waits = task(&mut sched, 1, 1);
    let now = Ns(START);
    let steal = |sched: &mut Sched| sched.try_steal_cookie(CpuId(2), CpuId(1), now);
    assert_eq!(steal(&mut sched), Steal::NoCookie);
    sched.core.of_mut(CpuId(2)).core_cookie = Cookie(2);
    assert_eq!(steal(&mut sched), Steal::NoCandidate);
    sched.core.of_mut(CpuId(2)).core_cookie = Cookie(1);
    sched.tasks[waits.index()].core_occupation = 2;
    sched.core.rqs[2].idle_occupation = 1;
    assert_eq!(steal(&mut sched), Steal::NoneSuitable);
    sched.core.rqs[2].idle_occupation = 2;
    sched.set_cpus_allowed(waits, CpuMask::single(CpuId(1)));
    assert_eq!(steal(&mut sched), Steal::NoneSuitable);
    sched.set_cpus_allowed(waits, CpuMask::first_n(8));
    assert_eq!(steal(&mut sched), Steal::Moved(waits));
    switch(&mut sched, 2);
    assert_eq!(steal(&mut sched), Steal::NotIdle);
}

/// A task alone on its CPU gives way after half a slice if a sibling is kept idle for it.
#[test]
fn the_tick_ends_force_idle_after_half_a_slice() {
    let mut sched = sched();
    task(&mut sched, 0, 1);
    switch(&mut sched, 0);
    task(&mut sched, 4, 2);
    switch(&mut sched, 4);
    let runs = curr(&sched, 4);
    assert!(runs.is_some());
    let slice = sched.se[sched.tasks[runs.index()].se.index()].slice;
    at(&mut sched, START + slice / 2);
    sched.task_tick(CpuId(4));
    assert!(!sched.rq(CpuId(4)).need_resched);
    at(&mut sched, START + slice / 2 + 1);
    sched.task_tick(CpuId(4));
    assert!(sched.rq(CpuId(4)).need_resched);
    switch(&mut sched, 4);
    assert!(
        curr(&sched, 4).is_none() && curr(&sched, 0).is_some(),
        "its turn"
    );
}

/// The tree keeps the order of the priorities at the time of queueing.
#[test]
fn the_first_of_a_cookie_is_the_one_that_was_first_when_queued() {
    let mut sched = sched();
    let running = task(&mut sched, 0, 1);
    switch(&mut sched, 0);
    let early = task(&mut sched, 0, 1);
    assert_eq!(sched.core.rqs[0].core_tree, [running, early]);
    at(&mut sched, START + 2_000_000);
    sched.task_tick(CpuId(0));
    let vruntime = |sched: &Sched, p: TaskId| sched.se[sched.tasks[p.index()].se.index()].vruntime;
    let ahead = vruntime(&sched, running).wrapping_sub(vruntime(&sched, early));
    assert!(ahead as i64 > 0);
    assert_eq!(sched.core.rqs[0].core_tree, [running, early]);
    sched.deactivate_task(CpuId(0), early, DEQUEUE_SLEEP);
    assert_eq!(sched.core.rqs[0].core_tree, [running]);
    sched.activate_task(CpuId(0), early, ENQUEUE_WAKEUP);
    assert_eq!(sched.core.rqs[0].core_tree, [early, running]);
}

#[test]
fn another_cookie_makes_the_task_schedule() {
    let mut sched = sched();
    let p = task(&mut sched, 0, 0);
    switch(&mut sched, 0);
    assert!(!sched.core.enabled && !sched.rq(CpuId(0)).need_resched);
    sched.set_cookie(p, Cookie(7));
    assert!(sched.core.enabled && sched.rq(CpuId(0)).need_resched);
    assert_eq!(sched.core.rqs[0].core_tree, [p]);
    switch(&mut sched, 0);
    assert_eq!(sched.core.cookie(CpuId(4)), Cookie(7));
    sched.set_cookie(p, Cookie::NONE);
    assert!(sched.core.rqs[0].core_tree.is_empty());
    switch(&mut sched, 0);
    assert_eq!(sched.core.cookie(CpuId(4)), Cookie::NONE);
}

#[test]
fn a_better_cpu_is_an_idle_one_that_the_task_may_use() {
    let mut sched = sched();
    let p = task(&mut sched, 0, 1);
    switch(&mut sched, 0);
    assert!(sched.better_cpu_free(p), "three cores are idle");
    sched.set_cpus_allowed(p, [CpuId(0), CpuId(1), CpuId(5)].into_iter().collect());
    task(&mut sched, 1, 2);
    switch(&mut sched, 1);
    assert!(
        !sched.better_cpu_free(p),
        "CPU 5 is idle beside another cookie"
    );
    sched.set_cpus_allowed(p, [CpuId(0), CpuId(4)].into_iter().collect());
    assert!(sched.better_cpu_free(p), "CPU 4 is idle beside its own");
}

/// A CPU is idle beside another cookie: taken at once without SIS_COOKIE, passed over with it.
#[test]
fn the_previous_cpu_beside_another_cookie_is_taken_unless_sis_cookie_looks() {
    for looks in [false, true] {
        let mut sched = sched();
        sched.feat.set(Feat::SIS_COOKIE, looks);
        sched.llc[0].has_idle_cores = true;
        sched.llc[0].nr_idle_scan = 8;
        let p = task(&mut sched, 0, 1);
        switch(&mut sched, 0);
        at(&mut sched, START + 1_000_000);
        sched.deactivate_task(CpuId(0), p, DEQUEUE_SLEEP | DEQUEUE_SPECIAL);
        switch(&mut sched, 0);
        task(&mut sched, 4, 2);
        switch(&mut sched, 4);
        assert!(sched.rq(CpuId(0)).is_idle() && sched.core.cookie(CpuId(0)) == Cookie(2));
        let (cpu, none) = (CpuId(0), TaskId::NONE);
        let chosen = sched.select_task_rq(p, cpu, cpu, none, wf::TTWU, false).cpu;
        assert_eq!(chosen != cpu, looks, "{chosen:?}");
        let core = [chosen, CpuId(chosen.0 ^ 4)];
        assert!(!looks || core.iter().all(|&cpu| sched.rq(cpu).is_idle()));
    }
}

/// To balancing, a task is cache-hot for a core with another cookie.
#[test]
fn balancing_prefers_cores_with_the_cookie() {
    for (cookie, moves) in [(1, true), (2, false)] {
        let mut sched = sched();
        sched.tun.migration_cost = Ns(0);
        for _ in 0..3 {
            task(&mut sched, 0, 1);
        }
        switch(&mut sched, 0);
        // CPU 1 would be idle, beside CPU 5 which runs a cookie.
        task(&mut sched, 5, cookie);
        switch(&mut sched, 5);
        at(&mut sched, START + 10_000_000);
        let price = |touches: &mut Touches| {
            touches.clear();
            1000
        };
        sched.rqs[1].avg_idle = 1_000_000_000;
        sched.newidle_balance(CpuId(1), Ns(START + 10_000_000), price);
        assert_eq!(sched.rq(CpuId(1)).nr_running > 0, moves, "{cookie}");
    }
}
