//! The search before 5.12 against the kernel's loops, written plainly, and its rules one by one.

use super::fixture::{Shape, Situation, TWO_LLCS};
use crate::features::Feat;
use crate::placement::turns::sis_prop_limit;
use crate::placement::view::View;
use crate::placement::{Decision, Reason};
use crate::rules::Release::{self, V5_2};
use proptest::prelude::*;
use wakelab_machine::{CpuId, CpuMask};

/// 5.2 with all CPUs busy but some, where the task was last on `prev`.
fn on_5_2(prev: usize, idle: &[usize]) -> Situation {
    TWO_LLCS
        .situation(V5_2, prev)
        .idle(idle)
        .feature(Feat::WA_WEIGHT, false)
}

fn cores(mut situation: Situation) -> Situation {
    situation.call.has_idle_cores.fill(true);
    situation
}

fn decided(mut situation: Situation) -> (usize, Reason) {
    let decision = situation.decide();
    (decision.cpu.index(), decision.reason)
}

#[test]
fn an_idle_core_comes_first_then_an_idle_cpu_then_a_sibling() {
    // Cores {1,9} {2,10} {3,11} {0,8}; the target is CPU 1.
    let idle = [9, 2, 10];
    assert_eq!(decided(cores(on_5_2(1, &idle))), (2, Reason::IdleCore));
    assert_eq!(decided(on_5_2(1, &idle)), (2, Reason::LlcScan));
    // The scan of at most 3 CPUs ends before 9, the sibling search has no limit.
    assert_eq!(decided(on_5_2(1, &[9])), (9, Reason::SmtSibling));
    assert_eq!(decided(on_5_2(1, &[8])), (1, Reason::ScanLimit));
    let all = on_5_2(1, &[8]).feature(Feat::SIS_PROP, false);
    assert_eq!(decided(all), (8, Reason::LlcScan));
    assert_eq!(
        decided(on_5_2(1, &[]).feature(Feat::SIS_PROP, false)),
        (1, Reason::NoIdleCpu)
    );
}

#[test]
fn without_sis_core_idle_cores_are_not_looked_for() {
    let idle = [2, 3, 11];
    let on = cores(on_5_2(1, &idle));
    assert_eq!(decided(on), (3, Reason::IdleCore));
    let off = cores(on_5_2(1, &idle)).feature(Feat::SIS_CORE, false);
    assert_eq!(decided(off), (2, Reason::LlcScan));
}

#[test]
fn a_failed_core_search_has_no_fallback_and_clears_the_flag() {
    let mut situation = cores(on_5_2(1, &[10]));
    let decision = situation.decide();
    assert!(decision.searched.cleared_idle_cores);
    // Four cores and three CPUs were looked at: 1, 2, 3.
    assert_eq!(decision.searched.scanned, 7);
    assert_eq!(
        (decision.cpu.index(), decision.reason),
        (1, Reason::ScanLimit)
    );
}

#[test]
fn sis_avg_cpu_gives_up_at_once_if_searches_take_longer_than_idling() {
    // Nothing was recorded of either: no idle time, and a cost of 1 at the least.
    let situation = on_5_2(1, &[2, 9]).feature(Feat::SIS_AVG_CPU, true);
    assert_eq!(decided(situation), (9, Reason::SmtSibling));
}

#[test]
fn sis_prop_looks_at_what_fits_the_idle_time_and_at_3_at_the_least() {
    assert_eq!(sis_prop_limit(112, 0, 1), 3);
    assert_eq!(sis_prop_limit(112, 100, 2800), 3, "exactly 4");
    assert_eq!(sis_prop_limit(112, 100, 2240), 4, "exactly 5");
    assert_eq!(sis_prop_limit(112, 1000, 1000), 111);
    assert_eq!(sis_prop_limit(1, u64::MAX, 1), u32::MAX);
}

#[test]
fn cpus_with_sched_idle_tasks_are_busy_and_cpus_of_others_count_in_the_scan() {
    let busy = on_5_2(1, &[]).call(|call| {
        call.sched_idle = CpuMask::first_n(16);
        call.nr_running.fill(1);
    });
    assert_eq!(decided(busy), (1, Reason::ScanLimit));
    let pinned = on_5_2(1, &[8]).call(|call| {
        // 2, 3 and 9 to 11 may not be used.
        call.allowed = [0, 1, 8].map(CpuId).into_iter().collect();
    });
    assert_eq!(
        decided(pinned),
        (1, Reason::ScanLimit),
        "1, 2 and 3 were looked at"
    );
}

