//! Balancing at random: no task is lost or doubled, none runs where it may not, counts add up.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, ENQUEUE_WAKEUP};
use wakelab_sched::state::Policy;
use wakelab_sched::{Cookie, Features, Release, Rules, Sched, TaskId, TgId, Touches, Tunables};

const MACHINES: [&str; 4] = ["smt2-8", "hypervisor-64", "kunpeng-920", "power10-llc4"];

#[derive(Clone, Debug)]
enum Op {
    /// A new task on a CPU, allowed on that CPU and those of a pattern.
    Spawn {
        cpu: u16,
        pattern: u64,
        policy: u8,
        group: bool,
    },
    /// The running task of a CPU sleeps.
    Sleep { cpu: u16 },
    /// A task that sleeps wakes where it was.
    Wake { task: u16 },
    /// Time passes.
    Wait { us: u32 },
    /// A tick.
    Tick { cpu: u16 },
}

fn op() -> impl Strategy<Value = Op> {
    let cpu = 0..256u16;
    prop_oneof![
        3 => (cpu.clone(), prop_oneof![Just(u64::MAX), any::<u64>(), Just(0)], 0..3u8, any::<bool>())
            .prop_map(|(cpu, pattern, policy, group)| Op::Spawn { cpu, pattern, policy, group }),
        3 => cpu.clone().prop_map(|cpu| Op::Sleep { cpu }),
        2 => any::<u16>().prop_map(|task| Op::Wake { task }),
        2 => (1..20_000u32).prop_map(|us| Op::Wait { us }),
        6 => cpu.prop_map(|cpu| Op::Tick { cpu }),
    ]
}

/// A stand-in for the engine: does what is asked at once.
struct World {
    sched: Sched,
    now: u64,
    group: TgId,
}

fn price(touches: &mut Touches) -> u64 {
    let pieces = touches.list.len() as u64 + u64::from(touches.stats_read);
    touches.clear();
    pieces * 100
}

impl World {
    fn new(preset: &str, release: Release) -> World {
        let machine = Machine::preset(preset).unwrap();
        let (major, minor) = release.number();
        let rules = DomainRules::for_release(major, minor);
        let topo = Arc::new(SchedTopology::build(&machine, &rules));
        let tun = Tunables::for_machine(machine.ncpu(), 250);
        let features = Features::defaults(release);
        let mut sched = Sched::new(topo, Rules::of(release), features, tun);
        let group = sched.add_group("group", TgId::ROOT, 1024);
        World {
            sched,
            now: 1_000_000_000,
            group,
        }
    }

    fn cpu(&self, cpu: u16) -> CpuId {
        CpuId(cpu % self.sched.ncpu() as u16)
    }

    fn clock(&mut self, cpu: CpuId) {
        self.sched.update_rq_clock(cpu, Ns(self.now));
    }

    /// `schedule()` of a CPU.
    fn schedule(&mut self, cpu: CpuId) {
        self.clock(cpu);
        if self.sched.rq(cpu).nr_running == 0 {
            self.sched.newidle_balance(cpu, Ns(self.now), price);
        }
        if self.sched.switch_task(cpu).is_none() {
            self.sched.nohz_run_idle_balance(cpu, Ns(self.now), price);
            self.sched.nohz_balance_enter_idle(cpu);
        }
    }

    /// What was asked of other CPUs: switches, stoppers.
    fn settle(&mut self) {
        while let Some(busiest) = self.sched.lb.pending_active.pop() {
            let prev = self.sched.rq(busiest).curr;
            self.clock(busiest);
            if prev.is_some() {
                self.sched.put_prev_task(busiest, prev);
                self.sched.tasks[prev.index()].on_cpu = false;
                self.sched.rqs[busiest.index()].curr = TaskId::NONE;
            }
            self.sched.active_load_balance(busiest, Ns(self.now));
            self.schedule(busiest);
        }
        for index in 0..self.sched.ncpu() {
            if self.sched.rqs[index].need_resched {
                self.schedule(CpuId::from_index(index));
            }
        }
    }

    fn tick(&mut self, cpu: CpuId) {
        self.clock(cpu);
        self.sched.task_tick(cpu);
        let tick = self.sched.scheduler_tick_balance(cpu, Ns(self.now));
        if tick.rebalance {
            self.sched.run_rebalance_domains(cpu, Ns(self.now), price);
        }
        if let Some((target, _)) = tick.kick {
            self.sched
                .run_rebalance_domains(target, Ns(self.now), price);
        }
    }

