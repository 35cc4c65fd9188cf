//! Load balancing from the kernel's documented rules, on the state that the simulator runs.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::balance::scan::nr_idle_scan;
use wakelab_sched::balance::{CpuIdle, kick};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::fair::flags::DEQUEUE_SLEEP;
use wakelab_sched::state::{MoveCounts, Mover, Policy};
use wakelab_sched::{
    Cookie, Features, Line, Release, Rules, Sched, TaskId, TgId, Touch, Touches, Tunables,
};

const SECOND: u64 = 1_000_000_000;
const TICK: u64 = 4_000_000;

fn sched(preset: &str) -> Sched {
    let machine = Machine::preset(preset).unwrap();
    let topo = Arc::new(SchedTopology::build(&machine, &DomainRules::v6_5()));
    let tun = Tunables::for_machine(machine.ncpu(), 250);
    Sched::new(
        topo,
        Rules::of(Release::V6_5),
        Features::defaults(Release::V6_5),
        tun,
    )
}

/// 4 cores, SMT2, siblings N and N + 4, one LLC.
fn smt2_8() -> Sched {
    let sched = sched("smt2-8");
    assert_eq!(
        sched.topo.cpus[0].smt,
        CpuMask::from_cpulist("0,4").unwrap()
    );
    sched
}

fn spawn_on(sched: &mut Sched, cpu: CpuId, cpus: CpuMask, now: u64) -> TaskId {
    sched.update_rq_clock(cpu, Ns(now));
    let spec = TaskSpec {
        tg: TgId::ROOT,
        mm: 1,
        policy: Policy::Normal,
        nice: 0,
        cpus,
        cpu,
        kthread: false,
        cookie: Cookie::NONE,
    };
    let p = sched.new_task(&spec);
    sched.wake_up_new_task(p, cpu);
    p
}

fn spawn(sched: &mut Sched, cpu: u16, now: u64) -> TaskId {
    let all = CpuMask::first_n(sched.ncpu());
    let p = spawn_on(sched, CpuId(cpu), all, now);
    if sched.rq(CpuId(cpu)).curr.is_none() {
        sched.switch_task(CpuId(cpu));
    }
    p
}

/// Whatever was touched takes 1 us a piece.
fn price(touches: &mut Touches) -> u64 {
    let pieces = touches.list.len() as u64 + u64::from(touches.stats_read);
    touches.clear();
    pieces * 1000
}

fn newidle(sched: &mut Sched, cpu: u16, now: u64) -> i32 {
    sched.update_rq_clock(CpuId(cpu), Ns(now));
    sched.newidle_balance(CpuId(cpu), Ns(now), price)
}

fn cpu_of(sched: &Sched, p: TaskId) -> u16 {
    sched.tasks[p.index()].cpu.0
}

#[test]
fn a_newly_idle_cpu_pulls_a_waiting_task() {
    let mut sched = smt2_8();
    let running = spawn(&mut sched, 0, SECOND);
    let waiting = spawn(&mut sched, 0, SECOND);
    assert_eq!(newidle(&mut sched, 1, SECOND), 1);
    assert_eq!((cpu_of(&sched, running), cpu_of(&sched, waiting)), (0, 1));
    assert_eq!(sched.rq(CpuId(1)).idle_stamp, 0, "it is not idle after all");
    assert_eq!(sched.lb.arrivals, [CpuId(1)]);
    assert!(sched.rq(CpuId(1)).need_resched);
    assert_eq!(sched.lb.stats.pulled(CpuIdle::NewlyIdle), 1);
}

#[test]
fn a_newly_idle_cpu_takes_one_task_of_many() {
    let mut sched = smt2_8();
    let tasks: Vec<_> = (0..8).map(|_| spawn(&mut sched, 0, SECOND)).collect();
    assert_eq!(newidle(&mut sched, 1, SECOND), 1);
    // The one that was queued first, and not the running one.
    let moved: Vec<_> = tasks.iter().filter(|&&p| cpu_of(&sched, p) == 1).collect();
    assert_eq!(moved, [&tasks[1]]);
}

