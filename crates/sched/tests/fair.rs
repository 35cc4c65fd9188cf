//! The fair class by its documented rules: small scenes driven as the engine drives them.

#[path = "support/scene.rs"]
mod scene;
mod support;

use proptest::prelude::*;
use scene::{MS, Scene};
use wakelab_machine::CpuId;
use wakelab_sched::state::Policy;
use wakelab_sched::weight::scale_load_down;
use wakelab_sched::{Line, Release, SeId, TaskId, TgId, Touch, Tunables, pelt};

/// By how much re-weighting a group's entity at each tick may lift the load of the run queue that
/// it is on: each time the averages are rounded down apart and the sum is then raised to what the
/// rest needs, up to 1 in a period, of which 1/47 decays.
const RATCHET: u64 = 47;

#[test]
fn equal_tasks_share_a_cpu_equally_and_others_by_weight() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let a = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let b = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let c = scene.fork(TgId::ROOT, Policy::Normal, 5, 0);
    scene.run(10_000);
    let time = |p| scene.runtime(p) as f64;
    let all = time(a) + time(b) + time(c);
    assert!(
        (time(a) / time(b) - 1.0).abs() < 0.02,
        "{} {}",
        time(a),
        time(b)
    );
    assert!(
        (time(c) / all - 335.0 / 2383.0).abs() < 0.01,
        "{}",
        time(c) / all
    );
    assert!((all / 1e10 - 1.0).abs() < 0.001, "{all}");
}

#[test]
fn groups_share_by_shares_and_not_by_tasks() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let one = scene.sched.add_group("one", TgId::ROOT, 1024);
    let many = scene.sched.add_group("many", TgId::ROOT, 1024);
    let alone = scene.fork(one, Policy::Normal, 0, 0);
    for _ in 0..4 {
        scene.fork(many, Policy::Normal, 0, 0);
    }
    scene.run(10_000);
    let part = scene.runtime(alone) as f64 / 1e10;
    assert!((part - 0.5).abs() < 0.03, "{part}");
}

#[test]
fn a_new_task_starts_a_slice_late() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let parent = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(50);
    let min = scene.sched.cfs[0].min_vruntime;
    let child = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    // Two tasks at the same weight: half of the latency each.
    let slice = scene.sched.tun.latency.0 / 2;
    assert!(scene.se(child).vruntime.wrapping_sub(min).abs_diff(slice) < 8);
    assert_eq!(scene.sched.rq(CpuId(0)).curr, parent);
}

#[test]
fn a_sleeper_gets_half_a_latency_of_credit_and_no_more() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let _hog = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let sleeper = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(100);
    scene.sleep(sleeper);
    scene.run(5_000);
    scene.wake(sleeper, CpuId(0));
    let min = scene.sched.cfs[0].min_vruntime;
    let credit = min.wrapping_sub(scene.se(sleeper).vruntime);
    assert_eq!(credit, scene.sched.tun.latency.0 / 2);
    assert!(scene.sched.rq(CpuId(0)).need_resched, "it preempts");
}

#[test]
fn a_short_sleeper_keeps_its_vruntime() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let _hog = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let sleeper = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(100);
    scene.sleep(sleeper);
    let before = scene.se(sleeper).vruntime;
    scene.advance(10_000);
    scene.wake(sleeper, CpuId(0));
    assert_eq!(scene.se(sleeper).vruntime, before);
}

/// A waker and a wakee on one CPU, the wakee behind by `lead` of virtual time.
fn wakes_with_lead(lead: u64, policy: Policy, curr_policy: Policy) -> bool {
    let mut scene = Scene::new(Release::V6_5, 1);
    let curr = scene.fork(TgId::ROOT, curr_policy, 0, 0);
    scene.run(10);
    let wakee = scene.fork(TgId::ROOT, policy, 0, 0);
    scene.run(100);
    scene.sleep(wakee);
    scene.run(1);
    assert_eq!(scene.sched.rq(CpuId(0)).curr, curr);
    let vruntime = scene.se(curr).vruntime;
    let se = scene.sched.tasks[wakee.index()].se;
    scene.sched.se[se.index()].vruntime = vruntime.wrapping_sub(lead);
    scene.wake(wakee, CpuId(0));
    scene.sched.rq(CpuId(0)).need_resched
}