    fn spawn(&mut self, cpu: CpuId, pattern: u64, policy: u8, group: bool) {
        let mut cpus: CpuMask = (0..self.sched.ncpu())
            .filter(|c| pattern >> (c % 64) & 1 != 0)
            .map(CpuId::from_index)
            .collect();
        cpus.set(cpu);
        self.clock(cpu);
        let p = self.sched.new_task(&TaskSpec {
            tg: if group { self.group } else { TgId::ROOT },
            mm: 1,
            policy: [Policy::Normal, Policy::Batch, Policy::Idle][usize::from(policy)],
            nice: 0,
            cpus,
            cpu,
            kthread: false,
            cookie: Cookie::NONE,
        });
        self.sched.wake_up_new_task(p, cpu);
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Spawn {
                cpu,
                pattern,
                policy,
                group,
            } => self.spawn(self.cpu(cpu), pattern, policy, group),
            Op::Sleep { cpu } => {
                let cpu = self.cpu(cpu);
                let curr = self.sched.rq(cpu).curr;
                if curr.is_some() {
                    self.clock(cpu);
                    self.sched.deactivate_task(cpu, curr, DEQUEUE_SLEEP);
                    self.schedule(cpu);
                }
            }
            Op::Wake { task } => {
                let sleeping = |p: &usize| !self.sched.tasks[*p].on_rq;
                let sleepers: Vec<usize> = (0..self.sched.tasks.len()).filter(sleeping).collect();
                if !sleepers.is_empty() {
                    let p = TaskId::from_index(sleepers[usize::from(task) % sleepers.len()]);
                    let cpu = self.sched.tasks[p.index()].cpu;
                    self.clock(cpu);
                    self.sched.activate_task(cpu, p, ENQUEUE_WAKEUP);
                    self.sched.check_preempt_curr(cpu, p, 0);
                }
            }
            Op::Wait { us } => self.now += u64::from(us) * 1000,
            Op::Tick { cpu } => self.tick(self.cpu(cpu)),
        }
        self.settle();
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let sched = &self.sched;
        let mut places = vec![0; sched.tasks.len()];
        for (index, rq) in sched.rqs.iter().enumerate() {
            prop_assert_eq!(rq.nr_running as usize, rq.cfs_tasks.len());
            prop_assert_eq!(rq.nr_running, sched.cfs[index].h_nr_running);
            for &p in &rq.cfs_tasks {
                places[p.index()] += 1;
                let task = &sched.tasks[p.index()];
                prop_assert!(task.on_rq);
                prop_assert_eq!(task.cpu, CpuId::from_index(index));
                prop_assert!(task.cpus.contains(task.cpu), "{} is not allowed", task.cpu);
            }
            prop_assert_eq!(rq.curr.is_none(), rq.nr_running == 0, "work is conserved");
            prop_assert!(!rq.active_balance, "the stopper has run");
        }
        for (task, places) in sched.tasks.iter().zip(places) {
            prop_assert_eq!(places, usize::from(task.on_rq));
        }
        prop_assert_eq!(sched.nohz.idle_cpus.weight(), sched.nohz.nr_cpus as usize);
        for (llc, cpus) in sched.llc.iter().zip(&sched.topo.llcs) {
            let idle = cpus.and(&sched.nohz.idle_cpus).weight();
            prop_assert_eq!(llc.nr_busy_cpus as usize, cpus.weight() - idle);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tasks_are_kept_and_counted(
        machine in 0..MACHINES.len(),
        release in prop::sample::select(&Release::ALL[..]),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let mut world = World::new(MACHINES[machine], release);
        for op in &ops {
            world.apply(op);
            world.check()?;
        }
    }

    #[test]
    fn the_same_happens_again(
        machine in 0..MACHINES.len(),
        release in prop::sample::select(&Release::ALL[..]),
        ops in prop::collection::vec(op(), 1..100),
    ) {
        let run = || {
            let mut world = World::new(MACHINES[machine], release);
            ops.iter().for_each(|op| world.apply(op));
            let cpus: Vec<_> = world.sched.tasks.iter().map(|task| (task.cpu, task.nr_migrations)).collect();
            (cpus, world.sched.lb.stats)
        };
        prop_assert_eq!(run(), run());
    }
}
