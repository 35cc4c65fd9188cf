//! `wakelab run`, and what it has in common with `compare`.

use crate::Ending;
use crate::cli::{Format, GroupingArg, RunArgs, RunOptions, SmtArg};
use crate::complain::complain;
use crate::experiment::{self, Experiment};
use crate::interrupt;
use crate::output::Output;
use crate::plan::{Choices, Plan, PrecisionAsked, find_machine};
use crate::runner;
use anyhow::{Context as _, bail};
use std::sync::atomic::{AtomicBool, Ordering};
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
    let choices = shortened(choices(&args.options)?, &experiment);
    plan(Plan::new(experiment, machine, choices)?, &args.options)
}

/// A sensitivity report makes some fifty times the runs of an experiment: unless asked for otherwise they
/// are shorter, and no more than it takes to tell a figure that matters.
fn shortened(mut choices: Choices, experiment: &Experiment) -> Choices {
    const SCALE: f64 = 0.25;
    const MOST_RUNS: u32 = 5;
    if choices.sensitivity {
        choices.scale = choices.scale.or(Some(experiment.scale * SCALE));
        choices.runs = choices.runs.or(Some(experiment.runs.min(MOST_RUNS)));
    }
    choices
}

/// The grouping that an option names.
pub fn grouping(word: GroupingArg) -> Grouping {
    match word {
        GroupingArg::Autogroup => Grouping::Autogroup,
        GroupingArg::Root => Grouping::Root,
    }
}

/// The choices that the options make.
///
/// # Errors
/// If a command line is not understood.
pub fn choices(options: &RunOptions) -> anyhow::Result<Choices> {
    let with = options.with.iter().map(|line| Companion::parse(line));
    let grouping = options.grouping.map(grouping);
    Ok(Choices {
        with: with.collect::<Result<_, _>>().context("--with")?,
        scale: options.scale,
        runs: options.runs,
        seed: options.seed,
        grouping,
        metrics: options.metric.clone(),
        precision: options.precision.map(|half_width_pp| PrecisionAsked {
            half_width_pp,
            max_runs: options.max_runs as usize,
        }),
        smt: options.smt.map(|smt| smt == SmtArg::On),
        band: options.band,
        sensitivity: options.sensitivity,
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
    if plan.variants.len() == 1 && (options.precision.is_some() || options.sensitivity) {
        bail!("--precision and --sensitivity are about changes, and there is only the baseline");
    }
    if options
        .runs
        .is_some_and(|runs| options.precision.is_some() && runs > options.max_runs)
    {
        bail!(
            "--runs asks for more than the {} of --max-runs",
            options.max_runs
        );
    }
    let output = Output::to(options.output.clone())?;
    for warning in plan.warnings() {
        complain(&format!("warning: {warning}"));
    }
    let interrupted = interrupt::catch()?;
    let report = runner::run(&plan, options.jobs, &interrupted)?;
    if report.runs == 0 {
        complain("interrupted: no paired run is complete, so nothing is written");
        return Ok(Ending::Interrupted);
    }
    output.write(&render(&report, options)?)?;
    say_imprecise(&report, &interrupted);
    Ok(if interrupted.load(Ordering::Relaxed) {
        say_interrupted(&report)
    } else {
        Ending::Done
    })
}

fn say_imprecise(report: &Report, interrupted: &AtomicBool) {
    if let Some(found) = &report.precision
        && !found.is_reached()
        && !interrupted.load(Ordering::Relaxed)
    {
        complain(&format!(
            "warning: ±{} per cent points are not reached after {} runs, the most that --max-runs allows",
            found.asked_pp, found.max_runs
        ));
    }
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
                stats: options.stats,
                audit: options.audit,
            },
        ),
        Format::Json => json::render(report)?,
        Format::Csv => match &report.sensitivity {
            Some(found) => csv::sensitivity(found),
            None => csv::render(report),
        },
    })
}
