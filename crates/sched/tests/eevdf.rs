//! The fair class of 6.12 by its documented rules: small scenes driven as the engine drives them.

#[path = "support/scene.rs"]
mod scene;
mod support;

use proptest::prelude::*;
use scene::{MS, Scene};
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, DEQUEUE_SPECIAL};
use wakelab_sched::state::Policy;
use wakelab_sched::weight::scale_load_down;
use wakelab_sched::{CfsId, Feat, Release, SchedEntity, SeId, TaskId, TgId};

const CPU: CpuId = CpuId(0);
const ROOT: CfsId = CfsId(0);
const US: u64 = 1000;

/// A default slice is 0.7 ms on one CPU, a tick 1 ms.
const SLICE: u64 = 700 * US;

fn one_cpu(without: &[Feat]) -> Scene {
    let mut scene = Scene::new(Release::V6_12, 1);
    for &feat in without {
        scene.sched.feat.set(feat, false);
    }
    scene
}

fn task(scene: &mut Scene, nice: i8) -> TaskId {
    scene.fork(TgId::ROOT, Policy::Normal, nice, 0)
}

fn curr(scene: &Scene) -> TaskId {
    scene.sched.rq(CPU).curr
}

fn se_mut(scene: &mut Scene, p: TaskId) -> &mut SchedEntity {
    let se = scene.sched.tasks[p.index()].se;
    &mut scene.sched.se[se.index()]
}

fn nr_running(scene: &Scene) -> (u32, u32) {
    (
        scene.sched.rq(CPU).nr_running,
        scene.sched.cfs[0].h_nr_delayed,
    )
}

/// Two tasks, of which the first given has had 5 ms more than its share and then gone to sleep.
fn one_that_owes(without: &[Feat]) -> (Scene, TaskId, TaskId) {
    let mut scene = one_cpu(without);
    let (a, b) = (task(&mut scene, 0), task(&mut scene, 0));
    scene.run(3);
    let owes = curr(&scene);
    let other = if owes == a { b } else { a };
    scene.advance(5 * MS);
    scene.sleep(owes);
    (scene, owes, other)
}

#[test]
fn equal_tasks_share_a_cpu_equally_and_others_by_weight() {
    let mut scene = one_cpu(&[]);
    let (a, b, c) = (
        task(&mut scene, 0),
        task(&mut scene, 0),
        task(&mut scene, 5),
    );
    scene.run(10_000);
    let time = |p| scene.runtime(p) as f64;
    let all = time(a) + time(b) + time(c);
    assert!((time(a) / time(b) - 1.0).abs() < 0.002, "{}", time(a));
    let share = 335.0 / (2.0 * 1024.0 + 335.0);
    assert!((time(c) / all - share).abs() < 0.001, "{}", time(c) / all);
}

#[test]
fn a_tick_preempts_when_the_request_is_served_and_not_before() {
    let mut scene = one_cpu(&[]);
    let (a, b) = (task(&mut scene, 0), task(&mut scene, 0));
    scene.run(4);
    let first = curr(&scene);
    scene.advance(SLICE / 2);
    scene.sched.task_tick(CPU);
    assert!(!scene.sched.rq(CPU).need_resched, "half a slice");
    scene.advance(SLICE / 2);
    scene.sched.task_tick(CPU);
    assert!(scene.sched.rq(CPU).need_resched, "a whole one");
    scene.resched(CPU);
    assert_eq!(curr(&scene), if first == a { b } else { a });
}

#[test]
fn one_alone_runs_on_over_its_slices() {
    let mut scene = one_cpu(&[]);
    let a = task(&mut scene, 0);
    for _ in 0..5 {
        scene.advance(MS);
        scene.sched.task_tick(CPU);
        assert!(!scene.sched.rq(CPU).need_resched);
    }
    assert_eq!(scene.runtime(a), 5 * MS);
}

#[test]
fn who_owes_stays_queued_until_the_others_have_caught_up() {
    let (mut scene, owes, other) = one_that_owes(&[]);
    assert!(scene.sched.is_delayed(owes) && scene.sched.tasks[owes.index()].on_rq);
    assert_eq!((curr(&scene), nr_running(&scene)), (other, (2, 1)));
    let runnable = scene.se(owes).avg.runnable_avg;
    scene.run(2);
    assert_eq!(nr_running(&scene), (2, 1), "still behind");
    scene.run(5);
    assert_eq!(nr_running(&scene), (1, 0), "it was picked, and went");
    let task = &scene.sched.tasks[owes.index()];
    assert!(!scene.sched.is_delayed(owes) && !task.on_rq && !scene.se(owes).on_rq);
    assert!(
        scene.se(owes).vlag <= 0,
        "what it was owed by then is forgotten"
    );
    assert!(
        scene.se(owes).avg.runnable_avg < runnable,
        "it did not count as runnable"
    );
    assert_eq!(curr(&scene), other);
}

