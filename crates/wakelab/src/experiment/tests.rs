//! Experiments: what is read, and how errors name what is wrong.

use super::*;
use wakelab_sched::Feat;

const GOOD: &str = r#"title = "A test"
source = "nowhere"
machine = "smt2-8"
kernel = "6.5"
grouping = "root"
workload = "hackbench -g 1 -l 10"
variants = ["baseline", "NO_SIS_UTIL"]
scale = 0.5

[published.figures.baseline]
time_s = [48, 50]
[published.figures.NO_SIS_UTIL]
time_s = { value = 24.5, printed = "24.5 s" }
"#;

fn read(text: &str) -> Result<Experiment, ExperimentError> {
    Experiment::from_toml("test", text, "test.toml")
}

/// The error that one replacement in a good file makes.
fn error_with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    read(&GOOD.replacen(from, to, 1))
        .expect_err("the file is bad")
        .to_string()
}

#[test]
fn a_good_file_is_read_whole() {
    let experiment = read(GOOD).unwrap();
    assert_eq!(experiment.machine, "smt2-8");
    assert_eq!(experiment.grouping, Grouping::Root);
    assert_eq!((experiment.runs, experiment.scale), (5, 0.5));
    let names: Vec<&str> = experiment
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names, ["baseline", "NO_SIS_UTIL"]);
    assert_eq!(
        experiment
            .published
            .change_pct("baseline", "NO_SIS_UTIL", "time_s"),
        Some(-50.0)
    );
    assert_eq!(experiment.published.source, "nowhere");
}

#[test]
fn a_cgroup_has_shares() {
    let text = GOOD.replace("\"root\"", "{ cgroup_shares = 2048 }");
    assert_eq!(
        read(&text).unwrap().grouping,
        Grouping::Cgroup { shares: 2048 }
    );
}

#[test]
fn costs_cannot_be_set() {
    let costs = error_with("scale = 0.5", "costs = { tick_ns = 1 }");
    assert_eq!(
        costs,
        "test.toml:8:1: an experiment cannot set costs, which belong to machines at 'costs'"
    );
}

#[test]
fn errors_name_line_column_word_and_what_was_expected() {
    let cases = [
        (
            "machine",
            "machin",
            "test.toml:3:1: unknown field `machin`, expected one of",
        ),
        (
            "\"6.5\"",
            "\"6.9\"",
            "test.toml:4:10: kernel '6.9' is not known, expected one of 5.2, 5.19, 6.5",
        ),
        (
            "\"root\"",
            "\"cgroup\"",
            "test.toml:5:12: expected \"autogroup\", \"root\" or",
        ),
        (
            "\"root\"",
            "{ cgroup_shares = 0 }",
            "test.toml:5:12: expected cgroup_shares from 2",
        ),
        ("hackbench", "hackbanch", "test.toml:6:12: "),
        (
            "NO_SIS_UTIL\"]",
            "NO_SIS_UTL\"]",
            "test.toml:7:25: there is no scheduler feature 'NO_SIS_UTL'; did you mean SIS_UTIL?",
        ),
        (
            "\"baseline\", ",
            "",
            "test.toml:7:12: expected \"baseline\" as the first variant",
        ),
        (
            "[\"baseline\", \"NO_SIS_UTIL\"]",
            "[]",
            "test.toml:7:12: expected \"baseline\" as the first variant",
        ),
        (
            "NO_SIS_UTIL\"]",
            "NO_SIS_UTIL\", \"NO_SIS_UTIL\"]",
            "test.toml:7:40: the variant stands twice",
        ),
        (
            "scale = 0.5",
            "scale = 0.0",
            "test.toml:8:9: expected a number above 0",
        ),
        (
            "scale = 0.5",
            "scale = inf",
            "test.toml:8:9: expected a number above 0",
        ),
        (
            "scale = 0.5",
            "runs = 0",
            "test.toml:8:8: expected from 1 to 10000 runs",
        ),
        ("scale = 0.5", "runs = -1", "test.toml:8:8: invalid value"),
        (
            "figures.NO_SIS_UTIL",
            "figures.NO_SIS",
            "test.toml:12:20: published figures of a variant that is not",
        ),
        (
            "time_s = [48",
            "time = [48",
            "test.toml:11:1: there is no such metric at 'time'",
        ),
        (
            "[48, 50]",
            "[50, 48]",
            "test.toml:11:10: expected a number, [low, high]",
        ),
        (
            "[48, 50]",
            "nan",
            "test.toml:11:10: expected a number, [low, high]",
        ),
        (
            "value = 24.5",
            "vale = 24.5",
            "test.toml:13:10: unknown key `vale`, expected",
        ),
        ("title = \"A test\"", "title = ", "test.toml:1:9: "),
        (
            "title = \"A test\"",
            "title = \"A\\u001b[2J\"",
            "test.toml:1:9: expected one line without control characters",
        ),
    ];
    for (from, to, expected) in cases {
        let error = error_with(from, to);
        assert!(
            error.starts_with(expected),
            "{from} -> {to}:\n     got {error}\nexpected {expected}"
        );
    }
}

