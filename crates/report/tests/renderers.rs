//! What the renderers write, on fixed outcomes. The figures are made up.

use wakelab_report::document::{self, Section};
use wakelab_report::result::StoredResult;
use wakelab_report::text::Options;
use wakelab_report::{
    Figure, Host, Precision, Published, Report, Setup, VariantRuns, csv, json, text,
};
use wakelab_sim::{AuditRow, HostCost, LineRow, Metric, Outcome};

fn outcome(time_s: f64, cpu_migrations: f64, stalled_backend_pct: f64) -> Outcome {
    let metric = |name, value| Metric { name, value };
    Outcome {
        metrics: vec![
            metric("time_s", time_s),
            metric("cpu_migrations", cpu_migrations),
            metric(
                "cpu_migrations_k_per_cpu_s",
                cpu_migrations / time_s / 250e3,
            ),
            metric("stalled_backend_pct", stalled_backend_pct),
            metric("active_balanced", 0.0),
        ],
        audit: vec![
            AuditRow {
                reason: "target idle",
                decisions: 900,
                migrations: 300,
                scanned: 0,
                ran_at_once: 880,
                wait_mean_ns: 1_500.0,
                wait_max_ns: 2_500_000,
                moved_again: 1,
            },
            AuditRow {
                reason: "idle core",
                decisions: 100,
                migrations: 100,
                scanned: 1_234_567,
                ran_at_once: 100,
                wait_mean_ns: 2_250.0,
                wait_max_ns: 9_000,
                moved_again: 0,
            },
        ],
        lines: vec![LineRow {
            line: "tg load_avg",
            transfers: 45_000,
            waited_s: 0.125,
            occupied_pct: 97.5,
        }],
        forced_idle: None,
        log: Vec::new(),
        host: HostCost::default(),
    }
}

fn variants(runs: usize) -> Vec<VariantRuns> {
    let baseline = [
        outcome(0.5, 1_180_000.0, 8.0),
        outcome(0.52, 1_150_000.0, 8.2),
        outcome(0.49, 1_200_000.0, 8.1),
    ];
    let patched = [
        outcome(0.34, 80_000.0, 8.1),
        outcome(0.33, 95_000.0, 8.0),
        outcome(0.35, 70_000.0, 8.3),
    ];
    let variant = |name: &str, features: &[&str], outcomes: &[Outcome]| VariantRuns {
        name: name.to_owned(),
        features: features.iter().map(|word| (*word).to_owned()).collect(),
        domains: Vec::new(),
        workload: None,
        outcomes: outcomes[..runs].to_vec(),
    };
    vec![
        variant("baseline", &[], &baseline),
        variant("NEW_FEATURE", &["NEW_FEATURE"], &patched),
    ]
}

fn published() -> Published {
    let mut published = Published::from_source("https://example.org/a-mail");
    let printed = Figure {
        low: 48.0,
        high: 50.0,
        printed: Some("48-50 s".to_owned()),
    };
    published.add_value("baseline", "time_s", printed);
    published.add_value("NEW_FEATURE", "time_s", Figure::exact(32.0));
    published.add_value("baseline", "cpu_migrations", Figure::exact(118e6));
    published.add_value("NEW_FEATURE", "cpu_migrations", Figure::exact(7e6));
    published.add_change("NEW_FEATURE", "cpu_migrations", Figure::exact(-94.0));
    published
}

fn setup() -> Setup {
    Setup {
        experiment: "an-experiment".to_owned(),
        title: "A feature that is not there".to_owned(),
        machine: "smt2-8".to_owned(),
        kernel: "6.5".to_owned(),
        grouping: "autogroup".to_owned(),
        features: Vec::new(),
        domains: Vec::new(),
        workload: "hackbench -g 1 -l 1000".to_owned(),
        scale: 0.01,
        runs_asked: 3,
        seed: 7,
        main_metrics: vec!["time_s"],
        version: "0.1.0".to_owned(),
    }
}

fn report(runs: usize, published: Published) -> Report {
    let host = Host {
        wall_s: 12.5,
        cpu_s: 20.0,
        events: 90_000_000,
        switches: 30_000_000,
        simulated_s: 2.53,
    };
    Report::new(setup(), &variants(runs), published, host)
}