#[test]
fn nothing_is_looked_at_when_no_cpu_has_two_tasks() {
    let mut sched = smt2_8();
    spawn(&mut sched, 0, SECOND);
    sched.touch.clear();
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert_eq!(sched.touch.stats_read, 0);
    assert_eq!(sched.lb.stats.newidle_gated, 1);
    assert_eq!(sched.rq(CpuId(1)).idle_stamp, SECOND);
}

#[test]
fn a_balance_that_takes_longer_than_the_idle_time_is_left_out() {
    let mut sched = smt2_8();
    (0..3).for_each(|_| {
        spawn(&mut sched, 0, SECOND);
    });
    sched.sd[1][0].max_newidle_lb_cost = 10_000;
    sched.rqs[1].avg_idle = 9_999;
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert_eq!(sched.lb.stats.newidle_gated, 1);
    // Enough for the lowest domain, where nothing is to be had, and not for the next.
    sched.rqs[1].avg_idle = 10_000;
    sched.sd[1][1].max_newidle_lb_cost = 10_000;
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert_eq!(
        sched.lb.stats.passes[0][CpuIdle::NewlyIdle as usize].calls,
        1
    );
    assert_eq!(
        sched.lb.stats.passes[1][CpuIdle::NewlyIdle as usize].calls,
        0
    );
    sched.rqs[1].avg_idle = SECOND;
    assert_eq!(newidle(&mut sched, 1, SECOND), 1);
}

#[test]
fn the_cost_of_a_domain_is_its_largest_and_fades() {
    let mut sched = smt2_8();
    (0..3).for_each(|_| {
        spawn(&mut sched, 0, SECOND);
    });
    newidle(&mut sched, 1, SECOND);
    let cost = sched.sd[1][1].max_newidle_lb_cost;
    assert!(cost > 0);
    let jiffies = sched.sd[1][1].last_decay_max_lb_cost;
    assert_eq!(
        sched.rq(CpuId(1)).max_idle_balance_cost,
        500_000,
        "not below migration cost"
    );
    // More than a second later the periodic balance lets it fade.
    sched.update_rq_clock(CpuId(1), Ns(3 * SECOND));
    sched.scheduler_tick_balance(CpuId(1), Ns(3 * SECOND));
    sched.run_rebalance_domains(CpuId(1), Ns(3 * SECOND), price);
    assert_eq!(sched.sd[1][1].max_newidle_lb_cost, cost * 253 / 256);
    assert!(sched.sd[1][1].last_decay_max_lb_cost > jiffies);
}

#[test]
fn a_pending_wakeup_is_not_balanced_over() {
    let mut sched = smt2_8();
    (0..3).for_each(|_| {
        spawn(&mut sched, 0, SECOND);
    });
    sched.rqs[1].ttwu_pending = true;
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert_eq!(sched.lb.stats.newidle_calls, 0);
}

/// Makes the first of two tasks on CPU 0 wait, having run until `now`.
fn two_of_which_the_waiting_is_hot(sched: &mut Sched, now: u64) -> TaskId {
    let hot = spawn(sched, 0, now - 1_000_000);
    let other = spawn(sched, 0, now - 1_000_000);
    sched.update_rq_clock(CpuId(0), Ns(now));
    sched.tasks[other.index()].cpus = CpuMask::single(CpuId(0));
    sched.yield_task(CpuId(0));
    assert_eq!(sched.switch_task(CpuId(0)), other);
    hot
}

#[test]
fn a_cache_hot_task_stays_in_its_llc_and_goes_to_a_sibling() {
    let mut sched = smt2_8();
    let hot = two_of_which_the_waiting_is_hot(&mut sched, SECOND);
    assert_eq!(newidle(&mut sched, 1, SECOND + 1000), 0);
    assert_eq!(cpu_of(&sched, hot), 0);
    // A sibling shares the cache.
    assert_eq!(newidle(&mut sched, 4, SECOND + 1000), 1);
    assert_eq!(cpu_of(&sched, hot), 4);
}

