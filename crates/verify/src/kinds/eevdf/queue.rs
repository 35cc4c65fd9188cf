//! Leaving a run queue, at once or later, and being woken before.

use super::record::{Checked, Entity, Record, fl, of};
use super::scene::{ROOT, Stage};
use crate::error::Problem;

/// Only what is queued can leave.
fn queued(e: &Entity) -> Result<(), Problem> {
    let queued = e.is(fl::ON_RQ).then_some(());
    queued.ok_or_else(|| Problem::value("e0", "an entity off the queue", "one on it"))
}

/// `dequeue_entity`.
pub(super) fn deq(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let (before, after) = (r.entity("e0")?, r.entity("e1")?);
    queued(&before)?;
    let id = scene.set(&r.queue("q0")?, &before)?;
    if after.weight != before.weight {
        if before.is(fl::TASK) {
            return Err(Problem::value(
                "e1",
                after.weight,
                "the task's weight as before",
            ));
        }
        // The group's run queue is not empty, and all of the group's load is on it: the entity gets
        // all of the group's shares.
        let gcfs = &mut scene.sched.cfs[scene.sched.se[id.index()].my_q.index()];
        gcfs.weight = 1 << 20;
        scene.sched.tgs[gcfs.tg.index()].shares = after.weight;
    }
    let gone = scene
        .sched
        .dequeue_entity_eevdf(ROOT, id, r.num("fl")? as u32);
    Ok(scene
        .queue_is(&r.queue("q1")?)
        .and(scene.entity_is(id, &after))
        .and(of(&[("gone", gone.into(), r.num("r")?)])))
}

/// `requeue_delayed_entity`.
pub(super) fn reqd(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let before = r.entity("e0")?;
    queued(&before)?;
    let id = scene.set(&r.queue("q0")?, &before)?;
    scene.sched.requeue_delayed_entity(id);
    Ok(scene
        .queue_is(&r.queue("q1")?)
        .and(scene.entity_is(id, &r.entity("e1")?)))
}
