//! For people.

use super::{Report, percent};
use std::fmt::Write as _;
use wakelab_machine::excerpt;
use wakelab_report::table::{Align, Table};
use wakelab_sched::placement::Reason;
use wakelab_verify::{Count, DECISIONS, FileReport, KINDS, Noticed, Shown};

/// By file, by step, by reason and by kind, and the first disagreements.
pub fn comparison(report: &Report) -> String {
    let mut text = by_file(report);
    for skipped in &report.skipped {
        let (file, kind) = (skipped.file.display(), excerpt(&skipped.kind));
        let _ = writeln!(text, "not compared: {file}: records of kind '{kind}'");
    }
    let decisions = || report.files.iter().filter(|file| file.kind == DECISIONS);
    let steps = decisions().flat_map(|file| &file.by_step);
    let steps = steps.map(|(step, count)| (step.name().to_owned(), *count));
    section(&mut text, "step of a decision", steps);
    section(&mut text, "reason of the choice", reasons(report));
    section(&mut text, "kind of record", kinds(report));
    let all = report
        .files
        .iter()
        .flat_map(|file| file.shown.iter().map(move |shown| (file, shown)));
    for (file, shown) in all.take(report.show) {
        difference(&mut text, file, shown);
    }
    text
}

fn by_file(report: &Report) -> String {
    let mut table = Table::new(&[
        ("file", Align::Left),
        ("records of", Align::Left),
        ("records", Align::Right),
        ("racy", Align::Right),
        ("undetermined", Align::Right),
        ("agree", Align::Right),
        ("disagree", Align::Right),
        ("agree %", Align::Right),
    ]);
    let mut row = |name: String, kind: &str, counts: [u64; 3], counted: Count| {
        let [records, racy, undetermined] = counts.map(|count| count.to_string());
        let (agree, disagree) = (counted.agree.to_string(), counted.disagree.to_string());
        let pct = pct(counted);
        table.row(vec![
            name,
            kind.to_owned(),
            records,
            racy,
            undetermined,
            agree,
            disagree,
            pct,
        ]);
    };
    let mut all = [0; 3];
    for file in &report.files {
        let undetermined = file.undetermined.values().sum();
        let counts = [file.records(), file.racy.all(), undetermined];
        row(
            file.file.display().to_string(),
            file.kind,
            counts,
            file.counted,
        );
        all.iter_mut()
            .zip(counts)
            .for_each(|(sum, count)| *sum += count);
    }
    row("all".to_owned(), "", all, report.counted());
    table.render()
}

/// The reasons in the order of the decision audit.
fn reasons(report: &Report) -> impl Iterator<Item = (String, Count)> {
    let all = Reason::ALL.into_iter().map(Reason::name);
    all.flat_map(|name| {
        let decisions = report.files.iter().filter(|file| file.kind == DECISIONS);
        let counts = decisions.flat_map(|file| &file.by_reason);
        let of_name = counts.filter(move |(reason, _)| *reason == name);
        of_name.map(|(reason, count)| ((*reason).to_owned(), *count))
    })
}

/// The kinds of arithmetic with their functions.
fn kinds(report: &Report) -> impl Iterator<Item = (String, Count)> {
    KINDS.iter().flat_map(|kind| {
        let files = report.files.iter().filter(|file| file.kind == kind.name);
        let label = || format!("{}: {}", kind.name, kind.function);
        files.map(move |file| (label(), file.counted))
    })
}

/// A table of counts summed by name, in the order in which the names come first.
fn section(text: &mut String, title: &str, counts: impl Iterator<Item = (String, Count)>) {
    let mut sums: Vec<(String, Count)> = Vec::new();
    for (name, count) in counts {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => sum.merge(count),
            None => sums.push((name, count)),
        }
    }
    let mut table = Table::new(&[
        (title, Align::Left),
        ("agree", Align::Right),
        ("disagree", Align::Right),
        ("agree %", Align::Right),
    ]);
    for (name, count) in sums.into_iter().filter(|(_, count)| count.all() > 0) {
        let (agree, disagree) = (count.agree.to_string(), count.disagree.to_string());
        table.row(vec![name, agree, disagree, pct(count)]);
    }
    if !table.is_empty() {
        let _ = write!(text, "\n{}", table.render());
    }
}

/// Cut off, not rounded: 100.0000 means all.
fn pct(count: Count) -> String {
    let cut = |pct: f64| format!("{:.4}", (pct * 1e4).floor() / 1e4);
    percent(count).map_or("-".to_owned(), cut)
}

fn difference(text: &mut String, file: &FileReport, shown: &Shown) {
    let (place, line, difference) = (file.file.display(), shown.line, &shown.difference);
    let _ = writeln!(
        text,
        "\n{place}:{line}: record {} of {}",
        shown.record, file.kind
    );
    if let Some(choice) = shown.choice {
        let reason = choice.reason.name();
        let _ = writeln!(
            text,
            "  kernel's choice: CPU {}; the model's: CPU {} ({reason})",
            choice.kernel, choice.ours
        );
    }
    let _ = writeln!(text, "  they part at: {}", difference.step);
    let _ = writeln!(text, "    kernel: {}", difference.kernel);
    let _ = writeln!(text, "    model:  {}", difference.ours);
    let _ = writeln!(text, "  state: {}", shown.state);
}

/// What noticed each broken rule, and the rules that can be broken unnoticed.
pub fn mutations(noticed: &Noticed) -> String {
    let mut table = Table::new(&[
        ("step", Align::Left),
        ("broken rule", Align::Left),
        ("caught by", Align::Right),
        ("first", Align::Left),
        ("parts at", Align::Left),
    ]);
    for row in &noticed.rows {
        let first = row
            .first
            .as_ref()
            .map_or(["-".to_owned(), "-".to_owned()], |first| {
                let place = format!("{} record {}", first.file.display(), first.record);
                [place, first.step.to_owned()]
            });
        let [first, parts_at] = first;
        let (step, name) = (row.mutation.step(), row.mutation.name());
        table.row(vec![
            step.to_owned(),
            name.to_owned(),
            row.caught.to_string(),
            first,
            parts_at,
        ]);
    }
    let caught = noticed.rows.iter().filter(|row| row.caught > 0).count();
    let (all, decisions) = (noticed.rows.len(), noticed.decisions);
    let mut text = table.render();
    let _ = writeln!(
        text,
        "\n{decisions} decisions catch {caught} of {all} broken rules"
    );
    for row in noticed.rows.iter().filter(|row| row.caught == 0) {
        let (step, name) = (row.mutation.step(), row.mutation.name());
        let _ = writeln!(text, "not caught: {name} ({step}): {}", row.mutation.what());
    }
    text
}