#[test]
fn without_delay_dequeue_the_debt_is_kept_over_the_sleep() {
    let (mut scene, owes, other) = one_that_owes(&[Feat::DELAY_DEQUEUE]);
    assert!(!scene.sched.tasks[owes.index()].on_rq);
    assert_eq!(nr_running(&scene), (1, 0));
    let lag = scene.se(owes).vlag;
    assert!(lag < 0);
    scene.run(20);
    scene.wake(owes, CPU);
    let owed = scene.sched.avg_vruntime(ROOT);
    let now = owed.wrapping_sub(scene.se(owes).vruntime) as i64;
    assert!((now - lag).abs() <= 2, "{now} for {lag}");
    assert!(!scene.sched.vruntime_eligible(ROOT, scene.se(owes).vruntime));
    assert_eq!(curr(&scene), other);
}

#[test]
fn who_comes_to_sleep_with_a_credit_leaves_at_once() {
    let mut scene = one_cpu(&[]);
    task(&mut scene, 0);
    let fresh = task(&mut scene, 0);
    scene.sleep(fresh);
    assert!(!scene.sched.tasks[fresh.index()].on_rq);
    assert!(scene.se(fresh).vlag >= 0);
}

#[test]
fn a_task_in_a_special_state_and_one_that_ends_leave_at_once() {
    let mut scene = one_cpu(&[]);
    task(&mut scene, 0);
    task(&mut scene, 0);
    scene.run(3);
    scene.advance(5 * MS);
    let p = curr(&scene);
    let flags = DEQUEUE_SLEEP | DEQUEUE_SPECIAL;
    scene.sched.deactivate_task(CPU, p, flags);
    scene.sched.switch_task(CPU);
    assert!(!scene.sched.tasks[p.index()].on_rq && !scene.sched.is_delayed(p));
    let (mut scene, owes, _) = one_that_owes(&[]);
    scene.sched.exit_task(CPU, owes);
    assert!(!scene.sched.tasks[owes.index()].on_rq && !scene.sched.is_delayed(owes));
    assert_eq!(nr_running(&scene), (1, 0));
}

#[test]
fn who_is_woken_in_time_keeps_place_and_debt() {
    let (mut scene, owes, other) = one_that_owes(&[]);
    let place = (scene.se(owes).vruntime, scene.se(owes).deadline);
    scene.advance(SLICE / 2);
    scene.wake(owes, CPU);
    assert!(!scene.sched.is_delayed(owes));
    assert_eq!(nr_running(&scene), (2, 0));
    assert_eq!((scene.se(owes).vruntime, scene.se(owes).deadline), place);
    assert!(!scene.sched.rq(CPU).need_resched);
    assert_eq!(curr(&scene), other);
}

#[test]
fn who_is_woken_late_joins_at_the_average() {
    for zero in [true, false] {
        let without: &[Feat] = if zero { &[] } else { &[Feat::DELAY_ZERO] };
        let (mut scene, owes, _) = one_that_owes(without);
        // Nobody picks meanwhile.
        scene.advance(20 * MS);
        let before = scene.se(owes).vruntime;
        scene.sched.update_curr(ROOT);
        scene.wake(owes, CPU);
        if zero {
            let average = scene.sched.avg_vruntime(ROOT);
            let lag = average.wrapping_sub(scene.se(owes).vruntime) as i64;
            assert!(lag.abs() <= 1, "{lag}");
        } else {
            assert_eq!(scene.se(owes).vruntime, before, "its credit is kept");
        }
    }
}

#[test]
fn a_new_task_s_first_request_is_half_a_slice() {
    for (without, part) in [(&[][..], 2), (&[Feat::PLACE_DEADLINE_INITIAL][..], 1)] {
        let mut scene = one_cpu(without);
        task(&mut scene, 0);
        let p = task(&mut scene, 0);
        let se = scene.se(p);
        assert_eq!(se.deadline.wrapping_sub(se.vruntime), SLICE / part);
    }
}

