//! Effects that were put into made-up runs come out again.

use super::*;
use proptest::prelude::*;
use wakelab_sim::{HostCost, Metric, Outcome};

/// A variant with these words, whose runs take these times.
fn variant(words: &str, times: &[f64]) -> VariantRuns {
    let outcome = |time: &f64| Outcome {
        metrics: vec![Metric {
            name: "time_s",
            value: *time,
        }],
        audit: Vec::new(),
        lines: Vec::new(),
        forced_idle: None,
        log: Vec::new(),
        host: HostCost::default(),
    };
    VariantRuns {
        name: words.to_owned(),
        features: words.split_whitespace().map(str::to_owned).collect(),
        domains: Vec::new(),
        workload: None,
        outcomes: times.iter().map(outcome).collect(),
    }
}

/// The effect of this name in per cent, with its interval.
fn effect(factorial: &Factorial, name: &str) -> (f64, [f64; 2]) {
    let mut effects = factorial.of_metric("time_s");
    let found = effects.find(|effect| effect.name() == name);
    let change = found.and_then(Effect::change).expect("the effect is there");
    (change.pct, change.ci95.expect("several runs"))
}

#[test]
fn two_features_that_multiply_do_not_interact() {
    // A halves the time, B takes a fifth; each seed has its own level.
    let runs = [
        variant("", &[10.0, 20.0, 40.0]),
        variant("A", &[5.0, 10.0, 20.0]),
        variant("B", &[8.0, 16.0, 32.0]),
        variant("A B", &[4.0, 8.0, 16.0]),
    ];
    let factorial = Factorial::of(&runs).expect("all combinations");
    assert_eq!(factorial.factors, ["A", "B"]);
    for (name, expected) in [("A", -50.0), ("B", -20.0), ("A x B", 0.0)] {
        let (pct, [low, high]) = effect(&factorial, name);
        assert!((pct - expected).abs() < 1e-9, "{name}: {pct}");
        assert!(high - low < 1e-9, "{name}: seeds share their luck");
    }
}

#[test]
fn an_interval_is_students_over_the_seeds_contrasts() {
    // Only the cell of both differs by seed: contrasts of the pair are ln 0.5, ln 0.6, ln 0.7 with mean
    // -0.520216 and deviation 0.168433; half of the interval is 4.302653 * 0.168433 / sqrt(3) = 0.418412.
    let flat = [1.0; 3];
    let runs = [
        variant("", &flat),
        variant("A", &flat),
        variant("B", &flat),
        variant("B A", &[0.5, 0.6, 0.7]),
    ];
    let factorial = Factorial::of(&runs).expect("the order of words does not matter");
    let (pct, [low, high]) = effect(&factorial, "A x B");
    assert!(
        (pct - 100.0 * (-0.520_216f64).exp_m1()).abs() < 1e-3,
        "{pct}"
    );
    assert!(
        (low - 100.0 * (-0.938_628f64).exp_m1()).abs() < 1e-2,
        "{low}"
    );
    assert!(
        (high - 100.0 * (-0.101_804f64).exp_m1()).abs() < 1e-2,
        "{high}"
    );
    // The mean effect of A is half of it in logarithms: with B off it does nothing.
    let (a, _) = effect(&factorial, "A");
    assert!((a - 100.0 * (-0.260_108f64).exp_m1()).abs() < 1e-3, "{a}");
    let said = sentences(&factorial, &["time_s"]).join("\n");
    assert_eq!(
        said,
        "time: A and B interact; together they give 40.6 % less than the product of their effects says \
         (95 % interval -60.9 % to -9.7 %)."
    );
}

#[test]
fn what_is_not_above_zero_has_no_effect() {
    let runs = ["", "A", "B", "A B"].map(|words| variant(words, &[0.0, 1.0]));
    let factorial = Factorial::of(&runs).expect("all combinations");
    assert!(
        factorial
            .effects
            .iter()
            .all(|effect| effect.effect_pct.is_none())
    );
    assert!(sentences(&factorial, &["time_s"])[0].ends_with("cannot be told."));
}

#[test]
fn only_all_combinations_are_a_factorial() {
    let of = |names: &[&str]| {
        let runs: Vec<VariantRuns> = names.iter().map(|words| variant(words, &[1.0])).collect();
        Factorial::of(&runs).map(|factorial| factorial.factors)
    };
    let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(of(&["", "A", "B", "A B"]), some(&["A", "B"]));
    assert_eq!(of(&["", "B", "A", "A B"]), some(&["B", "A"]));
    assert_eq!(of(&["", "A C", "B", "B A C"]), some(&["A C", "B"]));
    let three = ["", "A", "B", "C", "A B", "A C", "B C", "A B C"];
    assert_eq!(of(&three), some(&["A", "B", "C"]));
    for none in [
        &["", "A"][..],
        &["", "A", "B"],
        &["", "A", "B", "C"],
        &["", "A", "B", "A C"],
        &["", "A B", "B C", "A B C"],
        &["", "A=5", "A=9", "A=5 A=9"],
        &["", "A", "NO_A", "A NO_A"],
        &["", "A", "B", "C", "A B", "A C", "B C", "A B"],
    ] {
        assert_eq!(of(none), None, "{none:?}");
    }
    let mut own = ["", "A", "B", "A B"].map(|words| variant(words, &[1.0]));
    own[2].workload = Some("worksleep -t 3".to_owned());
    assert_eq!(Factorial::of(&own), None, "a workload differs too");
}

proptest! {
    #[test]
    fn effects_that_were_put_in_come_out(
        single in prop::collection::vec(-0.7f64..0.7, 3),
        pairs in prop::collection::vec(-0.3f64..0.3, 3),
        levels in prop::collection::vec(-2.0f64..2.0, 2..6),
    ) {
        let names = ["A", "B", "C"];
        let pair_of = [(0, 1), (0, 2), (1, 2)];
        // In this parametrisation each interaction is what is there only where all of it are on.
        let log = |cell: usize| {
            let on = |factor: usize| cell >> factor & 1 == 1;
            let alone: f64 = (0..3).filter(|f| on(*f)).map(|f| single[f]).sum();
            let both = pair_of.iter().zip(&pairs).filter(|((a, b), _)| on(*a) && on(*b));
            alone + both.map(|(_, effect)| effect).sum::<f64>()
        };
        let runs: Vec<VariantRuns> = (0..8).map(|cell| {
            let words: Vec<&str> = (0..3).filter(|f| cell >> f & 1 == 1).map(|f| names[f]).collect();
            let times: Vec<f64> = levels.iter().map(|level| (level + log(cell)).exp()).collect();
            variant(&words.join(" "), &times)
        }).collect();
        let factorial = Factorial::of(&runs).expect("all combinations");
        for (place, (a, b)) in pair_of.iter().enumerate() {
            let (pct, [low, high]) = effect(&factorial, &format!("{} x {}", names[*a], names[*b]));
            let expected = 100.0 * pairs[place].exp_m1();
            prop_assert!((pct - expected).abs() < 1e-6 && high - low < 1e-6, "{pct} {expected}");
        }
        // A main effect is the mean over the settings of the others: half of each of its pairs is in it.
        let (a, _) = effect(&factorial, "A");
        let expected = 100.0 * (single[0] + (pairs[0] + pairs[1]) / 2.0).exp_m1();
        prop_assert!((a - expected).abs() < 1e-6);
        let (all, _) = effect(&factorial, "A x B x C");
        prop_assert!(all.abs() < 1e-6);
    }
}
