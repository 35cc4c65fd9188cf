//! The searches by mask against the kernel's loops, written plainly.

use super::fixture::Shape;
use crate::placement::search::{CoreScan, CpuScan, Part, Space, scan_cores, scan_cpus};
use crate::placement::view::{View, cpu_cookie_match};
use crate::placement::{Cookies, Recorded};
use crate::rules::Release;
use proptest::prelude::*;
use wakelab_machine::{CpuId, CpuMask, LlcId};

fn idle_enough(v: &impl View, cpu: CpuId) -> bool {
    v.idle_cpu(cpu) || v.sched_idle_cpu(cpu)
}

/// One CPU after the other.
fn loop_over_cpus(v: &impl View, cpus: &CpuMask, target: CpuId, limit: u32) -> CpuScan {
    let mut visited = 0;
    for cpu in cpus.iter_wrap(target.index() + 1) {
        if visited == limit {
            return CpuScan {
                found: None,
                visited,
                limited: true,
            };
        }
        visited += 1;
        if idle_enough(v, cpu) && cpu_cookie_match(v, cpu) {
            return CpuScan {
                found: Some(cpu),
                visited,
                limited: false,
            };
        }
    }
    CpuScan {
        found: None,
        visited,
        limited: false,
    }
}

/// One core after the other; a rejected core's CPUs leave the set, and the first idle CPU is kept.
fn loop_over_cores(v: &impl View, cpus: &CpuMask, target: CpuId) -> CoreScan {
    let mut left = *cpus;
    let mut fallback = None;
    let mut visited = 0;
    for cpu in cpus.iter_wrap(target.index() + 1) {
        if !left.contains(cpu) {
            continue;
        }
        visited += 1;
        let smt = v.topo().cpus[cpu.index()].smt;
        let mut whole = true;
        for sibling in smt.iter() {
            if !v.idle_cpu(sibling) {
                whole = false;
                if fallback.is_some() {
                    break;
                }
                if v.sched_idle_cpu(sibling) && left.contains(sibling) {
                    fallback = Some(sibling);
                    break;
                }
                continue;
            }
            if fallback.is_none() && left.contains(sibling) {
                fallback = Some(sibling);
            }
        }
        if whole {
            return CoreScan {
                found: Some(cpu),
                fallback: None,
                visited,
            };
        }
        left = left.and_not(&smt);
    }
    CoreScan {
        found: None,
        fallback,
        visited,
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let sizes = prop_oneof![
        12 => (1usize..=3, 1usize..=12),
        2 => (1usize..=2, 17usize..=40),
        1 => Just((1, 128)),
    ];
    (
        sizes,
        prop_oneof![Just(1usize), Just(2), Just(4)],
        any::<bool>(),
        0usize..=4,
    )
        .prop_map(|((llcs, cores), threads, consecutive, cluster)| {
            let cluster = if cluster > 1 && cores % cluster == 0 {
                cluster
            } else {
                0
            };
            Shape {
                llcs,
                cores,
                threads,
                consecutive,
                cluster,
            }
        })
}

/// A set in which each CPU is with probability of so many in 16.
fn some_of(seed: u64, ncpu: usize, sixteenths: u64) -> CpuMask {
    let mut state = seed | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 16
    };
    (0..ncpu)
        .filter(|_| draw() < sixteenths)
        .map(CpuId::from_index)
        .collect()
}

fn part_mask(v: &Recorded<'_>, space: &Space) -> CpuMask {
    let llc = v.ranks().llc(space.llc);
    let ranks = |mask: &CpuMask| mask.iter().map(|rank| llc.cpus[rank.index()]).collect();
    let all: CpuMask = llc.cpus.iter().copied().collect();
    match space.part {
        Part::Whole | Part::Span => all,
        Part::Cluster(rank) => ranks(&llc.cluster[rank]),
        Part::Rest(rank) => all.and_not(&ranks(&llc.cluster[rank])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn searches_by_mask_end_as_the_loops_do(
        shape in shapes(),
        target in any::<prop::sample::Index>(),
        seeds in any::<[u64; 4]>(),
        shares in (0u64..=16, 0u64..=4, 4u64..=16),
        limit in prop_oneof![Just(u32::MAX), 1u32..40],
        cookie in 0u64..3,
        part in 0u8..3,
    ) {
        let ncpu = shape.ncpu();
        let idle = some_of(seeds[0], ncpu, shares.0);
        let sched_idle = some_of(seeds[1], ncpu, shares.1).and_not(&idle);
        let allowed = some_of(seeds[2], ncpu, shares.2);
        let core = (0..ncpu as u64).map(|cpu| (seeds[3] >> (cpu % 60)) % 3).collect();
        let situation = shape.situation(Release::V6_12, 0).call(|call| {
            call.idle = idle;
            call.sched_idle = sched_idle;
            call.allowed = allowed;
            call.cookies = (cookie > 0).then_some(Cookies { task: cookie, core });
        });
        let v = situation.view();
        let target = CpuId::from_index(target.index(ncpu));
        let rank = v.ranks().rank(target);
        let llc: LlcId = v.topo().cpus[target.index()].llc;
        let part = match part {
            1 if !v.ranks().llc(llc).cluster.is_empty() => Part::Cluster(rank),
            2 if !v.ranks().llc(llc).cluster.is_empty() => Part::Rest(rank),
            _ => Part::Whole,
        };
        let space = Space { llc, start: rank + 1, part };
        let cpus = part_mask(&v, &space).and(&allowed);
        prop_assert_eq!(scan_cpus(&v, space, limit), loop_over_cpus(&v, &cpus, target, limit));
        prop_assert_eq!(scan_cores(&v, space), loop_over_cores(&v, &cpus, target));
    }
}

#[test]
fn an_idle_core_search_falls_back_to_the_lowest_idle_cpu_of_the_first_core_met() {
    // One LLC, cores {0,4} {1,5} {2,6} {3,7}; the search from target 0 comes to core 1 first, whose
    // idle CPU has a higher number than the idle CPU of core 2.
    let shape = Shape {
        llcs: 1,
        cores: 4,
        threads: 2,
        consecutive: false,
        cluster: 0,
    };
    let situation = shape.situation(Release::V6_5, 0).idle(&[2, 5]);
    let space = Space {
        llc: LlcId(0),
        start: 1,
        part: Part::Whole,
    };
    let scan = scan_cores(&situation.view(), space);
    assert_eq!(
        scan,
        CoreScan {
            found: None,
            fallback: Some(CpuId(5)),
            visited: 4
        }
    );
}

#[test]
fn the_limit_counts_cpus_that_are_looked_at() {
    let shape = Shape {
        llcs: 1,
        cores: 8,
        threads: 1,
        consecutive: true,
        cluster: 0,
    };
    let situation = shape.situation(Release::V6_5, 0).idle(&[5]);
    let space = Space {
        llc: LlcId(0),
        start: 3,
        part: Part::Whole,
    };
    let scan = |limit| scan_cpus(&situation.view(), space, limit);
    assert_eq!(
        scan(2),
        CpuScan {
            found: None,
            visited: 2,
            limited: true
        }
    );
    assert_eq!(
        scan(3),
        CpuScan {
            found: Some(CpuId(5)),
            visited: 3,
            limited: false
        }
    );
}
