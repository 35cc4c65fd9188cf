//! How runs are ordered, reported when interrupted, and joined.

use super::*;

use crate::experiment::Experiment;
use crate::plan::{Choices, PrecisionAsked};
use wakelab_machine::Band;
use wakelab_report::precision::FIRST_RUNS;
use wakelab_sim::{HostCost, Metric};

const EXPERIMENT: &str = "title = 'A test'\nsource = 'nowhere'\nmachine = 'smt2-8'\nkernel = '6.5'\n\
    grouping = 'root'\nworkload = 'hackbench -g 1 -l 1'\nvariants = ['baseline', 'NO_WA_IDLE']\nruns = 3\n";

fn choices() -> Choices {
    Choices {
        seed: 1,
        ..Choices::default()
    }
}

fn plan_of(text: &str, choices: Choices) -> Plan {
    let experiment = Experiment::from_toml("test", text, "test.toml").unwrap();
    let machine = Machine::preset(&experiment.machine).unwrap();
    Plan::new(experiment, machine, choices).unwrap()
}

fn plan(band: bool) -> Plan {
    plan_of(EXPERIMENT, Choices { band, ..choices() })
}

/// Outcomes of jobs by place in their list.
fn made(
    list: &[Job],
    outcomes: impl IntoIterator<Item = Option<Outcome>>,
) -> BTreeMap<Job, Outcome> {
    let made = list.iter().zip(outcomes);
    made.filter_map(|(job, outcome)| Some((*job, outcome?)))
        .collect()
}

/// All jobs at these points of a plan of three runs.
fn all_jobs(plan: &Plan) -> Vec<Job> {
    job_list(plan, 0..plan.points.len(), 0..3)
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
        log: Vec::new(),
        host: HostCost::default(),
    }
}

#[test]
fn jobs_go_seed_by_seed_and_the_machines_own_costs_first() {
    let plan = plan(true);
    let list = all_jobs(&plan);
    let places: Vec<_> = list
        .iter()
        .map(|job| (job.point, job.run, job.variant))
        .collect();
    assert_eq!(places.len(), 18);
    assert_eq!(places[..4], [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]);
    assert_eq!(
        plan.points,
        [Band::Nominal, Band::Low, Band::High].map(CostPoint::At)
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
    let outcomes = made(&all_jobs(&plan), outcomes);
    let report = report(&plan, &outcomes, 3, Host::default());
    assert_eq!((report.runs, report.is_partial()), (1, true));
    assert_eq!(report.comparisons[0].change_pct, Some(50.0));
}

#[test]
fn only_an_interruption_excuses_runs_that_were_cancelled() {
    let cancelled = || Some(Err(RunError::Cancelled.into()));
    let outcomes = || vec![Some(Ok(outcome(1.0))), cancelled(), None];
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
    let outcomes = [1.5, 1.2, 1.9].into_iter().flat_map(of_band);
    let outcomes = made(&all_jobs(&plan), outcomes);
    let report = report(&plan, &outcomes, 3, Host::default());
    let band = report.comparisons[0].band_pct.unwrap();
    let rounded = [band.low, band.nominal, band.high].map(|pct| pct.unwrap().round());
    assert_eq!(rounded, [20.0, 50.0, 90.0]);
}

#[test]
fn warnings_name_what_has_no_effect_once() {
    let text = EXPERIMENT.replace("'NO_WA_IDLE'", "'HRTICK', 'SIS_UTIL', 'HRTICK NO_WA_IDLE'");
    let warnings = plan_of(&text, choices()).warnings();
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
    let plan = plan_of(&text, choices());
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

#[test]
fn a_figure_counts_only_when_all_its_runs_are_made() {
    let plan = plan_of(
        EXPERIMENT,
        Choices {
            sensitivity: true,
            ..choices()
        },
    );
    let figures = figures(&plan.machine);
    assert_eq!(plan.points.len(), 1 + 2 * figures.len());
    // Own costs, both moves of the first figure, and the first move of the second.
    let list: Vec<Job> = all_jobs(&plan)
        .into_iter()
        .filter(|job| job.point < 4)
        .collect();
    let values = list
        .iter()
        .map(|job| Some(outcome(1.0 + job.variant as f64)));
    let report = report(&plan, &made(&list, values), 3, Host::default());
    let found = report.sensitivity.unwrap();
    assert_eq!(
        (found.figures.len(), found.figures_asked),
        (1, figures.len())
    );
    assert_eq!(found.figures[0].figure, figures[0].name);
    assert!(!found.figures[0].acts, "all runs are the same");
}

#[test]
fn batches_end_at_the_precision_or_the_cap_for_any_number_of_jobs() {
    let run_with = |jobs: u32, half_width_pp: f64, max_runs: usize| {
        let plan = plan_of(
            EXPERIMENT,
            Choices {
                precision: Some(PrecisionAsked {
                    half_width_pp,
                    max_runs,
                }),
                ..choices()
            },
        );
        let report = run(&plan, Some(jobs), &AtomicBool::new(false)).unwrap();
        let found = report.precision.unwrap();
        (report.runs, found.is_reached(), report.comparisons)
    };
    let (runs, reached, _) = run_with(2, 1000.0, 40);
    assert_eq!((runs, reached), (FIRST_RUNS, true));
    let (runs, reached, _) = run_with(2, 1e-6, 17);
    assert_eq!((runs, reached), (17, false));
    // Between the two it takes some batches.
    let one = run_with(1, 1.0, 80);
    assert!(one.0 > FIRST_RUNS, "{} runs", one.0);
    assert_eq!(one, run_with(2, 1.0, 80));
    assert_eq!(one, run_with(7, 1.0, 80));
}
