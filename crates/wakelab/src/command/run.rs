//! `wakelab run`, and what it has in common with `compare`.

use crate::Ending;
use crate::cli::{Format, GroupingArg, RunArgs, RunOptions};
use crate::experiment::{self, Experiment};
use crate::output::Output;
use crate::plan::{Choices, Plan, find_machine};
use crate::runner;
use anyhow::{Context as _, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use wakelab_report::{Report, csv, json, text};
use wakelab_workload::Grouping;

/// Runs an experiment.
///
/// # Errors
/// Whatever is wrong with the experiment or the options.
pub fn experiment(args: &RunArgs) -> anyhow::Result<Ending> {
    let source = experiment::find(&args.experiment)?;
    let experiment = Experiment::from_toml(&source.name, &source.text, &source.file)?;
    let machine =
        find_machine(&experiment.machine).with_context(|| format!("in {}", source.file))?;
    plan(
        Plan::new(experiment, machine, choices(&args.options)),
        &args.options,
    )
}

/// The choices that the options make.
pub fn choices(options: &RunOptions) -> Choices {
    let grouping = options.grouping.map(|grouping| match grouping {
        GroupingArg::Autogroup => Grouping::Autogroup,
        GroupingArg::Root => Grouping::Root,
    });
    Choices {
        scale: options.scale,
        runs: options.runs,
        seed: options.seed,
        grouping,
        band: options.band,
    }
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
        eprintln!("warning: {warning}");
    }
    let interrupted = catch_interrupts()?;
    let jobs = match options.jobs {
        Some(jobs) => jobs as usize,
        None => available_parallelism().map_or(1, usize::from),
    };
    let report = runner::run(&plan, jobs, &interrupted)?;
    output.write(&render(&report, options)?)?;
    Ok(if interrupted.load(Ordering::Relaxed) {
        say_interrupted(&report)
    } else {
        Ending::Done
    })
}

/// A flag that Ctrl-C (or SIGTERM) sets; a second one ends the program at once.
fn catch_interrupts() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::INTERRUPTED));
        }
    })
    .context("cannot catch Ctrl-C")?;
    Ok(flag)
}

fn say_interrupted(report: &Report) -> Ending {
    eprintln!(
        "interrupted: {} of {} paired runs are complete and reported",
        report.runs, report.setup.runs_asked
    );
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
