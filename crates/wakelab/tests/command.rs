//! The command, end to end: what it prints, where, and how it exits.

mod support;

use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn wakelab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_wakelab"))
}

fn output(arguments: &[&str]) -> Output {
    wakelab()
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Standard output of a command that succeeds.
fn stdout(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("the program writes UTF-8")
}

/// Standard error of a command that ends with exit code 2 and prints nothing else.
fn refused(arguments: &[&str]) -> String {
    let output = output(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

const SMALL: &str = "hackbench -g 1 -f 2 --threads --pipe -l 50 -s 100";

fn compare<'a>(workload: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![
        "compare",
        "--machine",
        "smt2-8",
        "--kernel",
        "6.5",
        "--workload",
        workload,
    ];
    arguments.extend(more);
    arguments
}

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

/// `machine import` of the word, and what `machine show` says of the file that it makes.
fn imported(folder: &Path, word: &str) -> (String, Value) {
    let text = stdout(&["machine", "import", word]);
    let path = folder.join("imported.toml");
    fs::write(&path, &text).expect("the folder is there");
    let show = [
        "machine",
        "show",
        path.to_str().expect("temporary paths are UTF-8"),
        "--format",
        "json",
    ];
    let shown: Value = serde_json::from_str(&stdout(&show)).expect("the program writes JSON");
    // What can be imported can be used as it is, and is the same machine.
    let direct = ["machine", "show", word, "--format", "json"];
    let direct: Value = serde_json::from_str(&stdout(&direct)).expect("the program writes JSON");
    assert_eq!(direct, shown);
    (text, shown)
}

#[test]
fn a_machine_is_imported_from_a_synthetic_string() {
    let folder = tempfile::tempdir().unwrap();
    let word = "Package:2 [NUMANode] L3Cache:2 Core:4 PU:2(indexes=2*16:1*2)";
    let (text, shown) = imported(folder.path(), word);
    assert!(text.starts_with("# Read from a synthetic string"), "{text}");
    assert!(
        text.contains("cores_per_llc = 4") && text.contains("like = "),
        "{text}"
    );
    assert_eq!(shown["counts"]["cpus"], 32);
    assert_eq!(shown["numbering"], "siblings N and N+16");
    let json = stdout(&["machine", "import", word, "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "hwloc-synthetic");
    assert_eq!(json["machine"]["cpus"].as_array().unwrap().len(), 32);
}

#[test]
fn a_machine_is_imported_from_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let cpu = folder.path().join("sys/devices/system/cpu");
    for (file, text) in [
        ("online", "0-1,3-5"),
        ("present", "0-5"),
        ("isolated", "5"),
        ("cpu0/topology/core_cpus_list", "0-1"),
        ("cpu1/topology/core_cpus_list", "0-1"),
        ("cpu3/cpu_capacity", "512"),
    ] {
        let path = cpu.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let (text, shown) = imported(folder.path(), folder.path().to_str().unwrap());
    for part in [
        "CPUs 0-4 here are its CPUs 0-1,3-5",
        "not online: 2",
        "isolated = \"4\"",
        "capacity = 512",
        "[places]",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    assert_eq!(shown["isolated"], "4");
    assert_eq!(shown["counts"]["cores"], 4);
}

#[test]
fn a_machine_is_imported_from_xml_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/data");
    for (file, cpus) in [("hwloc-1.xml", 3), ("hwloc-2.xml", 8)] {
        let path = data.join(file);
        let (_, shown) = imported(folder.path(), path.to_str().unwrap());
        assert_eq!(shown["counts"]["cpus"], cpus);
        assert_eq!(shown["counts"]["nodes"], 2);
    }
    let path = data.join("hwloc-2.xml");
    let mut arguments = compare(SMALL, &["NO_SIS_UTIL", "--runs", "1", "--format", "json"]);
    arguments[2] = path.to_str().unwrap();
    let result: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    assert_eq!(result["machine"], "hwloc-2");
}

#[test]
fn a_bad_import_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.xml");
    let word = path.to_str().unwrap();
    for (bytes, part) in [
        (
            &b"<topology version=\"2.0\">\n<object type=\"PU\" cpuset=\"0xz\"/>"[..],
            "bad.xml:2: '0xz'",
        ),
        (b"<topology version=\"9\"/>", "bad.xml:1: '9'"),
        (b"no XML at all", "bad.xml: "),
        (b"\x1f\x8b\x08", "bad.xml: "),
        (b"", "bad.xml: "),
    ] {
        fs::write(&path, bytes).unwrap();
        for verb in ["import", "show"] {
            let stderr = refused(&["machine", verb, word]);
            assert!(stderr.contains(part), "no '{part}' in {stderr}");
        }
    }
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    fs::write(&path, "title = \"x\"\nsource = \"y\"\ncosts = 1\n").unwrap();
    let path = path.to_str().unwrap();
    let stderr = refused(&["run", path]);
    assert!(
        stderr.contains("bad.toml:3:1") && stderr.contains("belong to machines"),
        "{stderr}"
    );
    fs::write(path, [0xff, 0xfe]).unwrap();
    assert!(refused(&["run", path]).contains("bad.toml"));
    fs::write(path, "name = \n").unwrap();
    let stderr = refused(&["machine", "show", path]);
    assert!(stderr.contains("bad.toml:1"), "{stderr}");
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

#[test]
fn an_experiment_says_what_runs_beside_and_the_command_line_adds_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beside.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nmachine = \"smt2-8\"\nkernel = \"6.12\"\ngrouping = \"root\"\n\
         workload = \"{SMALL}\"\nwith = [\"spin -n 2\"]\nruns = 1\n\
         variants = [\"baseline\", {{ name = \"alone\", with = [] }}, \"NO_WA_IDLE\"]\n"
    );
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let run = |more: &[&str]| -> Value {
        let arguments = [&["run", path, "--format", "json"], more].concat();
        serde_json::from_str(&stdout(&arguments)).unwrap()
    };
    let json = run(&[]);
    let busy = |variant: usize| {
        let metrics = &json["variants"][variant]["metrics"];
        metrics["cpus_utilized"]["mean"].as_f64().unwrap()
    };
    assert!(busy(0) > busy(1) + 1.0, "{} {}", busy(0), busy(1));
    assert!(
        json["workload"]
            .as_str()
            .unwrap()
            .ends_with("--with 'spin -n 2'")
    );
    assert!(
        json["variants"][1]["workload"]
            .as_str()
            .unwrap()
            .ends_with("-s 100")
    );
    assert_eq!(json["variants"][2].get("workload"), None);
    let more = run(&["--with", "spin -n 1"]);
    let line = more["variants"][1]["workload"].as_str().unwrap();
    assert!(line.ends_with("-s 100 --with 'spin -n 1'"), "{line}");
    let line = more["workload"].as_str().unwrap();
    assert!(
        line.ends_with("--with 'spin -n 2' --with 'spin -n 1'"),
        "{line}"
    );
}

#[test]
fn variants_of_an_experiment_may_differ_in_their_workloads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = "title = \"Mine\"\nsource = \"me\"\nmachine = \"smt2-8\"\nkernel = \"6.12\"\ngrouping = \"root\"\n\
        workload = \"worksleep -t 2 -n 20 --work 5ms --sleep 15ms\"\nscale = 0.5\nruns = 1\n\
        variants = [\"baseline\", { name = \"twice\", workload = \"worksleep -t 2 -n 40 --work 5ms --sleep 15ms\" }]\n";
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let json: Value = serde_json::from_str(&stdout(&["run", file, "--format", "json"])).unwrap();
    let change = json["comparisons"][0]["change_pct"].as_f64().unwrap();
    assert!((99.0..101.0).contains(&change), "{change}");
    let workload = json["variants"][1]["workload"].as_str().unwrap();
    assert!(workload.contains("-n 40"), "at full length: {workload}");
    fs::write(file, text.replace("-n 40", "-n 0")).unwrap();
    let stderr = refused(&["run", file]);
    assert!(
        stderr.contains("mine.toml:9:") && stderr.contains("0 for '-n'"),
        "{stderr}"
    );
}

