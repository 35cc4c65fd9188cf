//! The fast path's documented rules, one by one.

use super::fixture::{Shape, TWO_LLCS};
use crate::features::Feat;
use crate::placement::{AffinePath, Cookies, Reason, SisPath, wf};
use crate::rules::Release::{V6_5, V6_12};
use wakelab_machine::{CpuId, CpuMask};

/// Clusters of two cores of one thread, eight CPUs under one LLC.
const CLUSTERS: Shape = Shape {
    llcs: 1,
    cores: 8,
    threads: 1,
    consecutive: true,
    cluster: 2,
};

#[test]
fn wake_wide_spreads_only_with_both_conditions() {
    // llc_size is 8; the previous CPU is in the other LLC and busy, the waking CPU has less load.
    for (flips, wide) in [
        ((8, 64), true),
        ((7, 64), false),
        ((8, 63), false),
        ((64, 8), true),
    ] {
        let mut situation = TWO_LLCS.situation(V6_5, 4).call(|call| {
            (call.curr_wakee_flips[1], call.wakee_flips) = flips;
            call.load[0] = 0;
        });
        let decision = situation.decide();
        assert_eq!(decision.wake_affine.is_none(), wide, "{flips:?}");
        assert_eq!(decision.cpu, CpuId(if wide { 4 } else { 0 }), "{flips:?}");
    }
}

#[test]
fn an_idle_waking_cpu_attracts_only_within_its_cache() {
    let near = TWO_LLCS.situation(V6_5, 1).idle(&[0]).decide();
    assert_eq!(near.wake_affine.unwrap().path, AffinePath::ThisIdle);
    assert_eq!((near.cpu, near.reason), (CpuId(0), Reason::TargetIdle));
    let both = TWO_LLCS.situation(V6_5, 1).idle(&[0, 1]).decide();
    assert_eq!(both.wake_affine.unwrap().path, AffinePath::BothIdle);
    assert_eq!(both.cpu, CpuId(1));
    let far = TWO_LLCS.situation(V6_5, 4).idle(&[0, 4]).decide();
    assert_eq!(far.wake_affine.unwrap().path, AffinePath::PrevIdle);
}

#[test]
fn a_sync_waker_alone_on_its_cpu_is_the_target() {
    let sync = |situation: super::fixture::Situation| {
        situation.call(|call| call.wake_flags |= wf::SYNC).decide()
    };
    let alone = sync(TWO_LLCS.situation(V6_5, 4).idle(&[4]));
    assert_eq!(alone.wake_affine.unwrap().path, AffinePath::Sync);
    assert_eq!((alone.cpu, alone.reason), (CpuId(0), Reason::Sync));
    let crowded = sync(
        TWO_LLCS
            .situation(V6_5, 4)
            .idle(&[4])
            .call(|c| c.nr_running[0] = 2),
    );
    assert_eq!(crowded.wake_affine.unwrap().path, AffinePath::PrevIdle);
    let delayed = |call: &mut crate::placement::RecordedCall| {
        (call.nr_running[0], call.nr_delayed[0]) = (2, 1);
    };
    let delayed = sync(TWO_LLCS.situation(V6_12, 4).idle(&[4]).call(delayed));
    assert_eq!(delayed.wake_affine.unwrap().path, AffinePath::Sync);
    let exiting = sync(
        TWO_LLCS
            .situation(V6_5, 4)
            .idle(&[4])
            .call(|c| c.curr_is_exiting = true),
    );
    assert_eq!(exiting.wake_affine.unwrap().path, AffinePath::PrevIdle);
}

#[test]
fn load_decides_with_a_bias_towards_the_waking_cpu() {
    // Without the task's 100: 1024 + 100 here against 1024 - 100 there, at 100 and 108 %.
    let decide = |this: u64, prev: u64, bias: bool| {
        let mut situation = TWO_LLCS
            .situation(V6_5, 4)
            .feature(Feat::WA_BIAS, bias)
            .call(|call| {
                (call.load[0], call.load[4]) = (this, prev);
            });
        situation.decide().wake_affine.unwrap()
    };
    let wa = decide(1024, 1024, true);
    assert_eq!(wa.path, AffinePath::NotLessLoad);
    assert_eq!(
        (wa.this_eff_load, wa.prev_eff_load),
        (1124 * 100 * 1024, 924 * 108 * 1024)
    );
    assert_eq!(decide(900, 1100, true).path, AffinePath::LessLoad);
    assert_eq!(
        decide(900, 1100, false).path,
        AffinePath::NotLessLoad,
        "equal loads stay"
    );
    // A negative rest on the previous CPU is a signed number.
    assert_eq!(decide(0, 50, true).prev_eff_load, -50 * 108 * 1024);
}

