//! Making the runs: many at a time, every run on one thread, results in a fixed order.

use crate::host::{self, CpuClock};
use crate::plan::Plan;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use wakelab_machine::{Machine, SchedTopology};
use wakelab_report::{Host, Report, VariantRuns};
use wakelab_sim::Outcome;
use wakelab_workload::{RunConfig, RunError, Start};

/// One run to make.
struct Job {
    band: usize,
    run: usize,
    variant: usize,
}

/// The outcome of each job, in the order of jobs; none if it was not made.
type Outcomes = Vec<Option<Result<Outcome, RunError>>>;

/// Makes all runs of a plan, `jobs` at a time or as many as the host has CPUs, and reports them. When `cancelled` becomes true no
/// more runs begin, those that go on end early, and the report holds the runs that were complete for
/// every variant.
///
/// # Errors
/// If a run fails: the first of them in the order of seeds and variants.
pub fn run(plan: &Plan, jobs: Option<u32>, cancelled: &AtomicBool) -> anyhow::Result<Report> {
    let (started, cpu) = (Instant::now(), CpuClock::now());
    let list = job_list(plan);
    let outcomes = make_runs(plan, &list, jobs, cancelled)?;
    let outcomes = finished(outcomes, cancelled)?;
    let mut host = Host {
        wall_s: started.elapsed().as_secs_f64(),
        cpu_s: cpu.elapsed_s(),
        ..Host::default()
    };
    for outcome in outcomes.iter().flatten() {
        host.add(&outcome.host);
    }
    let reports: Vec<Report> = (0..plan.bands.len())
        .map(|band| report(plan, &list, &outcomes, band, host))
        .collect();
    Ok(join_bands(reports))
}

/// Seed by seed, all variants of a seed together, so that an interruption leaves whole pairs.
fn job_list(plan: &Plan) -> Vec<Job> {
    let mut list = Vec::new();
    for band in 0..plan.bands.len() {
        for run in 0..plan.setup.runs_asked {
            list.extend((0..plan.variants.len()).map(|variant| Job { band, run, variant }));
        }
    }
    list
}

