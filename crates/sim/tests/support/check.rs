//! The checks between events.

#[path = "../../../sched/tests/support/consistency.rs"]
mod consistency;

use super::{Scene, exclusive};
use proptest::test_runner::TestCaseError;
use wakelab_machine::CpuId;
use wakelab_sched::{Sched, TaskId, TgId};
use wakelab_sim::{Engine, Workload};

/// A runnable task runs within this. In the root group of a CPU with a dozen tasks a slice is at
/// most a few ms each; SCHED_IDLE tasks and tasks of nice 10 beside nice -5 wait longest, by the
/// ratio of weights (3 to 3121).
const RUNS_WITHIN_NS: u64 = 4_000_000_000;

/// No CPU is idle for longer while one in its LLC has tasks that it could take. An idle CPU with
/// its tick stopped is balanced for when a busy one ticks, at most every interval of the LLC's
/// domain, which is at most twice its weight in ms; a failed try or two come on top.
const IDLE_BESIDE_WORK_NS: u64 = 400_000_000;

fn fail(text: String) -> TestCaseError {
    TestCaseError::fail(text)
}

/// Runs a scene to its end, checking as it goes.
pub fn run_checked(scene: &Scene) -> Result<(), TestCaseError> {
    run_engine_checked(scene.engine(), scene.beside.is_empty())
}

/// Runs an engine to its end, checking as it goes; `alone` if nothing runs beside the measured workload.
pub fn run_engine_checked<W: Workload>(
    mut engine: Engine<W>,
    alone: bool,
) -> Result<(), TestCaseError> {
    let mut watch = Watch::default();
    let mut last = 0;
    let mut events = 0u64;
    loop {
        let more = engine.step().map_err(|error| fail(error.to_string()))?;
        let now = engine.now().0;
        if now < last {
            return Err(fail(format!("time went from {last} to {now}")));
        }
        last = now;
        events += 1;
        // The counts are cheap and checked always, the sums every few events.
        check_queues(engine.sched()).map_err(fail)?;
        if events.is_multiple_of(16) {
            check_sums(engine.sched()).map_err(fail)?;
            consistency::check(engine.sched()).map_err(fail)?;
        }
        exclusive::check(&engine).map_err(fail)?;
        watch.look(engine.sched(), now).map_err(fail)?;
        if !more {
            break;
        }
    }
    let queued = engine.sched().tasks.iter().filter(|task| task.on_rq);
    let queued = queued.count();
    // Those beside the measured workload are not waited for.
    if queued > 1 && alone {
        return Err(fail(format!("{queued} tasks are still queued at the end")));
    }
    check_time(engine.sched(), engine.sched().ncpu(), last).map_err(fail)
}

/// Every task is on the one queue of its CPU or on none, and where it may be.
fn check_queues(sched: &Sched) -> Result<(), String> {
    let mut queued = vec![0u32; sched.tasks.len()];
    for (index, rq) in sched.rqs.iter().enumerate() {
        for &p in &rq.cfs_tasks {
            queued[p.index()] += 1;
            let task = &sched.tasks[p.index()];
            if task.cpu.index() != index || !task.on_rq {
                return Err(format!("task {} is listed on CPU {index}: {task:?}", p.0));
            }
            if !task.cpus.contains(task.cpu) {
                return Err(format!("task {} runs where it may not: {task:?}", p.0));
            }
        }
        if rq.nr_running as usize != rq.cfs_tasks.len() {
            return Err(format!(
                "CPU {index}: nr_running {} but {:?}",
                rq.nr_running, rq.cfs_tasks
            ));
        }
        if rq.curr.is_some() && sched.tasks[rq.curr.index()].cpu.index() != index {
            return Err(format!(
                "CPU {index} runs task {} of another CPU",
                rq.curr.0
            ));
        }
        let idle = rq.curr.is_none() && rq.nr_running == 0 && !rq.ttwu_pending;
        let llc = sched.topo.cpus[index].llc;
        let span = sched.topo.llcs[llc.index()];
        let rank = span.iter().take_while(|cpu| cpu.index() < index).count();
        if sched.llc[llc.index()]
            .idle
            .contains(CpuId::from_index(rank))
            != idle
        {
            return Err(format!("CPU {index}: the idle bit is not {idle}"));
        }
    }
    for (index, task) in sched.tasks.iter().enumerate() {
        if queued[index] != u32::from(task.on_rq) {
            return Err(format!(
                "task {index} is on {} queues: {task:?}",
                queued[index]
            ));
        }
    }
    Ok(())
}

