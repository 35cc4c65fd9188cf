//! The sensitivity report as text.

use super::{Conclusion, FACTORS, MovedFigure, Sensitivity, flips, is_clear};
use crate::metric;
use crate::number;
use crate::table::{Align, Table};
use std::fmt::Write as _;

/// The report as text: a table for each change, and in words on which figures it depends.
pub fn render(sensitivity: &Sensitivity) -> String {
    let moved = sensitivity.figures.len();
    let interrupted = if moved < sensitivity.figures_asked {
        format!(" ({moved} of {}, interrupted)", sensitivity.figures_asked)
    } else {
        String::new()
    };
    let mut text = format!(
        "sensitivity: {moved} cost figures of the machine{interrupted} halved and doubled one at a time, same seeds\n"
    );
    let still = names(sensitivity.figures.iter().filter(|figure| !figure.acts));
    if !still.is_empty() {
        let _ = writeln!(text, "  without any effect here: {still}");
    }
    for conclusion in &sensitivity.conclusions {
        text.push('\n');
        text += &one(sensitivity, conclusion);
    }
    text
}

fn names<'a>(figures: impl Iterator<Item = &'a MovedFigure>) -> String {
    let names: Vec<&str> = figures.map(|figure| figure.figure.as_str()).collect();
    names.join(", ")
}

fn one(sensitivity: &Sensitivity, of: &Conclusion) -> String {
    let mut text = format!(
        "{} of {} at the machine's own figures: {}\n",
        metric::title(of.metric),
        of.variant,
        number::change(&of.change())
    );
    text += &table(sensitivity, of);
    text += &dependence(sensitivity, of);
    text += &sign(sensitivity, of);
    text += &hanging(sensitivity, of);
    text
}

fn table(sensitivity: &Sensitivity, of: &Conclusion) -> String {
    let [half, double] = FACTORS.map(|factor| format!("x{factor}"));
    let mut table = Table::new(&[
        ("figure", Align::Left),
        ("value", Align::Right),
        ("is", Align::Left),
        (&half, Align::Right),
        (&double, Align::Right),
        ("moved by", Align::Right),
        ("moved by", Align::Right),
        ("", Align::Left),
    ]);
    for figure in sensitivity.figures.iter().filter(|figure| figure.acts) {
        let changes: Vec<_> = figure.of(&of.variant, of.metric).collect();
        let cell = |text: &dyn Fn(&super::MovedChange) -> String, factor: f64| {
            let change = changes.iter().find(|change| change.factor == factor);
            change.map_or_else(|| "-".to_owned(), |change| text(change))
        };
        let change = |change: &super::MovedChange| number::change(&change.change());
        let delta = |change: &super::MovedChange| number::points(change.delta_pp);
        let beyond = changes.iter().any(|change| change.beyond_noise);
        table.row(vec![
            figure.figure.clone(),
            figure.value.to_string(),
            kind(figure).to_owned(),
            cell(&change, FACTORS[0]),
            cell(&change, FACTORS[1]),
            cell(&delta, FACTORS[0]),
            cell(&delta, FACTORS[1]),
            if beyond { "beyond noise" } else { "" }.to_owned(),
        ]);
    }
    table.render()
}

fn kind(figure: &MovedFigure) -> &'static str {
    if figure.stand_in {
        "stand-in"
    } else {
        "published"
    }
}

/// On which figures the size of the change depends, with what they rest on.
fn dependence(sensitivity: &Sensitivity, of: &Conclusion) -> String {
    let all = sensitivity.figures.len();
    if of.depends_on.is_empty() {
        return format!("It depends on none of {all} figures beyond the noise of the runs.\n");
    }
    let mut text = format!("It depends on {} of {all} figures:\n", of.depends_on.len());
    for name in &of.depends_on {
        let Some(figure) = sensitivity.figure(name) else {
            continue;
        };
        let source = figure.source.trim_start_matches("stand-in:").trim();
        let what = match figure.stand_in {
            true => "a stand-in, nothing was published for this machine",
            false => "published",
        };
        let _ = writeln!(text, "  {name}, {what}: {source}");
    }
    text
}

/// Whether any figure turns the sign round.
fn sign(sensitivity: &Sensitivity, of: &Conclusion) -> String {
    let [low, high] = of.range_pct.map(number::percent_change);
    let range = format!("it goes from {low} to {high}");
    let unclear = match of.other_sign_at.len() {
        0 => String::new(),
        1 => " At one figure it is the other one without being clear.".to_owned(),
        more => format!(" At {more} figures it is the other one without being clear."),
    };
    let mut places = Vec::new();
    for name in &of.sign_flips_at {
        let figure = sensitivity.figure(name).into_iter();
        for moved in figure.flat_map(|figure| figure.of(&of.variant, of.metric)) {
            let change = moved.change();
            if flips(moved, of.change_pct) && is_clear(&change) {
                let there = number::change(&change);
                places.push(format!("{name} x{} ({there})", moved.factor));
            }
        }
    }
    match (places.is_empty(), unclear.is_empty()) {
        (true, true) => format!("Its sign never flips: {range}.\n"),
        (true, false) => format!("Its sign never clearly flips: {range}.{unclear}\n"),
        (false, _) => format!(
            "Its sign flips at {}: {range}.{unclear}\n",
            places.join(", ")
        ),
    }
}

/// Whether there being a change at all hangs on one figure.
fn hanging(sensitivity: &Sensitivity, of: &Conclusion) -> String {
    if !is_clear(&of.change()) {
        return "There is no clear change at the machine's own figures, so nothing hangs on them.\n"
            .to_owned();
    }
    let hangs_on = |stand_in: bool| {
        let figures = of
            .hangs_on
            .iter()
            .filter_map(|name| sensitivity.figure(name));
        names(figures.filter(|figure| figure.stand_in == stand_in))
    };
    let (guessed, published) = (hangs_on(true), hangs_on(false));
    let mut text = String::new();
    if !guessed.is_empty() {
        let _ = writeln!(
            text,
            "THIS CONCLUSION HANGS ON A GUESSED FIGURE: the change is none or the opposite with another {guessed}, for which nothing was published."
        );
    }
    if !published.is_empty() {
        let _ = writeln!(
            text,
            "It hangs on {published}, as published: with another the change is none or the opposite."
        );
    }
    if text.is_empty() {
        text.push_str("No single figure decides whether there is a change.\n");
    }
    text
}
