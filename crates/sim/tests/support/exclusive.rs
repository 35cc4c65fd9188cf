//! What core scheduling promises.

use wakelab_machine::CpuId;
use wakelab_sched::features::Feat;
use wakelab_sched::{Cookie, Sched, TaskId};
use wakelab_sim::{Engine, Workload};

/// The tasks that a core runs have one cookie, the lists of tasks with cookies are complete, and
/// forced idle is counted: where a task waits, or where the CPU has just been told that none does any more.
pub fn check<W: Workload>(engine: &Engine<W>) -> Result<(), String> {
    let sched = engine.sched();
    if !sched.core.enabled {
        return Ok(());
    }
    for core in sched.topo.cores.iter() {
        let cpus: Vec<CpuId> = core.iter().collect();
        for (n, &a) in cpus.iter().enumerate() {
            for &b in &cpus[n + 1..] {
                check_siblings(engine, a, b)?;
            }
        }
        let blocked = cpus
            .iter()
            .filter(|cpu| sched.core.rqs[cpu.index()].blocked.is_some());
        let count = sched.core.of(cpus[0]).core_forceidle_count as usize;
        if blocked.count() != count {
            return Err(format!("core {cpus:?} counts {count} CPUs forced idle"));
        }
        // The kernel does not see the last one leave if that sleeps already and is still queued
        // (`sched_core_dequeue` returns early for `sched_delayed`).
        let sees_all = !sched.feat.has(Feat::DELAY_DEQUEUE);
        let for_nothing = |cpu: &&CpuId| {
            let rq = sched.rq(**cpu);
            let blocked = sched.core.rqs[cpu.index()].blocked.is_some();
            sees_all && blocked && rq.nr_running == 0 && !rq.need_resched
        };
        if let Some(cpu) = cpus.iter().find(for_nothing) {
            return Err(format!("{cpu} is forced idle and has no task"));
        }
        let untold = |cpu: &&CpuId| sched.rq(**cpu).need_resched && !engine.will_look(**cpu);
        if let Some(cpu) = cpus.iter().find(untold) {
            return Err(format!("{cpu} must reschedule and is not told"));
        }
    }
    check_references(sched)?;
    check_trees(sched)
}

/// A cookie is counted once for each task that has it and has not ended, and is gone with the last.
fn check_references(sched: &Sched) -> Result<(), String> {
    let mut counted: Vec<(Cookie, u32)> = sched.core.cookies.held().collect();
    for task in sched
        .tasks
        .iter()
        .filter(|task| !task.exiting && task.cookie.is_some())
    {
        let held = counted
            .iter_mut()
            .find(|(cookie, _)| *cookie == task.cookie);
        let Some((_, left)) = held else {
            return Err(format!("nobody counts {:?}", task.cookie));
        };
        *left = left.wrapping_sub(1);
    }
    match counted.iter().find(|(_, left)| *left != 0) {
        Some(wrong) => Err(format!("{wrong:?} tasks too many or too few")),
        None => Ok(()),
    }
}

/// Two siblings never run the code of tasks with different cookies. While one of them is in the
/// kernel for such a task it has been told to leave it, or is about to: the kernel's own guarantee.
fn check_siblings<W: Workload>(engine: &Engine<W>, a: CpuId, b: CpuId) -> Result<(), String> {
    let sched = engine.sched();
    let (p, q) = (sched.rq(a).curr, sched.rq(b).curr);
    if p.is_none() || q.is_none() {
        return Ok(());
    }
    let cookie = |p: TaskId| sched.tasks[p.index()].cookie;
    if cookie(p) == cookie(q) {
        return Ok(());
    }
    let stays = |cpu: CpuId, p: TaskId| {
        let rq = sched.rq(cpu);
        !rq.need_resched && sched.tasks[p.index()].on_rq && !sched.is_delayed(p)
    };
    let both_in_own_code = engine.in_own_code(a) && engine.in_own_code(b);
    if both_in_own_code || stays(a, p) && stays(b, q) {
        return Err(format!(
            "{a:?} runs task {} with {:?} and {b:?} task {} with {:?}",
            p.0,
            cookie(p),
            q.0,
            cookie(q)
        ));
    }
    Ok(())
}

/// Exactly the queued tasks with a cookie that do not sleep are in the trees of their CPUs.
fn check_trees(sched: &Sched) -> Result<(), String> {
    let mut listed = vec![None; sched.tasks.len()];
    for (index, rq) in sched.core.rqs.iter().enumerate() {
        for p in &rq.core_tree {
            if listed[p.index()].replace(index).is_some() {
                return Err(format!("task {} is listed twice", p.0));
            }
        }
    }
    for (index, task) in sched.tasks.iter().enumerate() {
        let delayed = sched.is_delayed(TaskId::from_index(index));
        let due = task.on_rq && !delayed && task.cookie.is_some();
        let there = listed[index] == Some(task.cpu.index());
        if due != there || due != task.core_queued || due != listed[index].is_some() {
            return Err(format!("task {index} is in {:?}: {task:?}", listed[index]));
        }
    }
    Ok(())
}