#[test]
fn the_recent_cpu_stays_unless_taken_and_the_previous_is_not_looked_at_for_itself() {
    let recent = |idle: &[usize]| on_5_2(1, idle).call(|call| call.recent_used_cpu = CpuId(3));
    let mut taken = recent(&[3]);
    assert_eq!(taken.decide().reason, Reason::RecentIdle);
    assert_eq!(taken.recent_after, CpuId(1));
    let mut kept = recent(&[]);
    kept.decide();
    assert_eq!(kept.recent_after, CpuId(3));
    // The waker's CPU is busy; an idle previous CPU of another LLC decides nothing in wake_affine.
    let weight = |release: Release| {
        let mut situation = TWO_LLCS.situation(release, 4).idle(&[4]).call(|call| {
            call.load = vec![0; 16];
            call.task_h_load = 0;
            call.load[4] = 10;
        });
        situation.decide().cpu
    };
    assert_eq!(weight(Release::V5_19), CpuId(4));
    assert_eq!(
        weight(V5_2).index() % 8 / 4,
        0,
        "to the waking CPU's LLC by load"
    );
}

/// `select_idle_sibling` of 5.2 from the search on, as loops.
fn plain(situation: &Situation, target: CpuId, sis_core: bool, limit: u32) -> Option<CpuId> {
    let v = situation.view();
    let span = v.topo().cpus[target.index()].llc_span;
    let (llc, allowed) = (v.topo().cpus[target.index()].llc, situation.call.allowed);
    if v.topo().smt_active && sis_core && v.has_idle_cores(llc) {
        let mut left = span.and(&allowed);
        for core in span.and(&allowed).iter_wrap(target.index()) {
            let smt = v.topo().cpus[core.index()].smt;
            if left.contains(core) && smt.iter().all(|cpu| v.idle_cpu(cpu)) {
                return Some(core);
            }
            left = left.and_not(&smt);
        }
    }
    for (seen, cpu) in span.iter_wrap(target.index()).enumerate() {
        if seen as u32 == limit {
            break;
        }
        if allowed.contains(cpu) && v.idle_cpu(cpu) {
            return Some(cpu);
        }
    }
    let smt = &v.topo().cpus[target.index()].smt;
    smt.iter()
        .find(|&cpu| v.topo().smt_active && allowed.contains(cpu) && v.idle_cpu(cpu))
}

fn bits(seed: u64, ncpu: usize) -> CpuMask {
    (0..ncpu)
        .filter(|&cpu| seed >> (cpu % 64) & 1 != 0)
        .map(CpuId::from_index)
        .collect()
}

proptest! {
    #[test]
    fn the_searches_in_turn_end_as_the_loops_do(
        cores in 1usize..=8,
        threads in prop_oneof![Just(1usize), Just(2), Just(4)],
        consecutive in any::<bool>(),
        prev in any::<prop::sample::Index>(),
        idle in (any::<u64>(), any::<u64>()),
        allowed in any::<u64>(),
        flags in any::<(bool, bool, bool)>(),
    ) {
        let shape = Shape { llcs: 1, cores, threads, consecutive, cluster: 0 };
        prop_assume!(shape.ncpu() > 1);
        let prev = prev.index(shape.ncpu());
        let (sis_core, sis_prop, has_cores) = flags;
        let target = CpuId::from_index(prev);
        let mut situation = shape
            .situation(V5_2, prev)
            .feature(Feat::SIS_CORE, sis_core)
            .feature(Feat::SIS_PROP, sis_prop)
            .feature(Feat::WA_WEIGHT, false)
            .call(|call| {
                call.idle = bits(idle.0 & idle.1, shape.ncpu());
                call.idle.clear(target);
                call.idle.clear(CpuId(0));
                call.allowed = bits(allowed, shape.ncpu());
                call.has_idle_cores.fill(has_cores);
            });
        let limit = if sis_prop { 3 } else { u32::MAX };
        let expected = plain(&situation, target, sis_core, limit).unwrap_or(target);
        let decision: Decision = situation.decide();
        prop_assert_eq!(decision.cpu, expected);
    }
}
