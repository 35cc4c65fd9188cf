//! `wakelab matrix`: a change over machines, workloads and loads.

use super::run::grouping;
use crate::Ending;
use crate::cli::{Format, MatrixArgs};
use crate::complain::complain;
use crate::experiment::{Experiment, Variant, release};
use crate::interrupt;
use crate::matrix::{Cell, CellResult, Conditions, Kind, Matrix, Verdict};
use crate::output::Output;
use crate::plan::{Choices, Plan, find_machine, grouping_name};
use crate::runner;
use crate::text_file;
use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum as _;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wakelab_machine::Machine;
use wakelab_report::{Published, Report};
use wakelab_sched::features::FeatureSet;
use wakelab_sched::rules::Release;
use wakelab_workload::{Grouping, Workload};

/// What loops and times are multiplied by unless asked for otherwise: full length is a reviewer's.
const SCALE: f64 = 0.01;

/// Runs the matrix, or what is left of it.
///
/// # Errors
/// If a word is not known, a file cannot be read or written, or a run fails.
pub fn matrix(args: &MatrixArgs) -> anyhow::Result<Ending> {
    let output = Output::to(args.output.clone())?;
    let file = args.results.clone();
    let store = file
        .clone()
        .map(|path| Output::to(Some(path)))
        .transpose()?;
    let session = Session::new(args)?;
    let mut matrix = match &file {
        Some(path) if path.exists() => session
            .go_on(path)
            .with_context(|| path.display().to_string())?,
        _ => Matrix::new(session.conditions.clone()),
    }
    .restricted_to(&session.cells);
    let interrupted = interrupt::catch()?;
    for cell in &session.cells {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        if matrix.of(cell).is_some() {
            continue;
        }
        if let Some(result) = session.result(cell, args.jobs, &interrupted)? {
            session.tell(&matrix, &result);
            matrix.cells.push(result);
            matrix = matrix.restricted_to(&session.cells);
            if let Some(store) = &store {
                store.write(&matrix.to_json()?)?;
            }
        }
    }
    output.write(&match args.format {
        Format::Text => matrix.to_text(),
        Format::Json => matrix.to_json()?,
        Format::Csv => matrix.to_csv(),
    })?;
    Ok(ending(&matrix, file.is_some(), &interrupted))
}

fn ending(matrix: &Matrix, stored: bool, interrupted: &AtomicBool) -> Ending {
    if !interrupted.load(Ordering::Relaxed) {
        return Ending::Done;
    }
    let (done, asked) = (matrix.cells.len(), matrix.cells_asked);
    let next = if stored {
        "the same command goes on"
    } else {
        "with --results FILE it could go on"
    };
    complain(&format!(
        "interrupted: {done} of {asked} cells are done; {next}"
    ));
    Ending::Interrupted
}

/// What is to be run.
struct Session {
    conditions: Conditions,
    cells: Vec<Cell>,
    machines: BTreeMap<String, Machine>,
    release: Release,
    grouping: Grouping,
    change: Variant,
}

