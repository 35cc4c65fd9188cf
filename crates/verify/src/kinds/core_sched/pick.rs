//! `pick_next_task` with core scheduling.

use super::scene::integer;
use super::scene::{Scene, count, cpu, list, num};
use super::{Checked, of};
use crate::error::Problem;
use crate::header::Header;
use crate::outcome::Comparison;
use serde_json::Value;
use wakelab_machine::CpuId;
use wakelab_sched::state::Pick;
use wakelab_sched::{Cookie, TaskId};

/// `__task_prio` of the stopper, of fair tasks and of idle.
const STOP: u64 = (-2i64) as u64;
const FAIR: u64 = 119;

/// A task as recorded.
struct Recorded {
    pid: u64,
    cookie: u64,
    prio: u64,
}

fn recorded(t: &Value) -> Result<Recorded, Problem> {
    Ok(Recorded {
        pid: integer(&t[0], "t")?,
        cookie: integer(&t[1], "t")?,
        prio: integer(&t[2], "t")?,
    })
}

/// The state of the core before the call.
fn set_core(header: &Header, scene: &mut Scene, r: &Value) -> Result<CpuId, Problem> {
    let own = cpu(header, r, "cpu")?;
    let pick = scene.known(num(r, "cp")?, own);
    let core = scene.sched.core.of_mut(own);
    core.core_cookie = Cookie(num(r, "ck0")?);
    core.core_forceidle_count = count(r, "fi0")? as u32;
    core.core_forceidle_seq = count(r, "fs0")? as u32;
    core.core_task_seq = count(r, "ts")?;
    core.core_pick_seq = count(r, "ps")?;
    scene.sched.core.rqs[own.index()].core_sched_seq = count(r, "ss")?;
    scene.sched.core.rqs[own.index()].core_pick = pick;
    Ok(own)
}

/// Lets a CPU pick by itself what the kernel's did.
fn set_own(scene: &mut Scene, on: CpuId, t: &Value, chain: &[Value]) -> Result<Pick, Problem> {
    let t = recorded(t)?;
    match t.prio {
        STOP => {
            scene.sched.core.rqs[on.index()].stop = true;
            Ok(Pick::Stop)
        }
        FAIR => {
            let p = scene.plant(t.pid, on, t.cookie, chain)?;
            scene.queue_alone(p)?;
            Ok(Pick::Task(p))
        }
        _ => Ok(Pick::Idle),
    }
}

/// Whether a pick is what was recorded.
fn is(scene: &Scene, name: &'static str, pick: Pick, t: &Value) -> Checked {
    let t = recorded(t)?;
    if t.prio == STOP || pick == Pick::Stop {
        let stop = u64::from(pick == Pick::Stop);
        return Ok(of(&[(name, stop, u64::from(t.prio == STOP))]));
    }
    let pid = scene.pid(pick).unwrap_or(u64::MAX);
    Ok(of(&[(name, pid, t.pid)]))
}

/// `pick_next_task`.
pub fn core(header: &Header, r: &Value) -> Checked {
    let scene = Scene::new(header)?;
    match num(r, "path")? {
        0 => followed(header, scene, r),
        1 => alone(header, scene, r),
        _ => core_wide(header, scene, r),
    }
}

/// The pick of a sibling is followed.
fn followed(header: &Header, mut scene: Scene, r: &Value) -> Checked {
    let own = set_core(header, &mut scene, r)?;
    let ready = scene.sched.core_pick_ready(own);
    let next = scene.sched.pick_next_task_core(own);
    let core = &scene.sched.core.rqs[own.index()];
    let verdict = of(&[
        ("follows", ready.into(), 1),
        ("core_sched_seq", core.core_sched_seq, count(r, "ps")?),
        ("core_pick", core.core_pick.is_some().into(), 0),
    ]);
    Ok(verdict.and(is(&scene, "next", next, &r["next"])?))
}

/// No cookie is in play.
fn alone(header: &Header, mut scene: Scene, r: &Value) -> Checked {
    let own = set_core(header, &mut scene, r)?;
    set_own(&mut scene, own, &r["next"], &[])?;
    let ready = scene.sched.core_pick_ready(own);
    let next = scene.sched.pick_next_task_core(own);
    let core = scene.sched.core.of(own);
    let verdict = of(&[
        ("follows", ready.into(), 0),
        (
            "core-wide",
            (core.core_pick_seq != count(r, "ps")?).into(),
            0,
        ),
        ("core_task_seq", core.core_task_seq, count(r, "ts")? + 1),
    ]);
    Ok(verdict.and(is(&scene, "next", next, &r["next"])?))
}

