//! `wakelab bench`: one run, and what the benchmark itself would print.

use super::run::grouping;
use crate::Ending;
use crate::cli::BenchArgs;
use crate::complain::complain;
use crate::experiment::{DEFAULT_METRIC, Experiment, Variant, release};
use crate::interrupt;
use crate::output::Output;
use crate::plan::{Choices, Plan, find_machine};
use crate::runner;
use anyhow::{Context as _, anyhow};
use wakelab_report::Published;
use wakelab_sched::features::FeatureSet;
use wakelab_workload::{Companion, Workload};

/// Runs the benchmark and prints what it prints.
///
/// # Errors
/// If a word is not known, or the benchmark can never end.
pub fn run(args: &BenchArgs) -> anyhow::Result<Ending> {
    let plan = plan(args)?;
    for warning in plan.warnings() {
        complain(&format!("warning: {warning}"));
    }
    let interrupted = interrupt::catch()?;
    let Some(outcome) = runner::first(&plan, &interrupted)? else {
        return Ok(Ending::Interrupted);
    };
    Output::Stdout.write(&plan.workloads[0].printed(&outcome))?;
    Ok(Ending::Done)
}

/// A plan of one run.
fn plan(args: &BenchArgs) -> anyhow::Result<Plan> {
    let release = release(&args.kernel).map_err(|message| anyhow!(message))?;
    let base = FeatureSet::defaults(release);
    let variant = Variant::parse(release, base, &args.features).context("--features")?;
    let experiment = Experiment {
        name: "bench".to_owned(),
        title: String::new(),
        source: String::new(),
        notes: String::new(),
        metric: DEFAULT_METRIC,
        machine: args.machine.clone(),
        machine_at: "--machine".to_owned(),
        release,
        words: variant.words.clone(),
        domains: Vec::new(),
        workload: Workload::parse(&args.command_line.join(" "))?.logged(),
        with: Vec::new(),
        smt: true,
        grouping: grouping(args.grouping),
        variants: vec![Variant {
            words: Vec::new(),
            ..variant
        }],
        runs: 1,
        scale: 1.0,
        published: Published::default(),
    };
    let machine = find_machine(&args.machine).context(experiment.machine_at.clone())?;
    let with = args.with.iter().map(|line| Companion::parse(line));
    let choices = Choices {
        with: with.collect::<Result<_, _>>().context("--with")?,
        seed: args.seed,
        ..Choices::default()
    };
    Plan::new(experiment, machine, choices)
}
