//! Making the runs: many at a time, every run on one thread, results in a fixed order.

use crate::costs::{CostFigure, CostPoint, figures};
use crate::host::{self, CpuClock};
use crate::plan::{Plan, words_of};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use wakelab_machine::{Machine, SchedTopology};
use wakelab_report::precision::next_runs;
use wakelab_report::sensitivity::MovedCost;
use wakelab_report::{Host, Precision, Report, Sensitivity, VariantRuns};
use wakelab_sim::Outcome;
use wakelab_workload::{RunConfig, RunError, Start};

/// One run to make: at which costs, with which seed, of which variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    point: usize,
    run: usize,
    variant: usize,
}

/// The place of the machine's own costs among the points of a plan.
const OWN: usize = 0;

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("the workload has no metric '{0}'; it has {1}")]
    NoMetric(&'static str, String),
}

/// The outcome of each job, in the order of jobs; none if it was not made.
type Outcomes = Vec<Option<Result<Outcome, Failure>>>;

/// Makes all runs of a plan, `jobs` at a time or as many as the host has CPUs, and reports them. When
/// `cancelled` becomes true no more runs begin, those that go on end early, and the report holds the runs
/// that were complete for every variant.
///
/// # Errors
/// If a run fails: the first of them in the order of seeds and variants. If a main metric is none of the
/// workload's.
pub fn run(plan: &Plan, jobs: Option<u32>, cancelled: &AtomicBool) -> anyhow::Result<Report> {
    let (started, cpu) = (Instant::now(), CpuClock::now());
    let mut session = Session::new(plan, jobs, cancelled)?;
    let runs = session.make_all()?;
    let mut host = Host {
        wall_s: started.elapsed().as_secs_f64(),
        cpu_s: cpu.elapsed_s(),
        ..Host::default()
    };
    for outcome in session.outcomes.values() {
        host.add(&outcome.host);
    }
    Ok(report(plan, &session.outcomes, runs, host))
}

