//! Host time for the fair class's part of a context switch, on 384 CPUs with 1280 tasks in one
//! group: a running task sleeps, another one wakes on the same CPU, and the CPU switches.
//!
//! `cargo run --release -p wakelab-sched --example switch_cost`

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::TaskSpec;
use wakelab_sched::fair::flags::{DEQUEUE_SLEEP, ENQUEUE_WAKEUP};
use wakelab_sched::state::Policy;
use wakelab_sched::{Cookie, Features, Release, Rules, Sched, TaskId, TgId, Tunables};

const CPUS: usize = 384;
const TASKS: usize = 1280;
const LLC: usize = 16;
/// Short chunks, so that some run undisturbed on a busy host.
const ROUNDS: u32 = 10_000;
const CHUNKS: usize = 500;

fn populated() -> (Sched, Vec<Vec<TaskId>>) {
    let tun = Tunables::for_machine(CPUS, 250);
    let rules = Rules::of(Release::V6_5);
    let feat = Features::defaults(Release::V6_5);
    let mut sched = Sched::new(Arc::new(support::flat(CPUS, LLC)), rules, feat, tun);
    let tg = sched.add_group("autogroup", TgId::ROOT, 1024);
    let mut asleep = vec![Vec::new(); CPUS];
    for index in 0..TASKS {
        let cpu = CpuId::from_index(index % CPUS);
        sched.update_rq_clock(cpu, Ns(1_000_000_000 + index as u64 * 1000));
        let p = sched.new_task(&TaskSpec {
            tg,
            mm: 0,
            policy: Policy::Normal,
            nice: 0,
            cpus: CpuMask::first_n(CPUS),
            cpu,
            kthread: false,
            cookie: Cookie::NONE,
        });
        sched.wake_up_new_task(p, cpu);
        sched.switch_task(cpu);
        if index >= TASKS - CPUS {
            // One task of each CPU starts asleep.
            let curr = sched.rq(cpu).curr;
            sched.deactivate_task(cpu, curr, DEQUEUE_SLEEP);
            sched.switch_task(cpu);
            asleep[cpu.index()].push(curr);
        }
    }
    (sched, asleep)
}

fn main() {
    let (mut sched, mut asleep) = populated();
    let mut state = State {
        now: 1_100_000_000,
        random: 88_172_645_463_325_252,
    };
    let mut chunks: Vec<f64> = (0..CHUNKS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                round(&mut sched, &mut asleep, &mut state);
            }
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        })
        .collect();
    chunks.sort_by(f64::total_cmp);
    let (best, tenth, median) = (chunks[0], chunks[CHUNKS / 10], chunks[CHUNKS / 2]);
    println!("ns per deactivate + activate + switch, over {CHUNKS} chunks of {ROUNDS}:");
    println!("best {best:.0}, best tenth {tenth:.0}, median {median:.0}");
}

struct State {
    now: u64,
    random: u64,
}

fn round(sched: &mut Sched, asleep: &mut [Vec<TaskId>], state: &mut State) {
    state.random ^= state.random << 13;
    state.random ^= state.random >> 7;
    state.random ^= state.random << 17;
    // All CPUs together: a step each 30 ns is 11 us between the steps of one CPU.
    state.now += 30;
    let cpu = CpuId::from_index((state.random >> 32) as usize % CPUS);
    sched.touch.clear();
    sched.update_rq_clock(cpu, Ns(state.now));
    let curr = sched.rq(cpu).curr;
    let woken = asleep[cpu.index()].pop();
    sched.deactivate_task(cpu, curr, DEQUEUE_SLEEP);
    asleep[cpu.index()].push(curr);
    if let Some(p) = woken {
        sched.activate_task(cpu, p, ENQUEUE_WAKEUP);
        sched.check_preempt_curr(cpu, p, 0);
    }
    let next = sched.switch_task(cpu);
    assert!(next.is_some() && next != curr);
}