#[test]
fn a_task_cools_down_in_half_a_millisecond() {
    for (later, pulled) in [(499_999, 0), (500_000, 1)] {
        let mut sched = smt2_8();
        two_of_which_the_waiting_is_hot(&mut sched, SECOND);
        assert_eq!(
            newidle(&mut sched, 1, SECOND + later),
            pulled,
            "after {later} ns"
        );
    }
}

#[test]
fn a_hot_task_moves_after_failures() {
    let mut sched = smt2_8();
    let tries = sched.topo.domains[1][1].cache_nice_tries;
    two_of_which_the_waiting_is_hot(&mut sched, SECOND);
    sched.sd[1][1].nr_balance_failed = tries;
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    sched.sd[1][1].nr_balance_failed = tries + 1;
    assert_eq!(newidle(&mut sched, 1, SECOND), 1);
}

#[test]
fn pinned_tasks_stay() {
    let mut sched = smt2_8();
    let here = CpuMask::from_cpulist("0,4").unwrap();
    spawn(&mut sched, 0, SECOND);
    let pinned = spawn_on(&mut sched, CpuId(0), here, SECOND);
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert_eq!(newidle(&mut sched, 4, SECOND), 1);
    assert_eq!(cpu_of(&sched, pinned), 4);
}

#[test]
fn a_look_through_many_pinned_tasks_ends() {
    let mut sched = smt2_8();
    let here = CpuMask::single(CpuId(0));
    for _ in 0..100 {
        spawn_on(&mut sched, CpuId(0), here, SECOND);
    }
    sched.switch_task(CpuId(0));
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    // The pass without the CPU whose tasks are all pinned saw no other with two.
    assert!(!sched.rd.overload);
    sched.rd.overload = true;
    // The first that may move is found behind the pinned ones.
    let free = spawn(&mut sched, 0, SECOND);
    assert_eq!(newidle(&mut sched, 1, SECOND), 1);
    assert_eq!(cpu_of(&sched, free), 1);
}

/// Ticks of an idle CPU until something is pending or `ticks` are over.
fn idle_ticks(sched: &mut Sched, cpu: u16, from: u64, ticks: u64) -> u64 {
    for tick in 0..ticks {
        let now = from + tick * TICK;
        (0..sched.ncpu()).for_each(|cpu| sched.update_rq_clock(CpuId(cpu as u16), Ns(now)));
        if sched.scheduler_tick_balance(CpuId(cpu), Ns(now)).rebalance {
            sched.run_rebalance_domains(CpuId(cpu), Ns(now), price);
        }
        if !sched.lb.pending_active.is_empty() {
            return now;
        }
    }
    from + ticks * TICK
}

#[test]
fn two_tasks_on_a_core_are_spread_by_an_active_balance_after_failures() {
    let mut sched = smt2_8();
    let tasks = [spawn(&mut sched, 0, SECOND), spawn(&mut sched, 4, SECOND)];
    let now = idle_ticks(&mut sched, 1, SECOND, 1000);
    let tries = sched.topo.domains[1][1].cache_nice_tries;
    assert_eq!(sched.sd[1][1].nr_balance_failed, tries + 3);
    let busiest = sched.lb.pending_active.pop().unwrap();
    assert_eq!(sched.rq(busiest).push_cpu, CpuId(1));
    assert!(sched.rq(busiest).active_balance);
    // Both have one cookie by now, which active balancing does not look at.
    for p in tasks {
        sched.set_cookie(p, Cookie(1));
    }
    // The stopper preempts the running task.
    let prev = sched.rq(busiest).curr;
    sched.put_prev_task(busiest, prev);
    sched.tasks[prev.index()].on_cpu = false;
    sched.rqs[busiest.index()].curr = TaskId::NONE;
    assert!(sched.active_load_balance(busiest, Ns(now)));
    assert!(!sched.rq(busiest).active_balance);
    assert_eq!(sched.sd[1][1].nr_balance_failed, 0);
    assert_eq!(cpu_of(&sched, prev), 1);
    assert_eq!(tasks.iter().filter(|&&p| cpu_of(&sched, p) == 1).count(), 1);
    let split = MoveCounts {
        split: 1,
        joined: 0,
    };
    assert_eq!(*sched.core.moves.of_mut(Some(Mover::Active)), split);
    // Nothing is left to push.
    assert!(!sched.active_load_balance(busiest, Ns(now)));
}