#[test]
fn a_sync_waker_heavier_than_its_cpu_is_the_target() {
    let mut situation = TWO_LLCS.situation(V6_5, 4).call(|call| {
        call.wake_flags |= wf::SYNC;
        call.nr_running[0] = 2;
        call.curr_h_load = 1025;
    });
    assert_eq!(
        situation.decide().wake_affine.unwrap().path,
        AffinePath::SyncLoad
    );
    situation.call.curr_h_load = 1024;
    let wa = situation.decide().wake_affine.unwrap();
    assert_eq!(
        (wa.path, wa.this_eff_load),
        (AffinePath::LessLoad, 100 * 100 * 1024)
    );
}

#[test]
fn the_affine_features_can_be_turned_off() {
    let idle_off = TWO_LLCS
        .situation(V6_5, 1)
        .idle(&[0, 1])
        .feature(Feat::WA_IDLE, false)
        .decide();
    assert_eq!(idle_off.wake_affine.unwrap().path, AffinePath::NotLessLoad);
    let off = TWO_LLCS.situation(V6_5, 1).feature(Feat::WA_IDLE, false);
    let off = off.feature(Feat::WA_WEIGHT, false).decide();
    assert_eq!(off.wake_affine.unwrap().path, AffinePath::Undecided);
    assert_eq!(off.wake_affine.unwrap().target, CpuId(1));
}

#[test]
fn a_cpu_with_sched_idle_tasks_only_counts_as_idle_for_the_search_but_not_for_wake_affine() {
    let decision = TWO_LLCS
        .situation(V6_5, 1)
        .call(|c| c.sched_idle.set(CpuId(1)))
        .decide();
    assert_eq!(decision.wake_affine.unwrap().path, AffinePath::NotLessLoad);
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(1), Reason::TargetIdle)
    );
}

#[test]
fn the_previous_cpu_is_taken_only_from_the_targets_cache() {
    // The sync waker is the target.
    let sync = |prev: usize| {
        let situation = TWO_LLCS.situation(V6_5, prev).idle(&[prev]);
        situation.call(|call| call.wake_flags |= wf::SYNC).decide()
    };
    assert_eq!((sync(1).cpu, sync(1).reason), (CpuId(1), Reason::PrevIdle));
    assert_eq!(sync(4).cpu, CpuId(0));
}

#[test]
fn a_per_cpu_kthread_stacks_the_task_that_it_wakes() {
    let decide = |change: fn(&mut crate::placement::RecordedCall)| {
        let situation = TWO_LLCS.situation(V6_5, 0).call(|call| {
            call.curr_is_per_cpu_kthread = true;
            change(call);
        });
        situation.idle(&[3]).decide().reason
    };
    assert_eq!(decide(|_| {}), Reason::PerCpuKthread);
    assert_eq!(decide(|call| call.in_task = false), Reason::LlcScan);
    assert_eq!(decide(|call| call.nr_running[0] = 2), Reason::LlcScan);
    assert_eq!(
        decide(|call| call.curr_is_per_cpu_kthread = false),
        Reason::LlcScan
    );
}

#[test]
fn the_recent_cpu_must_be_idle_allowed_near_and_another() {
    let recent = |cpu: u16| {
        TWO_LLCS
            .situation(V6_5, 1)
            .call(move |c| c.recent_used_cpu = CpuId(cpu))
    };
    let found = recent(3).idle(&[3]).decide();
    assert_eq!((found.cpu, found.reason), (CpuId(3), Reason::RecentIdle));
    assert_ne!(
        recent(5).idle(&[5]).decide().reason,
        Reason::RecentIdle,
        "another cache"
    );
    let forbidden = recent(3)
        .idle(&[3])
        .call(|call| call.allowed.clear(CpuId(3)))
        .decide();
    assert_eq!(forbidden.reason, Reason::NoIdleCpu);
}

#[test]
fn the_recent_cpu_is_overwritten_when_not_used_but_not_before_its_turn() {
    let situation = |idle: &[usize]| {
        TWO_LLCS
            .situation(V6_5, 1)
            .idle(idle)
            .call(|call| call.recent_used_cpu = CpuId(6))
    };
    let mut unused = situation(&[]);
    unused.decide();
    assert_eq!(unused.recent_after, CpuId(1));
    let mut earlier = situation(&[1]);
    assert_eq!(earlier.decide().reason, Reason::TargetIdle);
    assert_eq!(earlier.recent_after, CpuId(6), "prev decided before");
}

