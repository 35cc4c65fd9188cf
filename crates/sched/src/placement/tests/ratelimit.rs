//! MIGRATION_RATELIMIT: which migrations start the window, and what happens inside of it.

use super::fixture::TWO_LLCS;
use crate::fair::TaskSpec;
use crate::fair::flags::{DEQUEUE_SLEEP, ENQUEUE_WAKEUP};
use crate::features::{Feat, FeatureSet};
use crate::ids::{Cookie, TaskId, TgId};
use crate::placement::{Reason, wf};
use crate::rules::{Release, Rules, Tunables};
use crate::state::{Policy, Sched};
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, Ns};

const MS: u64 = 1_000_000;

/// A waker that runs on CPU 0 and a task that sleeps on CPU 1, which is busy with a third.
struct Scene {
    sched: Sched,
    waker: TaskId,
    p: TaskId,
}

impl Scene {
    fn new(on: bool) -> Scene {
        let release = Release::V6_6;
        let mut features = FeatureSet::defaults(release).features;
        features.set(Feat::MIGRATION_RATELIMIT, on);
        let tun = Tunables::for_kernel(release, TWO_LLCS.ncpu(), 250);
        let topo = Arc::new(TWO_LLCS.topology());
        let mut sched = Sched::new(topo, Rules::of(release), features, tun);
        let [waker, other, p] = [0, 1, 1].map(|cpu| {
            let cpu = CpuId(cpu);
            let p = sched.new_task(&TaskSpec {
                tg: TgId::ROOT,
                mm: 0,
                policy: Policy::Normal,
                nice: 0,
                cpus: CpuMask::first_n(TWO_LLCS.ncpu()),
                cpu,
                kthread: false,
                cookie: Cookie::NONE,
            });
            sched.update_rq_clock(cpu, Ns(MS));
            sched.wake_up_new_task(p, cpu);
            p
        });
        sched.switch_task(CpuId(0));
        sched.deactivate_task(CpuId(1), p, DEQUEUE_SLEEP);
        sched.switch_task(CpuId(1));
        assert_eq!(sched.rq(CpuId(1)).curr, other);
        Scene { sched, waker, p }
    }

    fn at(&mut self, now: u64) {
        for cpu in 0..TWO_LLCS.ncpu() {
            self.sched.update_rq_clock(CpuId::from_index(cpu), Ns(now));
        }
    }

    fn choose(&mut self, flags: u32) -> (CpuId, Reason) {
        let prev = self.sched.tasks[self.p.index()].cpu;
        let (p, waker) = (self.p, self.waker);
        let decision = self
            .sched
            .select_task_rq(p, prev, CpuId(0), waker, flags, true);
        (decision.cpu, decision.reason)
    }

    /// The task wakes up on another CPU and sleeps there again.
    fn migrate_by_wakeup(&mut self, cpu: CpuId) {
        self.sched.set_task_cpu(self.p, cpu);
        self.sched.activate_task(cpu, self.p, ENQUEUE_WAKEUP);
        self.sched.deactivate_task(cpu, self.p, DEQUEUE_SLEEP);
    }
}

#[test]
fn a_task_that_never_migrated_is_free() {
    let mut scene = Scene::new(true);
    let (cpu, reason) = scene.choose(wf::TTWU);
    assert!(cpu != CpuId(1) && reason != Reason::RateLimit, "{reason:?}");
}

#[test]
fn within_two_ms_a_wakeup_leaves_it_there_and_then_moves_it() {
    let mut scene = Scene::new(true);
    scene.at(10 * MS);
    scene.sched.set_task_cpu(scene.p, CpuId(0));
    scene.at(12 * MS - 1);
    assert_eq!(scene.choose(wf::TTWU), (CpuId(0), Reason::RateLimit));
    assert_eq!(scene.choose(wf::TTWU | wf::SYNC).1, Reason::RateLimit);
    scene.at(12 * MS);
    let (cpu, reason) = scene.choose(wf::TTWU);
    assert!(cpu != CpuId(0) && reason != Reason::RateLimit, "{reason:?}");
}

#[test]
fn without_the_feature_it_is_moved_at_once() {
    let mut scene = Scene::new(false);
    scene.at(10 * MS);
    scene.sched.set_task_cpu(scene.p, CpuId(0));
    let (cpu, reason) = scene.choose(wf::TTWU);
    assert!(cpu != CpuId(0) && reason != Reason::RateLimit, "{reason:?}");
}

#[test]
fn each_migration_starts_the_window_anew_and_staying_does_not() {
    let mut scene = Scene::new(true);
    scene.at(10 * MS);
    scene.migrate_by_wakeup(CpuId(0));
    scene.at(11 * MS);
    scene.migrate_by_wakeup(CpuId(0));
    scene.at(12 * MS);
    assert_ne!(scene.choose(wf::TTWU).1, Reason::RateLimit, "it stayed");
    scene.migrate_by_wakeup(CpuId(1));
    scene.at(14 * MS - 1);
    assert_eq!(scene.choose(wf::TTWU), (CpuId(1), Reason::RateLimit));
}

#[test]
fn balancing_starts_the_window_too() {
    let mut scene = Scene::new(true);
    scene.at(10 * MS);
    let cpu = CpuId(1);
    scene.sched.activate_task(cpu, scene.p, ENQUEUE_WAKEUP);
    scene.sched.deactivate_task(cpu, scene.p, 0);
    scene.sched.set_task_cpu(scene.p, CpuId(0));
    scene.sched.activate_task(CpuId(0), scene.p, 0);
    scene
        .sched
        .deactivate_task(CpuId(0), scene.p, DEQUEUE_SLEEP);
    scene.at(11 * MS);
    assert_eq!(scene.choose(wf::TTWU), (CpuId(0), Reason::RateLimit));
}

#[test]
fn only_affine_wakeups_are_held_back() {
    let mut scene = Scene::new(true);
    scene.at(10 * MS);
    scene.sched.set_task_cpu(scene.p, CpuId(0));
    assert_ne!(scene.choose(wf::EXEC).1, Reason::RateLimit);
    // A waker that may not be followed: the task may not run on its CPU.
    scene.sched.set_task_cpu(scene.p, CpuId(1));
    let mask = CpuMask::from_cpulist("1-7").unwrap();
    scene.sched.set_cpus_allowed(scene.p, mask);
    assert_ne!(scene.choose(wf::TTWU).1, Reason::RateLimit);
}