#[test]
fn wakeup_preemption_needs_a_lead_of_the_wakeup_granularity() {
    let gran = Tunables::for_machine(1, 1000).wakeup_granularity.0;
    let (normal, batch, idle) = (Policy::Normal, Policy::Batch, Policy::Idle);
    assert!(wakes_with_lead(gran + 1, normal, normal));
    assert!(!wakes_with_lead(gran, normal, normal));
    assert!(
        !wakes_with_lead(gran + 1, batch, normal),
        "batch never preempts"
    );
    assert!(
        !wakes_with_lead(gran + 1, idle, normal),
        "idle never preempts"
    );
    assert!(wakes_with_lead(0, normal, idle), "anything preempts idle");
    assert!(wakes_with_lead(0, batch, idle));
}

#[test]
fn an_idle_cpu_is_told_to_switch() {
    let mut scene = Scene::new(Release::V6_5, 2);
    let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 1);
    assert_eq!(scene.sched.rq(CpuId(1)).curr, p);
    assert!(!scene.sched.llc[0].idle.contains(CpuId(1)));
    scene.sleep(p);
    assert!(scene.sched.rq(CpuId(1)).curr.is_none());
    assert!(scene.sched.llc[0].idle.contains(CpuId(1)));
}

#[test]
fn a_running_task_is_not_preempted_before_the_least_granularity() {
    let mut scene = Scene::new(Release::V6_5, 1);
    for _ in 0..40 {
        scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    }
    scene.run(200);
    let gran = scene.sched.tun.min_granularity.0;
    let mut began = scene.now;
    let mut curr = scene.sched.rq(CpuId(0)).curr;
    for _ in 0..400 {
        scene.advance(100_000);
        scene.sched.task_tick(CpuId(0));
        scene.resched(CpuId(0));
        if scene.sched.rq(CpuId(0)).curr != curr {
            assert!(
                scene.now - began >= gran,
                "{} after {}",
                curr.0,
                scene.now - began
            );
            (began, curr) = (scene.now, scene.sched.rq(CpuId(0)).curr);
        }
    }
}

#[test]
fn yielding_lets_the_other_go_first() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let a = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let b = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(40);
    let curr = scene.sched.rq(CpuId(0)).curr;
    let other = if curr == a { b } else { a };
    // Even where the pick would take it again, the one that yields is passed over.
    let vruntime = scene.se(other).vruntime;
    let se = scene.sched.tasks[curr.index()].se;
    scene.sched.se[se.index()].vruntime = vruntime.wrapping_sub(1);
    scene.sched.yield_task(CpuId(0));
    assert_eq!(scene.sched.switch_task(CpuId(0)), other);
}

#[test]
fn a_group_s_load_splits_over_the_cpus_that_it_uses() {
    for ncpu in [1usize, 2, 4, 8] {
        let mut scene = Scene::new(Release::V6_5, 8);
        let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
        let tasks: Vec<TaskId> = (0..ncpu)
            .map(|cpu| scene.fork(tg, Policy::Normal, 0, cpu as u16))
            .collect();
        scene.run(1_000);
        let part = 1024 / ncpu as u64;
        for (cpu, &p) in tasks.iter().enumerate() {
            let cpu = CpuId::from_index(cpu);
            let owner = scene.sched.group_se(tg, cpu);
            let weight = scale_load_down(scene.sched.se[owner.index()].weight);
            assert!(weight.abs_diff(part) <= part / 50 + 1, "{weight} on {ncpu}");
            let load = scene.sched.cpu_load(cpu);
            assert!(
                load.abs_diff(part) <= part / 40 + 2,
                "load {load} on {ncpu}"
            );
            let h_load = scene.sched.task_h_load(p);
            assert!(
                h_load.abs_diff(part) <= part / 30 + 3,
                "h_load {h_load} on {ncpu}"
            );
            assert!(scene.sched.cpu_util(cpu) > 1000);
            assert!(scene.sched.cpu_load_without(cpu, p) <= 8);
        }
        let total = scene.sched.tgs[tg.index()].load_avg;
        assert!(
            total.abs_diff(1024 * ncpu as u64) < 30 * ncpu as u64,
            "{total}"
        );
    }
}