/// A good file whose variants differ in their workloads.
const WORKLOADS: &str = r#"title = "A test"
source = "nowhere"
machine = "smt2-8"
kernel = "6.12"
grouping = "root"
workload = "worksleep -n 10"
variants = [
    "baseline",
    { name = "cookies", workload = "worksleep -n 10 --cookies pairs" },
    { name = "all", features = "NO_SIS_UTIL NO_WA_IDLE", workload = "vms --hwlat width=1ms -t 1" },
    { name = "some features", features = "NO_SIS_UTIL" },
]

[published.figures.baseline]
time_s = 24.564
[published.figures."some features"]
time_s = 25.132
noise_pct = 0.63
"#;

#[test]
fn variants_may_have_names_and_workloads_of_their_own() {
    let experiment = read(WORKLOADS).unwrap();
    let of = |variant: &Variant| {
        let workload = variant.workload.as_ref();
        (
            variant.name.clone(),
            variant.words.len(),
            workload.map(Workload::command_line),
        )
    };
    let variants: Vec<_> = experiment.variants.iter().map(of).collect();
    let named =
        |name: &str, words, line: Option<&str>| (name.to_owned(), words, line.map(str::to_owned));
    let pairs = "worksleep -t 10 -n 10 --work 0-10ms --sleep 0-30ms --cookies pairs";
    assert_eq!(variants[0], named("baseline", 0, None));
    assert_eq!(variants[1], named("cookies", 0, Some(pairs)));
    assert_eq!((variants[2].0.as_str(), variants[2].1), ("all", 2));
    assert_eq!(variants[3], named("some features", 1, None));
    assert_eq!(
        experiment.variants[1].features,
        experiment.variants[0].features
    );
    assert_ne!(
        experiment.variants[2].features,
        experiment.variants[0].features
    );
    let published = &experiment.published;
    assert_eq!(
        published
            .value("some features", "noise_pct")
            .unwrap()
            .middle(),
        0.63
    );
}