/// The whole core picks. Whether an earlier pick could have been followed was decided before the
/// state was recorded, and balancing may have come between.
fn core_wide(header: &Header, mut scene: Scene, r: &Value) -> Checked {
    let siblings = list(r, "sib")?;
    let mut picks = Vec::new();
    for sibling in siblings {
        let (on, chain) = (cpu(header, sibling, "i")?, list(sibling, "ch")?);
        picks.push(set_own(&mut scene, on, &sibling["t"], chain)?);
        scene.sched.rqs[on.index()].nr_running = count(sibling, "nr")? as u32;
    }
    set_trees(header, &mut scene, r)?;
    for sibling in siblings {
        let on = cpu(header, sibling, "i")?;
        if let Some(Pick::Task(curr)) = scene.known(num(sibling, "cur")?, on) {
            scene.sched.rqs[on.index()].curr = curr;
        }
    }
    let own = set_core(header, &mut scene, r)?;
    let compared = comparisons(scene.clone(), &picks, r)?;
    let next = scene.sched.pick_anew(own);
    let verdict = compared.and(outcome(&scene, own, r)?);
    let mut verdict = verdict.and(finals(header, &scene, own, next, r)?);
    if let (Some(pid), Ok(kernel)) = (scene.pid(next), num(r, "next")) {
        verdict = verdict.and(of(&[("next", pid, kernel)]));
    }
    Ok(verdict)
}

/// The trees of the cookie that was chosen. What its group's bandwidth throttles may not run, and
/// the model has no such tasks.
fn set_trees(header: &Header, scene: &mut Scene, r: &Value) -> Result<(), Problem> {
    for sibling in list(r, "fin")? {
        let on = cpu(header, sibling, "i")?;
        for queued in list(sibling, "ct")? {
            if integer(&queued[1], "ct")? != 0 {
                continue;
            }
            let p = scene.task(integer(&queued[0], "ct")?, on, num(r, "ck1")?);
            scene.sched.core.rqs[on.index()].core_tree.push(p);
        }
    }
    Ok(())
}

/// The comparisons of the search for the highest priority, one after the other.
fn comparisons(mut scene: Scene, picks: &[Pick], r: &Value) -> Checked {
    let in_fi = num(r, "fi0")? != 0;
    let mut verdict = Comparison::new();
    let mut max = picks.first().copied().unwrap_or(Pick::Idle);
    for (sibling, &own) in list(r, "sib")?.iter().zip(picks).skip(1) {
        let less = scene.sched.prio_less(max, own, in_fi);
        max = if less { own } else { max };
        verdict = verdict.and(of(&[("less", less.into(), num(sibling, "less")?)]));
        if let Pick::Task(p) = own {
            let (fi, seq) = scene.fi_of(scene.sched.tasks[p.index()].se);
            verdict = verdict.and(of(&[
                ("zero_vruntime_fi", fi, num(sibling, "fi")?),
                ("forceidle_seq", seq, num(sibling, "fsq")?),
            ]));
        }
    }
    match scene.pid(max) {
        Some(pid) => Ok(verdict.and(of(&[("max", pid, num(r, "max")?)]))),
        None => Ok(verdict),
    }
}

/// What the core keeps of the pick.
fn outcome(scene: &Scene, own: CpuId, r: &Value) -> Checked {
    let core = scene.sched.core.of(own);
    let (seq, cookie) = (core.core_task_seq, core.core_cookie);
    Ok(of(&[
        ("core_cookie", cookie.0, num(r, "ck1")?),
        (
            "forceidle_count",
            core.core_forceidle_count.into(),
            num(r, "fi1")?,
        ),
        (
            "forceidle_seq",
            core.core_forceidle_seq.into(),
            num(r, "fs1")?,
        ),
        ("core_task_seq", seq, count(r, "ts")? + 1),
        ("core_pick_seq", core.core_pick_seq, seq),
    ]))
}

/// What each CPU of the core shall run, and how many.
fn finals(header: &Header, scene: &Scene, own: CpuId, next: Pick, r: &Value) -> Checked {
    let mut verdict = Comparison::new();
    let mut running = 0;
    for sibling in list(r, "fin")? {
        let on = cpu(header, sibling, "i")?;
        let curr = scene.sched.rq(on).curr;
        let stays = if curr.is_none() {
            Pick::Idle
        } else {
            Pick::Task(curr)
        };
        let waiting = scene.sched.core.rqs[on.index()].core_pick;
        let pick = if on == own {
            next
        } else {
            waiting.unwrap_or(stays)
        };
        running += u64::from(pick != Pick::Idle);
        verdict = verdict.and(is(scene, "picked", pick, &sibling["t"])?);
        let told = scene.sched.rq(on).need_resched || on == own;
        verdict = verdict.and(of(&[
            ("told", told.into(), (on == own || waiting.is_some()).into()),
            (
                "occupation",
                occupation(scene, on, pick, r)?,
                num(r, "occ")?,
            ),
        ]));
    }
    Ok(verdict.and(of(&[("occupied", running, num(r, "occ")?)])))
}

fn occupation(scene: &Scene, on: CpuId, pick: Pick, r: &Value) -> Result<u64, Problem> {
    let of = |p: TaskId| scene.sched.tasks[p.index()].core_occupation;
    Ok(match pick {
        Pick::Task(p) => of(p).into(),
        Pick::Idle => scene.sched.core.rqs[on.index()].idle_occupation.into(),
        Pick::Stop => num(r, "occ")?,
    })
}
