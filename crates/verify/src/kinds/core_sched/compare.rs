//! `cfs_prio_less`.

use super::scene::integer;
use super::scene::{Scene, count, cpu, list, num};
use super::{Checked, of};
use crate::header::Header;
use crate::outcome::Comparison;
use serde_json::Value;
use wakelab_sched::TaskId;

/// `cfs_prio_less`.
pub fn cless(header: &Header, r: &Value) -> Checked {
    let mut scene = Scene::new(header)?;
    let a = scene.plant(num(r, "a")?, cpu(header, r, "ca")?, 0, list(r, "A")?)?;
    let b = scene.plant(num(r, "b")?, cpu(header, r, "cb")?, 0, list(r, "B")?)?;
    let seq = count(r, "fs")? as u32;
    scene
        .sched
        .core
        .of_mut(cpu(header, r, "ca")?)
        .core_forceidle_seq = seq;
    let less = scene.sched.cfs_prio_less(a, b, num(r, "fi")? != 0);
    let verdict = of(&[("less", less.into(), num(r, "r")?)]);
    let verdict = verdict.and(chain_is(&scene, a, list(r, "A1")?)?);
    Ok(verdict.and(chain_is(&scene, b, list(r, "B1")?)?))
}

/// The bases of a task's chain against those recorded.
fn chain_is(scene: &Scene, p: TaskId, chain: &[Value]) -> Checked {
    let mut verdict = Comparison::new();
    let mut se_id = scene.sched.tasks[p.index()].se;
    for level in chain {
        let (zero, seq) = scene.fi_of(se_id);
        verdict = verdict.and(of(&[
            ("zero_vruntime_fi", zero, integer(&level[0], "chain")?),
            ("forceidle_seq", seq, integer(&level[1], "chain")?),
        ]));
        se_id = scene.sched.se[se_id.index()].parent;
    }
    Ok(verdict)
}
