//! Makes a recorded decision again and compares it, step by step, with what the kernel did.

use super::record::{Record, Sibling, WakeAffine};
use crate::outcome::{Difference, Outcome};
use std::fmt::Debug;
use wakelab_sched::placement::{
    AffinePath, Decision, Reason, Recorded, RecordedCall, select_task_rq_fair,
};

/// A step of the path of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// `wake_wide`: its result.
    WakeWide,
    /// `wake_affine`: its path, target and loads.
    WakeAffine,
    /// `select_idle_sibling`: its path and result, the CPUs scanned, `has_idle_cores` cleared.
    SelectIdleSibling,
    /// The slow path: its result.
    SlowPath,
    /// The decision: the CPU, and `recent_used_cpu`.
    Decision,
}

impl Step {
    /// All of them, in the order of the path.
    pub const ALL: [Step; 5] = [
        Step::WakeWide,
        Step::WakeAffine,
        Step::SelectIdleSibling,
        Step::SlowPath,
        Step::Decision,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Step::WakeWide => "wake_wide",
            Step::WakeAffine => "wake_affine",
            Step::SelectIdleSibling => "select_idle_sibling",
            Step::SlowPath => "slow path",
            Step::Decision => "whole decision",
        }
    }
}

/// A decision compared.
pub(crate) struct Compared {
    /// Why the model chose as it did.
    pub reason: Reason,
    /// The whole.
    pub outcome: Outcome,
    /// Whether each step agreed; none if neither the kernel nor the model took it.
    pub steps: [Option<bool>; Step::ALL.len()],
    /// The CPU that the model chose.
    pub cpu: u16,
}

/// Makes the decision again, with one rule broken if the view says so, and compares it.
pub(crate) fn compare(record: &Record, call: &RecordedCall, view: &mut Recorded<'_>) -> Compared {
    let decision = select_task_rq_fair(view, call.prev_cpu, call.wake_flags);
    let mut parts = Parts::default();
    if record.is_wakeup() {
        let kernel = Some(record.wide.0);
        parts.taken(Step::WakeWide, "wake_wide", kernel, decision.wake_wide);
    }
    wake_affine(&mut parts, record.wa.as_ref(), &decision);
    select_idle_sibling(&mut parts, record.sis.as_ref(), &decision);
    slow_path(&mut parts, record, &decision);
    parts.same(Step::Decision, "CPU", record.new, decision.cpu.0);
    let recent = u64::from(view.recent_used_cpu.0);
    parts.same(Step::Decision, "recent_used_cpu", record.ruc[1], recent);
    Compared {
        reason: decision.reason,
        steps: parts.steps,
        cpu: decision.cpu.0,
        outcome: match parts.first {
            first if record.racy != 0 => Outcome::Racy {
                agrees: first.is_none(),
            },
            None => Outcome::Agree,
            Some(difference) => Outcome::Differ(difference),
        },
    }
}

/// What was compared so far.
#[derive(Default)]
struct Parts {
    steps: [Option<bool>; Step::ALL.len()],
    first: Option<Difference>,
}

impl Parts {
    fn same<T: PartialEq + Debug>(&mut self, step: Step, what: &'static str, kernel: T, ours: T) {
        self.taken(step, what, Some(kernel), Some(ours));
    }

    /// The same of something that one of the two may not have come to.
    fn taken<T: PartialEq + Debug>(
        &mut self,
        step: Step,
        what: &'static str,
        kernel: Option<T>,
        ours: Option<T>,
    ) {
        let agrees = kernel == ours;
        let whole = &mut self.steps[step as usize];
        *whole = Some(whole.unwrap_or(true) && agrees);
        if !agrees && self.first.is_none() {
            let text =
                |value: Option<T>| value.map_or("not taken".to_owned(), |v| format!("{v:?}"));
            self.first = Some(Difference {
                step: what,
                kernel: text(kernel),
                ours: text(ours),
            });
        }
    }
}

fn wake_affine(parts: &mut Parts, kernel: Option<&WakeAffine>, decision: &Decision) {
    let ours = decision.wake_affine;
    if kernel.is_none() && ours.is_none() {
        return;
    }
    let paths = (kernel.map(|wa| wa.path), ours.map(|wa| wa.path));
    parts.taken(Step::WakeAffine, "wake_affine, path", paths.0, paths.1);
    let (Some(kernel), Some(ours)) = (kernel, ours) else {
        return;
    };
    parts.same(
        Step::WakeAffine,
        "wake_affine, target",
        kernel.ret,
        ours.target.0,
    );
    if matches!(ours.path, AffinePath::LessLoad | AffinePath::NotLessLoad) {
        let loads = (Some(ours.this_eff_load), Some(ours.prev_eff_load));
        parts.same(
            Step::WakeAffine,
            "wake_affine, loads",
            (kernel.te, kernel.pe),
            loads,
        );
    }
}

fn select_idle_sibling(parts: &mut Parts, kernel: Option<&Sibling>, decision: &Decision) {
    let ours = decision.sis;
    if kernel.is_none() && ours.is_none() {
        return;
    }
    let step = Step::SelectIdleSibling;
    let path = kernel.map(|sis| sis.path);
    parts.taken(step, "select_idle_sibling, path", path, ours);
    let (Some(kernel), Some(_)) = (kernel, ours) else {
        return;
    };
    parts.same(
        step,
        "select_idle_sibling, result",
        kernel.ret,
        decision.cpu.0,
    );
    let searched = decision.searched;
    // The recording counts the step at which the limit ended the loop, before it looked.
    let scanned = u64::from(searched.scanned) + u64::from(searched.limit_hit);
    parts.same(
        step,
        "select_idle_sibling, CPUs scanned",
        kernel.scan,
        scanned,
    );
    parts.same(
        step,
        "select_idle_sibling, has_idle_cores cleared",
        kernel.hicc.0,
        searched.cleared_idle_cores,
    );
}

fn slow_path(parts: &mut Parts, record: &Record, decision: &Decision) {
    let kernel = record.slow.as_ref().map(|slow| slow.ret);
    let ours = (decision.reason == Reason::SlowPath).then_some(decision.cpu.0);
    if kernel.is_some() || ours.is_some() {
        parts.taken(Step::SlowPath, "slow path, result", kernel, ours);
    }
}
