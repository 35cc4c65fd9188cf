//! EEVDF under random tasks in several groups that compete: what must hold after every step.

#[path = "support/consistency.rs"]
mod consistency;
#[path = "support/scene.rs"]
mod scene;
mod support;

use proptest::prelude::*;
use scene::Scene;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, DEQUEUE_SPECIAL};
use wakelab_sched::state::Policy;
use wakelab_sched::{Feat, Release, TaskId, TgId};

/// What happens, on a CPU or to a task chosen by number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fork {
        tg: u32,
        nice: i8,
        cpu: u16,
    },
    /// The running task sleeps after so many us.
    Sleep {
        cpu: u16,
        after: u64,
    },
    Wake {
        task: usize,
        cpu: u16,
    },
    Tick {
        cpu: u16,
        after: u64,
    },
    /// Balancing moves a task that waits, or sleeps and is still queued.
    Move {
        task: usize,
    },
    Nice {
        task: usize,
        nice: i8,
    },
    Slice {
        task: usize,
        us: Option<u64>,
    },
    Yield {
        cpu: u16,
    },
    Exit {
        cpu: u16,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (cpu, after, task, nice) = (0u16..2, 0u64..8000, 0usize..64, -10i8..=10);
    prop_oneof![
        3 => (0u32..4, nice.clone(), cpu.clone()).prop_map(|(tg, nice, cpu)| Step::Fork { tg, nice, cpu }),
        6 => (cpu.clone(), after.clone()).prop_map(|(cpu, after)| Step::Sleep { cpu, after }),
        6 => (task.clone(), cpu.clone()).prop_map(|(task, cpu)| Step::Wake { task, cpu }),
        6 => (cpu.clone(), after).prop_map(|(cpu, after)| Step::Tick { cpu, after }),
        2 => task.clone().prop_map(|task| Step::Move { task }),
        1 => (task.clone(), nice).prop_map(|(task, nice)| Step::Nice { task, nice }),
        1 => (task, prop::option::of(50u64..20_000)).prop_map(|(task, us)| Step::Slice { task, us }),
        1 => cpu.clone().prop_map(|cpu| Step::Yield { cpu }),
        1 => cpu.prop_map(|cpu| Step::Exit { cpu }),
    ]
}

/// The scene with what has ended.
struct World {
    scene: Scene,
    gone: Vec<bool>,
}

impl World {
    /// Three groups, of which one is in another.
    fn new(without: &[Feat]) -> World {
        let mut scene = Scene::new(Release::V6_12, 2);
        for &feat in without {
            scene.sched.feat.set(feat, false);
        }
        for parent in [0, 0, 1] {
            scene.sched.add_group("group", TgId(parent), 1024);
        }
        World {
            scene,
            gone: Vec::new(),
        }
    }

    /// A living task by number.
    fn task(&self, number: usize) -> Option<TaskId> {
        let p = number % self.gone.len().max(1);
        self.gone
            .get(p)
            .is_some_and(|gone| !gone)
            .then_some(TaskId(p as u32))
    }

