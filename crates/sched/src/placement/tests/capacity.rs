//! Machines whose CPUs differ in capacity.

use super::fixture::{Shape, Situation};
use crate::placement::{Reason, SisPath, wf};
use crate::rules::Release::V6_5;
use wakelab_machine::CpuId;
use wakelab_machine::domains::sd;

/// Four small CPUs and four big ones under one LLC; the task was on CPU 0 and has this utilisation.
fn big_little(util: u64) -> Situation {
    let shape = Shape {
        llcs: 1,
        cores: 8,
        threads: 1,
        consecutive: true,
        cluster: 0,
    };
    let mut situation = shape.situation(V6_5, 0).call(|call| {
        call.task_util_est = util;
        call.capacity = vec![400, 400, 400, 400, 1024, 1024, 1024, 1024];
    });
    let topo = &mut situation.machine.topo;
    topo.asym_cpucap = true;
    topo.cpus.iter_mut().for_each(|cpu| cpu.sd_asym = Some(0));
    for domain in topo.domains.iter_mut().flatten() {
        domain.flags |= sd::ASYM_CPUCAPACITY;
    }
    situation
}

#[test]
fn an_idle_target_must_fit_too() {
    // 1280 * 319 < 1024 * 400 holds, with 320 it does not.
    assert_eq!(
        big_little(319).idle(&[0, 6]).decide().reason,
        Reason::TargetIdle
    );
    let decision = big_little(320).idle(&[0, 6]).decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(6), Reason::IdleCapacity)
    );
    assert_eq!(decision.sis, Some(SisPath::Capacity));
    assert_eq!(
        decision.searched.scanned, 7,
        "from the target on, itself included"
    );
}

#[test]
fn where_it_fits_nowhere_the_most_capacity_wins_and_the_first_of_equals() {
    let mut situation = big_little(1000).idle(&[1, 2, 5, 6]);
    assert_eq!(situation.decide().cpu, CpuId(5));
    situation.call.allowed.clear(CpuId(5));
    situation.call.allowed.clear(CpuId(6));
    assert_eq!(situation.decide().cpu, CpuId(1));
}

#[test]
fn without_an_idle_cpu_the_target_stays() {
    let decision = big_little(1000).decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(0), Reason::NoIdleCpu)
    );
    assert!(!decision.searched.success);
}

#[test]
fn a_new_task_that_fits_nowhere_prefers_the_group_of_more_capacity() {
    // Groups are single CPUs here, all misfit; only CPU 5 has more capacity on record.
    let mut situation = big_little(1000).call(|call| call.wake_flags = wf::FORK);
    situation.call.nr_running = vec![0; 8];
    situation.call.util_without = vec![0; 8];
    situation.call.runnable_without = vec![0; 8];
    let groups = situation.machine.topo.domains[0][0].groups.clone();
    for group in groups {
        let first = situation.machine.topo.groups[group.index()].span.first();
        let max_capacity = if first == Some(CpuId(5)) { 1024 } else { 400 };
        let record = crate::state::GroupCapacity {
            capacity: 400,
            max_capacity,
            ..Default::default()
        };
        situation.call.groups.push((group, record));
    }
    assert_eq!(situation.decide().cpu, CpuId(5));
}