#[test]
fn text_has_published_figures_and_errors_beside_the_simulated() {
    insta::assert_snapshot!(text::render(&report(3, published()), Options::default()));
}

#[test]
fn text_without_published_figures_has_no_columns_for_them() {
    insta::assert_snapshot!(text::render(
        &report(3, Published::default()),
        Options {
            audit: true,
            ..Options::default()
        }
    ));
}

#[test]
fn an_interrupted_report_says_so_and_one_run_has_no_interval() {
    insta::assert_snapshot!(text::render(&report(1, published()), Options::default()));
}

#[test]
fn a_report_without_a_complete_run_is_still_one() {
    let none = report(0, published());
    insta::assert_snapshot!(text::render(
        &none,
        Options {
            audit: true,
            ..Options::default()
        }
    ));
    let document: serde_json::Value = serde_json::from_str(&json::render(&none).unwrap()).unwrap();
    assert_eq!(document["runs"], 0);
    assert_eq!(document["runs_asked"], 3);
}

#[test]
fn a_band_shows_the_change_at_both_ends() {
    let mut report = report(3, published());
    let (low, high) = (self::report(1, published()), self::report(2, published()));
    report.set_band(&low, &high);
    insta::assert_snapshot!(text::render(&report, Options::default()));
    insta::assert_snapshot!(csv::render(&report));
}

#[test]
fn json_has_the_documented_shape() {
    insta::assert_snapshot!(json::render(&report(3, published())).unwrap());
}

#[test]
fn csv_has_the_same_columns_with_and_without_published_figures() {
    insta::assert_snapshot!(csv::render(&report(3, published())));
    let without = csv::render(&report(3, Published::default()));
    let columns = |line: &str| line.split(',').count();
    let first = without.lines().next().map(columns).unwrap();
    assert!(without.lines().all(|line| columns(line) == first));
}

#[test]
fn spread_and_percentiles_are_shown_on_request() {
    let options = Options {
        stats: true,
        ..Options::default()
    };
    let mut report = report(3, Published::default());
    report.precision = Some(Precision {
        asked_pp: 5.0,
        reached_pp: Some(9.98),
        max_runs: 3,
    });
    insta::assert_snapshot!(text::render(&report, options));
}

#[test]
fn a_full_factorial_has_effects_in_text_and_csv() {
    let mut variants = variants(3);
    let [both, other] = [0.2, 0.45].map(|time| {
        let times = [1.0, 1.04, 0.98].map(|seed| outcome(time * seed, 50_000.0, 8.0));
        times.to_vec()
    });
    for (words, outcomes) in [("OTHER", other), ("NEW_FEATURE OTHER", both)] {
        variants.push(VariantRuns {
            name: words.to_owned(),
            features: words.split(' ').map(str::to_owned).collect(),
            domains: Vec::new(),
            workload: None,
            outcomes,
        });
    }
    let report = Report::new(setup(), &variants, Published::default(), Host::default());
    let found = report.factorial.as_ref().expect("all combinations");
    insta::assert_snapshot!(wakelab_report::factorial::render(found, &["time_s"]));
    let csv = csv::render(&report);
    let effects: Vec<&str> = csv
        .lines()
        .filter(|line| line.ends_with(",effect"))
        .collect();
    insta::assert_snapshot!(effects.join("\n"));
    let columns = csv.lines().map(|line| line.split(',').count());
    assert!(
        columns
            .clone()
            .all(|count| Some(count) == columns.clone().next())
    );
}

#[test]
fn a_document_is_made_of_what_json_holds() {
    let whole = report(3, published());
    let section = |report: &Report| {
        let result = StoredResult::read(&json::render(report).unwrap());
        result.map(|result| Section {
            result,
            title: "A feature that is not there".to_owned(),
            source: "a mail".to_owned(),
            notes: "Made up,\nall of it.".to_owned(),
            published: published(),
            command: "wakelab run an-experiment".to_owned(),
        })
    };
    let text = document::render(&[section(&whole).unwrap()], &["another"]);
    let start = text.find("## In short").expect("it has a summary");
    insta::assert_snapshot!(&text[start..]);
    let interrupted = section(&report(1, published())).unwrap_err().to_string();
    assert!(interrupted.contains("1 of 3 runs"), "{interrupted}");
}

