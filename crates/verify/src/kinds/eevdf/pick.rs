//! The pick, and preemption by a wake-up.

use super::record::{Checked, Entity, Record, entity, fl, integer, of};
use super::scene::{CPU, Part, ROOT, Scene, Stage};
use crate::error::Problem;
use crate::outcome::Comparison;
use serde_json::Value;
use wakelab_sched::state::{Policy, SchedEntity};
use wakelab_sched::{SeId, TaskId};

/// Puts a recorded tree on the queue: `known` is an entity of the scene that stands in it. Gives the
/// entities by their recorded names.
fn plant(
    scene: &mut Scene,
    tree: &[Value],
    known: Option<(i64, SeId)>,
) -> Result<Vec<(i64, SeId)>, Problem> {
    let mut planted = Vec::new();
    for node in tree {
        let e = entity(node, "tree")?;
        let id = match known {
            Some((name, id)) if name == e.id => id,
            _ => add(scene, &e),
        };
        if planted.contains(&(e.id, id)) {
            return Err(Problem::value("tree", "an entity twice", "each once"));
        }
        // Recorded in order: each goes right of those before it, also of equals.
        scene.sched.cfs[0].timeline_add(&mut scene.sched.se, id);
        planted.push((e.id, id));
    }
    Ok(planted)
}

fn add(scene: &mut Scene, e: &Entity) -> SeId {
    let id = SeId::from_index(scene.sched.se.len());
    scene.sched.se.push(SchedEntity {
        vruntime: e.vruntime,
        deadline: e.deadline,
        weight: e.weight,
        slice: e.slice,
        on_rq: true,
        cfs_rq: ROOT,
        ..SchedEntity::default()
    });
    id
}

/// What the model computes of a recorded tree, against what the kernel had: the sums, and the least
/// vruntime at the root.
fn tree_is(scene: &Scene, r: &Record<'_>, tree: &[Value]) -> Checked {
    let (cfs, q) = (&scene.sched.cfs[0], r.queue("q")?);
    let mut verdict = of(&[
        ("avg_vruntime", cfs.avg_vruntime as u64, q.sum as u64),
        ("avg_load", cfs.avg_load, q.load),
    ]);
    for node in tree {
        if integer(&node[10], "depth")? == 0 {
            let least = scene.sched.se[cfs.timeline.root.index()].node.min_vruntime;
            let kernel = integer(&node[8], "min_vruntime")?;
            verdict = verdict.and(of(&[("min_vruntime", least, kernel)]));
        }
    }
    Ok(verdict)
}

/// Sets all of a recorded queue but the sums of its tree, which the model computes.
fn open(scene: &mut Scene, r: &Record<'_>) -> Result<(), Problem> {
    let mut q = r.queue("q")?;
    (q.sum, q.load) = (0, 0);
    scene.set_sums(&q);
    Ok(())
}

/// `pick_eevdf`.
pub(super) fn pick(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    open(&mut scene, r)?;
    let tree = r.list("tree")?;
    let mut names = plant(&mut scene, tree, None)?;
    if !r.value["c"].is_null() {
        let c = r.entity("c")?;
        let id = scene.put(Part::Running, &c);
        scene.sched.cfs[0].curr = id;
        names.push((c.id, id));
    }
    let picked = scene.sched.pick_eevdf(ROOT);
    let name = names.iter().find(|(_, id)| *id == picked);
    let name = name.map_or(0, |(name, _)| *name);
    Ok(tree_is(&scene, r, tree)?.and(of(&[("picked", name as u64, r.num("r")?)])))
}

/// The policies by number.
fn policy(number: u64) -> Policy {
    match number {
        3 => Policy::Batch,
        5 => Policy::Idle,
        _ => Policy::Normal,
    }
}

/// `check_preempt_wakeup_fair`.
pub(super) fn preempt(stage: &Stage, r: &Record<'_>) -> Checked {
    let mut scene = stage.scene(r)?;
    let (code, whole) = (r.num("code")?, r.num("full")? != 0);
    let (mut c, p) = (r.entity("c")?, r.entity("p")?);
    if code == 5 && c.vlag == (c.deadline as i64).wrapping_add(1) {
        // Recorded after the call, which took the protection away.
        c.vlag = c.deadline as i64;
    }
    open(&mut scene, r)?;
    let (se, pse) = (scene.put(Part::Running, &c), scene.put(Part::Other, &p));
    scene.sched.cfs[0].curr = se;
    scene.sched.se[se.index()].idle = r.num("ci")? != 0;
    scene.sched.se[pse.index()].idle = r.num("pi")? != 0;
    let curr = scene.task(Part::Running, !c.is(fl::TASK));
    let woken = scene.task(Part::Other, !p.is(fl::TASK));
    scene.sched.tasks[curr.index()].policy = policy(r.num("cpol")?);
    scene.sched.tasks[woken.index()].policy = policy(r.num("pol")?);
    let mut verdict = Comparison::new();
    if whole {
        let tree = r.list("tree")?;
        plant(&mut scene, tree, Some((p.id, pse)))?;
        verdict = tree_is(&scene, r, tree)?;
    }
    scene.sched.rqs[0].need_resched = code == 3;
    let woken = if code == 1 { curr } else { woken };
    let resched = play(&mut scene, curr, woken, r.num("wf")? as u32);
    let vlag = scene.sched.se[se.index()].vlag as u64;
    // Up to code 4 the call ends before it looks at the entities, so that none may change.
    let untouched = if code <= 4 {
        c.vlag as u64
    } else {
        r.num("cvl1")?
    };
    let kernel = code == 3 || code == 5 || code == 8;
    Ok(verdict.and(of(&[
        ("preempts", resched.into(), kernel.into()),
        ("vlag of what runs", vlag, untouched),
    ])))
}

fn play(scene: &mut Scene, curr: TaskId, woken: TaskId, wake_flags: u32) -> bool {
    scene.sched.rqs[0].curr = curr;
    scene.sched.check_preempt_curr(CPU, woken, wake_flags);
    scene.sched.rqs[0].need_resched
}