#[test]
fn what_runs_is_protected_until_its_request_is_served() {
    for (without, preempts) in [
        (&[Feat::PREEMPT_SHORT][..], false),
        (&[Feat::PREEMPT_SHORT, Feat::RUN_TO_PARITY][..], true),
        (&[][..], true),
        (&[Feat::WAKEUP_PREEMPTION][..], false),
    ] {
        let mut scene = one_cpu(without);
        let long = task(&mut scene, 0);
        scene.sched.set_slice(long, Some(Ns(50 * MS)));
        // It keeps its deadline until it makes the next request.
        scene.run(1);
        let short = task(&mut scene, 0);
        scene.sched.set_slice(short, Some(Ns(200 * US)));
        scene.sleep(short);
        scene.sched.finish_delayed(short);
        scene.sched.switch_task(CPU);
        assert_eq!(curr(&scene), long);
        scene.advance(MS);
        se_mut(&mut scene, short).vlag = 0;
        scene.wake(short, CPU);
        assert_eq!(scene.sched.rq(CPU).need_resched, preempts, "{without:?}");
    }
}

#[test]
fn slices_of_one_s_own_are_held_within_bounds_and_can_be_given_back() {
    let mut scene = one_cpu(&[]);
    let p = task(&mut scene, 0);
    for (asked, given) in [(1, 100 * US), (3 * MS, 3 * MS), (1000 * MS, 100 * MS)] {
        scene.sched.set_slice(p, Some(Ns(asked)));
        assert_eq!((scene.se(p).slice, scene.se(p).custom_slice), (given, true));
    }
    scene.sched.set_slice(p, None);
    assert_eq!(
        (scene.se(p).slice, scene.se(p).custom_slice),
        (SLICE, false)
    );
    assert_eq!((curr(&scene), nr_running(&scene)), (p, (1, 0)));
}

#[test]
fn a_group_requests_the_least_slice_of_its_tasks() {
    let mut scene = one_cpu(&[]);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    task(&mut scene, 0);
    let short = scene.fork(tg, Policy::Normal, 0, 0);
    scene.sched.set_slice(short, Some(Ns(300 * US)));
    let group = scene.sched.group_se(tg, CPU);
    assert_eq!(scene.sched.se[group.index()].slice, 300 * US);
    let plain = scene.fork(tg, Policy::Normal, 0, 0);
    assert_eq!(scene.sched.se[group.index()].slice, 300 * US);
    scene
        .sched
        .deactivate_task(CPU, short, DEQUEUE_SLEEP | DEQUEUE_SPECIAL);
    scene.sched.switch_task(CPU);
    assert_eq!(scene.sched.se[group.index()].slice, scene.se(plain).slice);
}

#[test]
fn a_slice_reaches_the_groups_above_through_their_trees() {
    let mut scene = one_cpu(&[]);
    let outer = scene.sched.add_group("outer", TgId::ROOT, 1024);
    let inner = scene.sched.add_group("inner", outer, 1024);
    task(&mut scene, 0);
    let deep = scene.fork(inner, Policy::Normal, 0, 0);
    let short = scene.fork(inner, Policy::Normal, 0, 0);
    let beside = scene.fork(outer, Policy::Normal, 0, 0);
    scene.sched.set_slice(beside, Some(Ns(250 * US)));
    let groups = [outer, inner].map(|tg| scene.sched.group_se(tg, CPU));
    let slices = |scene: &Scene| groups.map(|se| scene.sched.se[se.index()].slice);
    scene.sched.set_slice(deep, Some(Ns(90 * MS)));
    for us in [300, 200, 400] {
        // Neither group runs now, so that the inner one is in a tree.
        while scene.se(curr(&scene)).parent.is_some() {
            scene.run(1);
        }
        scene.sched.set_slice(short, Some(Ns(us * US)));
        assert_eq!(slices(&scene), [us.min(250) * US, us * US]);
    }
}

/// A task alone in its group, which has had 5 ms too much and left: alone, the task owes nothing, but
/// the group does. Gives what the group's entity is, and a task outside.
fn a_group_that_owes() -> (Scene, TaskId, TaskId, SeId) {
    let mut scene = one_cpu(&[]);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    let inside = scene.fork(tg, Policy::Normal, 0, 0);
    let outside = task(&mut scene, 0);
    scene.run(3);
    while curr(&scene) != inside {
        scene.run(1);
    }
    scene.advance(5 * MS);
    scene.sleep(inside);
    let group = scene.sched.group_se(tg, CPU);
    (scene, inside, outside, group)
}

