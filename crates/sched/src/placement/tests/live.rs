//! The simulator's state as the view.

use super::fixture::{Shape, TWO_LLCS};
use crate::features::{Feat, FeatureSet};
use crate::ids::{Cookie, TaskId, TgId};
use crate::placement::{Reason, wf};
use crate::rules::{Release, Rules, Tunables};
use crate::state::{Policy, Sched};
use crate::touch::{Line, Touch};
use crate::{fair::TaskSpec, state::LlcShared};
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, LlcId, Ns};

/// A scheduler with a waker that runs on CPU 0 and a task that sleeps and was last on `prev`.
fn sched(shape: Shape, prev: u16) -> (Sched, TaskId, TaskId) {
    let release = Release::V6_5;
    let topo = Arc::new(shape.topology());
    let tun = Tunables::for_machine(shape.ncpu(), 250);
    let features = FeatureSet::defaults(release).features;
    let mut sched = Sched::new(topo, Rules::of(release), features, tun);
    let mut task = |cpu: u16| {
        let spec = TaskSpec {
            tg: TgId::ROOT,
            mm: 0,
            policy: Policy::Normal,
            nice: 0,
            cpus: CpuMask::first_n(shape.ncpu()),
            cpu: CpuId(cpu),
            kthread: false,
            cookie: Cookie::NONE,
        };
        sched.new_task(&spec)
    };
    let (waker, p) = (task(0), task(prev));
    sched.update_rq_clock(CpuId(0), Ns(1_000_000));
    sched.wake_up_new_task(waker, CpuId(0));
    sched.switch_task(CpuId(0));
    sched.sync_idle(CpuId(0));
    sched.touch.clear();
    (sched, waker, p)
}

#[test]
fn a_wakeup_of_a_task_with_an_idle_prev_goes_there() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 5);
    let decision = sched.select_task_rq(p, CpuId(5), CpuId(0), waker, wf::TTWU, true);
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(5), Reason::TargetIdle)
    );
    assert_eq!(sched.tasks[waker.index()].wakee_flips, 1);
    let remote = [Touch::of(Line::Rq(CpuId(5)), false)];
    assert_eq!(sched.touch.list, remote, "read once, in another cache");
}

#[test]
fn wakee_flips_count_changes_and_halve_after_a_second() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 5);
    let wake = |sched: &mut Sched, p| {
        sched.select_task_rq(p, CpuId(5), CpuId(0), waker, wf::TTWU, true);
        sched.tasks[waker.index()].wakee_flips
    };
    assert_eq!(wake(&mut sched, p), 1);
    assert_eq!(wake(&mut sched, p), 1, "the same task again is no flip");
    assert_eq!(wake(&mut sched, waker), 2);
    assert_eq!(wake(&mut sched, p), 3);
    sched.update_rq_clock(CpuId(0), Ns(1_500_000_000));
    assert_eq!(wake(&mut sched, p), 1, "3 halved, and no flip");
    assert_eq!(wake(&mut sched, waker), 2);
}

#[test]
fn the_idle_task_flips_by_itself() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 5);
    sched.select_task_rq(p, CpuId(5), CpuId(3), TaskId::NONE, wf::TTWU, false);
    assert_eq!(sched.rq(CpuId(3)).idle_wakee_flips, 1);
    assert_eq!(sched.tasks[waker.index()].wakee_flips, 0);
}

#[test]
fn a_pinned_task_has_one_cpu_and_a_forbidden_choice_is_put_right() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 5);
    sched.set_cpus_allowed(p, CpuMask::from_cpulist("2").unwrap());
    let only = sched.select_task_rq(p, CpuId(5), CpuId(0), waker, wf::TTWU, true);
    assert_eq!((only.cpu, only.reason), (CpuId(2), Reason::OnlyCpu));
    // The previous CPU is idle but not allowed any more; its node has an allowed one.
    sched.set_cpus_allowed(p, CpuMask::from_cpulist("2,13").unwrap());
    sched.tasks[p.index()].cpu = CpuId(5);
    let fallback = sched.select_task_rq(p, CpuId(5), CpuId(0), waker, wf::TTWU, true);
    assert_eq!(
        (fallback.cpu, fallback.reason),
        (CpuId(13), Reason::AffinityFallback)
    );
}