/// Makes the first run of a plan's first variant; none if `cancelled` became true before it ended.
///
/// # Errors
/// If it fails.
pub fn first(plan: &Plan, cancelled: &AtomicBool) -> anyhow::Result<Option<Outcome>> {
    let session = Session::new(plan, Some(1), cancelled)?;
    let job = Job {
        point: OWN,
        run: 0,
        variant: 0,
    };
    match session.make_one(job, &|| cancelled.load(Ordering::Relaxed)) {
        Ok(outcome) => Ok(Some(outcome)),
        Err(Failure::Run(RunError::Cancelled)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is needed to make runs, and what has been made.
struct Session<'a> {
    plan: &'a Plan,
    cancelled: &'a AtomicBool,
    machines: Vec<Vec<Arc<Machine>>>,
    topologies: Vec<Arc<SchedTopology>>,
    pool: rayon::ThreadPool,
    progress: ProgressBar,
    outcomes: BTreeMap<Job, Outcome>,
}

impl<'a> Session<'a> {
    fn new(plan: &'a Plan, jobs: Option<u32>, cancelled: &'a AtomicBool) -> anyhow::Result<Self> {
        let at_once = host::jobs(jobs, plan.most_jobs());
        Ok(Session {
            plan,
            cancelled,
            machines: plan.machines(),
            topologies: plan.topologies()?,
            pool: rayon::ThreadPoolBuilder::new()
                .num_threads(at_once)
                .build()?,
            progress: progress_bar(),
            outcomes: BTreeMap::new(),
        })
    }

    /// Makes the runs at the machine's own costs, then those at other points; how many runs of each
    /// variant there are to be.
    fn make_all(&mut self) -> anyhow::Result<usize> {
        let plan = self.plan;
        let all_points = OWN..plan.points.len();
        if plan.precision.is_none() {
            let runs = plan.setup.runs_asked;
            self.make(&job_list(plan, all_points, 0..runs))?;
            return Ok(runs);
        }
        let runs = self.make_until_precise()?;
        self.make(&job_list(plan, OWN + 1..plan.points.len(), 0..runs))?;
        Ok(runs)
    }

    /// Batch after batch of runs, until the rule is content with all that were made, or the cap is
    /// reached. It sees whole batches only, so the number of jobs changes nothing.
    fn make_until_precise(&mut self) -> anyhow::Result<usize> {
        let plan = self.plan;
        let mut made = 0;
        let mut wanted = plan.setup.runs_asked;
        loop {
            self.make(&job_list(plan, OWN..OWN + 1, made..wanted))?;
            made = wanted;
            let own = complete_runs(plan, &self.outcomes, OWN, made);
            let content = precision(plan, &own)
                .is_none_or(|found| found.is_reached() || made >= found.max_runs);
            if content || self.cancelled.load(Ordering::Relaxed) {
                return Ok(made);
            }
            let cap = plan.precision.map_or(made, |asked| asked.max_runs);
            wanted = next_runs(made, cap);
        }
    }

    fn make(&mut self, list: &[Job]) -> anyhow::Result<()> {
        let outcomes = finished(self.make_runs(list), self.cancelled)?;
        for (job, outcome) in list.iter().zip(outcomes) {
            self.outcomes.extend(outcome.map(|outcome| (*job, outcome)));
        }
        Ok(())
    }

    fn make_runs(&self, list: &[Job]) -> Outcomes {
        let slots: Vec<Mutex<Option<Result<Outcome, Failure>>>> =
            list.iter().map(|_| Mutex::new(None)).collect();
        let failed = AtomicBool::new(false);
        let stopped = || self.cancelled.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        self.progress.inc_length(list.len() as u64);
        self.pool.scope_fifo(|scope| {
            for (job, slot) in list.iter().zip(&slots) {
                let (failed, stopped) = (&failed, &stopped);
                scope.spawn_fifo(move |_| {
                    if stopped() {
                        return;
                    }
                    let result = self.make_one(*job, stopped);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    self.progress.inc(1);
                });
            }
        });
        slots
            .into_iter()
            .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    fn make_one(&self, job: Job, stopped: &dyn Fn() -> bool) -> Result<Outcome, Failure> {
        let workload = &self.plan.workloads[job.variant];
        let outcome = wakelab_workload::run(workload, &self.config(job), stopped)?;
        let has = |name: &str| outcome.metrics.iter().any(|metric| metric.name == name);
        match self.plan.setup.main_metrics.iter().find(|name| !has(name)) {
            None => Ok(outcome),
            Some(missing) => {
                let names: Vec<&str> = outcome.metrics.iter().map(|metric| metric.name).collect();
                Err(Failure::NoMetric(missing, names.join(", ")))
            }
        }
    }

    fn config(&self, job: Job) -> RunConfig {
        let plan = self.plan;
        RunConfig {
            machine: Arc::clone(&self.machines[job.point][job.variant]),
            topology: Arc::clone(&self.topologies[job.variant]),
            release: plan.release,
            features: plan.variants[job.variant].features,
            grouping: plan.grouping,
            // A shortened run begins where a long one gets by balancing: it would end before that.
            start: if plan.setup.scale < 1.0 {
                Start::Spread
            } else {
                Start::Forked
            },
            seed: seed_of_run(plan.setup.seed, job.run),
        }
    }
}

/// Leaves nothing of the bar behind.
impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.progress.finish_and_clear();
    }
}

/// Point by point and seed by seed, all variants of a seed together, so that an interruption leaves
/// whole pairs.
fn job_list(plan: &Plan, points: std::ops::Range<usize>, runs: std::ops::Range<usize>) -> Vec<Job> {
    let mut list = Vec::new();
    for point in points {
        for run in runs.clone() {
            list.extend((0..plan.variants.len()).map(|variant| Job {
                point,
                run,
                variant,
            }));
        }
    }
    list
}

/// The seed of run `run`, the same for every variant: SplitMix64 (Steele, Lea and Flood 2014), so
/// that neighbouring seeds and runs have nothing in common.
fn seed_of_run(seed: u64, run: usize) -> u64 {
    let step = (run as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix(mix(seed).wrapping_add(step))
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A bar on standard error, which indicatif hides where that is no terminal. Its length grows with the
/// batches of runs.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed}, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}

/// The outcomes of the runs that ended, or the failure of the first that failed. What ends because of
/// an interruption is no failure.
fn finished(outcomes: Outcomes, cancelled: &AtomicBool) -> anyhow::Result<Vec<Option<Outcome>>> {
    let interrupted = cancelled.load(Ordering::Relaxed);
    let mut ended = Vec::with_capacity(outcomes.len());
    let mut stopped = None;
    for outcome in outcomes {
        match outcome {
            Some(Ok(outcome)) => ended.push(Some(outcome)),
            Some(Err(Failure::Run(RunError::Cancelled))) => {
                stopped = stopped.or(Some(RunError::Cancelled));
                ended.push(None);
            }
            Some(Err(error)) => return Err(error.into()),
            None => ended.push(None),
        }
    }
    match stopped {
        Some(error) if !interrupted => Err(error.into()),
        _ => Ok(ended),
    }
}

/// At these costs, the runs of the seeds that every variant has run.
fn complete_runs(
    plan: &Plan,
    outcomes: &BTreeMap<Job, Outcome>,
    point: usize,
    runs: usize,
) -> Vec<VariantRuns> {
    let of = |run: usize, variant: usize| {
        outcomes.get(&Job {
            point,
            run,
            variant,
        })
    };
    let variants = 0..plan.variants.len();
    let complete: Vec<usize> = (0..runs)
        .filter(|run| variants.clone().all(|variant| of(*run, variant).is_some()))
        .collect();
    variants
        .map(|variant| VariantRuns {
            name: plan.variants[variant].name.clone(),
            features: plan.variants[variant].words.clone(),
            domains: words_of(&plan.variants[variant].domains),
            workload: plan.own_workloads[variant].clone(),
            outcomes: complete
                .iter()
                .filter_map(|run| of(*run, variant).cloned())
                .collect(),
        })
        .collect()
}

/// How near these runs are to the precision that the plan asks for, if it does.
fn precision(plan: &Plan, own: &[VariantRuns]) -> Option<Precision> {
    let asked = plan.precision?;
    let metrics = &plan.setup.main_metrics;
    Some(Precision::of(
        own,
        metrics,
        asked.half_width_pp,
        asked.max_runs,
    ))
}

/// The report of the runs at the machine's own costs, with what came out at other costs.
fn report(plan: &Plan, outcomes: &BTreeMap<Job, Outcome>, runs: usize, host: Host) -> Report {
    let mut setup = plan.setup.clone();
    setup.runs_asked = runs;
    let at = |point: usize| complete_runs(plan, outcomes, point, runs);
    let own = at(OWN);
    let mut report = Report::new(setup.clone(), &own, plan.published.clone(), host);
    report.precision = precision(plan, &own);
    let of_band = |point: &CostPoint| matches!(point, CostPoint::At(_));
    let ends: Vec<Report> = (OWN + 1..plan.points.len())
        .filter(|point| of_band(&plan.points[*point]))
        .map(|point| Report::new(setup.clone(), &at(point), plan.published.clone(), host))
        .collect();
    if let [low, high] = ends.as_slice()
        && low.runs > 0
        && high.runs > 0
    {
        report.set_band(low, high);
    }
    let figures = figures_to_move(plan);
    let moved: Vec<MovedCost> = figures
        .iter()
        .filter_map(|figure| moved_cost(plan, figure, report.runs, &at))
        .collect();
    if !moved.is_empty() {
        let metrics = &setup.main_metrics;
        report.sensitivity = Some(Sensitivity::of(&own, &moved, metrics, figures.len()));
    }
    report
}

/// The figures that the plan moves, in the machine's order.
fn figures_to_move(plan: &Plan) -> Vec<CostFigure> {
    let moves = |figure: &CostFigure| {
        let of_it = |point: &CostPoint| matches!(point, CostPoint::Moved { name, .. } if *name == figure.name);
        plan.points.iter().any(of_it)
    };
    let mut figures = figures(&plan.machine);
    figures.retain(moves);
    figures
}

/// The runs with a figure moved; none unless all were made that were made with its own value.
fn moved_cost(
    plan: &Plan,
    figure: &CostFigure,
    own_runs: usize,
    at: &dyn Fn(usize) -> Vec<VariantRuns>,
) -> Option<MovedCost> {
    let of_it = |point: &usize| matches!(&plan.points[*point], CostPoint::Moved { name, .. } if *name == figure.name);
    let runs: Vec<Vec<VariantRuns>> = (0..plan.points.len()).filter(of_it).map(at).collect();
    let whole = |runs: &Vec<VariantRuns>| own_runs > 0 && runs[0].outcomes.len() == own_runs;
    if !runs.iter().all(whole) {
        return None;
    }
    Some(MovedCost {
        name: figure.name.clone(),
        value: figure.value,
        stand_in: figure.stand_in,
        source: figure.source.clone(),
        runs: runs.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests;
