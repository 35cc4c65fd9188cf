//! The command, end to end: what it prints, where, and how it exits.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/program.rs"]
mod program;
mod support;

use program::{SMALL, compare, output, refused, stdout, wakelab};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::process::Stdio;

#[test]
fn both_kernels_simulate_each_by_its_own_rules() {
    let workload = "hackbench -g 2 -f 4 --threads --pipe -l 200 -s 100";
    let run = |kernel: &str, word: &str| {
        let mut arguments = compare(workload, &[word, "--runs", "1", "--format", "json"]);
        arguments[4] = kernel;
        let mut json: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
        json["variants"].take()
    };
    let [cfs, eevdf] = ["6.5", "6.12"].map(|kernel| run(kernel, "NO_WA_IDLE"));
    assert_ne!(cfs[0]["metrics"], eevdf[0]["metrics"]);
    let still_queued = |variant: &Value| {
        let rows = variant["audit"].as_array().unwrap();
        rows.iter().any(|row| row["reason"] == "still queued")
    };
    assert!(!still_queued(&cfs[0]) && still_queued(&eevdf[0]), "{eevdf}");
    let without = run("6.12", "NO_DELAY_DEQUEUE");
    assert!(still_queued(&without[0]) && !still_queued(&without[1]));
}

#[test]
fn list_names_the_experiments() {
    let text = stdout(&["list"]);
    assert!(
        text.contains("wakeup-bias-prev-idle") && text.contains("util-fits-capacity"),
        "{text}"
    );
}

#[test]
fn machines_are_listed_and_shown() {
    let list = stdout(&["machine", "list"]);
    for name in ["epyc-9654-2s", "power9-2s44c", "smt2-8"] {
        assert!(list.contains(name), "{list}");
        assert!(stdout(&["machine", "show", name]).contains(name));
    }
    let json: Value =
        serde_json::from_str(&stdout(&["machine", "show", "smt2-8", "--format", "json"])).unwrap();
    assert_eq!(json["name"], "smt2-8");
}

#[test]
fn features_begin_with_the_kernels_own_line() {
    let text = stdout(&["features", "--kernel", "6.5"]);
    let line = text.lines().next().unwrap();
    assert!(
        line.starts_with("GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY"),
        "{line}"
    );
    let json: Value = serde_json::from_str(&stdout(&[
        "features", "--kernel", "6.5", "--format", "json",
    ]))
    .unwrap();
    let rows = json.as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["word"] == "WAKEUP_BIAS_PREV_IDLE")
        .unwrap();
    assert_eq!(
        (&row["default"], &row["acts"], &row["origin"]),
        (
            &Value::from(false),
            &Value::from(true),
            &Value::from("patch")
        )
    );
}