#[test]
fn a_sleeping_task_that_moves_takes_its_load_along() {
    let mut scene = Scene::new(Release::V6_5, 2);
    let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(500);
    let load = scene.sched.cpu_load(CpuId(0));
    assert!(load > 1000);
    scene.sleep(p);
    scene.sched.touch.clear();
    scene.wake(p, CpuId(1));
    let touched = |line| {
        scene
            .sched
            .touch
            .list
            .iter()
            .any(|&t| t == Touch::of(line, true))
    };
    assert!(touched(Line::Removed(CpuId(0))));
    assert!(scene.sched.cpu_load(CpuId(1)) > 1000);
    scene.resched(CpuId(1));
    scene.advance(2 * MS);
    scene.sched.update_blocked_averages(CpuId(0));
    assert!(
        scene.sched.cpu_load(CpuId(0)) < 8,
        "{}",
        scene.sched.cpu_load(CpuId(0))
    );
    assert_eq!(scene.sched.tasks[p.index()].nr_migrations, 1);
}

#[test]
fn idle_cpus_forget_and_leave_the_list() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    let p = scene.fork(tg, Policy::Normal, 0, 0);
    scene.run(500);
    scene.sleep(p);
    assert_eq!(scene.sched.rq(CpuId(0)).leaf_cfs_rqs.len(), 2);
    scene.sched.rq_mut(CpuId(0)).has_blocked_load = true;
    for _ in 0..4 {
        scene.advance(700 * MS);
        scene.sched.update_blocked_averages(CpuId(0));
    }
    assert!(scene.sched.rq(CpuId(0)).leaf_cfs_rqs.is_empty());
    assert!(!scene.sched.rq(CpuId(0)).has_blocked_load);
    assert_eq!(scene.sched.tgs[tg.index()].load_avg, 0);
    scene.wake(p, CpuId(0));
    assert_eq!(scene.sched.rq(CpuId(0)).leaf_cfs_rqs.len(), 2);
}

#[test]
fn the_group_s_line_is_written_by_a_migration_and_read_by_each_switch() {
    let mut scene = Scene::new(Release::V6_5, 2);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    let p = scene.fork(tg, Policy::Normal, 0, 0);
    scene.run(100);
    scene.sleep(p);
    scene.sched.touch.clear();
    scene.wake(p, CpuId(1));
    let touches = |write| {
        let line = Line::TgLoadAvg(tg);
        scene
            .sched
            .touch
            .list
            .iter()
            .filter(|&&t| t == Touch::of(line, write))
            .count()
    };
    assert!(touches(true) >= 1 && touches(false) >= 1);
}

#[test]
fn a_dead_task_leaves_no_load() {
    let mut scene = Scene::new(Release::V6_5, 1);
    let p = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.run(100);
    scene.sleep(p);
    scene.sched.exit_task(CpuId(0), p);
    scene.advance(MS);
    scene.sched.update_blocked_averages(CpuId(0));
    assert!(scene.sched.cpu_load(CpuId(0)) <= 2);
}

/// What the property test does at a step.
#[derive(Clone, Debug)]
enum Step {
    Advance(u64),
    Tick,
    Toggle(usize, u16),
    Move(usize, u16),
    Nice(usize, i8),
    Group(usize, u32),
    Yield(u16),
    Blocked(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_000..3_000_000u64).prop_map(Step::Advance),
        1 => (3_000_000..100_000_000u64).prop_map(Step::Advance),
        2 => Just(Step::Tick),
        8 => (0..10usize, 0..4u16).prop_map(|(p, cpu)| Step::Toggle(p, cpu)),
        2 => (0..10usize, 0..4u16).prop_map(|(p, cpu)| Step::Move(p, cpu)),
        1 => (0..10usize, -20..20i8).prop_map(|(p, nice)| Step::Nice(p, nice)),
        1 => (0..10usize, 0..4u32).prop_map(|(p, tg)| Step::Group(p, tg)),
        1 => (0..4u16).prop_map(Step::Yield),
        1 => (0..4u16).prop_map(Step::Blocked),
    ]
}

/// The releases of the older fair class.
const CFS_RELEASES: [Release; 3] = [Release::V5_2, Release::V5_19, Release::V6_5];

