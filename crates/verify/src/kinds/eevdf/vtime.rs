//! The average, eligibility, lag, and the least slice.

use super::record::{Checked, Record, of};
use super::scene::{Part, ROOT, Stage};

/// `avg_vruntime`.
pub(super) fn avgv(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    scene.set_queue(&r.queue("q")?);
    let average = scene.sched.avg_vruntime(ROOT);
    Ok(scene.sums(r)?.and(of(&[("average", average, r.num("r")?)])))
}

/// `vruntime_eligible`.
pub(super) fn elig(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    scene.set_queue(&r.queue("q")?);
    let eligible = scene.sched.vruntime_eligible(ROOT, r.num("vr")?);
    Ok(of(&[("eligible", eligible.into(), r.num("r")?)]))
}

/// `update_entity_lag`.
pub(super) fn lag(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let se = scene.set(&r.queue("q")?, &r.entity("e")?)?;
    scene.sched.update_entity_lag(ROOT, se);
    let vlag = scene.sched.se[se.index()].vlag as u64;
    Ok(scene.sums(r)?.and(of(&[("vlag", vlag, r.num("vl")?)])))
}

/// `cfs_rq_min_slice`, from what the root of the tree has, which may be more than the least.
pub(super) fn msl(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    scene.set_queue(&r.queue("q")?);
    let curr = scene.se(Part::Running, true);
    scene.sched.se[curr.index()].slice = r.num("cs")?;
    if r.num("n")? > 0 {
        let root = scene.se(Part::Other, true);
        scene.sched.cfs[0]
            .timeline
            .insert(&mut scene.sched.se, root);
        scene.sched.se[root.index()].node.min_slice = r.num("root")?;
    }
    let slice = scene.sched.cfs_rq_min_slice(ROOT);
    Ok(of(&[("slice", slice, r.num("r")?)]))
}
