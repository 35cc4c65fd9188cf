//! What of a scheduler's state must be the sum of its parts, whatever happened.

use wakelab_sched::weight::scale_load_down;
use wakelab_sched::{CfsRq, Feat, Sched, SchedEntity, TaskId};

/// Counts of tasks, groups, trees and estimates.
pub fn check(sched: &Sched) -> Result<(), String> {
    check_counts(sched)?;
    check_groups(sched)?;
    check_estimates(sched)?;
    if sched.rules.eevdf {
        for (index, cfs) in sched.cfs.iter().enumerate() {
            check_timeline(sched, cfs).map_err(|how| format!("queue {index}: {how}: {cfs:?}"))?;
        }
    }
    Ok(())
}

/// Queues count the tasks on them and those of these that sleep; none of them runs.
fn check_counts(sched: &Sched) -> Result<(), String> {
    let mut counts = vec![(0, 0); sched.cfs.len()];
    for (index, task) in sched.tasks.iter().enumerate() {
        let delayed = sched.is_delayed(TaskId::from_index(index));
        if delayed && (!task.on_rq || task.on_cpu) {
            return Err(format!("task {index} is delayed, but {task:?}"));
        }
        let mut walk = task.se;
        while task.on_rq && walk.is_some() {
            let se = &sched.se[walk.index()];
            if !se.on_rq {
                return Err(format!("task {index} is queued, but not {se:?}"));
            }
            let count = &mut counts[se.cfs_rq.index()];
            *count = (count.0 + 1, count.1 + u32::from(delayed));
            walk = se.parent;
        }
    }
    for (index, (cfs, &(tasks, delayed))) in sched.cfs.iter().zip(&counts).enumerate() {
        if (cfs.h_nr_running, cfs.h_nr_delayed) != (tasks, delayed) {
            return Err(format!(
                "queue {index} counts {} tasks, {} delayed, of {tasks}, {delayed}",
                cfs.h_nr_running, cfs.h_nr_delayed
            ));
        }
    }
    Ok(())
}

/// A group is queued without entities only if it is delayed, and delayed only without.
fn check_groups(sched: &Sched) -> Result<(), String> {
    for se in sched.se.iter().filter(|se| se.my_q.is_some()) {
        let empty = sched.cfs[se.my_q.index()].nr_running == 0;
        if se.sched_delayed != (se.on_rq && empty) {
            return Err(format!("a group of which {empty} that it is empty: {se:?}"));
        }
    }
    Ok(())
}

/// The estimate of a CPU's utilisation is that of the tasks on it that do not sleep.
fn check_estimates(sched: &Sched) -> Result<(), String> {
    if !sched.feat.has(Feat::UTIL_EST) {
        return Ok(());
    }
    let mut sums = vec![0u64; sched.ncpu()];
    for (index, task) in sched.tasks.iter().enumerate() {
        if task.on_rq && !sched.is_delayed(TaskId::from_index(index)) {
            sums[task.cpu.index()] += sched.se[task.se.index()].avg.util_est.value();
        }
    }
    for (index, &sum) in sums.iter().enumerate() {
        let kept = sched.cfs[index].avg.util_est.enqueued;
        if u64::from(kept) != sum {
            return Err(format!("CPU {index}: estimate {kept} of {sum}"));
        }
    }
    Ok(())
}

/// The tree holds what is queued and does not run, its sums are those of what it holds, and every
/// node knows the least vruntime below it.
fn check_timeline(sched: &Sched, cfs: &CfsRq) -> Result<(), String> {
    let (mut sum, mut load, mut count) = (0i64, 0u64, 0);
    let mut below = vec![cfs.timeline.root];
    while let Some(id) = below.pop() {
        if id.is_none() {
            continue;
        }
        let se = &sched.se[id.index()];
        let weight = scale_load_down(se.weight);
        let key = se.vruntime.wrapping_sub(cfs.zero_vruntime) as i64;
        sum = sum.wrapping_add(key.wrapping_mul(weight as i64));
        (load, count) = (load + weight, count + 1);
        let here = sched.cfs_of(cfs.tg, cfs.cpu);
        if !se.on_rq || se.cfs_rq != here || cfs.curr == id {
            return Err(format!("{se:?} is in the tree"));
        }
        check_node(sched, se)?;
        below.extend(se.node.child);
    }
    let running = cfs.curr.is_some() && sched.se[cfs.curr.index()].on_rq;
    let queued = count + u32::from(running);
    if (sum, load, queued) != (cfs.avg_vruntime, cfs.avg_load, cfs.nr_running) {
        return Err(format!("sum {sum}, load {load}, {queued} queued"));
    }
    Ok(())
}

fn check_node(sched: &Sched, se: &SchedEntity) -> Result<(), String> {
    let children = se.node.child.into_iter().filter(|child| child.is_some());
    let entities = children.map(|child| &sched.se[child.index()]);
    let later = |a: u64, b: u64| b.wrapping_sub(a) as i64 > 0;
    let least = entities.fold(se.vruntime, |least, child| {
        let of_child = child.node.min_vruntime;
        if later(of_child, least) {
            of_child
        } else {
            least
        }
    });
    if least != se.node.min_vruntime {
        return Err(format!("the least vruntime below is {least}: {se:?}"));
    }
    Ok(())
}
