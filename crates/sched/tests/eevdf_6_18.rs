//! What 6.18 does otherwise than 6.12, by its documented rules.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/scene.rs"]
mod scene;
mod support;

use scene::{MS, Scene};
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::state::Policy;
use wakelab_sched::{Feat, Release, TaskId, TgId};

const CPU: CpuId = CpuId(0);
const US: u64 = 1000;

/// A task with a slice of 50 ms that has just been picked while one with 0.2 ms waits.
fn long_before_short(release: Release, without: &[Feat]) -> (Scene, TaskId, TaskId) {
    let mut scene = Scene::new(release, 1);
    for &feat in without {
        scene.sched.feat.set(feat, false);
    }
    let slices = [50 * MS, 200 * US];
    let [long, short] = slices.map(|slice| {
        let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
        scene.sched.set_slice(p, Some(Ns(slice)));
        p
    });
    for _ in 0..1000 {
        let before = scene.sched.rq(CPU).curr;
        scene.run(1);
        // Its first request was shorter.
        let asks = scene
            .se(long)
            .deadline
            .wrapping_sub(scene.se(long).vruntime);
        if before == short && scene.sched.rq(CPU).curr == long && asks > MS {
            return (scene, long, short);
        }
    }
    panic!("the long slice is never picked");
}

/// How much virtual time the running task is protected for.
fn protected(scene: &Scene, p: TaskId) -> u64 {
    let se = scene.se(p);
    (se.vlag as u64).wrapping_sub(se.vruntime)
}

#[test]
fn protection_is_as_long_as_the_shortest_slice_that_waits() {
    let (scene, long, _) = long_before_short(Release::V6_18, &[]);
    assert_eq!(protected(&scene, long), 200 * US);
    let (scene, long, _) = long_before_short(Release::V6_12, &[]);
    assert_eq!(scene.se(long).vlag as u64, scene.se(long).deadline);
    assert!(protected(&scene, long) > MS);
}

#[test]
fn without_parity_it_is_the_default_slice_not_scaled_to_the_machine() {
    let (scene, long, _) = long_before_short(Release::V6_18, &[Feat::RUN_TO_PARITY]);
    assert_eq!(protected(&scene, long), 700 * US);
}

#[test]
fn the_end_of_the_protection_reschedules() {
    for (release, over) in [(Release::V6_18, true), (Release::V6_12, false)] {
        let (mut scene, _, _) = long_before_short(release, &[]);
        scene.advance(150 * US);
        scene.sched.task_tick(CPU);
        assert!(!scene.sched.rq(CPU).need_resched, "{release:?}: too early");
        scene.advance(100 * US);
        scene.sched.task_tick(CPU);
        assert_eq!(scene.sched.rq(CPU).need_resched, over, "{release:?}");
    }
}

#[test]
fn a_shorter_slice_preempts_what_is_protected_and_ends_the_protection() {
    for (without, preempts) in [(&[][..], true), (&[Feat::PREEMPT_SHORT][..], false)] {
        let mut scene = Scene::new(Release::V6_18, 1);
        for &feat in without {
            scene.sched.feat.set(feat, false);
        }
        let [long, short] = [50 * MS, 200 * US].map(|slice| {
            let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
            scene.sched.set_slice(p, Some(Ns(slice)));
            p
        });
        scene.run(1);
        scene.sleep(short);
        scene.sched.finish_delayed(short);
        scene.sched.switch_task(CPU);
        assert_eq!(scene.sched.rq(CPU).curr, long);
        scene.advance(100 * US);
        let se = scene.sched.tasks[short.index()].se;
        scene.sched.se[se.index()].vlag = 0;
        scene.wake(short, CPU);
        assert_eq!(scene.sched.rq(CPU).need_resched, preempts, "{without:?}");
        assert_eq!(protected(&scene, long) == 0, preempts, "{without:?}");
    }
}

#[test]
fn a_shorter_slice_that_does_not_preempt_shortens_the_protection() {
    for (without, left) in [(&[][..], 300 * US), (&[Feat::PREEMPT_SHORT][..], 900 * US)] {
        let mut scene = Scene::new(Release::V6_18, 1);
        for &feat in without {
            scene.sched.feat.set(feat, false);
        }
        let [long, short] = [50 * MS, 300 * US].map(|slice| {
            let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
            scene.sched.set_slice(p, Some(Ns(slice)));
            p
        });
        scene.run(1);
        scene.sleep(short);
        scene.sched.finish_delayed(short);
        scene.sched.switch_task(CPU);
        assert_eq!(scene.sched.rq(CPU).curr, long);
        scene.advance(100 * US);
        scene.sched.task_tick(CPU);
        // Protected for longer than the other's slice, which owes service when it comes.
        let [long_se, short_se] = [long, short].map(|p| scene.sched.tasks[p.index()].se);
        let vruntime = scene.se(long).vruntime;
        scene.sched.se[long_se.index()].vlag = vruntime.wrapping_add(900 * US) as i64;
        scene.sched.se[short_se.index()].vlag = -(MS as i64);
        scene.wake(short, CPU);
        assert!(!scene.sched.rq(CPU).need_resched, "{without:?}");
        assert_eq!(protected(&scene, long), left, "{without:?}");
    }
}

#[test]
fn balancing_leaves_out_tasks_whose_dequeueing_is_delayed() {
    for (release, counted) in [(Release::V6_12, 2), (Release::V6_18, 1)] {
        let mut scene = Scene::new(release, 1);
        for _ in 0..2 {
            scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
        }
        scene.run(3);
        let owes = scene.sched.rq(CPU).curr;
        scene.advance(5 * MS);
        scene.sleep(owes);
        assert!(scene.sched.is_delayed(owes));
        assert_eq!(scene.sched.balanced_tasks(CPU), counted, "{release:?}");
    }
}

#[test]
fn the_words_are_those_of_6_12() {
    let words = |release| {
        wakelab_sched::features::words_of(release)
            .map(|word| (word.name, word.default_in(release)))
            .collect::<Vec<_>>()
    };
    assert_eq!(words(Release::V6_18), words(Release::V6_12));
}