fn make_runs(
    plan: &Plan,
    list: &[Job],
    jobs: Option<u32>,
    cancelled: &AtomicBool,
) -> anyhow::Result<Outcomes> {
    let machines: Vec<_> = plan
        .bands
        .iter()
        .map(|band| plan.machine_at(*band))
        .collect();
    let slots: Vec<Mutex<Option<Result<Outcome, RunError>>>> =
        list.iter().map(|_| Mutex::new(None)).collect();
    let failed = AtomicBool::new(false);
    let stopped = || cancelled.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let progress = progress_bar(list.len());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(host::jobs(jobs, list.len()))
        .build()?;
    pool.scope_fifo(|scope| {
        for (job, slot) in list.iter().zip(&slots) {
            let (machines, failed, stopped, progress) = (&machines, &failed, &stopped, &progress);
            scope.spawn_fifo(move |_| {
                if stopped() {
                    return;
                }
                let config = config(plan, job, &machines[job.band]);
                let workload = &plan.workloads[job.variant];
                let result = wakelab_workload::run(workload, &config, stopped);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                progress.inc(1);
            });
        }
    });
    progress.finish_and_clear();
    Ok(slots
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

fn config(
    plan: &Plan,
    job: &Job,
    (machine, topology): &(Arc<Machine>, Arc<SchedTopology>),
) -> RunConfig {
    RunConfig {
        machine: Arc::clone(machine),
        topology: Arc::clone(topology),
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

/// A bar on standard error, which indicatif hides where that is no terminal.
fn progress_bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
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
            Some(Err(RunError::Cancelled)) => {
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

/// The report of one end of the cost ranges, of the seeds that every variant has run.
fn report(
    plan: &Plan,
    list: &[Job],
    outcomes: &[Option<Outcome>],
    band: usize,
    host: Host,
) -> Report {
    let of = |run: usize, variant: usize| {
        let wanted = |job: &Job| job.band == band && job.run == run && job.variant == variant;
        list.iter()
            .position(wanted)
            .and_then(|place| outcomes[place].as_ref())
    };
    let variants = 0..plan.variants.len();
    let complete: Vec<usize> = (0..plan.setup.runs_asked)
        .filter(|run| variants.clone().all(|variant| of(*run, variant).is_some()))
        .collect();
    let runs: Vec<VariantRuns> = variants
        .map(|variant| VariantRuns {
            name: plan.variants[variant].name.clone(),
            features: plan.variants[variant].words.clone(),
            workload: plan.own_workloads[variant].clone(),
            outcomes: complete
                .iter()
                .filter_map(|run| of(*run, variant).cloned())
                .collect(),
        })
        .collect();
    Report::new(plan.setup.clone(), &runs, plan.published.clone(), host)
}

/// The nominal report, with the changes of the others as its band if they have any run.
fn join_bands(mut reports: Vec<Report>) -> Report {
    let mut nominal = reports.swap_remove(0);
    // swap_remove put the last, the high end, in its place.
    if let [high, low] = reports.as_slice()
        && low.runs > 0
        && high.runs > 0
    {
        nominal.set_band(low, high);
    }
    nominal
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::experiment::Experiment;
    use crate::plan::Choices;
    use wakelab_sim::{HostCost, Metric};

    const EXPERIMENT: &str = "title = 'A test'\nsource = 'nowhere'\nmachine = 'smt2-8'\nkernel = '6.5'\n\
        grouping = 'root'\nworkload = 'hackbench -g 1 -l 1'\nvariants = ['baseline', 'NO_WA_IDLE']\nruns = 3\n";

    fn plan(band: bool) -> Plan {
        let experiment = Experiment::from_toml("test", EXPERIMENT, "test.toml").unwrap();
        let machine = Machine::preset(&experiment.machine).unwrap();
        Plan::new(
            experiment,
            machine,
            Choices {
                seed: 1,
                band,
                ..Choices::default()
            },
        )
        .unwrap()
    }

    fn outcome(time_s: f64) -> Outcome {
        let metrics = vec![Metric {
            name: "time_s",
            value: time_s,
        }];
        Outcome {
            metrics,
            audit: Vec::new(),
            lines: Vec::new(),
            forced_idle: None,
            host: HostCost::default(),
        }
    }

    #[test]
    fn jobs_go_seed_by_seed_and_the_nominal_costs_first() {
        let plan = plan(true);
        let places: Vec<_> = job_list(&plan)
            .iter()
            .map(|job| (job.band, job.run, job.variant))
            .collect();
        assert_eq!(places.len(), 18);
        assert_eq!(places[..4], [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]);
        assert_eq!(
            plan.bands,
            [
                wakelab_machine::Band::Nominal,
                wakelab_machine::Band::Low,
                wakelab_machine::Band::High
            ]
        );
    }

    #[test]
    fn an_interruption_leaves_the_seeds_that_every_variant_has_run() {
        let plan = plan(false);
        // The first seed lacks its variant, the last its baseline: only the second is whole.
        let outcomes = [
            Some(outcome(1.0)),
            None,
            Some(outcome(2.0)),
            Some(outcome(3.0)),
            None,
            Some(outcome(9.0)),
        ];
        let report = report(&plan, &job_list(&plan), &outcomes, 0, Host::default());
        assert_eq!((report.runs, report.is_partial()), (1, true));
        assert_eq!(report.comparisons[0].change_pct, Some(50.0));
    }

    #[test]
    fn only_an_interruption_excuses_runs_that_were_cancelled() {
        let outcomes = || vec![Some(Ok(outcome(1.0))), Some(Err(RunError::Cancelled)), None];
        let ended = finished(outcomes(), &AtomicBool::new(true)).unwrap();
        assert_eq!(ended, [Some(outcome(1.0)), None, None]);
        assert!(finished(outcomes(), &AtomicBool::new(false)).is_err());
    }

    #[test]
    fn a_band_joins_low_and_high_in_their_places() {
        let plan = plan(true);
        // Baseline 1 s; the variant 1.5 s at the nominal costs, 1.2 s at the low, 1.9 s at the high.
        let of_band = |new: f64| {
            [Some(outcome(1.0)), Some(outcome(new))]
                .into_iter()
                .cycle()
                .take(6)
        };
        let outcomes: Vec<_> = [1.5, 1.2, 1.9].into_iter().flat_map(of_band).collect();
        let list = job_list(&plan);
        let reports = (0..3)
            .map(|band| report(&plan, &list, &outcomes, band, Host::default()))
            .collect();
        let band = join_bands(reports).comparisons[0].band_pct.unwrap();
        let rounded = [band.low, band.nominal, band.high].map(|pct| pct.unwrap().round());
        assert_eq!(rounded, [20.0, 50.0, 90.0]);
    }

    #[test]
    fn warnings_name_what_has_no_effect_once() {
        let text = EXPERIMENT.replace("'NO_WA_IDLE'", "'HRTICK', 'SIS_UTIL', 'HRTICK NO_WA_IDLE'");
        let experiment = Experiment::from_toml("test", &text, "test.toml").unwrap();
        let machine = Machine::preset("smt2-8").unwrap();
        let choices = Choices {
            seed: 1,
            ..Choices::default()
        };
        let warnings = Plan::new(experiment, machine, choices).unwrap().warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(
            warnings[0].contains("does not act on HRTICK"),
            "{warnings:?}"
        );
        assert!(
            warnings[1].starts_with("SIS_UTIL is the default of 6.5"),
            "{warnings:?}"
        );
    }

    #[test]
    fn every_release_is_run_by_its_own_rules_without_a_warning() {
        let text = EXPERIMENT
            .replace("'6.5'", "'6.12'")
            .replace("'NO_WA_IDLE'", "'NO_DELAY_DEQUEUE'");
        let experiment = Experiment::from_toml("test", &text, "test.toml").unwrap();
        let machine = Machine::preset("smt2-8").unwrap();
        let choices = Choices {
            seed: 1,
            ..Choices::default()
        };
        let plan = Plan::new(experiment, machine, choices).unwrap();
        assert_eq!(plan.warnings(), Vec::<String>::new());
    }

    #[test]
    fn seeds_differ_by_run_and_by_seed() {
        let mut seeds: Vec<u64> = (0..20)
            .flat_map(|seed| (0..20).map(move |run| seed_of_run(seed, run)))
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 400);
    }
}
