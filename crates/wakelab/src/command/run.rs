//! `wakelab run`, and what it has in common with `compare`.

use crate::Ending;
use crate::cli::{Format, GroupingArg, RunArgs, RunOptions};
use crate::complain::complain;
use crate::experiment::{self, Experiment};
use crate::interrupt;
use crate::output::Output;
use crate::plan::{Choices, Plan, find_machine};
use crate::runner;
use anyhow::{Context as _, bail};
use std::sync::atomic::Ordering;
use wakelab_report::{Report, csv, json, text};
use wakelab_workload::{Companion, Grouping};

/// Runs an experiment.
///
/// # Errors
/// Whatever is wrong with the experiment or the options.
pub fn experiment(args: &RunArgs) -> anyhow::Result<Ending> {
    let source = experiment::find(&args.experiment)?;
    let experiment = Experiment::from_toml(&source.name, &source.text, &source.file)?;
    let machine =
        find_machine(&experiment.machine).with_context(|| experiment.machine_at.clone())?;
    let choices = choices(&args.options)?;
    plan(Plan::new(experiment, machine, choices)?, &args.options)
}

/// The choices that the options make.
///
/// # Errors
/// If a command line is not understood.
pub fn choices(options: &RunOptions) -> anyhow::Result<Choices> {
    let with = options.with.iter().map(|line| Companion::parse(line));
    let grouping = options.grouping.map(|grouping| match grouping {
        GroupingArg::Autogroup => Grouping::Autogroup,
        GroupingArg::Root => Grouping::Root,
    });
    Ok(Choices {
        with: with.collect::<Result<_, _>>().context("--with")?,
        scale: options.scale,
        runs: options.runs,
        seed: options.seed,
        grouping,
        band: options.band,
    })
}

/// Runs a plan and writes the report.
///
/// # Errors
/// If a run fails or the report cannot be written.
pub fn plan(plan: Plan, options: &RunOptions) -> anyhow::Result<Ending> {
    if options.audit && options.format == Format::Csv {
        bail!("--audit has no CSV form: use --format text, or json, which always has it");
    }
    let output = Output::to(options.output.clone())?;
    for warning in plan.warnings() {
        complain(&format!("warning: {warning}"));
    }
    let interrupted = interrupt::catch()?;
    let report = runner::run(&plan, options.jobs, &interrupted)?;
    output.write(&render(&report, options)?)?;
    Ok(if interrupted.load(Ordering::Relaxed) {
        say_interrupted(&report)
    } else {
        Ending::Done
    })
}

fn say_interrupted(report: &Report) -> Ending {
    complain(&format!(
        "interrupted: {} of {} paired runs are complete and reported",
        report.runs, report.setup.runs_asked
    ));
    Ending::Interrupted
}

fn render(report: &Report, options: &RunOptions) -> anyhow::Result<String> {
    Ok(match options.format {
        Format::Text => text::render(
            report,
            text::Options {
                audit: options.audit,
            },
        ),
        Format::Json => json::render(report)?,
        Format::Csv => csv::render(report),
    })
}
