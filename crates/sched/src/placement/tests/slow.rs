//! The slow path's documented rules.

use super::fixture::{Shape, Situation, TWO_LLCS};
use crate::placement::{Reason, wf};
use crate::rules::Release::V6_5;
use crate::state::GroupCapacity;
use wakelab_machine::{CpuId, CpuMask};

fn fork(shape: Shape) -> Situation {
    shape
        .situation(V6_5, 0)
        .call(|call| call.wake_flags = wf::FORK)
}

/// Two nodes of eight single-thread cores: two of them busy may stay without care.
const NODES: Shape = Shape {
    llcs: 2,
    cores: 8,
    threads: 1,
    consecutive: true,
    cluster: 0,
};

#[test]
fn a_new_task_goes_to_the_node_with_more_idle_cpus() {
    let decision = fork(TWO_LLCS).idle(&[1, 4, 5, 6, 12]).decide();
    assert_eq!(decision.reason, Reason::SlowPath);
    assert!(
        TWO_LLCS.topology().llcs[1].contains(decision.cpu),
        "{}",
        decision.cpu
    );
}

#[test]
fn few_tasks_stay_on_their_node() {
    // One task runs on node 0, none on node 1: imb_numa_nr is 2, the imbalance 1.
    let situation = fork(NODES)
        .idle(&[1, 2, 3, 4, 5, 6, 7])
        .idle(&[8, 9, 10, 11, 12, 13, 14, 15]);
    let mut situation = situation.call(|call| {
        call.util_without = vec![0; 16];
        call.runnable_without = vec![0; 16];
        call.idle_stamp = vec![1; 16];
    });
    assert!(situation.decide().cpu.index() < 8);
    // Two more tasks on node 0 are over what is let be.
    for cpu in [1, 2] {
        situation.call.idle.clear(CpuId(cpu));
        situation.call.curr_idle.clear(CpuId(cpu));
        situation.call.nr_running[usize::from(cpu)] = 1;
    }
    assert!(situation.decide().cpu.index() >= 8);
}

#[test]
fn of_idle_cpus_the_shallowest_and_then_the_latest_is_taken() {
    // One LLC of four single CPUs; the domain's groups are single CPUs, so give it cores of two.
    let shape = Shape {
        llcs: 1,
        cores: 2,
        threads: 4,
        consecutive: true,
        cluster: 0,
    };
    let group = |stamps: [u64; 4], latencies: [Option<u32>; 4]| {
        let mut situation = fork(shape).idle(&[4, 5, 6, 7]).call(|call| {
            call.idle_stamp = [vec![0; 4], stamps.to_vec()].concat();
            call.exit_latency = [vec![None; 4], latencies.to_vec()].concat();
            // Let the last step, among the siblings of the CPU chosen, change nothing.
            call.util_without = vec![0; 8];
        });
        situation.decide().cpu
    };
    assert_eq!(group([10, 40, 30, 20], [None; 4]), CpuId(5));
    assert_eq!(
        group([10, 40, 30, 20], [Some(9), Some(9), Some(2), Some(9)]),
        CpuId(6)
    );
    assert_eq!(
        group([10, 20, 30, 40], [Some(2), Some(9), Some(2), Some(9)]),
        CpuId(6)
    );
}

#[test]
fn without_an_idle_cpu_the_least_load_decides() {
    let mut situation = fork(TWO_LLCS).call(|call| {
        call.load = (0..16).map(|cpu| 2000 - 10 * cpu).collect();
        call.load_without = vec![4000; 16];
        for cpu in [4, 5, 6, 7, 12, 13, 14, 15] {
            call.load_without[cpu] = 100;
        }
        call.nr_running = vec![2; 16];
        call.util_without = vec![1024; 16];
        call.runnable_without = vec![2048; 16];
    });
    // Node 1 is less loaded; there CPU 15 has the least load.
    assert_eq!(situation.decide().cpu, CpuId(15));
}