#[test]
fn bad_input_is_refused_with_the_word_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["run", "no-such-experiment"], "'no-such-experiment'"),
        (&["run", "missing/file.toml"], "missing/file.toml"),
        (&["run", "wakeup-bias-prev-idle", "--scale", "0"], "'0'"),
        (&["run", "wakeup-bias-prev-idle", "--scale", "NaN"], "'NaN'"),
        (&["run", "wakeup-bias-prev-idle", "--runs", "0"], "'0'"),
        (
            &["run", "wakeup-bias-prev-idle", "--jobs", "99999999"],
            "'99999999'",
        ),
        (&["run", "wakeup-bias-prev-idle", "--sede", "1"], "--seed"),
        (
            &[
                "run",
                "wakeup-bias-prev-idle",
                "--output",
                "missing/out.json",
            ],
            "missing/out.json",
        ),
        (
            &["run", "wakeup-bias-prev-idle", "--format", "csv", "--audit"],
            "--audit",
        ),
        (&["machine", "show", "epyc-9654"], "epyc-9654-2s"),
        (&["machine", "show", "missing.toml"], "missing.toml"),
        (&["features", "--kernel", "2.4"], "'2.4'"),
        (&compare(SMALL, &["NO_SIS_UTL"]), "SIS_UTIL"),
        (&compare(SMALL, &[]), "FEATURE"),
        (&compare("hackbanch -g 1", &["NO_SIS_UTIL"]), "hackbanch"),
        (&compare("hackbench -g 0", &["NO_SIS_UTIL"]), "-g"),
        (
            &compare("hackbench --gruops 1", &["NO_SIS_UTIL"]),
            "--gruops",
        ),
        (
            &compare("hackbench -g 99999999999", &["NO_SIS_UTIL"]),
            "99999999999",
        ),
        (&compare("", &["NO_SIS_UTIL"]), "workload"),
        (&compare("worksleep -w 10", &["NO_SIS_UTIL"]), "'10'"),
        (&compare("stress-ng --cpu 4", &["NO_SIS_UTIL"]), "'-t'"),
        (&compare("spin -n 99999 -t 1", &["NO_SIS_UTIL"]), "99999"),
        (
            &compare("vms --hwlat width=1s,period=1s -t 1", &["NO_SIS_UTIL"]),
            "width=1s,period=1s",
        ),
        (
            &compare("vms --vms 2 --busy 3 -t 1", &["NO_SIS_UTIL"]),
            "--busy",
        ),
        (
            &[
                "compare",
                "--machine",
                "smt2-9",
                "--kernel",
                "6.5",
                "--workload",
                SMALL,
                "NO_SIS_UTIL",
            ],
            "smt2-8",
        ),
        (&["machine", "import"], "SYNTHETIC STRING"),
        (&["machine", "import", "missing.xml"], "missing.xml"),
        (&["machine", "import", "pack:2 chore:2 pu:2"], "'chore'"),
        (&["machine", "import", "pack:2 core:1000 pu:2"], "2000"),
        (
            &["machine", "show", "missing/sys.tar.gz"],
            "missing/sys.tar.gz",
        ),
        (&["machine", "show", "pack:2 pu:x"], "'x'"),
        (&["frobnicate"], "frobnicate"),
        (&[], "Usage"),
    ];
    for (arguments, word) in cases {
        let stderr = refused(arguments);
        assert!(
            stderr.contains(word),
            "{arguments:?} should name {word}: {stderr}"
        );
    }
}