    fn curr(&self, cpu: u16) -> Option<TaskId> {
        let curr = self.scene.sched.rq(CpuId(cpu)).curr;
        curr.is_some().then_some(curr)
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Fork { tg, nice, cpu } => {
                self.gone.push(false);
                self.scene.fork(TgId(tg), Policy::Normal, nice, cpu);
            }
            Step::Sleep { cpu, after } => {
                self.scene.advance(after * 1000);
                if let Some(p) = self.curr(cpu) {
                    self.scene.sleep(p);
                }
            }
            Step::Wake { task, cpu } => self.wake(task, cpu),
            Step::Tick { cpu, after } => {
                self.scene.advance(after * 1000);
                self.scene.sched.task_tick(CpuId(cpu));
            }
            Step::Move { task } => self.move_over(task),
            Step::Nice { task, nice } => {
                if let Some(p) = self.task(task) {
                    self.scene.sched.set_user_nice(p, nice);
                }
            }
            Step::Slice { task, us } => {
                if let Some(p) = self.task(task) {
                    self.scene.sched.set_slice(p, us.map(|us| Ns(us * 1000)));
                }
            }
            Step::Yield { cpu } => {
                self.scene.sched.yield_task(CpuId(cpu));
                self.scene.sched.switch_task(CpuId(cpu));
            }
            Step::Exit { cpu } => self.exit(cpu),
        }
        for cpu in 0..2 {
            self.scene.resched(CpuId(cpu));
        }
    }

    fn wake(&mut self, task: usize, cpu: u16) {
        let Some(p) = self.task(task) else { return };
        if !self.scene.sched.tasks[p.index()].on_rq || self.scene.sched.is_delayed(p) {
            self.scene.wake(p, CpuId(cpu));
        }
    }

    fn move_over(&mut self, task: usize) {
        let Some(p) = self.task(task) else { return };
        let sched = &mut self.scene.sched;
        let from = sched.tasks[p.index()].cpu;
        if !sched.tasks[p.index()].on_rq || sched.rq(from).curr == p {
            return;
        }
        let to = CpuId(1 - from.0);
        sched.deactivate_task(from, p, 0);
        sched.set_task_cpu(p, to);
        sched.activate_task(to, p, 0);
        sched.check_preempt_curr(to, p, 0);
    }

    fn exit(&mut self, cpu: u16) {
        let Some(p) = self.curr(cpu) else { return };
        let cpu = CpuId(cpu);
        let flags = DEQUEUE_SLEEP | DEQUEUE_SPECIAL;
        self.scene.sched.deactivate_task(cpu, p, flags);
        self.scene.sched.switch_task(cpu);
        self.scene.sched.exit_task(cpu, p);
        self.gone[p.index()] = true;
    }

    /// What holds after every step, besides the sums.
    fn check(&self) -> Result<(), String> {
        consistency::check(&self.scene.sched)?;
        for (index, rq) in self.scene.sched.rqs.iter().enumerate() {
            if rq.curr.is_none() && self.scene.sched.cfs[index].nr_running != 0 {
                return Err(format!("CPU {index} idles beside {rq:?}"));
            }
            let curr = rq.curr;
            if curr.is_some() && !self.scene.sched.tasks[curr.index()].on_rq {
                return Err(format!("CPU {index} runs a sleeper"));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Also that whoever is awake runs within a bound, once nothing else happens.
    #[test]
    fn counts_sums_and_trees_agree_after_every_step(
        steps in prop::collection::vec(step(), 1..150),
        flips in 0u8..16,
    ) {
        let flipped = [Feat::DELAY_DEQUEUE, Feat::DELAY_ZERO, Feat::PLACE_LAG, Feat::RUN_TO_PARITY];
        let off = flipped.into_iter().enumerate().filter(|(bit, _)| flips & 3 == 3 && flips >> bit & 1 != 0);
        let mut world = World::new(&off.map(|(_, feat)| feat).collect::<Vec<_>>());
        for step in steps {
            world.play(step);
            prop_assert_eq!(world.check(), Ok(()), "after {:?}", step);
        }
        let awake = |world: &World, p: usize| {
            let task = &world.scene.sched.tasks[p];
            task.on_rq && !world.scene.sched.is_delayed(TaskId(p as u32))
        };
        let times = |world: &World| -> Vec<u64> {
            (0..world.gone.len()).map(|p| world.scene.runtime(TaskId(p as u32))).collect()
        };
        let before = times(&world);
        let waits = |world: &World| {
            let now = times(world);
            (0..now.len()).any(|p| awake(world, p) && now[p] == before[p])
        };
        // A group whose load is on another CPU weighs as little as 2 here, and a slice of 20 ms is
        // 10 s of its virtual time.
        for _ in 0..50 {
            world.scene.run(20_000);
            if !waits(&world) {
                break;
            }
        }
        prop_assert_eq!(world.check(), Ok(()));
        for (p, then) in before.iter().copied().enumerate() {
            let id = TaskId(p as u32);
            let ran = world.scene.runtime(id) > then;
            prop_assert!(ran || !awake(&world, p), "task {p} starves");
            prop_assert!(!world.scene.sched.is_delayed(id), "task {p} pays for ever");
        }
    }
}