mod forced_idle {
    use super::outcome;
    use wakelab_machine::{CpuId, Ns};
    use wakelab_report::forced_idle::{render, total};
    use wakelab_sched::{Cookie, TaskId};
    use wakelab_sim::{CauseRow, ForcedIdle, MoveRow, Outcome, PairRow};

    fn run(factor: u64, cause: &'static str) -> Outcome {
        let ns = |ms: u64| Ns(factor * ms * 1_000_000);
        let pair = |ran, kept_waiting, ms| PairRow {
            ran: Cookie(ran),
            kept_waiting: Cookie(kept_waiting),
            time: ns(ms),
        };
        Outcome {
            forced_idle: Some(ForcedIdle {
                time: ns(30),
                share_pct: factor as f64,
                cores: vec![(CpuId(0), ns(10)), (CpuId(2), ns(20))],
                pairs: vec![pair(1, 2, 20), pair(0, 1, 10)],
                tasks: vec![(TaskId(3), ns(25)), (TaskId(4), ns(5))],
                stolen: 7 * factor,
                pushed: 2 * factor,
                pulled: 0,
                causes: vec![CauseRow {
                    cause,
                    began: 10 * factor,
                    better_cpu_free: 4 * factor,
                    time: ns(30),
                }],
                moves: vec![MoveRow {
                    how: "active balancing",
                    split: 3 * factor,
                    joined: factor,
                }],
            }),
            ..outcome(0.5, 1.0, 8.0)
        }
    }

    #[test]
    fn runs_add_up() {
        let runs = [
            run(1, "target idle"),
            run(3, "target idle"),
            run(5, "stealing"),
        ];
        let total = total(&runs).expect("there is some");
        assert_eq!(
            (total.time_s, total.share_pct, total.stolen),
            (0.27, 3.0, 63)
        );
        assert_eq!((total.cores[1].cpu, total.cores[1].time_s), (2, 0.18));
        assert_eq!((total.pairs[0].ran, total.pairs[0].time_s), (1, 0.18));
        assert_eq!((total.tasks[1].task, total.tasks[1].time_s), (4, 0.045));
        let causes = total.causes.iter();
        let causes: Vec<_> = causes.map(|c| (c.cause, c.began, c.time_s)).collect();
        assert_eq!(causes, [("stealing", 50, 0.15), ("target idle", 40, 0.12)]);
        let moves = total.moves.iter();
        let moves: Vec<_> = moves.map(|m| (m.how, m.split, m.joined)).collect();
        assert_eq!(moves, [("active balancing", 27, 9)]);
        let text = render("x", &total);
        assert_eq!((total.pushed, total.pulled), (18, 0));
        assert!(text.contains("63 tasks stolen, 18 pushed\n"), "{text}");
        for part in [
            "stealing",
            "active balancing",
            "1 over 2",
            "CPU 2",
            "task 3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn runs_without_cookies_have_none() {
        assert_eq!(total(&[outcome(0.5, 1.0, 8.0)]), None);
    }
}

#[test]
fn what_a_variant_has_of_its_own_and_what_all_have_is_told() {
    let line = "worksleep -n 10 --cookies pairs";
    let mut report = report(3, Published::default());
    assert!(!json::render(&report).unwrap().contains(line));
    report.variants[1].workload = Some(line.to_owned());
    report.setup.features = vec!["SIS_COOKIE".to_owned()];
    report.setup.domains = vec!["PKG:busy_factor=8".to_owned()];
    report.variants[1].domains = vec!["MC:cache_nice_tries=7".to_owned()];
    let text = text::render(&report, Options::default());
    let own = format!("  domains   MC:cache_nice_tries=7\n  workload  {line}\n");
    let head = format!("NEW_FEATURE against baseline\n{own}");
    assert!(text.contains(&head), "{text}");
    assert!(text.contains("\n  features  SIS_COOKIE\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json::render(&report).unwrap()).unwrap();
    assert_eq!(json["variants"][1]["workload"], line);
    assert_eq!(json["features"][0], "SIS_COOKIE");
    assert!(text.contains("\n  domains   PKG:busy_factor=8\n"), "{text}");
    assert_eq!(json["domains"][0], "PKG:busy_factor=8");
    assert_eq!(json["variants"][1]["domains"][0], "MC:cache_nice_tries=7");
    for key in ["workload", "domains"] {
        assert!(json["variants"][0].get(key).is_none());
    }
}