#[test]
fn an_idle_cpu_without_a_stamp_is_passed_over_for_the_deciding_one() {
    // Every allowed CPU is idle, none has a stamp: the search keeps its first answer.
    let mut situation = fork(NODES).idle(&(0..16).collect::<Vec<_>>());
    situation.call.allowed = CpuMask::from_cpulist("8-15").unwrap();
    assert_eq!(situation.decide().cpu, CpuId(0));
}

#[test]
fn a_task_that_may_not_run_in_the_domain_stays() {
    let mut situation = fork(TWO_LLCS).call(|call| {
        call.allowed = CpuMask::EMPTY;
        call.prev_cpu = CpuId(7);
    });
    assert_eq!(situation.decide().cpu, CpuId(7));
}

#[test]
fn affinity_leaves_only_the_groups_that_hold_it() {
    let mut situation = fork(TWO_LLCS).idle(&[0, 1, 2, 3, 5]).call(|call| {
        call.allowed = CpuMask::from_cpulist("5,13").unwrap();
    });
    assert_eq!(situation.decide().cpu, CpuId(5));
}

#[test]
fn a_machine_of_one_cpu_has_no_domain_to_balance_in() {
    let shape = Shape {
        llcs: 1,
        cores: 1,
        threads: 1,
        consecutive: true,
        cluster: 0,
    };
    let decision = fork(shape).decide();
    assert_eq!(
        (decision.cpu, decision.reason),
        (CpuId(0), Reason::NoDomain)
    );
    let wakeup = shape.situation(V6_5, 0).decide();
    assert_eq!((wakeup.cpu, wakeup.reason), (CpuId(0), Reason::NoLlc));
}

#[test]
fn an_imbalanced_group_is_not_chosen_over_one_with_room() {
    // Both nodes have room by their numbers; node 1 was marked by balancing.
    let mut situation = fork(TWO_LLCS).idle(&[1, 4, 5, 6, 12]);
    let decide = |situation: &mut Situation, imbalance| {
        let top = situation.machine.topo.domains[0]
            .last()
            .unwrap()
            .groups
            .clone();
        let record = GroupCapacity {
            capacity: 8192,
            imbalance,
            ..Default::default()
        };
        situation.call.groups = vec![(top[1], record)];
        situation.decide().cpu
    };
    let node1 = TWO_LLCS.topology().llcs[1];
    assert!(node1.contains(decide(&mut situation, false)));
    assert!(!node1.contains(decide(&mut situation, true)));
}

#[test]
fn exec_discounts_the_task_itself() {
    // The task is alone on its CPU: without it that CPU is idle, and so its group the idlest.
    let mut situation = fork(NODES).call(|call| {
        call.wake_flags = wf::EXEC;
        call.task_running_on = Some(CpuId(0));
        call.task_current_on = Some(CpuId(0));
        call.util_without[0] = 0;
        call.runnable_without[0] = 0;
    });
    assert_eq!(situation.decide().cpu, CpuId(0));
    // With its own queue counted, a CPU that is really idle is better.
    situation.call.task_running_on = None;
    let mut situation = situation.idle(&[3]);
    situation.call.idle_stamp = vec![1; 16];
    assert_eq!(situation.decide().cpu, CpuId(3));
}

#[test]
fn a_new_task_stays_on_its_node_unless_another_is_lighter_by_more_than_the_imbalance() {
    // All overloaded. Node 1 has 500; 1024 * 17 % = 174 are added to it before the comparison.
    let node_of = |own: u64| {
        let mut situation = fork(NODES).call(|call| {
            call.nr_running = vec![2; 16];
            call.util_without = vec![1024; 16];
            call.runnable_without = vec![2048; 16];
            call.load_without = [vec![own; 8], vec![500; 8]].concat();
        });
        situation.decide().cpu.index() / 8
    };
    assert_eq!(node_of(674), 0);
    assert_eq!(node_of(675), 1);
}