#[test]
fn an_smt_sibling_of_prev_is_looked_at_only_if_no_core_is_said_to_be_idle() {
    // Siblings 1 and 9; core {2,10} is wholly idle.
    let situation = || TWO_LLCS.situation(V6_5, 1).idle(&[2, 9, 10]);
    let sibling = situation().decide();
    assert_eq!(
        (sibling.cpu, sibling.reason),
        (CpuId(9), Reason::SmtSibling)
    );
    let core = situation()
        .call(|call| call.has_idle_cores[0] = true)
        .decide();
    assert_eq!((core.cpu, core.reason), (CpuId(2), Reason::IdleCore));
    let off = situation()
        .feature(Feat::SIS_CORE, false)
        .call(|c| c.has_idle_cores[0] = true);
    assert_eq!({ off }.decide().reason, Reason::SmtSibling);
}

#[test]
fn a_failed_core_search_falls_back_and_clears_the_flag() {
    let mut stale = TWO_LLCS
        .situation(V6_5, 1)
        .idle(&[10])
        .call(|c| c.has_idle_cores[0] = true);
    let decision = stale.decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(10), Reason::IdleCoreFallback)
    );
    assert!(decision.searched.cleared_idle_cores);
    assert_eq!(decision.searched.scanned, 4, "each core once");
    let mut nothing = TWO_LLCS
        .situation(V6_5, 1)
        .call(|call| call.has_idle_cores[0] = true);
    let decision = nothing.decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(1), Reason::NoIdleCpu)
    );
    assert!(decision.searched.cleared_idle_cores && !decision.searched.success);
}

#[test]
fn sis_util_limits_the_scan_and_forbids_it_at_zero() {
    // From target 1 the order is 2, 3, 8, 9, 10, 11, 0, 1; CPU 11 is the sixth.
    let with = |scan: i32| {
        TWO_LLCS
            .situation(V6_5, 1)
            .idle(&[11])
            .call(move |c| c.nr_idle_scan[0] = scan)
    };
    let found = with(6).decide();
    assert_eq!(
        (found.cpu, found.reason, found.searched.scanned),
        (CpuId(11), Reason::LlcScan, 6)
    );
    let limited = with(5).decide();
    assert_eq!((limited.cpu, limited.reason), (CpuId(1), Reason::ScanLimit));
    assert_eq!(
        (limited.searched.scanned, limited.searched.limit_hit),
        (5, true)
    );
    assert!(!limited.searched.fast && !limited.searched.success);
    // At zero not even a wholly idle core is looked for, and the flag stays.
    let mut none = with(0)
        .idle(&[2, 10])
        .call(|call| call.has_idle_cores[0] = true);
    let decision = none.decide();
    assert_eq!(
        (decision.reason, decision.searched.scanned),
        (Reason::ScanLimit, 0)
    );
    assert!(!decision.searched.cleared_idle_cores);
    let free = with(0).feature(Feat::SIS_UTIL, false).decide();
    assert_eq!(free.reason, Reason::LlcScan);
}

#[test]
fn a_cluster_is_scanned_first_from_the_release_on_that_does() {
    // Target 2 in cluster {2,3}; 3 is busy in one case, idle in the other.
    let in_cluster = |release, idle: &[usize]| CLUSTERS.situation(release, 2).idle(idle).decide();
    let first = in_cluster(V6_12, &[3, 4]);
    assert_eq!((first.cpu, first.reason), (CpuId(3), Reason::ClusterScan));
    let rest = in_cluster(V6_12, &[1]);
    assert_eq!(
        (rest.cpu, rest.reason, rest.searched.scanned),
        (CpuId(1), Reason::LlcScan, 2 + 6)
    );
    // CPU 2 itself is the last of its cluster, so a limit of 2 is used up before CPU 4.
    let limited = CLUSTERS
        .situation(V6_12, 2)
        .idle(&[4])
        .call(|c| c.nr_idle_scan[0] = 2)
        .decide();
    assert_eq!(
        (limited.reason, limited.searched.scanned),
        (Reason::ScanLimit, 2)
    );
    let plain = CLUSTERS.situation(V6_5, 2).idle(&[1]).decide();
    assert_eq!((plain.cpu, plain.searched.scanned), (CpuId(1), 7));
}

#[test]
fn without_cluster_scan_clusters_count_as_little_as_before_6_7() {
    for idle in [&[1][..], &[4], &[3, 4], &[]] {
        for sync in [0, wf::SYNC] {
            let decide = |release| {
                let situation = CLUSTERS.situation(release, 4).idle(idle);
                let situation = situation.feature(Feat::CLUSTER_SCAN, false);
                situation.call(|call| call.wake_flags |= sync).decide()
            };
            let (off, before) = (decide(V6_12), decide(V6_5));
            assert_eq!(
                (off.cpu, off.reason),
                (before.cpu, before.reason),
                "{idle:?}"
            );
        }
    }
}