#[test]
fn a_remote_wakeup_is_queued_in_another_cache_or_for_an_idle_cpu() {
    let (mut sched, _, p) = sched(TWO_LLCS, 5);
    assert!(
        sched.ttwu_queue_cond(p, CpuId(0), CpuId(5)),
        "another cache"
    );
    assert!(sched.ttwu_queue_cond(p, CpuId(0), CpuId(1)), "idle");
    assert!(!sched.ttwu_queue_cond(p, CpuId(0), CpuId(0)), "its own");
    sched.rq_mut(CpuId(1)).nr_running = 1;
    assert!(
        !sched.ttwu_queue_cond(p, CpuId(0), CpuId(1)),
        "busy, the same cache"
    );
    sched.feat.set(Feat::TTWU_QUEUE, false);
    assert!(!sched.ttwu_queue_cond(p, CpuId(0), CpuId(5)));
}

#[test]
fn an_idle_core_is_told_once() {
    let (mut sched, _, _) = sched(TWO_LLCS, 5);
    sched.llc = vec![LlcShared::default(); 2];
    let writes = |sched: &mut Sched, cpu| {
        sched.touch.clear();
        sched.update_idle_core(CpuId(cpu));
        sched.touch.list.iter().filter(|touch| touch.write).count()
    };
    assert_eq!(writes(&mut sched, 8), 0, "CPU 0, its sibling, is busy");
    assert!(!sched.llc[0].has_idle_cores);
    assert_eq!(writes(&mut sched, 9), 1);
    assert!(sched.llc[0].has_idle_cores && !sched.llc[1].has_idle_cores);
    assert_eq!(writes(&mut sched, 9), 0, "known already");
}

#[test]
fn a_failed_core_search_clears_the_flag_and_writes_the_line() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 1);
    for cpu in [1, 2, 3, 9, 10, 11] {
        sched.rq_mut(CpuId(cpu)).nr_running = 1;
        sched.sync_idle(CpuId(cpu));
    }
    sched.llc[0].has_idle_cores = true;
    sched.llc[0].nr_idle_scan = 8;
    sched.touch.clear();
    let decision = sched.select_task_rq(p, CpuId(1), CpuId(0), waker, wf::TTWU, true);
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(8), Reason::IdleCoreFallback)
    );
    assert!(!sched.llc[0].has_idle_cores);
    let written = sched
        .touch
        .list
        .iter()
        .any(|t| *t == Touch::of(Line::LlcShared(LlcId(0)), true));
    assert!(written);
    assert_eq!(sched.touch.scanned, 4);
}

#[test]
fn sis_prop_searches_as_much_as_the_idle_time_pays_for() {
    let (mut sched, waker, p) = sched(TWO_LLCS, 1);
    sched.feat.set(Feat::SIS_PROP, true);
    sched.feat.set(Feat::SIS_UTIL, false);
    sched.tun.scan_cost = Ns(100);
    for cpu in (1..16).filter(|&cpu| cpu != 8) {
        sched.rq_mut(CpuId(cpu)).nr_running = 2;
        sched.sync_idle(CpuId(cpu));
    }
    let now = sched.jiffies(CpuId(0));
    let level = sched.topo.cpus[0].sd_llc.unwrap();
    let mut search = |idle: u64, cost: u64| {
        let rq = sched.rq_mut(CpuId(0));
        (rq.wake_avg_idle, rq.wake_stamp) = (idle, now);
        sched.sd[0][level].avg_scan_cost = cost;
        let decision = sched.select_task_rq(p, CpuId(1), CpuId(0), waker, wf::TTWU, true);
        let rq = sched.rq(CpuId(0));
        (
            decision.searched.scanned,
            rq.wake_avg_idle,
            sched.sd[0][level].avg_scan_cost,
        )
    };
    // From target 1 the third CPU is the idle 8: 300 ns, off the idle time and 1/8 into the cost.
    assert_eq!(search(1_000, 999), (3, 700, 999 - 87));
    assert_eq!(search(0, 0), (3, 0, 37), "three at least");
}

#[test]
fn a_waker_flips_for_a_whole_second_before_they_halve() {
    let flips_after = |jiffies: u64| {
        let (mut sched, waker, p) = sched(TWO_LLCS, 5);
        let now = sched.jiffies(CpuId(0));
        let task = &mut sched.tasks[waker.index()];
        (task.last_wakee, task.wakee_flips) = (p, 8);
        task.wakee_flip_decay_ts = now - jiffies;
        sched.select_task_rq(p, CpuId(5), CpuId(0), waker, wf::TTWU, true);
        sched.tasks[waker.index()].wakee_flips
    };
    assert_eq!(flips_after(250), 8);
    assert_eq!(flips_after(251), 4);
}