#[test]
fn cookies_cost_time_and_the_fast_paths_checks_take_part_of_it_back() {
    let arguments = [
        "run",
        "sis-cookie",
        "--scale",
        "0.1",
        "--runs",
        "4",
        "--format",
        "json",
    ];
    let json: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    let time = |variant: usize| json["variants"][variant]["metrics"]["time_s"]["mean"].as_f64();
    let [none, cookies, checked] = [0, 1, 2].map(|variant| time(variant).unwrap());
    assert!(
        none < checked && checked < cookies,
        "{none} {checked} {cookies}"
    );
}

/// K6: a busy sibling leaves more than sharing a CPU by time does; two cookies take that gain away, as one
/// sibling is kept idle while the other runs.
#[test]
fn siblings_gain_over_sharing_a_cpu_and_two_cookies_lose_that_again() {
    let arguments = ["run", "core-sched-smt", "--scale", "0.05", "--runs", "2"];
    let json = stdout(&[&arguments[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let events =
        |variant: usize| json["variants"][variant]["metrics"]["events_per_s"]["mean"].as_f64();
    let [alone, same, sibling, cookies] = [0, 1, 2, 3].map(|variant| events(variant).unwrap());
    assert!((0.48..0.52).contains(&(same / alone)), "{same} of {alone}");
    assert!(1.2 * same < sibling && sibling < alone, "{same} {sibling}");
    assert!((0.45..0.53).contains(&(cookies / alone)), "{cookies}");
    assert!(1.2 * cookies < sibling, "{cookies} {sibling}");
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
fn an_experiment_file_runs_and_its_output_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = folder.path().join("mine.toml");
    let result = folder.path().join("result.json");
    let text = format!(
        "title = \"Mine\"\nsource = \"me\"\nmachine = \"smt2-8\"\nkernel = \"6.5\"\ngrouping = \"autogroup\"\n\
         workload = \"{SMALL}\"\nvariants = [\"baseline\", \"NO_WA_IDLE\"]\nruns = 2\n\
         [published.figures.baseline]\ntime_s = 1.0\n[published.figures.NO_WA_IDLE]\ntime_s = 1.5\n"
    );
    fs::write(&experiment, text).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (experiment, result) = (path(&experiment), path(&result));
    assert!(stdout(&["run", &experiment, "--format", "json", "--output", &result]).is_empty());
    let json: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    assert_eq!(
        (&json["experiment"], &json["runs"]),
        (&Value::from("mine"), &Value::from(2))
    );
    assert_eq!(json["comparisons"][0]["published_pct"], 50.0);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing else is left"
    );
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

#[test]
fn bench_prints_what_the_benchmark_prints_and_nothing_else() {
    let bench = |seed: &str, line: &[&str]| {
        let mut arguments = vec![
            "bench",
            "--machine",
            "smt2-8",
            "--kernel",
            "6.12",
            "--seed",
            seed,
            "--",
        ];
        arguments.extend(line);
        stdout(&arguments)
    };
    let pipe = ["perf", "bench", "sched", "pipe", "-l", "100"];
    let printed = bench("1", &pipe);
    let start = "# Running 'sched/pipe' benchmark:\n# Executed 100 pipe operations between two processes\n\n";
    assert!(printed.starts_with(start), "{printed}");
    assert_eq!(printed, bench("1", &pipe));
    // A line in quotes is one of words.
    let hackbench = bench("7", &["hackbench -g 1 -f 2 -l 10"]);
    let lines: Vec<&str> = hackbench.lines().collect();
    assert_eq!(lines.len(), 3, "{hackbench}");
    assert!(lines[2].starts_with("Time: 0.0"), "{hackbench}");
}

/// It is the first run of `compare`, features and all.
#[test]
fn bench_is_the_first_run_of_compare() {
    let line = "netperf -t TCP_RR -l 10ms --pairs 4";
    let mut arguments = compare(line, &["NO_WA_IDLE", "--runs", "1", "--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&arguments)).expect("JSON");
    for (variant, features) in [(0, ""), (1, "NO_WA_IDLE")] {
        arguments = vec![
            "bench",
            "--machine",
            "smt2-8",
            "--kernel",
            "6.5",
            "--features",
            features,
            "--",
            line,
        ];
        let printed = stdout(&arguments);
        let rates = printed
            .lines()
            .filter(|line| line.starts_with("16384  131072 1"));
        let rate = |line: &str| {
            line.split_whitespace()
                .nth(5)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let sum: f64 = rates.map(rate).sum();
        let metric = &report["variants"][variant]["metrics"]["transactions_per_s"]["mean"];
        assert!(
            (metric.as_f64().unwrap() - sum).abs() < 0.1,
            "{metric} {sum}"
        );
    }
}

#[test]
fn bench_refuses_what_it_does_not_know() {
    let bench = |more: &[&str]| {
        let mut arguments = vec!["bench", "--machine", "smt2-8", "--kernel", "6.12"];
        arguments.extend(more);
        refused(&arguments)
    };
    assert!(bench(&["--", "perf", "stat"]).contains("perf: unknown option 'stat'"));
    assert!(bench(&["--features", "FOO", "--", "hackbench"]).contains("--features: there is no"));
    assert!(bench(&[]).contains("COMMAND LINE"));
}