#[test]
fn one_task_a_core_is_balanced() {
    let mut sched = smt2_8();
    spawn(&mut sched, 0, SECOND);
    spawn(&mut sched, 2, SECOND);
    idle_ticks(&mut sched, 1, SECOND, 200);
    assert!(sched.lb.pending_active.is_empty());
    let stats = sched.lb.stats.passes[1][CpuIdle::Idle as usize];
    assert!(stats.calls > 0);
    assert_eq!(stats.calls, stats.balanced);
    // A balanced domain is looked at less and less often.
    assert_eq!(
        sched.sd[1][1].balance_interval,
        sched.topo.domains[1][1].max_interval
    );
}

#[test]
fn nr_idle_scan_falls_as_published() {
    // Commit 70fb5ccf2ebb: by the LLC's utilisation in percent.
    let percent = [0, 5, 15, 25, 35, 45, 55, 65, 75, 85, 86];
    for (weight, expected) in [
        (112, [112, 111, 108, 102, 93, 81, 65, 47, 25, 1, 0]),
        (16, [16, 15, 15, 14, 13, 11, 9, 6, 3, 0, 0]),
    ] {
        let scan = percent.map(|p| nr_idle_scan(p * u64::from(weight) * 1024 / 100, weight, 117));
        assert_eq!(scan, expected, "{weight} CPUs");
    }
}

#[test]
fn nr_idle_scan_is_written_by_the_periodic_balance_only() {
    let mut sched = smt2_8();
    (0..3).for_each(|_| {
        spawn(&mut sched, 0, SECOND);
    });
    assert_eq!(sched.llc[0].nr_idle_scan, 0);
    newidle(&mut sched, 1, SECOND);
    assert_eq!(sched.llc[0].nr_idle_scan, 0);
    idle_ticks(&mut sched, 2, SECOND + TICK, 20);
    assert!(sched.llc[0].nr_idle_scan > 0);
}

#[test]
fn idle_cpus_without_a_tick_are_counted_in_and_out() {
    let mut sched = smt2_8();
    sched.touch.clear();
    sched.nohz_balance_enter_idle(CpuId(3));
    sched.nohz_balance_enter_idle(CpuId(3));
    assert!(sched.nohz.idle_cpus.contains(CpuId(3)));
    assert_eq!((sched.nohz.nr_cpus, sched.llc[0].nr_busy_cpus), (1, 7));
    let llc = sched.topo.cpus[3].llc;
    let lines = [Line::NohzMask, Line::LlcShared(llc)];
    assert_eq!(sched.touch.list, lines.map(|line| Touch::of(line, true)));
    sched.nohz_balance_exit_idle(CpuId(3));
    sched.nohz_balance_exit_idle(CpuId(3));
    assert!(sched.nohz.idle_cpus.is_empty());
    assert_eq!((sched.nohz.nr_cpus, sched.llc[0].nr_busy_cpus), (0, 8));
}