#[test]
fn a_feature_that_the_model_does_not_act_on_is_told() {
    let output = output(&compare(SMALL, &["HRTICK", "--runs", "1"]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("warning: the model does not act on HRTICK"),
        "{stderr}"
    );
}

#[test]
fn json_has_the_documented_keys() {
    let text = stdout(&compare(
        SMALL,
        &["WAKEUP_BIAS_PREV_IDLE", "--runs", "2", "--format", "json"],
    ));
    let json: Value = serde_json::from_str(&text).unwrap();
    for key in [
        "experiment",
        "machine",
        "kernel",
        "scale",
        "runs",
        "seed",
        "variants",
        "comparisons",
        "host",
    ] {
        assert!(json.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(
        (json["runs"].as_u64(), json["seed"].as_u64()),
        (Some(2), Some(1))
    );
    let names: Vec<&str> = json["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["baseline", "WAKEUP_BIAS_PREV_IDLE"]);
    let metrics = &json["variants"][0]["metrics"];
    for (metric, _) in wakelab_sim::METRICS {
        let summary = &metrics[metric];
        assert!(
            summary["mean"].is_f64() && summary["n"] == 2,
            "{metric}: {summary}"
        );
    }
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["metric"], "time_s");
    assert!(comparison["change_pct"].is_f64() && comparison["ci95"].as_array().unwrap().len() == 2);
    assert!(comparison["published_pct"].is_null());
    for key in ["wall_s", "cpu_s", "events", "switches", "simulated_s"] {
        assert!(json["host"][key].is_number(), "host.{key}");
    }
}

#[test]
fn text_and_csv_say_the_same_metrics() {
    let audited = stdout(&compare(SMALL, &["NO_WA_IDLE", "--runs", "2", "--audit"]));
    for word in [
        "NO_WA_IDLE against baseline",
        "cpu-migrations",
        "decision audit of baseline",
        "host:",
    ] {
        assert!(audited.contains(word), "{word}: {audited}");
    }
    let csv = stdout(&compare(
        SMALL,
        &["NO_WA_IDLE", "--runs", "2", "--format", "csv"],
    ));
    assert_eq!(csv.lines().count(), 1 + 2 * wakelab_sim::METRICS.len());
}

#[test]
fn a_domains_setting_is_compared_like_a_feature() {
    let setting = "MC:cache_nice_tries=1000000";
    let arguments = ["--domain", setting, "--runs", "1", "--format", "json"];
    let report: Value = serde_json::from_str(&stdout(&compare(SMALL, &arguments))).unwrap();
    assert_eq!(report["variants"][1]["name"], setting);
    assert_eq!(report["variants"][1]["domains"][0], setting);
    assert_eq!(report["comparisons"][0]["variant"], setting);
    for (bad, word) in [
        ("MC:flags=0", "'flags' is read-only"),
        (
            "PKG:busy_factor=2",
            "--domain: the machine has no domain 'PKG', expected one of SMT, MC",
        ),
    ] {
        let arguments = compare(SMALL, &["--domain", bad]);
        let output = wakelab().args(&arguments).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(word), "{bad}: {told}");
    }
}

#[test]
fn workloads_that_never_end_stop_on_time_and_tell_their_own_metrics() {
    let run = |workload: &str| -> Value {
        let mut arguments = compare(workload, &["NO_WA_IDLE", "--runs", "1", "--format", "json"]);
        arguments[4] = "6.12";
        serde_json::from_str(&stdout(&arguments)).unwrap()
    };
    let vms =
        run("vms --vms 3 --vcpus 4 --busy 2 --hwlat width=10ms,period=30ms --vmm 1ms/9ms -t 200ms");
    let metrics = &vms["variants"][0]["metrics"];
    assert_eq!(metrics["time_s"]["mean"], 0.2);
    for (metric, _) in wakelab_workload::vms::METRICS {
        assert!(metrics[metric]["mean"].is_number(), "{metric}: {metrics}");
    }
    assert_eq!(vms["comparisons"][0]["metric"], "noise_pct");
    let spinners = run("stress-ng --cpu 0 -t 0.1");
    let metrics = &spinners["variants"][0]["metrics"];
    assert_eq!(metrics["time_s"]["mean"], 0.1);
    assert!(metrics.get("noise_pct").is_none());
}

#[test]
fn commands_beside_the_workload_slow_it_and_stand_in_the_report() {
    let run = |with: &[&str]| -> Value {
        let mut more = vec!["NO_WA_IDLE", "--runs", "2", "--format", "json"];
        with.iter().for_each(|line| more.extend(["--with", line]));
        serde_json::from_str(&stdout(&compare(SMALL, &more))).unwrap()
    };
    let time = |json: &Value| json["variants"][0]["metrics"]["time_s"]["mean"].as_f64();
    let (alone, beside) = (run(&[]), run(&["spin -n 8", "stress-ng --cpu 8"]));
    assert!(time(&beside) > time(&alone));
    let line = beside["workload"].as_str().unwrap();
    let end = "-s 100 --with 'spin -n 8' --with 'stress-ng --cpu 8'";
    assert!(line.ends_with(end), "{line}");
    for (with, word) in [
        ("", "no workload given"),
        ("spin -n 4 -x", "'-x'"),
        ("spun", "'spun'"),
    ] {
        let error = refused(&compare(SMALL, &["NO_WA_IDLE", "--with", with]));
        assert!(
            error.contains("--with: ") && error.contains(word),
            "{error}"
        );
    }
}

#[test]
fn words_before_a_command_stand_in_the_report_and_need_cpus() {
    let here = format!("taskset -c 0-1 {SMALL}");
    let arguments = compare(&here, &["NO_WA_IDLE", "--runs", "1", "--format", "json"]);
    let json: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert!(
        json["workload"]
            .as_str()
            .unwrap()
            .starts_with("taskset -c 0-1 hackbench")
    );
    let used = json["variants"][0]["metrics"]["cpus_utilized"]["mean"].as_f64();
    assert!(used.unwrap() <= 2.0);
    for (before, words) in [
        (
            "taskset -c 90-91",
            "'taskset -c 90-91' leaves no CPU to run on: smt2-8 has CPUs 0 to 7",
        ),
        ("chrt --fifo 1", "chrt: unknown option '--fifo'"),
        ("coresched new", "coresched: unknown option 'hackbench'"),
    ] {
        let line = format!("{before} {SMALL}");
        let error = refused(&compare(&line, &["NO_WA_IDLE"]));
        assert!(error.contains(words), "{error}");
        let error = refused(&compare(SMALL, &["NO_WA_IDLE", "--with", &line]));
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn smt_can_be_off_for_all_or_for_a_variant() {
    let line = "stress-ng --cpu 16 -t 50ms";
    let used = |json: &Value, variant: usize| {
        let metrics = &json["variants"][variant]["metrics"];
        metrics["cpus_utilized"]["mean"].as_f64().unwrap().round()
    };
    let more = [
        "NO_WA_IDLE",
        "--runs",
        "1",
        "--format",
        "json",
        "--smt",
        "off",
    ];
    let off: Value = serde_json::from_str(&stdout(&compare(line, &more))).unwrap();
    assert_eq!([used(&off, 0), used(&off, 1)], [4.0, 4.0]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("smt.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nmachine = \"smt2-8\"\nkernel = \"6.12\"\ngrouping = \"root\"\n\
         workload = \"{line}\"\nruns = 1\nvariants = [\"baseline\", {{ name = \"nosmt\", smt = \"off\" }}]\n"
    );
    fs::write(&file, text).unwrap();
    let run = |more: &[&str]| -> Value {
        let arguments = [&["run", file.to_str().unwrap(), "--format", "json"], more].concat();
        serde_json::from_str(&stdout(&arguments)).unwrap()
    };
    let both = run(&[]);
    assert_eq!([used(&both, 0), used(&both, 1)], [8.0, 4.0]);
    let on = run(&["--smt", "on"]);
    assert_eq!([used(&on, 0), used(&on, 1)], [8.0, 8.0]);
    let beyond = format!("taskset -c 4-7 {line}");
    let error = refused(&compare(&beyond, &more));
    assert!(error.contains("smt2-8 has CPUs 0 to 3"), "{error}");
}

/// The report without what the host took.
fn without_host(text: &str) -> Value {
    let mut json: Value = serde_json::from_str(text).expect("the report is JSON");
    assert!(json["host"].is_object());
    json["host"] = Value::Null;
    json
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let with_jobs = |jobs| {
        let more = [
            "WAKEUP_BIAS_PREV_IDLE",
            "NO_SIS_UTIL",
            "--factorial",
            "--runs",
            "3",
            "--format",
            "json",
            "--jobs",
            jobs,
        ];
        without_host(&stdout(&compare(SMALL, &more))).to_string()
    };
    let one = with_jobs("1");
    assert_eq!(one, with_jobs("2"));
    assert_eq!(one, with_jobs("7"));
}

#[test]
fn the_seed_decides_the_result() {
    let with_seed = |seed| {
        let more = [
            "NO_SIS_UTIL",
            "--runs",
            "2",
            "--format",
            "json",
            "--seed",
            seed,
        ];
        without_host(&stdout(&compare(SMALL, &more)))["variants"].to_string()
    };
    assert_eq!(with_seed("5"), with_seed("5"));
    assert_ne!(with_seed("5"), with_seed("6"));
}

#[test]
fn a_band_gives_the_change_at_both_ends() {
    let text = stdout(&compare(
        SMALL,
        &["NO_WA_IDLE", "--runs", "2", "--band", "--format", "json"],
    ));
    let json: Value = serde_json::from_str(&text).unwrap();
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["band_pct"]["nominal"], comparison["change_pct"]);
    assert!(comparison["band_pct"]["low"].is_f64() && comparison["band_pct"]["high"].is_f64());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = wakelab()
        .args(["features", "--kernel", "6.5"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), stderr.as_str()),
        (Some(0), "")
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_before_a_pair_is_complete_writes_nothing_and_exits_with_130() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let long = "hackbench -g 4 -f 20 --threads --pipe -l 1000000 -s 100";
    let child = wakelab()
        .args(compare(
            long,
            &["NO_WA_IDLE", "--jobs", "1", "--format", "json"],
        ))
        .arg("--output")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Time to install the handler; a run of this length takes minutes.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let (out, err, code) = support::interrupt(child);
    assert_eq!(code, Some(130), "{err}");
    assert!(err.contains("no paired run is complete"), "{err}");
    assert_eq!((out.as_str(), file.exists()), ("", false));
}