#[test]
fn a_group_that_is_delayed_gets_a_task_again() {
    let (mut scene, inside, _, group) = a_group_that_owes();
    let place = scene.sched.se[group.index()].vruntime;
    scene.wake(inside, CPU);
    let se = &scene.sched.se[group.index()];
    assert_eq!(
        (se.on_rq, se.sched_delayed, se.vruntime),
        (true, false, place)
    );
    assert_eq!(nr_running(&scene), (2, 0));
}

#[test]
fn a_group_whose_last_task_leaves_late_may_owe_on_its_own() {
    let mut scene = one_cpu(&[]);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    let inside = [0, 0].map(|nice| scene.fork(tg, Policy::Normal, nice, 0));
    task(&mut scene, 0);
    scene.run(5);
    while !inside.contains(&curr(&scene)) {
        scene.run(1);
    }
    let first = curr(&scene);
    scene.advance(5 * MS);
    scene.sleep(first);
    assert!(scene.sched.is_delayed(first));
    // The other one of the group leaves, and then the group has nothing but the sleeper.
    let second = if first == inside[0] {
        inside[1]
    } else {
        inside[0]
    };
    scene
        .sched
        .deactivate_task(CPU, second, DEQUEUE_SLEEP | DEQUEUE_SPECIAL);
    let group = scene.sched.group_se(tg, CPU);
    scene.sched.finish_delayed(first);
    let se = &scene.sched.se[group.index()];
    assert!(!scene.sched.tasks[first.index()].on_rq);
    assert_eq!((se.on_rq, se.sched_delayed), (true, true));
}

#[test]
fn a_short_slice_takes_away_the_protection_of_who_owes() {
    for (slice, kept) in [(200 * US, false), (60 * MS, true)] {
        let mut scene = one_cpu(&[Feat::RUN_TO_PARITY]);
        let long = task(&mut scene, 0);
        scene.sched.set_slice(long, Some(Ns(50 * MS)));
        scene.run(1);
        let other = task(&mut scene, 0);
        scene.sched.set_slice(other, Some(Ns(slice)));
        scene.sleep(other);
        scene.sched.finish_delayed(other);
        scene.sched.switch_task(CPU);
        assert_eq!(curr(&scene), long);
        // The other is owed service, but its deadline is later.
        let se = se_mut(&mut scene, long);
        se.deadline = se.deadline.wrapping_sub(49 * MS);
        se.vlag = se.deadline as i64;
        se_mut(&mut scene, other).vlag = 100 * US as i64;
        se_mut(&mut scene, other).deadline = 100 * MS;
        se_mut(&mut scene, other).rel_deadline = true;
        scene.advance(900 * US);
        scene.wake(other, CPU);
        let (owes, waits) = (scene.se(long), scene.se(other));
        assert!(!scene.sched.vruntime_eligible(ROOT, owes.vruntime));
        assert!(scene.sched.vruntime_eligible(ROOT, waits.vruntime));
        assert!((owes.deadline.wrapping_sub(waits.deadline) as i64) < 0);
        assert_eq!(owes.vlag == owes.deadline as i64, kept);
    }
}

#[test]
fn a_group_whose_tasks_have_gone_may_stay_queued_too() {
    let (mut scene, inside, outside, group) = a_group_that_owes();
    let queued = |scene: &Scene| {
        let se = &scene.sched.se[group.index()];
        (se.on_rq, se.sched_delayed)
    };
    assert!(!scene.sched.tasks[inside.index()].on_rq);
    assert_eq!(queued(&scene), (true, true));
    assert_eq!(nr_running(&scene), (1, 0), "no task is delayed");
    let weight = scene.sched.se[group.index()].weight;
    scene.run(8);
    assert_eq!(queued(&scene), (false, false));
    assert_eq!(
        scene.sched.se[group.index()].weight,
        weight,
        "kept while it is empty"
    );
    assert_eq!((curr(&scene), scene.sched.cfs[0].nr_running), (outside, 1));
}

#[test]
fn a_task_that_is_moved_keeps_its_lag_and_its_distance_to_the_deadline() {
    for relative in [true, false] {
        let mut scene = Scene::new(Release::V6_12, 2);
        scene.sched.feat.set(Feat::PLACE_REL_DEADLINE, relative);
        for cpu in [0, 0, 1] {
            scene.fork(TgId::ROOT, Policy::Normal, 0, cpu);
        }
        scene.run(7);
        let waits = |scene: &Scene| {
            let waits = |p: &&TaskId| scene.sched.rq(CPU).curr != **p;
            *scene
                .sched
                .rq(CPU)
                .cfs_tasks
                .iter()
                .find(waits)
                .expect("two")
        };
        let p = waits(&scene);
        scene.advance(300 * US);
        let left = scene.se(p).deadline.wrapping_sub(scene.se(p).vruntime);
        scene.sched.deactivate_task(CPU, p, 0);
        let lag = scene.se(p).vlag;
        scene.sched.set_task_cpu(p, CpuId(1));
        scene.sched.activate_task(CpuId(1), p, 0);
        let after = scene.se(p).deadline.wrapping_sub(scene.se(p).vruntime);
        let slice = scene.sched.tun.base_slice.0;
        assert_eq!(after, if relative { left } else { slice });
        let average = scene.sched.avg_vruntime(CfsId(1));
        let now = average.wrapping_sub(scene.se(p).vruntime) as i64;
        assert!((now - lag).abs() <= 2, "{now} for {lag}");
    }
}

