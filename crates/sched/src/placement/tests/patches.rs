//! The features of the posted patches, at the places where they act.

use super::fixture::{Situation, TWO_LLCS};
use crate::features::Feat;
use crate::placement::{AffinePath, Reason, RecordedCall, wf};
use crate::rules::Release::{V6_5, V6_12};
use wakelab_machine::CpuId;

/// WAKEUP_BIAS_PREV_IDLE with so much load on the previous CPU besides the task's.
fn biased(prev: usize, load: u64) -> Situation {
    let situation = TWO_LLCS
        .situation(V6_5, prev)
        .feature(Feat::WAKEUP_BIAS_PREV_IDLE, true);
    situation.call(|call| call.load_without[prev] = load)
}

#[test]
fn an_almost_idle_prev_decides_wake_affine_up_to_the_threshold() {
    let path = |load| biased(4, load).decide().wake_affine.unwrap().path;
    assert_eq!(path(47), AffinePath::PrevIdle);
    assert_eq!(path(48), AffinePath::NotLessLoad);
    let mut wider = biased(4, 48);
    wider.machine.almost_idle_load = 48;
    assert_eq!(
        wider.decide().wake_affine.unwrap().path,
        AffinePath::PrevIdle
    );
}

#[test]
fn an_idle_waking_cpu_still_wins_over_an_almost_idle_prev() {
    // The check of both being idle is left as it was.
    let decision = biased(1, 0).idle(&[0]).decide();
    assert_eq!(decision.wake_affine.unwrap().path, AffinePath::ThisIdle);
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(0), Reason::TargetIdle)
    );
}

#[test]
fn a_target_counts_as_almost_idle_only_where_it_is_prev() {
    let prev = biased(4, 47).decide();
    assert_eq!(
        (prev.cpu, prev.reason),
        (CpuId(4), Reason::TargetAlmostIdle)
    );
    // The sync waker's CPU is the target; that it is almost idle does not count.
    let mut other = biased(1, 1024).call(|call| {
        call.wake_flags |= wf::SYNC;
        call.load_without[0] = 0;
    });
    assert_eq!(other.decide().reason, Reason::Sync);
}

#[test]
fn an_almost_idle_prev_near_the_target_is_taken() {
    let sync = |prev| {
        biased(prev, 47)
            .call(|call| call.wake_flags |= wf::SYNC)
            .decide()
    };
    assert_eq!(
        (sync(1).cpu, sync(1).reason),
        (CpuId(1), Reason::PrevAlmostIdle)
    );
    assert_eq!(
        (sync(4).cpu, sync(4).reason),
        (CpuId(0), Reason::Sync),
        "another cache"
    );
}

#[test]
fn an_almost_idle_recent_cpu_is_not_taken() {
    let mut situation = biased(1, 1024).call(|call| {
        call.recent_used_cpu = CpuId(3);
        call.load_without[3] = 0;
    });
    assert_eq!(situation.decide().reason, Reason::NoIdleCpu);
}

#[test]
fn the_bias_is_off_by_default() {
    let situation = TWO_LLCS
        .situation(V6_5, 4)
        .call(|call| call.load_without[4] = 0);
    assert_eq!(
        { situation }.decide().wake_affine.unwrap().path,
        AffinePath::NotLessLoad
    );
}

/// UTIL_FITS_CAPACITY with so much queued on a CPU and a task of 100.
fn fitting(prev: usize, cpu: usize, queued: u64) -> Situation {
    let situation = TWO_LLCS
        .situation(V6_5, prev)
        .feature(Feat::UTIL_FITS_CAPACITY, true);
    situation.call(|call| {
        call.task_util_est = 100;
        call.util_est[cpu] = queued;
    })
}

#[test]
fn a_task_that_fits_is_placed_on_a_busy_target_prev_or_recent_cpu() {
    // 1280 * (queued + 100) < 1024 * 1024: at most 719.
    assert_eq!(fitting(4, 4, 719).decide().reason, Reason::TargetFits);
    assert_eq!(fitting(4, 4, 720).decide().reason, Reason::NoIdleCpu);
    let prev = fitting(1, 1, 719)
        .call(|call| call.wake_flags |= wf::SYNC)
        .decide();
    assert_eq!((prev.cpu, prev.reason), (CpuId(1), Reason::PrevFits));
    let recent = fitting(1, 3, 719)
        .call(|call| call.recent_used_cpu = CpuId(3))
        .decide();
    assert_eq!((recent.cpu, recent.reason), (CpuId(3), Reason::RecentFits));
}

#[test]
fn fitting_needs_util_est() {
    let decision = fitting(4, 4, 0).feature(Feat::UTIL_EST, false).decide();
    assert_eq!(decision.reason, Reason::NoIdleCpu);
}

/// SELECT_BIAS_PREV with the sync waker on CPU 0 as the target.
fn prev_first(prev: usize) -> Situation {
    let situation = TWO_LLCS
        .situation(V6_5, prev)
        .feature(Feat::SELECT_BIAS_PREV, true);
    situation.call(|call| call.wake_flags |= wf::SYNC)
}

#[test]
fn prev_is_looked_at_before_the_target() {
    let decide = |bias| {
        let situation = TWO_LLCS
            .situation(V6_5, 1)
            .feature(Feat::SELECT_BIAS_PREV, bias);
        // Both are idle for the search, but wake_affine sees a SCHED_IDLE CPU as busy.
        let situation = situation.call(|call| {
            call.sched_idle.set(CpuId(0));
            call.sched_idle.set(CpuId(1));
            call.load[0] = 0;
        });
        { situation }.decide()
    };
    assert_eq!(
        (decide(false).cpu, decide(false).reason),
        (CpuId(0), Reason::TargetIdle)
    );
    assert_eq!(
        (decide(true).cpu, decide(true).reason),
        (CpuId(1), Reason::PrevIdle)
    );
}

#[test]
fn prev_is_kept_when_nothing_is_found_near_it() {
    let near = prev_first(1).decide();
    assert_eq!((near.cpu, near.reason), (CpuId(1), Reason::BiasPrev));
    let far = prev_first(4).decide();
    assert_eq!((far.cpu, far.reason), (CpuId(0), Reason::Sync));
}

#[test]
fn both_patches_together_keep_a_fitting_prev() {
    let situation = prev_first(1).feature(Feat::UTIL_FITS_CAPACITY, true);
    let situation = situation.call(|call| {
        call.task_util_est = 100;
        call.util_est[1] = 600;
        call.util_est[0] = 0;
    });
    let decision = { situation }.decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(1), Reason::PrevFits)
    );
}

#[test]
fn with_sync_stay_a_lone_waker_keeps_what_it_wakes_though_prev_is_idle() {
    let decide = |on, sync, running| {
        let call = |call: &mut RecordedCall| {
            call.wake_flags |= if sync { wf::SYNC } else { 0 };
            call.nr_running[0] = running;
        };
        let situation = TWO_LLCS
            .situation(V6_12, 1)
            .idle(&[1])
            .feature(Feat::SYNC_STAY, on);
        situation.call(call).decide().cpu
    };
    assert_eq!(decide(true, true, 1), CpuId(0));
    assert_eq!(decide(false, true, 1), CpuId(1), "off");
    assert_eq!(decide(true, false, 1), CpuId(1), "not sync");
    assert_eq!(decide(true, true, 2), CpuId(1), "the waker is not alone");
}