#[test]
fn an_idle_prev_of_another_cluster_is_kept_for_the_case_that_nothing_is_found() {
    let sync = |release| {
        let situation = CLUSTERS.situation(release, 4).idle(&[4]);
        let situation = situation.call(|call| {
            call.wake_flags |= wf::SYNC;
            // With no CPU but the target's cluster to search, the search finds nothing.
            call.nr_idle_scan[0] = 2;
        });
        { situation }.decide()
    };
    let kept = sync(V6_12);
    assert_eq!((kept.cpu, kept.reason), (CpuId(4), Reason::ClusterPrev));
    assert_eq!(kept.sis, Some(SisPath::PrevCluster));
    assert_eq!(sync(V6_5).reason, Reason::PrevIdle);
}

#[test]
fn cookies_bind_the_limited_scan_but_not_the_idle_core_search() {
    let cookies = |idle_cores: bool| {
        let situation = TWO_LLCS.situation(V6_12, 1).idle(&[2, 10]);
        let situation = situation.call(|call| {
            call.has_idle_cores[0] = idle_cores;
            call.cookies = Some(Cookies {
                task: 7,
                core: vec![0; 16],
            });
        });
        { situation }.decide().reason
    };
    assert_eq!(cookies(true), Reason::IdleCore);
    assert_eq!(
        cookies(false),
        Reason::NoIdleCpu,
        "an idle core's cookie is 0"
    );
}

#[test]
fn sis_cookie_accepts_a_wholly_idle_core_at_the_target() {
    let decide = |idle: &[usize]| {
        let situation = TWO_LLCS
            .situation(V6_12, 1)
            .idle(idle)
            .feature(Feat::SIS_COOKIE, true);
        let cookies = Cookies {
            task: 7,
            core: vec![0; 16],
        };
        { situation }
            .call(|call| call.cookies = Some(cookies))
            .decide()
            .reason
    };
    assert_eq!(decide(&[1, 9]), Reason::TargetIdle);
    assert_eq!(decide(&[1]), Reason::NoIdleCpu);
}

/// What SIS_COOKIE asks of a single CPU and of an SMT sibling when the task has cookie 7, CPU 1's core
/// has the cookie given, and the CPUs given are idle (9 is CPU 1's sibling).
fn beside_cookie(core_cookie: u64, idle: &[usize], sis_cookie: bool) -> Reason {
    let mut core = vec![0; 16];
    (core[1], core[9]) = (core_cookie, core_cookie);
    let situation = TWO_LLCS.situation(V6_12, 1).idle(idle);
    { situation.feature(Feat::SIS_COOKIE, sis_cookie) }
        .call(|call| call.cookies = Some(Cookies { task: 7, core }))
        .decide()
        .reason
}

#[test]
fn sis_cookie_asks_for_the_cores_cookie_at_the_sibling_and_the_single_cpu() {
    for (core_cookie, off, on) in [
        (7, Reason::TargetIdle, Reason::TargetIdle),
        (5, Reason::TargetIdle, Reason::NoIdleCpu),
    ] {
        assert_eq!(beside_cookie(core_cookie, &[1], false), off);
        assert_eq!(beside_cookie(core_cookie, &[1], true), on);
    }
    for (core_cookie, off, on) in [
        (7, Reason::SmtSibling, Reason::SmtSibling),
        (5, Reason::SmtSibling, Reason::NoIdleCpu),
    ] {
        assert_eq!(beside_cookie(core_cookie, &[9], false), off);
        assert_eq!(beside_cookie(core_cookie, &[9], true), on);
    }
}

#[test]
fn the_waker_may_ask_for_its_own_cpu() {
    let mut current = TWO_LLCS.situation(V6_12, 1).idle(&[1]);
    current.call.wake_flags |= wf::CURRENT_CPU;
    assert_eq!(
        (current.decide().cpu, current.decide().reason),
        (CpuId(0), Reason::CurrentCpu)
    );
    current.call.allowed = CpuMask::from_u64(0b10);
    assert_eq!(current.decide().reason, Reason::TargetIdle);
}

#[test]
fn sis_prop_looks_at_three_cpus_at_least() {
    // A recorded view has no idle time, so the smallest number holds.
    let decide = |cpu| {
        let situation = TWO_LLCS
            .situation(V6_5, 1)
            .idle(&[cpu])
            .feature(Feat::SIS_PROP, true);
        situation.feature(Feat::SIS_UTIL, false).decide()
    };
    assert_eq!(decide(8).cpu, CpuId(8));
    assert_eq!(
        (decide(10).reason, decide(10).searched.scanned),
        (Reason::ScanLimit, 3)
    );
}
