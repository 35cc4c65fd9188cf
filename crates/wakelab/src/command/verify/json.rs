//! One JSON object.

use super::Report;
use serde_json::{Map, Value, json};
use wakelab_verify::{Count, FileReport, Noticed, Shown};

/// `files`, `skipped`, `agree_pct`, `shown` if it was asked for, and `interrupted` if it was.
///
/// # Errors
/// None of the values can fail to be written; the type is serde_json's.
pub fn comparison(report: &Report) -> serde_json::Result<String> {
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|skipped| json!({"file": skipped.file, "kind": skipped.kind}));
    let mut document = json!({
        "files": report.files.iter().map(file).collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "agree_pct": report.agree_pct(),
    });
    if report.show > 0 {
        let all = report.files.iter();
        let all = all.flat_map(|file| file.shown.iter().map(move |one| shown(file, one)));
        document["shown"] = all.take(report.show).collect();
    }
    finish(document, report.interrupted)
}

fn finish(mut document: Value, interrupted: bool) -> serde_json::Result<String> {
    if interrupted {
        document["interrupted"] = true.into();
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn file(file: &FileReport) -> Value {
    let steps = file
        .by_step
        .iter()
        .map(|(step, count)| (step.name(), *count));
    json!({
        "file": file.file,
        "kind": file.kind,
        "decisions": file.records(),
        "racy": file.racy.all(),
        "racy_agree": file.racy.agree,
        "undetermined": file.undetermined,
        "agree": file.counted.agree,
        "disagree": file.counted.disagree,
        "by_step": counts(steps),
        "by_reason": counts(file.by_reason.iter().copied()),
    })
}

fn counts<'a>(counts: impl Iterator<Item = (&'a str, Count)>) -> Value {
    let pairs = counts.map(|(name, count)| {
        let value = json!({"agree": count.agree, "disagree": count.disagree});
        (name.to_owned(), value)
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn shown(file: &FileReport, shown: &Shown) -> Value {
    // The line was read as JSON before.
    let state: Value = serde_json::from_str(&shown.state).unwrap_or_default();
    let choice = shown.choice.map(|choice| {
        json!({"kernel": choice.kernel, "model": choice.ours, "reason": choice.reason.name()})
    });
    json!({
        "file": file.file,
        "line": shown.line,
        "record": shown.record,
        "choice": choice,
        "parts_at": shown.difference.step,
        "kernel": shown.difference.kernel,
        "model": shown.difference.ours,
        "state": state,
    })
}

/// `decisions`, `caught` and `mutations`, and `interrupted` if it was.
///
/// # Errors
/// As [`comparison`].
pub fn mutations(noticed: &Noticed, interrupted: bool) -> serde_json::Result<String> {
    let rows = noticed.rows.iter().map(|row| {
        let first = row.first.as_ref();
        let first = first.map(
            |first| json!({"file": first.file, "record": first.record, "parts_at": first.step}),
        );
        json!({
            "name": row.mutation.name(),
            "step": row.mutation.step(),
            "what": row.mutation.what(),
            "caught_by": row.caught,
            "first": first,
        })
    });
    let document = json!({
        "decisions": noticed.decisions,
        "caught": noticed.rows.iter().filter(|row| row.caught > 0).count(),
        "mutations": rows.collect::<Vec<_>>(),
    });
    finish(document, interrupted)
}
