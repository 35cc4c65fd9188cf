//! Core scheduling in whole runs: what must hold after every event.

mod support;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use support::{Scene, run_checked, scene_strategy};
use wakelab_sched::core_sched::fault::without_the_cookie_check;
use wakelab_sched::features::Feat;
use wakelab_sched::{Cookie, Release};

/// The first release with core scheduling, and the first with the patches against force idle.
const FIRST: Release = Release::V5_19;
const PATCHED: Release = Release::V6_12;

/// Scenes of releases from this one on in which most tasks have one of a few cookies.
fn cookie_scene_strategy(since: Release) -> impl Strategy<Value = Scene> {
    let cookies = prop::collection::vec(0u64..=3, 20);
    (scene_strategy(since), cookies).prop_map(|(mut scene, cookies)| {
        for (task, cookie) in scene.tasks.iter_mut().zip(cookies) {
            task.attributes.cookie = (cookie != 0).then_some(Cookie(cookie));
        }
        scene
    })
}

proptest! {
    /// No core runs two cookies, and all that holds without cookies: nothing is lost, and everybody
    /// runs.
    #[test]
    fn a_core_runs_one_cookie(scene in cookie_scene_strategy(FIRST)) {
        run_checked(&scene)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome(scene in cookie_scene_strategy(FIRST)) {
        prop_assert_eq!(format!("{:?}", scene.run()), format!("{:?}", scene.run()));
    }
}

/// The same, some of them changing cookies while all run; few may have one to begin with.
fn prctl_scene_strategy(since: Release) -> impl Strategy<Value = Scene> {
    let calls = prop::collection::vec(any::<bool>(), 20);
    let bare = prop::bool::weighted(0.3);
    (cookie_scene_strategy(since), calls, bare).prop_map(|(mut scene, calls, bare)| {
        for (task, call) in scene.tasks.iter_mut().zip(calls) {
            task.prctl = call;
            task.attributes.cookie = task.attributes.cookie.filter(|_| !bare);
        }
        scene
    })
}

proptest! {
    /// No core runs two cookies, whoever makes, gives and takes them meanwhile, and whomever for.
    #[test]
    fn so_it_does_while_cookies_change(scene in prctl_scene_strategy(FIRST)) {
        run_checked(&scene)?;
    }

    #[test]
    fn and_with_push_and_pull(scene in prctl_scene_strategy(PATCHED).prop_map(with_both)) {
        run_checked(&scene)?;
    }
}

proptest! {
    /// What cores, pairs of cookies and tasks have adds up to the whole.
    #[test]
    fn forced_idle_adds_up(scene in cookie_scene_strategy(FIRST)) {
        let outcome = scene.run().expect("the run ends");
        let cookies = scene.tasks.iter().any(|task| task.attributes.cookie.is_some());
        // Without SMT there are no cookies, whoever asks for one.
        let cookies = cookies && scene.config().topology.smt_active;
        prop_assert_eq!(outcome.forced_idle.is_some(), cookies);
        if let Some(forced) = outcome.forced_idle {
            let cores: u64 = forced.cores.iter().map(|(_, ns)| ns.0).sum();
            let pairs: u64 = forced.pairs.iter().map(|pair| pair.time.0).sum();
            let tasks: u64 = forced.tasks.iter().map(|(_, ns)| ns.0).sum();
            prop_assert_eq!((cores, pairs), (forced.time.0, forced.time.0));
            prop_assert!(tasks <= forced.time.0);
            prop_assert!(forced.pairs.iter().all(|pair| pair.ran != pair.kept_waiting));
            prop_assert!((0.0..=100.0).contains(&forced.share_pct));
            let causes = &forced.causes;
            let time: u64 = causes.iter().map(|cause| cause.time.0).sum();
            prop_assert_eq!(time, forced.time.0);
            let stolen = forced.moves.iter().find(|row| row.how == "stealing");
            prop_assert!(stolen.is_none_or(|row| row.joined.max(row.split) <= forced.stolen));
            prop_assert!(causes.iter().all(|cause| cause.better_cpu_free <= cause.began));
        }
    }
}

fn with_both(mut scene: Scene) -> Scene {
    for feat in [Feat::FORCE_IDLE_PUSH, Feat::FORCE_IDLE_LB] {
        scene.features.features.set(feat, true);
    }
    scene
}

proptest! {
    /// The same with what moves tasks out of force idle, in every case.
    #[test]
    fn so_it_does_with_push_and_pull(scene in cookie_scene_strategy(PATCHED).prop_map(with_both)) {
        run_checked(&scene)?;
    }
}

proptest! {
    /// Without cookies the words change nothing.
    #[test]
    fn without_cookies_push_and_pull_change_nothing(scene in scene_strategy(PATCHED)) {
        let mut without = with_both(scene.clone());
        without.features.features.set(Feat::FORCE_IDLE_PUSH, false);
        without.features.features.set(Feat::FORCE_IDLE_LB, false);
        let (with, without) = (with_both(scene).run(), without.run());
        prop_assert_eq!(format!("{with:?}"), format!("{without:?}"));
    }
}

/// A test of the test: without the check of cookies in the pick, it fails.
#[test]
fn a_pick_that_does_not_check_is_found_out() {
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let result = without_the_cookie_check(|| {
        runner.run(&cookie_scene_strategy(FIRST), |scene| run_checked(&scene))
    });
    match result {
        Err(TestError::Fail(reason, _)) => {
            let text = reason.message();
            assert!(text.contains(" with Cookie("), "{text}");
        }
        other => panic!("no core ran two cookies: {other:?}"),
    }
}