impl Session {
    fn new(args: &MatrixArgs) -> anyhow::Result<Session> {
        let words = args.features.join(" ");
        let (release, change) = match &args.kernel {
            Some(kernel) => {
                let release = release(kernel).map_err(|message| anyhow!(message))?;
                (release, change(release, &words)?)
            }
            None => newest(&words)?,
        };
        let grouping = args.grouping.map_or(Grouping::Autogroup, grouping);
        let machines = machines(args)?;
        let names: Vec<String> = machines.iter().map(|(name, _)| name.clone()).collect();
        let kinds = match args.workload.as_slice() {
            [] => Kind::value_variants().to_vec(),
            kinds => each_once(kinds),
        };
        Ok(Session {
            conditions: Conditions {
                features: change.words.clone(),
                kernel: release.name().to_owned(),
                grouping: grouping_name(grouping),
                scale: args.scale.unwrap_or(SCALE),
                runs: args.runs as usize,
                seed: args.seed,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            cells: Cell::all(&names, &kinds, &each_once(&args.load)),
            machines: machines.into_iter().collect(),
            release,
            grouping,
            change,
        })
    }

    fn go_on(&self, path: &Path) -> anyhow::Result<Matrix> {
        let text = text_file::read(&path.to_string_lossy())?;
        Matrix::go_on(&text, &self.conditions)
    }

    /// Runs a cell; none if it was interrupted.
    fn result(
        &self,
        cell: &Cell,
        jobs: Option<u32>,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Option<CellResult>> {
        let machine = &self.machines[&cell.machine];
        let Some(line) = cell.kind.command_line(machine.ncpu(), cell.load_pct) else {
            return Ok(Some(CellResult::unfit(cell.clone())));
        };
        let workload = Workload::parse(&line)?;
        let plan = self.plan(cell, machine, workload)?;
        let at = || format!("{} on {}", line, cell.machine);
        let report = runner::run(&plan, jobs, interrupted).with_context(at)?;
        let whole = report.runs == self.conditions.runs;
        Ok(whole.then(|| cell_result(cell, &line, &report)))
    }

    fn plan(&self, cell: &Cell, machine: &Machine, workload: Workload) -> anyhow::Result<Plan> {
        let (metric, _) = cell.kind.metric();
        let experiment = Experiment {
            name: "matrix".to_owned(),
            title: self.change.name.clone(),
            source: String::new(),
            notes: String::new(),
            metric,
            machine: cell.machine.clone(),
            machine_at: "--machine".to_owned(),
            release: self.release,
            words: Vec::new(),
            domains: Vec::new(),
            workload,
            with: Vec::new(),
            smt: true,
            grouping: self.grouping,
            variants: vec![
                Variant::baseline(FeatureSet::defaults(self.release)),
                self.change.clone(),
            ],
            runs: self.conditions.runs as u32,
            scale: self.conditions.scale,
            published: Published::default(),
        };
        let choices = Choices {
            seed: self.conditions.seed,
            ..Choices::default()
        };
        Plan::new(experiment, machine.clone(), choices)
    }

    /// A line on a terminal for each cell that is done.
    fn tell(&self, matrix: &Matrix, result: &CellResult) {
        if std::io::stderr().is_terminal() {
            let (done, asked) = (matrix.cells.len() + 1, matrix.cells_asked);
            let cell = &result.cell;
            let (machine, kind, load) = (&cell.machine, cell.kind.name(), cell.load_pct);
            let verdict = match result.verdict {
                Verdict::Helps => "helps",
                Verdict::Hurts => "hurts",
                _ => "-",
            };
            complain(&format!(
                "{done}/{asked} {machine} {kind} {load} %: {verdict}"
            ));
        }
    }
}

fn each_once<T: Copy + PartialEq>(words: &[T]) -> Vec<T> {
    let mut once = Vec::new();
    for word in words {
        if !once.contains(word) {
            once.push(*word);
        }
    }
    once
}

fn cell_result(cell: &Cell, line: &str, report: &Report) -> CellResult {
    let (metric, better) = cell.kind.metric();
    let mean = |variant: usize| report.variants[variant].metric(metric).map(|of| of.mean);
    let comparison = report.comparisons.iter().find(|of| of.metric == metric);
    let change = comparison.and_then(|of| of.change());
    CellResult {
        cell: cell.clone(),
        workload: Some(line.to_owned()),
        metric: metric.to_owned(),
        better,
        baseline: mean(0),
        changed: mean(1),
        change_pct: change.map(|change| change.pct),
        ci95: change.and_then(|change| change.ci95),
        verdict: Verdict::of(change, better),
    }
}

fn change(release: Release, words: &str) -> anyhow::Result<Variant> {
    let base = FeatureSet::defaults(release);
    let variant = Variant::parse(release, base, words)?;
    if variant.features == base {
        bail!(
            "{words} is the default of {}: there is no change",
            release.name()
        );
    }
    Ok(variant)
}

/// The newest release that knows the words, and in which they are a change.
fn newest(words: &str) -> anyhow::Result<(Release, Variant)> {
    let mut first = None;
    for release in Release::ALL.into_iter().rev() {
        match change(release, words) {
            Ok(variant) => return Ok((release, variant)),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| anyhow!("no kernel is known")))
}

/// The machines by the names that they are asked for with; all that come with the program if none is.
fn machines(args: &MatrixArgs) -> anyhow::Result<Vec<(String, Machine)>> {
    let names: Vec<String> = match args.machine.as_slice() {
        [] => wakelab_machine::presets()
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        names => names.to_vec(),
    };
    let mut machines: Vec<(String, Machine)> = Vec::new();
    for name in names {
        if machines.iter().any(|(other, _)| *other == name) {
            bail!("--machine: {name} is given twice");
        }
        let machine = find_machine(&name).context("--machine")?;
        machines.push((name, machine));
    }
    Ok(machines)
}