#[test]
fn commands_run_beside_all_variants_or_beside_one() {
    let text = WORKLOADS.replace(
        "variants = [",
        "with = [\"spin -n 4\", \"spin -n 3 -t 5\"]\nvariants = [",
    );
    let text = text.replace(
        "features = \"NO_SIS_UTIL\" }",
        "with = [\"stress-ng --cpu 1\"] }",
    );
    let experiment = read(&text).unwrap();
    let lines = |with: &[Companion]| with.iter().map(Companion::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&experiment.with), ["spin -n 4", "spin -n 3 -t 5s"]);
    let of_variants = experiment.variants.iter();
    let of_variants: Vec<_> = of_variants
        .map(|variant| variant.with.as_deref().map(lines))
        .collect();
    let own = vec!["stress-ng --cpu 1".to_owned()];
    assert_eq!(of_variants, [None, None, None, Some(own)]);
    for (from, to, expected) in [
        (
            "spin -n 3 -t 5",
            "spin -x",
            "test.toml:7:22: spin: unknown option '-x'",
        ),
        (
            "stress-ng --cpu 1",
            "stress",
            "test.toml:12:39: unknown benchmark 'stress'",
        ),
        (
            "[\"spin -n 4\", ",
            "[4, ",
            "test.toml:7:9: invalid type: integer `4`",
        ),
    ] {
        let error = read(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn smt_is_off_for_all_variants_or_for_one() {
    let one = WORKLOADS.replace("features = \"NO_SIS_UTIL\" }", "smt = \"off\" }");
    let experiment = read(&one).unwrap();
    let of_variants = experiment.variants.iter().map(|variant| variant.smt);
    let of_variants: Vec<_> = of_variants.collect();
    assert_eq!(
        (experiment.smt, of_variants),
        (true, vec![None, None, None, Some(false)])
    );
    let all = one.replace("kernel =", "smt = \"off\"\nkernel =");
    assert!(!read(&all).unwrap().smt);
    let error = read(&one.replace("\"off\"", "\"forceoff\"")).unwrap_err();
    let expected = "test.toml:11:37: expected \"on\" or \"off\"";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn features_of_all_variants_come_before_their_own() {
    let text = WORKLOADS.replace(
        "machine =",
        "features = \"SIS_COOKIE NO_WA_IDLE\"\nmachine =",
    );
    let has = |experiment: &Experiment, feat| {
        let variants = experiment.variants.iter();
        variants
            .map(|variant| variant.features.features.has(feat))
            .collect::<Vec<_>>()
    };
    let experiment = read(&text).unwrap();
    assert_eq!(experiment.words, ["SIS_COOKIE", "NO_WA_IDLE"]);
    assert_eq!(has(&experiment, Feat::SIS_COOKIE), [true; 4]);
    assert_eq!(has(&experiment, Feat::SIS_UTIL), [true, true, false, false]);
    let off = text.replace("\"NO_SIS_UTIL\"", "\"NO_SIS_COOKIE\"");
    let experiment = read(&off).unwrap();
    assert_eq!(
        has(&experiment, Feat::SIS_COOKIE),
        [true, true, true, false]
    );
    let error = read(&text.replace("SIS_COOKIE", "SIS_COOKEY"))
        .unwrap_err()
        .to_string();
    let expected = "test.toml:3:12: there is no scheduler feature 'SIS_COOKEY'";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn domains_are_set_for_all_variants_and_for_one() {
    let text = WORKLOADS.replace(
        "features = \"NO_SIS_UTIL\" }",
        "domains = { MC = { cache_nice_tries = 7, busy_factor = 3 } } }",
    );
    let text = text.replace(
        "[published.figures.baseline]",
        "[domains.SMT]\nmax_interval = 9\n[published.figures.baseline]",
    );
    let experiment = read(&text).unwrap();
    let words = |settings: &[PlacedSetting]| -> Vec<String> {
        settings.iter().map(|one| one.setting.to_string()).collect()
    };
    assert_eq!(words(&experiment.domains), ["SMT:max_interval=9"]);
    assert_eq!(experiment.domains[0].at, "test.toml:14:10");
    let own = ["MC:busy_factor=3", "MC:cache_nice_tries=7"];
    assert_eq!(words(&experiment.variants[3].domains), own);
    assert!(
        experiment.variants[..3]
            .iter()
            .all(|one| one.domains.is_empty())
    );
}

#[test]
fn errors_in_a_variants_table_have_their_own_places() {
    let cases = [
        (
            "worksleep -n 10 --cookies pairs",
            "worksleep -x",
            "test.toml:9:36: worksleep: unknown option '-x'",
        ),
        (
            "NO_SIS_UTIL NO_WA_IDLE",
            "NO_SIS_UTL",
            "test.toml:10:32: there is no scheduler feature 'NO_SIS_UTL'",
        ),
        (
            "\"cookies\"",
            "\"baseline\"",
            "test.toml:9:14: 'baseline' is the variant that changes nothing",
        ),
        (
            "\"cookies\"",
            "\"\"",
            "test.toml:9:14: expected a name of 1 to 60 characters",
        ),
        (
            "\"cookies\"",
            "\"a\\nb\"",
            "test.toml:9:14: expected a name of 1 to 60 characters",
        ),
        (
            "\"cookies\"",
            "\"all\"",
            "test.toml:10:5: the variant stands twice",
        ),
        (
            "name = \"cookies\", ",
            "",
            "test.toml:9:5: missing field `name`",
        ),
        (
            ", features = \"NO_SIS_UTIL\" }",
            " }",
            "test.toml:11:5: expected `features`, `domains`, `workload`, `with` or `smt`",
        ),
        (
            "features = \"NO_SIS_UTIL\" }",
            "domains = { MC = { flags = 1 } } }",
            "test.toml:11:50: 'flags' is read-only",
        ),
        (
            "features = \"NO_SIS_UTIL\" }",
            "domains = { MC = { imbalance_pct = \"x\" } } }",
            "test.toml:11:66: imbalance_pct = \"x\": expected a number from 100",
        ),
        (
            "features = \"NO_SIS_UTIL\" }",
            "words = \"NO_SIS_UTIL\" }",
            "test.toml:11:31: unknown field `words`",
        ),
        (
            "\"baseline\",",
            "7,",
            "test.toml:8:5: invalid type: integer `7`, expected feature words or {",
        ),
        (
            "noise_pct",
            "noise",
            "test.toml:18:1: there is no such metric",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(WORKLOADS.contains(from), "{from}");
        let error = read(&WORKLOADS.replacen(from, to, 1))
            .expect_err(to)
            .to_string();
        assert!(
            error.starts_with(expected),
            "{from} -> {to}:\n     got {error}\nexpected {expected}"
        );
    }
}

#[test]
fn every_metric_of_a_workload_is_described() {
    for (name, _) in wakelab_workload::metrics() {
        let info = wakelab_report::metric::of(name);
        assert_ne!(info.label, *name, "{name} has no description");
    }
}

#[test]
fn a_missing_key_is_named() {
    assert!(error_with("kernel = \"6.5\"\n", "").contains("missing field `kernel`"));
}

#[test]
fn every_experiment_of_the_program_is_good_and_its_machine_is_known() {
    assert!(names_and_texts().len() >= 2);
    for known in names_and_texts() {
        let source = Source::embedded(known);
        let experiment = Experiment::from_toml(&source.name, &source.text, &source.file).unwrap();
        assert!(
            wakelab_machine::Machine::preset(&experiment.machine).is_ok(),
            "{}",
            source.name
        );
        assert!(experiment.variants.len() > 1, "{}", source.name);
    }
}

#[test]
fn published_rates_are_those_of_the_mails() {
    let source = find("util-fits-capacity").unwrap();
    let published = Experiment::from_toml(&source.name, &source.text, &source.file)
        .unwrap()
        .published;
    let both = published
        .value(
            "UTIL_FITS_CAPACITY SELECT_BIAS_PREV",
            "cpu_migrations_k_per_cpu_s",
        )
        .unwrap();
    assert_eq!(both.middle(), 2.316);
    let source = find("wakeup-bias-prev-idle").unwrap();
    let published = Experiment::from_toml(&source.name, &source.text, &source.file)
        .unwrap()
        .published;
    assert_eq!(
        published.change_pct(BASELINE, "WAKEUP_BIAS_PREV_IDLE", "time_s"),
        Some(-34.0)
    );
    assert_eq!(
        published.change_pct(BASELINE, "WAKEUP_BIAS_PREV_IDLE", "cpu_migrations"),
        Some(-94.0)
    );
    let switches = published
        .change_pct(BASELINE, "WAKEUP_BIAS_PREV_IDLE", "context_switches")
        .unwrap();
    assert!((switches - 44.05).abs() < 0.01, "{switches}");
}

#[test]
fn unknown_names_list_the_known_ones_and_files_are_read() {
    let error = find("nothing-like-it").unwrap_err().to_string();
    assert!(
        error.contains("'nothing-like-it'") && error.contains("wakeup-bias-prev-idle"),
        "{error}"
    );
    assert!(
        format!("{:#}", find("missing/file.toml").unwrap_err()).contains("missing/file.toml: ")
    );
}