#[test]
fn a_busy_tick_kicks_the_first_idle_cpu_which_balances_for_all() {
    let mut sched = smt2_8();
    for _ in 0..6 {
        spawn(&mut sched, 0, SECOND);
    }
    [1, 2, 3]
        .iter()
        .for_each(|&cpu| sched.nohz_balance_enter_idle(CpuId(cpu)));
    let now = Ns(SECOND + 10 * TICK);
    (0..8).for_each(|cpu| sched.update_rq_clock(CpuId(cpu), now));
    let tick = sched.scheduler_tick_balance(CpuId(0), now);
    let (target, flags) = tick.kick.unwrap();
    assert_eq!((target, flags), (CpuId(1), kick::MASK));
    // Kicked once is enough.
    assert_eq!(
        sched
            .scheduler_tick_balance(CpuId(0), Ns(now.0 + TICK))
            .kick,
        None
    );
    sched.run_rebalance_domains(target, now, price);
    assert_eq!(sched.lb.stats.nohz_runs, 1);
    let woken = |sched: &Sched| {
        [1, 2, 3]
            .iter()
            .filter(|&&cpu| sched.rq(CpuId(cpu)).nr_running > 0)
            .count()
    };
    assert!(
        woken(&sched) > 1,
        "idle CPUs other than the kicked one got tasks too"
    );
    assert!(
        sched
            .lb
            .arrivals
            .iter()
            .all(|&cpu| sched.rq(cpu).need_resched)
    );
}

#[test]
fn a_kick_that_finds_the_cpu_busy_does_nothing() {
    let mut sched = smt2_8();
    (0..4).for_each(|_| {
        spawn(&mut sched, 0, SECOND);
    });
    sched.nohz_balance_enter_idle(CpuId(1));
    let now = Ns(SECOND + 10 * TICK);
    let (target, _) = sched.scheduler_tick_balance(CpuId(0), now).kick.unwrap();
    spawn(&mut sched, target.0, now.0);
    sched.rqs[target.index()].next_balance = u64::MAX;
    sched.run_rebalance_domains(target, now, price);
    assert_eq!(sched.lb.stats.nohz_runs, 0);
    assert_eq!(sched.rq(CpuId(0)).nr_running, 4);
}

#[test]
fn nodes_may_differ_by_two_tasks_while_few_run() {
    // Two nodes of one LLC each, without SMT.
    let mut sched = sched("kunpeng-920");
    let top = sched.topo.domains[0].last().unwrap().clone();
    assert!(top.imb_numa_nr > 0);
    let far = (0..sched.ncpu())
        .find(|&cpu| sched.topo.cpus[cpu].node.0 == 1)
        .unwrap() as u16;
    spawn(&mut sched, 0, SECOND);
    spawn(&mut sched, 1, SECOND);
    idle_ticks(&mut sched, far, SECOND, 400);
    assert!(
        sched.lb.pending_active.is_empty(),
        "two against none across nodes is balanced"
    );
}

#[test]
fn balancing_a_serialized_domain_keeps_others_out_while_it_lasts() {
    let mut sched = sched("kunpeng-920");
    let level = sched.sd[0].len() - 1;
    let idle = |sched: &mut Sched, cpu: u16, now: u64, cost: u64| {
        sched.update_rq_clock(CpuId(cpu), Ns(now));
        sched.rqs[usize::from(cpu)].idle_balance = true;
        sched.run_rebalance_domains(CpuId(cpu), Ns(now), |touches: &mut Touches| {
            touches.clear();
            cost
        });
    };
    let calls = |sched: &Sched| sched.lb.stats.passes[level][CpuIdle::Idle as usize].calls;
    idle(&mut sched, 0, 60 * SECOND, 1000);
    assert_eq!(calls(&sched), 1);
    let other = sched.topo.nodes[1].first().unwrap().0;
    idle(&mut sched, other, 60 * SECOND + 500, 1000);
    assert_eq!(calls(&sched), 1, "the first pass still holds it");
    idle(&mut sched, other, 60 * SECOND + TICK, 1000);
    assert_eq!(calls(&sched), 2);
}

#[test]
fn a_sleeper_leaves_nothing_to_pull() {
    let mut sched = smt2_8();
    spawn(&mut sched, 0, SECOND);
    let second = spawn(&mut sched, 0, SECOND);
    sched.deactivate_task(CpuId(0), second, DEQUEUE_SLEEP);
    assert!(
        sched.rd.overload,
        "the flag is stale until the highest domain is balanced"
    );
    assert_eq!(newidle(&mut sched, 1, SECOND), 0);
    assert!(!sched.rd.overload);
}
