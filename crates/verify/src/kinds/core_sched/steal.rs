//! `try_steal_cookie`.

use super::scene::integer;
use super::scene::{Scene, count, cpu, list, num};
use super::{Checked, of};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::Comparison;
use serde_json::Value;
use wakelab_machine::{CpuId, Ns};
use wakelab_sched::core_sched::Steal;
use wakelab_sched::state::Pick;
use wakelab_sched::{Cookie, TaskId};

/// `try_steal_cookie`.
pub fn steal(header: &Header, r: &Value) -> Checked {
    let mut scene = Scene::new(header)?;
    let (to, from) = (cpu(header, r, "to")?, cpu(header, r, "frm")?);
    let cookie = num(r, "ck")?;
    candidates(&mut scene, from, to, r)?;
    scene.sched.core.of_mut(to).core_cookie = Cookie(cookie);
    scene.sched.core.rqs[to.index()].idle_occupation = count(r, "docc")? as u32;
    if num(r, "di")? == 0 {
        // What runs there is not recorded.
        let running = scene.task(u64::MAX - 1, to, 0);
        scene.sched.rqs[to.index()].curr = running;
    }
    let pick = scene.known(num(r, "spk")?, from);
    scene.sched.core.rqs[from.index()].core_pick = pick;
    if let Some(Pick::Task(curr)) = scene.known(num(r, "scur")?, from) {
        scene.sched.rqs[from.index()].curr = curr;
    }
    let now = Ns(scene.sched.now);
    let outcome = scene.sched.try_steal_cookie(to, from, now);
    let (code, pid) = named(&scene, outcome);
    let mut verdict = of(&[
        ("code", code, num(r, "code")?),
        ("pid", pid, num(r, "pid")?),
    ]);
    if let Steal::Moved(p) = outcome {
        verdict = verdict.and(has_moved(&scene, to, p));
    }
    Ok(verdict)
}

/// Queues the candidates in the order of the tree. A destination on which the task's group is
/// throttled is one where it may not run; the model has no bandwidth control.
fn candidates(scene: &mut Scene, from: CpuId, to: CpuId, r: &Value) -> Result<(), Problem> {
    for c in list(r, "cand")? {
        let at = |index: usize| integer(&c[index], "cand");
        let p = scene.task(at(0)?, from, num(r, "ck")?);
        scene.sched.activate_task(from, p, 0);
        let task = &mut scene.sched.tasks[p.index()];
        task.core_occupation = at(4)? as u32;
        if at(3)? == 0 || at(5)? != 0 {
            task.cpus.clear(to);
        }
    }
    // Queued one after the other they need not be in the recorded order.
    let order = list(r, "cand")?.iter().map(|c| integer(&c[0], "cand"));
    let order = order.collect::<Result<Vec<_>, _>>()?;
    let tasks = order.iter().map(|&pid| scene.task(pid, from, 0)).collect();
    scene.sched.core.rqs[from.index()].core_tree = tasks;
    Ok(())
}

fn named(scene: &Scene, outcome: Steal) -> (u64, u64) {
    let none = u64::MAX;
    match outcome {
        Steal::Moved(p) => (0, scene.pid_of(p).unwrap_or(none)),
        Steal::NoCookie => (1, none),
        Steal::NotIdle => (2, none),
        Steal::NoCandidate => (3, none),
        Steal::NoneSuitable => (4, none),
    }
}

/// A stolen task is queued on its new CPU, which must switch to it.
fn has_moved(scene: &Scene, to: CpuId, p: TaskId) -> Comparison {
    let task = &scene.sched.tasks[p.index()];
    let listed = scene.sched.core.rqs[to.index()].core_tree == [p];
    of(&[
        ("CPU", task.cpu.index() as u64, to.index() as u64),
        ("queued", task.on_rq.into(), 1),
        ("in the tree", listed.into(), 1),
        ("told", scene.sched.rq(to).need_resched.into(), 1),
    ])
}