#[test]
fn who_joins_an_empty_queue_starts_at_its_time_whatever_the_lag() {
    let mut scene = one_cpu(&[]);
    let p = task(&mut scene, 0);
    scene.run(5);
    scene.sleep(p);
    assert_eq!(nr_running(&scene), (0, 0), "alone, nobody is owed anything");
    se_mut(&mut scene, p).vlag = -(3 * MS as i64);
    scene.wake(p, CPU);
    assert_eq!(scene.se(p).vruntime, scene.sched.cfs[0].zero_vruntime);
}

#[test]
fn yielding_gives_up_the_request() {
    let mut scene = one_cpu(&[]);
    let (p, other) = (task(&mut scene, 0), task(&mut scene, 0));
    assert_eq!(curr(&scene), p);
    let deadline = scene.se(p).deadline;
    scene.sched.yield_task(CPU);
    assert_eq!(scene.se(p).vruntime, deadline);
    assert_eq!(scene.se(p).deadline, deadline.wrapping_add(SLICE));
    assert_eq!(scene.sched.switch_task(CPU), other);
}

#[test]
fn idle_tasks_are_preempted_at_once_and_batch_tasks_do_not_preempt() {
    let mut scene = one_cpu(&[]);
    let idle = scene.fork(TgId::ROOT, Policy::Idle, 0, 0);
    let normal = task(&mut scene, 0);
    assert_eq!(curr(&scene), normal, "a new task preempts it too");
    let batch = scene.fork(TgId::ROOT, Policy::Batch, 0, 0);
    assert_eq!(curr(&scene), normal);
    scene.sleep(normal);
    scene.sched.finish_delayed(normal);
    scene.sleep(batch);
    scene.sched.finish_delayed(batch);
    scene.sched.switch_task(CPU);
    assert_eq!(curr(&scene), idle);
    scene.wake(batch, CPU);
    assert!(scene.sched.rq(CPU).need_resched);
}

#[test]
fn a_sleeper_s_lag_follows_its_weight() {
    let (mut scene, owes, _) = one_that_owes(&[Feat::DELAY_DEQUEUE]);
    let (lag, weight) = (scene.se(owes).vlag, scene.se(owes).weight);
    scene.sched.set_user_nice(owes, -5);
    let se = scene.se(owes);
    assert!(se.weight > weight);
    assert_eq!(se.vlag, lag * weight as i64 / se.weight as i64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever always runs is never further from its share than a slice and a tick, one way or the
    /// other, and what is picked is eligible.
    #[test]
    fn nobody_is_far_from_its_share(
        nices in prop::collection::vec(-10i8..=10, 2..8),
        slices in prop::collection::vec(100u64..5000, 2..8),
        ticks in 50usize..400,
    ) {
        let mut scene = one_cpu(&[]);
        let tasks: Vec<TaskId> = nices.iter().map(|&nice| task(&mut scene, nice)).collect();
        for (&p, &slice) in tasks.iter().zip(&slices) {
            scene.sched.set_slice(p, Some(Ns(slice * US)));
        }
        let longest = tasks.iter().map(|&p| scene.se(p).slice).max().unwrap_or(0);
        for _ in 0..ticks {
            scene.run(1);
            let average = scene.sched.avg_vruntime(ROOT);
            for &p in &tasks {
                let se = scene.se(p);
                let lag = average.wrapping_sub(se.vruntime) as i64;
                let time = lag * scale_load_down(se.weight) as i64 / 1024;
                let bound = (longest + 2 * MS) as i64;
                prop_assert!(time.abs() <= bound, "{time} of {bound}: {se:?}");
            }
            let p = scene.sched.pick_next_task_fair(CPU);
            prop_assert!(scene.sched.vruntime_eligible(ROOT, scene.se(p).vruntime));
        }
    }
}
