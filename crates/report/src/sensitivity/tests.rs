//! What made-up runs with known dependences lead to.

use super::*;
use wakelab_sim::{HostCost, Metric, Outcome};

const SEEDS: [f64; 5] = [0.98, 1.01, 1.0, 1.03, 0.97];

/// A variant whose runs take these times, each with a little luck of its own.
fn variant(name: &str, time: f64, luck: f64) -> VariantRuns {
    let outcome = |(place, seed): (usize, &f64)| Outcome {
        metrics: vec![Metric {
            name: "time_s",
            value: time * seed * (1.0 + luck * [0.6, -1.0, 0.3, -0.5, 0.6][place]),
        }],
        audit: Vec::new(),
        lines: Vec::new(),
        forced_idle: None,
        log: Vec::new(),
        host: HostCost::default(),
    };
    VariantRuns {
        name: name.to_owned(),
        features: vec![name.to_owned()],
        domains: Vec::new(),
        workload: None,
        outcomes: SEEDS.iter().enumerate().map(outcome).collect(),
    }
}

fn runs(new: f64, luck: f64) -> Vec<VariantRuns> {
    vec![variant("baseline", 1.0, 0.0), variant("NEW", new, luck)]
}

fn cost(name: &str, stand_in: bool, half: Vec<VariantRuns>, double: Vec<VariantRuns>) -> MovedCost {
    let source = if stand_in {
        "stand-in: of another"
    } else {
        "a paper"
    };
    MovedCost {
        name: name.to_owned(),
        value: 40.0,
        stand_in,
        source: source.to_owned(),
        runs: [half, double],
    }
}

/// At the machine's own figures the time falls by a fifth. One figure makes that more or less, one turns
/// it round, one does nothing, and one only adds luck.
fn sensitivity() -> Sensitivity {
    let own = || runs(0.8, 0.002);
    let moved = [
        cost("size_ns", false, runs(0.9, 0.002), runs(0.6, 0.003)),
        cost("sign_ns", true, runs(0.79, 0.002), runs(1.1, 0.004)),
        cost("nothing_ns", true, own(), own()),
        cost("luck_ns", true, runs(0.802, 0.01), runs(0.797, -0.012)),
    ];
    Sensitivity::of(&own(), &moved, &["time_s"], 4)
}

#[test]
fn figures_that_decide_are_told_from_those_that_do_not() {
    let found = sensitivity();
    let [conclusion] = found.conclusions.as_slice() else {
        panic!("one variant and one metric");
    };
    assert_eq!(conclusion.depends_on, ["size_ns", "sign_ns"]);
    assert_eq!(conclusion.sign_flips_at, ["sign_ns"]);
    assert!(conclusion.other_sign_at.is_empty());
    assert_eq!(conclusion.hangs_on, ["sign_ns"]);
    let [low, high] = conclusion.range_pct.map(f64::round);
    assert_eq!((low, high), (-40.0, 10.0));
    let acts: Vec<bool> = found.figures.iter().map(|figure| figure.acts).collect();
    assert_eq!(acts, [true, true, false, true]);
    let doubled = &found.figures[0].changes[1];
    assert_eq!(doubled.factor, 2.0);
    assert!((doubled.delta_pp + 20.0).abs() < 0.5, "{doubled:?}");
    let [low, high] = doubled.delta_ci95.expect("several runs");
    assert!(low < doubled.delta_pp && doubled.delta_pp < high && high < -19.0);
}

#[test]
fn text_says_what_hangs_on_a_guess() {
    insta::assert_snapshot!(render(&sensitivity()));
    let mut interrupted = sensitivity();
    interrupted.figures.truncate(2);
    assert!(render(&interrupted).contains("(2 of 4, interrupted)"));
}

#[test]
fn a_change_that_nothing_turns_hangs_on_nothing() {
    let moved = [cost("size_ns", true, runs(0.9, 0.002), runs(0.6, 0.002))];
    let found = Sensitivity::of(&runs(0.8, 0.002), &moved, &["time_s"], 1);
    assert!(found.conclusions[0].hangs_on.is_empty());
    let text = render(&found);
    assert!(
        text.contains("Its sign never flips: it goes from -40.0 % to -10.0 %."),
        "{text}"
    );
    assert!(
        text.contains("No single figure decides whether there is a change."),
        "{text}"
    );
}

#[test]
fn a_difference_is_tested_by_its_pairs() {
    // Differences -1, 1, 0 have deviation 1 and standard error 0.57735; 2 points are 3.4641 of it, and
    // 1 - P(|t| <= 3.4641) with 2 degrees of freedom is 0.07418.
    let error = standard_error(&[-1.0, 1.0, 0.0]).expect("several");
    assert!((error - 1.0 / 3f64.sqrt()).abs() < 1e-12);
    assert!((p_value(2.0, error, 3) - 0.074_18).abs() < 1e-5);
    assert_eq!((p_value(0.0, 0.0, 3), p_value(2.0, 0.0, 3)), (1.0, 0.0));
    assert_eq!(standard_error(&[0.0]), None);
}

#[test]
fn chances_pass_by_rank() {
    // The example of Benjamini and Hochberg (1995), table of fifteen: at 5 % the four smallest pass, and
    // the fifth, 0.0201, is above 5/15 of 0.05.
    let chances = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ];
    let change = |p_value: &f64| MovedChange {
        variant: "NEW".to_owned(),
        metric: "time_s",
        factor: 2.0,
        change_pct: 0.0,
        ci95: None,
        delta_pp: 0.0,
        delta_ci95: None,
        beyond_noise: false,
        p_value: *p_value,
    };
    let mut figures = vec![MovedFigure {
        figure: "x_ns".to_owned(),
        value: 1.0,
        stand_in: false,
        source: "a table".to_owned(),
        acts: true,
        changes: chances.iter().rev().map(change).collect(),
    }];
    mark_beyond_noise(&mut figures);
    let passed = figures[0]
        .changes
        .iter()
        .filter(|change| change.beyond_noise);
    let passed: Vec<f64> = passed.map(|change| change.p_value).collect();
    assert_eq!(passed, [0.0095, 0.0019, 0.0004, 0.0001]);
}

#[test]
fn a_single_run_tells_nothing_beyond_noise() {
    let one = |new: f64| {
        let mut runs = runs(new, 0.0);
        for variant in &mut runs {
            variant.outcomes.truncate(1);
        }
        runs
    };
    let moved = [cost("sign_ns", true, one(0.5), one(1.5))];
    let found = Sensitivity::of(&one(0.8), &moved, &["time_s"], 1);
    let conclusion = &found.conclusions[0];
    assert!(conclusion.depends_on.is_empty() && conclusion.hangs_on.is_empty());
    assert!(
        conclusion.sign_flips_at.is_empty(),
        "without an interval it is not clear"
    );
    assert_eq!(conclusion.other_sign_at, ["sign_ns"]);
    assert!(render(&found).contains("it is the other one without being clear"));
}