impl Scene {
    fn crowd(release: Release) -> Scene {
        let mut scene = Scene::new(release, 4);
        let a = scene.sched.add_group("a", TgId::ROOT, 1024);
        let b = scene.sched.add_group("b", a, 512);
        scene.sched.add_group("c", TgId::ROOT, 4096);
        for index in 0..10u16 {
            let tg = [TgId::ROOT, a, b][usize::from(index) % 3];
            let policy = if index == 9 {
                Policy::Idle
            } else {
                Policy::Normal
            };
            scene.fork(tg, policy, 0, index % 4);
        }
        scene
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Advance(span) => self.advance(span),
            Step::Tick => self.run(1),
            Step::Toggle(p, cpu) => {
                let p = TaskId::from_index(p);
                if self.sched.tasks[p.index()].on_rq {
                    self.sleep(p);
                } else {
                    self.wake(p, CpuId(cpu));
                    self.resched(CpuId(cpu));
                }
            }
            Step::Move(p, cpu) => self.migrate(TaskId::from_index(p), CpuId(cpu)),
            Step::Nice(p, nice) => self.sched.set_user_nice(TaskId::from_index(p), nice),
            Step::Group(p, tg) => self.sched.move_task_group(TaskId::from_index(p), TgId(tg)),
            Step::Yield(cpu) => {
                self.sched.yield_task(CpuId(cpu));
                self.sched.switch_task(CpuId(cpu));
            }
            Step::Blocked(cpu) => self.sched.update_blocked_averages(CpuId(cpu)),
        }
    }

    /// Moves a queued task that does not run, as load balancing does.
    fn migrate(&mut self, p: TaskId, cpu: CpuId) {
        let task = &self.sched.tasks[p.index()];
        let from = task.cpu;
        if !task.on_rq || self.sched.rq(from).curr == p || from == cpu {
            return;
        }
        self.sched.deactivate_task(from, p, 0);
        self.sched.set_task_cpu(p, cpu);
        self.sched.activate_task(cpu, p, 0);
        self.sched.check_preempt_curr(cpu, p, 0);
        self.resched(cpu);
    }

    fn entities_of(&self, cfs: usize) -> Vec<SeId> {
        let all = (0..self.sched.se.len()).map(SeId::from_index);
        all.filter(|se| self.sched.se[se.index()].cfs_rq.index() == cfs)
            .collect()
    }

    fn check_queue(&self, index: usize) {
        let (sched, cfs) = (&self.sched, &self.sched.cfs[index]);
        let queued: Vec<SeId> = self
            .entities_of(index)
            .into_iter()
            .filter(|se| sched.se[se.index()].on_rq)
            .collect();
        let of = |se: &SeId| &sched.se[se.index()];
        assert_eq!(
            cfs.weight,
            queued.iter().map(|se| of(se).weight).sum::<u64>()
        );
        if sched.rules.runnable_load {
            let runnable = queued.iter().map(|se| of(se).runnable_weight).sum::<u64>();
            assert_eq!(cfs.runnable_weight, runnable);
            assert!(
                queued
                    .iter()
                    .all(|se| of(se).runnable_weight <= of(se).weight)
            );
        }
        assert_eq!(cfs.nr_running as usize, queued.len());
        let idle = queued.iter().filter(|se| of(se).idle).count();
        assert_eq!(cfs.idle_nr_running as usize, idle);
        let below = |se: &SeId| match of(se).my_q {
            q if q.is_none() => (1, u32::from(of(se).idle)),
            q => (
                sched.cfs[q.index()].h_nr_running,
                sched.cfs[q.index()].idle_h_nr_running,
            ),
        };
        assert_eq!(
            cfs.h_nr_running,
            queued.iter().map(|se| below(se).0).sum::<u32>()
        );
        assert_eq!(
            cfs.idle_h_nr_running,
            queued.iter().map(|se| below(se).1).sum::<u32>()
        );
        let mut in_tree: Vec<SeId> = cfs.tree.iter().map(|key| key.se).collect();
        in_tree.sort();
        let waiting: Vec<SeId> = queued.into_iter().filter(|&se| se != cfs.curr).collect();
        assert_eq!(in_tree, waiting);
        for pair in cfs.tree.windows(2) {
            assert!(pair[0].vruntime.wrapping_sub(pair[1].vruntime) as i64 >= 0);
        }
        for key in &cfs.tree {
            assert_eq!(key.vruntime, sched.se[key.se.index()].vruntime);
        }
        assert!(
            cfs.weight == 0 || cfs.on_list,
            "a queue with load is on the list"
        );
    }

    /// The run queue's averages are the sum of its entities' and of what left, up to rounding.
    fn check_load(&self, index: usize) {
        let cfs = &self.sched.cfs[index];
        let (mut load, mut util) = (cfs.removed.load_avg, cfs.removed.util_avg);
        let mut members = u64::from(cfs.removed.nr) + 1;
        let mut groups = 0;
        for se_id in self.entities_of(index) {
            let se = &self.sched.se[se_id.index()];
            if se.avg.last_update_time == 0 {
                continue;
            }
            let mut avg = se.avg;
            let weight = scale_load_down(se.weight);
            let runnable = if se.my_q.is_none() {
                u64::from(se.on_rq)
            } else {
                se.runnable_weight
            };
            let now = cfs.avg.last_update_time;
            pelt::update_se(now, &mut avg, weight, se.on_rq, runnable, cfs.curr == se_id);
            groups += u64::from(se.my_q.is_some());
            load += avg.load_avg;
            util += avg.util_avg;
            members += 1;
        }
        let near = |a: u64, b: u64, slack: u64| a.abs_diff(b) <= a.max(b) / 40 + slack;
        let (load_avg, util_avg) = (cfs.avg.load_avg, cfs.avg.util_avg);
        assert!(
            near(util_avg, util, 3 * members),
            "util {util_avg} of {util}, cfs {index}"
        );
        let slack = 3 * members + RATCHET * groups;
        assert!(
            near(load_avg, load, slack),
            "load {load_avg} of {load}, cfs {index}"
        );
    }

    /// Averages follow their sums only when a period ends, so a task that leaves in between leaves
    /// up to 2 % behind, which decays.
    fn settle(&mut self) {
        for _ in 0..300 {
            self.run(1);
            for cpu in 0..self.sched.ncpu() {
                self.sched.update_blocked_averages(CpuId::from_index(cpu));
            }
        }
    }

    fn check(&self) {
        let sched = &self.sched;
        for index in 0..sched.cfs.len() {
            self.check_queue(index);
        }
        for (tg_index, tg) in sched.tgs.iter().enumerate().skip(1) {
            let ncpu = sched.ncpu();
            let parts = &sched.cfs[tg_index * ncpu..(tg_index + 1) * ncpu];
            let sum: u64 = parts.iter().map(|cfs| cfs.tg_load_avg_contrib).sum();
            assert_eq!(tg.load_avg, sum);
        }
        for rq in &sched.rqs {
            assert_eq!(rq.nr_running, sched.cfs[rq.cpu.index()].h_nr_running);
            let mut tasks = rq.cfs_tasks.clone();
            tasks.sort();
            let all = (0..sched.tasks.len()).map(TaskId::from_index);
            let queued = |p: &TaskId| {
                let task = &sched.tasks[p.index()];
                task.on_rq && task.cpu == rq.cpu
            };
            assert_eq!(tasks, all.filter(queued).collect::<Vec<_>>());
            let idle = rq.curr.is_none() && rq.nr_running == 0;
            let llc = &sched.llc[usize::from(rq.llc)];
            assert_eq!(llc.idle.contains(CpuId(rq.llc_rank)), idle);
            assert!(idle || rq.curr.is_some(), "a CPU with tasks runs one");
            self.check_leaves(rq);
        }
    }

    /// No child comes after its parent. (That the parent is on the list at all is not certain: the
    /// kernel takes one off whose sums have decayed if its child is not the entry before it.)
    fn check_leaves(&self, rq: &wakelab_sched::Rq) {
        assert_eq!(rq.tmp_alone, 0);
        let tg_of = |cfs: &wakelab_sched::CfsId| self.sched.cfs[cfs.index()].tg;
        for (at, cfs) in rq.leaf_cfs_rqs.iter().enumerate() {
            let parent = self.sched.tgs[tg_of(cfs).index()].parent;
            assert!(parent.is_none() || !rq.leaf_cfs_rqs[..at].iter().any(|q| tg_of(q) == parent));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_and_counts_hold_after_any_sequence(
        release in prop::sample::select(&CFS_RELEASES[..]),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut scene = Scene::crowd(release);
        let mut floor: Vec<u64> = scene.sched.cfs.iter().map(|cfs| cfs.min_vruntime).collect();
        for step in &steps {
            scene.apply(step);
            scene.check();
            for (cfs, floor) in scene.sched.cfs.iter().zip(&mut floor) {
                prop_assert!(cfs.min_vruntime.wrapping_sub(*floor) as i64 >= 0);
                *floor = cfs.min_vruntime;
            }
        }
    }

    #[test]
    fn loads_are_the_sum_of_their_parts(
        release in prop::sample::select(&CFS_RELEASES[..]),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut scene = Scene::crowd(release);
        for step in &steps {
            // Two cases in which the kernel's sums do drift: a sleeper's weight changes while its
            // load is not up to date, and weights at which 32-bit sums overflow.
            let drifts = match *step {
                Step::Nice(p, nice) => nice < -10 || !scene.sched.tasks[p].on_rq,
                _ => false,
            };
            if !drifts {
                scene.apply(step);
            }
        }
        scene.settle();
        for index in 0..scene.sched.cfs.len() {
            scene.check_load(index);
        }
    }
}

/// `migrate_task_rq_fair`, `enqueue_entity` (WF_MIGRATED): vruntimes of different CPUs have nothing
/// in common, so a task takes along how far it is from `min_vruntime`, and neither its vruntime nor
/// a sleeper's whole credit.
#[test]
fn a_wake_up_that_moves_a_task_keeps_its_lag() {
    let mut scene = Scene::new(Release::V6_5, 2);
    let stays = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let moves = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    scene.fork(TgId::ROOT, Policy::Normal, 0, 1);
    scene.run(200);
    let from = scene.sched.root_cfs(CpuId(0));
    let to = scene.sched.root_cfs(CpuId(1));
    scene.sleep(moves);
    let se = scene.sched.tasks[moves.index()].se;
    let lag = |scene: &Scene, cfs: wakelab_sched::CfsId| {
        let min = scene.sched.cfs[cfs.index()].min_vruntime;
        scene.sched.se[se.index()].vruntime.wrapping_sub(min) as i64
    };
    let apart =
        scene.sched.cfs[to.index()].min_vruntime - scene.sched.cfs[from.index()].min_vruntime;
    assert!(
        apart > 50 * MS,
        "the queues must differ for the test to mean anything"
    );
    let before = lag(&scene, from);
    scene.sched.set_task_cpu(moves, CpuId(1));
    let flags = wakelab_sched::fair::flags::WF_TTWU | wakelab_sched::fair::flags::WF_MIGRATED;
    scene.sched.ttwu_do_activate(CpuId(1), moves, flags);
    let after = lag(&scene, to);
    assert!(
        (after - before).unsigned_abs() < MS,
        "lag {before} became {after}"
    );
    assert!(scene.sched.tasks[stays.index()].on_rq);
}

/// Kernel 5.2 `sched/fair.c`, `enqueue_runnable_load_avg()`: what sleeps is in the load average and not
/// in the load that CPUs are compared by, also by way of groups.
#[test]
fn before_5_7_a_cpu_s_load_is_that_of_what_is_queued() {
    let mut scene = Scene::new(Release::V5_2, 1);
    let tg = scene.sched.add_group("group", TgId::ROOT, 1024);
    let stays = scene.fork(TgId::ROOT, Policy::Normal, 0, 0);
    let member = scene.fork(tg, Policy::Normal, 0, 0);
    scene.run(500);
    let full = scene.sched.cpu_load(CpuId(0));
    assert!(full.abs_diff(2048) < 60, "two tasks' load: {full}");
    scene.sleep(member);
    let load = scene.sched.cpu_load(CpuId(0));
    assert!(load.abs_diff(1024) < 40, "one is left: {load}");
    scene.sleep(stays);
    assert!(scene.sched.cpu_load(CpuId(0)) < 40);
    assert!(
        scene.sched.cfs[0].avg.load_avg > 1000,
        "both are still attached"
    );
}
