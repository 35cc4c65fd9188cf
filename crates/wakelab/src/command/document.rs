//! `wakelab document`: published against predicted, of results that `run` wrote.

use crate::Ending;
use crate::cli::DocumentArgs;
use crate::experiment::{Experiment, Source, names_and_texts};
use crate::output::Output;
use crate::plan::grouping_name;
use crate::text_file;
use anyhow::{Context as _, bail};
use wakelab_report::document::{Section, render};
use wakelab_report::result::StoredResult;

/// Writes the document.
///
/// # Errors
/// If a result cannot be read, is not of an experiment that comes with the program as it is now, or stands
/// twice.
pub fn experiments(args: &DocumentArgs) -> anyhow::Result<Ending> {
    let output = Output::to(args.output.clone())?;
    let mut sections: Vec<Section> = Vec::new();
    for file in &args.results {
        let text = text_file::read(&file.to_string_lossy())?;
        let section = section(&text).with_context(|| file.display().to_string())?;
        let name = &section.result.experiment;
        let same = |other: &Section| other.result.experiment == *name;
        if sections.iter().any(same) {
            bail!("{}: a second result of {name}", file.display());
        }
        sections.push(section);
    }
    sections.sort_by(|a, b| a.result.experiment.cmp(&b.result.experiment));
    let is_there = |name: &str| sections.iter().any(|of| of.result.experiment == name);
    let names = names_and_texts().iter().map(|(name, _)| *name);
    let missing: Vec<&str> = names.filter(|name| !is_there(name)).collect();
    output.write(&render(&sections, &missing))?;
    Ok(Ending::Done)
}

fn section(json: &str) -> anyhow::Result<Section> {
    let result = StoredResult::read(json)?;
    let known = names_and_texts();
    let known = known.iter().find(|(name, _)| *name == result.experiment);
    let Some(known) = known else {
        bail!(
            "no experiment that comes with the program is named '{}'",
            result.experiment
        );
    };
    let source = Source::embedded(known);
    let experiment = Experiment::from_toml(&source.name, &source.text, &source.file)?;
    check_same(&result, &experiment)?;
    Ok(Section {
        command: command(&result, &experiment),
        result,
        title: experiment.title,
        source: experiment.source,
        notes: experiment.notes,
        published: experiment.published,
    })
}

/// That the result is of the experiment as it is now.
fn check_same(result: &StoredResult, experiment: &Experiment) -> anyhow::Result<()> {
    let names_of = |names: &mut dyn Iterator<Item = &String>| {
        let names: Vec<&str> = names.map(String::as_str).collect();
        names.join(", ")
    };
    let workload = experiment.workload.with(&experiment.with)?.command_line();
    let pairs = [
        (
            "machine",
            result.machine.clone(),
            experiment.machine.clone(),
        ),
        (
            "kernel",
            result.kernel.clone(),
            experiment.release.name().to_owned(),
        ),
        (
            "features",
            result.features.join(" "),
            experiment.words.join(" "),
        ),
        ("workload", result.workload.clone(), workload),
        (
            "variants",
            names_of(&mut result.variants.iter().map(|variant| &variant.name)),
            names_of(&mut experiment.variants.iter().map(|variant| &variant.name)),
        ),
    ];
    for (what, of_result, now) in pairs {
        if of_result != now {
            bail!(
                "the result is not of {} as it is now: {what} '{of_result}' where it has '{now}'",
                result.experiment
            );
        }
    }
    Ok(())
}

/// The command that makes the result again.
fn command(result: &StoredResult, experiment: &Experiment) -> String {
    let name = &result.experiment;
    let mut command = format!("wakelab run {name}");
    let mut option = |name: &str, value: String| {
        command += &format!(" --{name} {value}");
    };
    if result.scale != experiment.scale {
        option("scale", result.scale.to_string());
    }
    match result.precision {
        Some(asked) => {
            option("precision", asked.asked_pp.to_string());
            option("max-runs", asked.max_runs.to_string());
        }
        None if result.runs != experiment.runs as usize => option("runs", result.runs.to_string()),
        None => {}
    }
    if result.seed != 1 {
        option("seed", result.seed.to_string());
    }
    if result.grouping != grouping_name(experiment.grouping) {
        option("grouping", result.grouping.clone());
    }
    if result.main_metrics != [experiment.metric] {
        option("metric", result.main_metrics.join(","));
    }
    command + &format!(" --format json --output results/{name}.json")
}
