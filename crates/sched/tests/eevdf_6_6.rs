//! What 6.6, the first release with EEVDF, does otherwise than 6.12, by its documented rules.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/scene.rs"]
mod scene;
mod support;

use scene::{MS, Scene};
use wakelab_machine::CpuId;
use wakelab_sched::state::Policy;
use wakelab_sched::{Feat, Features, Release, SeId, TaskId, TgId, Tunables};

const CPU: CpuId = CpuId(0);

fn two_tasks(release: Release) -> (Scene, [TaskId; 2]) {
    let mut scene = Scene::new(release, 1);
    let tasks = [(); 2].map(|()| scene.fork(TgId::ROOT, Policy::Normal, 0, 0));
    scene.run(7);
    (scene, tasks)
}

#[test]
fn its_words_are_those_of_its_features_h() {
    assert_eq!(
        Features::defaults(Release::V6_6).to_words(Release::V6_6),
        "PLACE_LAG PLACE_DEADLINE_INITIAL RUN_TO_PARITY NO_NEXT_BUDDY CACHE_HOT_BUDDY \
         WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE \
         NO_SIS_PROP SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI NO_RT_RUNTIME_SHARE NO_LB_MIN \
         ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP NO_LATENCY_WARN HZ_BW "
    );
}

#[test]
fn slices_are_three_quarters_of_a_millisecond_times_the_factor() {
    let slice = |release, ncpu| Tunables::for_kernel(release, ncpu, 250).base_slice.0;
    assert_eq!(slice(Release::V6_6, 1), 750_000);
    assert_eq!(slice(Release::V6_6, 192), 3_000_000);
    assert_eq!(slice(Release::V6_12, 192), 2_800_000);
}

#[test]
fn a_sleeper_leaves_its_queue_at_once() {
    for (release, stays) in [(Release::V6_6, false), (Release::V6_12, true)] {
        let (mut scene, _) = two_tasks(release);
        let curr = scene.sched.rq(CPU).curr;
        let cfs = scene.sched.root_cfs(CPU);
        while scene.sched.vruntime_eligible(cfs, scene.se(curr).vruntime) {
            scene.advance(MS / 4);
            scene.sched.task_tick(CPU);
        }
        scene.sleep(curr);
        assert_eq!(scene.sched.is_delayed(curr), stays, "{release:?}");
    }
}

#[test]
fn a_new_weight_leaves_vruntime_and_stretches_the_request() {
    for (release, kept) in [(Release::V6_6, true), (Release::V6_12, false)] {
        let (mut scene, tasks) = two_tasks(release);
        let curr = scene.sched.rq(CPU).curr;
        let waits = tasks.into_iter().find(|&p| p != curr).unwrap();
        let cfs = scene.se(waits).cfs_rq;
        let (vruntime, deadline) = (scene.se(waits).vruntime, scene.se(waits).deadline);
        let se = scene.sched.tasks[waits.index()].se;
        let weight = scene.se(waits).weight;
        scene.sched.reweight_entity_eevdf(cfs, se, weight / 2);
        let new = scene.se(waits);
        assert_eq!(new.vruntime == vruntime, kept, "{release:?}");
        let stretched = new.deadline == vruntime + 2 * (deadline - vruntime);
        assert_eq!(stretched, kept, "{release:?}");
    }
}

#[test]
fn yielding_asks_for_a_slice_more() {
    let (mut scene, _) = two_tasks(Release::V6_6);
    let curr = scene.sched.rq(CPU).curr;
    let (vruntime, deadline) = (scene.se(curr).vruntime, scene.se(curr).deadline);
    scene.sched.yield_task(CPU);
    assert_eq!(scene.se(curr).vruntime, vruntime);
    assert_eq!(scene.se(curr).deadline, deadline + scene.se(curr).slice);
}

/// A queued entity that is eligible and that the pick would not take.
fn passed_over(scene: &mut Scene) -> SeId {
    let tasks = [(); 5].map(|()| scene.fork(TgId::ROOT, Policy::Normal, 0, 0));
    let cfs = scene.sched.root_cfs(CPU);
    for _ in 0..100 {
        scene.run(1);
        let best = scene.sched.pick_eevdf(cfs);
        for p in tasks {
            let (se, vruntime) = (scene.sched.tasks[p.index()].se, scene.se(p).vruntime);
            let waits = p != scene.sched.rq(CPU).curr && se != best;
            if waits && scene.sched.vruntime_eligible(cfs, vruntime) {
                return se;
            }
        }
    }
    panic!("the pick takes all that are eligible");
}

#[test]
fn a_buddy_is_picked_if_wake_ups_make_buddies() {
    for on in [false, true] {
        let mut scene = Scene::new(Release::V6_6, 1);
        scene.sched.feat.set(Feat::NEXT_BUDDY, on);
        let buddy = passed_over(&mut scene);
        let cfs = scene.sched.root_cfs(CPU);
        scene.sched.cfs[cfs.index()].next = buddy;
        scene.sched.switch_task(CPU);
        let next = scene.sched.rq(CPU).curr;
        let picked = scene.sched.tasks[next.index()].se;
        assert_eq!(picked == buddy, on);
    }
}
