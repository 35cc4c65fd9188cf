//! Makes a recorded decision again and compares it, step by step, with what the kernel did.

use crate::header::{Header, number};
use crate::record;
use serde_json::Value;
use std::collections::BTreeMap;
use wakelab_machine::CpuId;
use wakelab_sched::placement::{AffinePath, Decision, Reason, Recorded, select_task_rq_fair};

/// The steps compared.
pub const STEPS: [&str; 9] = [
    "result",
    "recent_used_cpu",
    "wake_affine path",
    "wake_affine target",
    "wake_affine loads",
    "select_idle_sibling path",
    "select_idle_sibling result",
    "CPUs scanned",
    "has_idle_cores cleared",
];

/// How often a step agreed and disagreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub agree: u64,
    pub disagree: u64,
}

/// The comparison of many decisions, those apart whose inputs changed while they were made.
#[derive(Debug, Default)]
pub struct Tally {
    pub steps: BTreeMap<&'static str, Count>,
    /// By what ours named as the reason.
    pub reasons: BTreeMap<Reason, Count>,
    pub decisions: Count,
    pub racy: Count,
    /// The first disagreements, for people.
    pub examples: Vec<String>,
}

impl Tally {
    /// Compares one line.
    pub fn add(&mut self, header: &Header, line: &Value) {
        let call = record::parse(header, line);
        let mut view = Recorded::new(&header.machine, &call);
        let decision = select_task_rq_fair(&mut view, call.prev_cpu, call.wake_flags);
        let compared = compare(line, &decision, view.recent_used_cpu);
        let wrong: Vec<&str> = compared
            .iter()
            .filter(|(_, agree)| !agree)
            .map(|(step, _)| *step)
            .collect();
        if number(&line["racy"]) != 0 {
            self.racy.add(wrong.is_empty());
            return;
        }
        self.decisions.add(wrong.is_empty());
        self.reasons
            .entry(decision.reason)
            .or_default()
            .add(wrong.is_empty());
        for (step, agree) in compared {
            self.steps.entry(step).or_default().add(agree);
        }
        if !wrong.is_empty() && self.examples.len() < 5 {
            self.examples.push(format!(
                "record {}: {wrong:?}: {decision:?}\n{line}",
                line["i"]
            ));
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Tally) {
        for (step, count) in other.steps {
            self.steps.entry(step).or_default().merge(count);
        }
        for (reason, count) in other.reasons {
            self.reasons.entry(reason).or_default().merge(count);
        }
        self.decisions.merge(other.decisions);
        self.racy.merge(other.racy);
        self.examples.extend(other.examples);
    }
}

impl Count {
    fn add(&mut self, agree: bool) {
        self.agree += u64::from(agree);
        self.disagree += u64::from(!agree);
    }

    fn merge(&mut self, other: Count) {
        self.agree += other.agree;
        self.disagree += other.disagree;
    }
}

/// The steps that the kernel's decision took, and whether ours took them in the same way.
fn compare(line: &Value, decision: &Decision, recent: CpuId) -> Vec<(&'static str, bool)> {
    let cpu = |value: &Value| CpuId(number(value) as u16);
    let mut steps = vec![
        ("result", decision.cpu == cpu(&line["new"])),
        ("recent_used_cpu", recent == cpu(&line["ruc"][1])),
    ];
    let wa = &line["wa"];
    steps.push((
        "wake_affine path",
        decision.wake_affine.map(|ours| ours.path as u64) == wa["path"].as_u64(),
    ));
    if let (Some(ours), true) = (decision.wake_affine, wa.is_object()) {
        steps.push(("wake_affine target", ours.target == cpu(&wa["ret"])));
        if matches!(ours.path, AffinePath::LessLoad | AffinePath::NotLessLoad) {
            let loads = (Some(ours.this_eff_load), Some(ours.prev_eff_load));
            steps.push((
                "wake_affine loads",
                loads == (wa["te"].as_i64(), wa["pe"].as_i64()),
            ));
        }
    }
    let sis = &line["sis"];
    steps.push((
        "select_idle_sibling path",
        decision.sis.map(|ours| ours as u64) == sis["path"].as_u64(),
    ));
    if sis.is_object() {
        let searched = decision.searched;
        steps.push((
            "select_idle_sibling result",
            decision.cpu == cpu(&sis["ret"]),
        ));
        // The recording counts the step at which the limit ended the loop, before it looked.
        let scanned = u64::from(searched.scanned) + u64::from(searched.limit_hit);
        steps.push(("CPUs scanned", scanned == number(&sis["scan"])));
        let cleared = number(&sis["hicc"]) != 0;
        steps.push((
            "has_idle_cores cleared",
            searched.cleared_idle_cores == cleared,
        ));
    }
    debug_assert!(steps.iter().all(|(step, _)| STEPS.contains(step)));
    steps
}

/// Compares a recording: the header line and the records after it.
pub fn recording(text: &str) -> Tally {
    let mut lines = text.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let header = Header::parse(&lines.next().expect("a recording starts with its header"));
    let mut tally = Tally::default();
    lines.for_each(|line| tally.add(&header, &line));
    tally
}
