//! Placement, requests, accounting, yielding and new weights of one entity.

use super::record::{Checked, Record, fl, of};
use super::scene::{CPU, ROOT, Scene, Stage};
use crate::error::Problem;
use crate::outcome::Comparison;
use crate::wire::{Amount, Avg};
use serde::Deserialize as _;
use wakelab_sched::{SchedAvg, SeId};

/// An entity after a call against the record's `vr`, `dl` and `sl`.
fn moved(scene: &Scene, r: &Record<'_>, id: SeId) -> Result<Comparison, Problem> {
    let se = &scene.sched.se[id.index()];
    Ok(scene.sums(r)?.and(of(&[
        ("vruntime", se.vruntime, r.num("vr")?),
        ("deadline", se.deadline, r.num("dl")?),
        ("slice", se.slice, r.num("sl")?),
    ])))
}

/// `place_entity`.
pub(super) fn place(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let id = scene.set(&r.queue("q")?, &r.entity("e")?)?;
    scene
        .sched
        .place_entity_eevdf(ROOT, id, r.num("fl")? as u32);
    let se = &scene.sched.se[id.index()];
    Ok(moved(&scene, r, id)?.and(of(&[
        ("vlag", se.vlag as u64, r.num("vl")?),
        ("rel_deadline", se.rel_deadline.into(), r.num("rel")?),
    ])))
}

/// `update_deadline`.
pub(super) fn updl(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let id = scene.set(&r.queue("q")?, &r.entity("e")?)?;
    let renewed = scene.sched.update_deadline(ROOT, id);
    let se = &scene.sched.se[id.index()];
    Ok(scene.sums(r)?.and(of(&[
        ("deadline", se.deadline, r.num("dl")?),
        ("slice", se.slice, r.num("sl")?),
        ("renewed", renewed.into(), r.num("r")?),
    ])))
}

/// `update_curr`.
pub(super) fn curr(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let q = r.queue("q")?;
    let id = scene.set(&q, &r.entity("e")?)?;
    let (start, total) = (r.num("ex0")?, r.num("sum0")?);
    scene.sched.rqs[0].clock_task = r.num("now")?;
    let se = &mut scene.sched.se[id.index()];
    (se.exec_start, se.sum_exec_runtime) = (start, total);
    let deadline = se.deadline;
    scene.sched.update_curr(ROOT);
    let se = &scene.sched.se[id.index()];
    let code = if r.num("now")?.wrapping_sub(start) as i64 <= 0 {
        1
    } else if q.nr_running == 1 {
        2
    } else if scene.sched.rqs[0].need_resched {
        4
    } else {
        8
    };
    let renewed = 16 * u64::from(se.deadline != deadline);
    let early = code < 4 && scene.sched.rqs[0].need_resched;
    Ok(moved(&scene, r, id)?.and(of(&[
        ("exec_start", se.exec_start, r.num("ex1")?),
        ("sum_exec_runtime", se.sum_exec_runtime, r.num("sum1")?),
        ("code", code + renewed, r.num("code")?),
        ("resched of one alone", early.into(), 0),
    ])))
}

/// `yield_task_fair`.
pub(super) fn yields(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let id = scene.set(&r.queue("q")?, &r.entity("e")?)?;
    // Alone on the CPU it would have returned at once.
    scene.sched.rqs[0].nr_running = 2;
    scene.sched.rqs[0].curr = scene.sched.se[id.index()].task;
    scene.sched.yield_task(CPU);
    moved(&scene, r, id)
}

/// `reweight_entity`, with the averages.
pub(super) fn rewt(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let before = r.entity("e0")?;
    let id = scene.set(&r.queue("q0")?, &before)?;
    if before.is(fl::ON_RQ) && r.num("lw0")? < before.weight {
        return Err(Problem::value(
            "lw0",
            r.num("lw0")?,
            "at least the entity's weight",
        ));
    }
    let Ok(Amount(weight)) = Amount::try_from(r.num("w")?) else {
        return Err(Problem::value("w", r.num("w")?, "a weight"));
    };
    scene.sched.se[id.index()].avg = averages(r, "a0")?;
    let cfs = &mut scene.sched.cfs[0];
    cfs.weight = r.num("lw0")?;
    (cfs.avg.load_avg, cfs.avg.load_sum) = (r.num("cl0")?, r.num("cs0")?);
    scene.sched.reweight_entity(ROOT, id, weight);
    let cfs = &scene.sched.cfs[0];
    let (avg, kernel) = (&scene.sched.se[id.index()].avg, averages(r, "a1")?);
    let averages = of(&[
        ("queue's weight", cfs.weight, r.num("lw1")?),
        ("queue's load_avg", cfs.avg.load_avg, r.num("cl1")?),
        ("queue's load_sum", cfs.avg.load_sum, r.num("cs1")?),
        ("load_avg", avg.load_avg, kernel.load_avg),
        ("other averages", u64::from(*avg != kernel), 0),
    ]);
    Ok(scene
        .queue_is(&r.queue("q1")?)
        .and(scene.entity_is(id, &r.entity("e1")?))
        .and(averages))
}

fn averages(r: &Record<'_>, name: &str) -> Result<SchedAvg, Problem> {
    let avg = Avg::deserialize(&r.value[name]);
    avg.map(|avg| avg.0)
        .map_err(|error| Problem::value(name, error, "averages"))
}