/// Weights of queues and loads of groups are the sums of their parts.
fn check_sums(sched: &Sched) -> Result<(), String> {
    for (index, cfs) in sched.cfs.iter().enumerate() {
        let on = sched
            .se
            .iter()
            .filter(|se| se.on_rq && se.cfs_rq.index() == index);
        let (weight, count) = on.fold((0, 0), |(w, n), se| (w + se.weight, n + 1));
        if weight != cfs.weight || count != cfs.nr_running {
            return Err(format!(
                "queue {index}: weight {} and {} entities, but its parts have {weight} and {count}",
                cfs.weight, cfs.nr_running
            ));
        }
    }
    for (index, group) in sched.tgs.iter().enumerate().skip(1) {
        let tg = TgId::from_index(index);
        let parts: u64 = (0..sched.ncpu())
            .map(|cpu| {
                sched.cfs[sched.cfs_of(tg, CpuId::from_index(cpu)).index()].tg_load_avg_contrib
            })
            .sum();
        if parts != group.load_avg {
            return Err(format!(
                "group {index}: load_avg {} of parts {parts}",
                group.load_avg
            ));
        }
    }
    Ok(())
}

/// All that tasks ran is no more than the CPUs had.
fn check_time(sched: &Sched, ncpu: usize, now: u64) -> Result<(), String> {
    let mut per_task = 0;
    for se in sched.se.iter().filter(|se| se.task.is_some()) {
        per_task += se.sum_exec_runtime;
    }
    let had = ncpu as u64 * now;
    if per_task > had {
        return Err(format!(
            "tasks ran {per_task} ns on {ncpu} CPUs in {now} ns"
        ));
    }
    Ok(())
}

/// Since when something has been so.
#[derive(Default)]
struct Watch {
    waiting: Vec<Option<u64>>,
    idle_beside_work: Vec<Option<u64>>,
    looked: u64,
}

impl Watch {
    fn look(&mut self, sched: &Sched, now: u64) -> Result<(), String> {
        self.waiting.resize(sched.tasks.len(), None);
        self.idle_beside_work.resize(sched.ncpu(), None);
        for (index, task) in sched.tasks.iter().enumerate() {
            let p = TaskId::from_index(index);
            let waits = task.on_rq && !sched.is_delayed(p) && sched.rq(task.cpu).curr != p;
            since(&mut self.waiting[index], waits, now, RUNS_WITHIN_NS)
                .map_err(|ns| format!("task {index} was runnable for {ns} ns: {task:?}"))?;
        }
        if now < self.looked + 1_000_000 {
            return Ok(());
        }
        self.looked = now;
        for index in 0..sched.ncpu() {
            let wastes = idle_beside_work(sched, CpuId::from_index(index));
            since(
                &mut self.idle_beside_work[index],
                wastes,
                now,
                IDLE_BESIDE_WORK_NS,
            )
            .map_err(|ns| format!("CPU {index} was idle beside work for {ns} ns"))?;
        }
        Ok(())
    }
}

fn since(start: &mut Option<u64>, is_so: bool, now: u64, bound: u64) -> Result<(), u64> {
    if !is_so {
        *start = None;
        return Ok(());
    }
    let ns = now - *start.get_or_insert(now);
    if ns > bound { Err(ns) } else { Ok(()) }
}

/// Whether the CPU is idle while a CPU of its LLC has two tasks more that may run here.
fn idle_beside_work(sched: &Sched, cpu: CpuId) -> bool {
    let rq = sched.rq(cpu);
    if rq.curr.is_some() || rq.nr_running > 0 {
        return false;
    }
    sched.topo.cpus[cpu.index()].llc_span.iter().any(|other| {
        let movable =
            |p: &&TaskId| sched.tasks[p.index()].cpus.contains(cpu) && !sched.is_delayed(**p);
        sched.rq(other).cfs_tasks.iter().filter(movable).count() >= 3
    })
}
