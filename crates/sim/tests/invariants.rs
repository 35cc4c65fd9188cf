//! What must hold after every event, over random machines, workloads and features.

mod support;
#[path = "invariants/threads.rs"]
mod threads;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use support::check::run_engine_checked;
use support::{Scene, run_checked, scene_strategy};
use threads::Threads;
use wakelab_sched::Release;
use wakelab_sched::features::{FeatureSet, words_of};
use wakelab_sim::Engine;

proptest! {
    /// No task is on two queues or lost, affinity is kept, counts and load sums agree, time goes
    /// forward, CPU time is conserved, every runnable task runs within a bound, and no CPU stays
    /// idle for long beside one in its LLC with tasks to give.
    #[test]
    fn nothing_is_lost_and_everybody_runs(scene in scene_strategy(Release::V5_2)) {
        run_checked(&scene)?;
    }

    /// The same for threads that lock, wait, signal, post, yield, and change how they are scheduled.
    #[test]
    fn nothing_is_lost_among_threads_that_wait_for_each_other(
        scene in scene_strategy(Release::V5_2),
        inherit: bool,
    ) {
        let threads = Threads::new(&scene, inherit);
        run_engine_checked(Engine::new(&scene.config(), threads), true)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome(scene in scene_strategy(Release::V5_2)) {
        prop_assert_eq!(format!("{:?}", scene.run()), format!("{:?}", scene.run()));
    }

    #[test]
    fn another_seed_does_the_same_work(scene in scene_strategy(Release::V5_2)) {
        let other = Scene { seed: scene.seed ^ 0x5555, ..scene.clone() };
        let (first, second) = (scene.run(), other.run());
        prop_assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    }
}

/// A test of the tests: most scenes have words flipped, and each word that a release acts on is on in
/// some of its scenes and off in others.
#[test]
fn every_word_is_drawn_on_and_off() {
    let mut runner = TestRunner::deterministic();
    let (strategy, scenes) = (scene_strategy(Release::V5_2), 600);
    let (mut flipped, mut drawn) = (0, BTreeSet::new());
    for _ in 0..scenes {
        let scene = strategy.new_tree(&mut runner).expect("a scene").current();
        flipped += u32::from(scene.features != FeatureSet::defaults(scene.release));
        for word in words_of(scene.release) {
            let on = scene.features.features.has(word.feat);
            drawn.insert((scene.release, word.name, on));
        }
    }
    assert!(flipped > scenes * 4 / 5, "{flipped}");
    for release in Release::ALL {
        for word in words_of(release).filter(|word| word.acted(release)) {
            for on in [false, true] {
                let of = (release, word.name, on);
                assert!(drawn.contains(&of), "{of:?}");
            }
        }
    }
}

mod stuck {
    use crate::support::Scene;
    use crate::support::scene_strategy;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    use wakelab_sched::{Release, TaskId};
    use wakelab_sim::object::{Chan, ChanId};
    use wakelab_sim::rng::Rng;
    use wakelab_sim::{Engine, Op, RunError, Workload};

    /// One task that reads what nobody writes.
    struct Deaf;

    impl Workload for Deaf {
        fn channels(&self) -> Vec<Chan> {
            vec![Chan::pipe()]
        }

        fn max_tasks(&self) -> usize {
            1
        }

        fn working_set_kib(&self) -> u64 {
            1
        }

        fn spawned(&mut self, _role: u32, _task: TaskId) {}

        fn next_op(&mut self, _task: TaskId, _rng: &mut Rng) -> Op {
            Op::Read(ChanId(0), 1)
        }
    }

    #[test]
    fn a_workload_that_can_never_end_is_an_error_that_says_why() {
        let scene: Scene = scene_strategy(Release::V5_2)
            .new_tree(&mut TestRunner::deterministic())
            .expect("a scene")
            .current();
        let error = Engine::new(&scene.config(), Deaf)
            .run(&|| false)
            .unwrap_err();
        assert!(
            matches!(
                error,
                RunError::Stuck {
                    tasks: 1,
                    task: 0,
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            error.to_string().contains("to read from channel 0"),
            "{error}"
        );
    }

    #[test]
    fn a_cancelled_run_ends_with_an_error() {
        struct Endless;
        impl Workload for Endless {
            fn channels(&self) -> Vec<Chan> {
                Vec::new()
            }
            fn max_tasks(&self) -> usize {
                1
            }
            fn working_set_kib(&self) -> u64 {
                1
            }
            fn spawned(&mut self, _role: u32, _task: TaskId) {}
            fn next_op(&mut self, _task: TaskId, _rng: &mut Rng) -> Op {
                Op::Compute(wakelab_machine::Ns(1000))
            }
        }
        let scene: Scene = scene_strategy(Release::V5_2)
            .new_tree(&mut TestRunner::deterministic())
            .expect("a scene")
            .current();
        let result = Engine::new(&scene.config(), Endless).run(&|| true);
        assert_eq!(result, Err(RunError::Cancelled));
    }
}
