//! Experiments from files, end to end.

// Other tests use the rest of it.
#[allow(dead_code)]
#[path = "support/program.rs"]
mod program;

use program::{SMALL, refused, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

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
    let json = stdout(&["run", "sis-cookie", "--runs", "10", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let time = |variant: usize| json["variants"][variant]["metrics"]["time_s"]["mean"].as_f64();
    let [none, cookies, checked] = [0, 1, 2].map(|variant| time(variant).unwrap());
    // Published: 24.56, 26.04 and 25.13 s, an overhead of 1.48 s of which 61.7 % is taken back.
    let overhead = cookies - none;
    assert!((24.0..25.0).contains(&none), "{none}");
    assert!((1.0..1.9).contains(&overhead), "{overhead}");
    let taken_back = (cookies - checked) / overhead;
    assert!((0.45..0.78).contains(&taken_back), "{taken_back}");
}

/// A CPU is forced idle while a task waits there, and not for longer.
#[test]
fn what_is_forced_idle_keeps_a_task_waiting() {
    let arguments = [
        "compare",
        "--machine",
        "smt2-8",
        "--kernel",
        "6.12",
        "--workload",
        "worksleep -t 8 -n 600 --cookies pairs",
        "--runs",
        "2",
        "--format",
        "json",
        "FORCE_IDLE_PUSH",
        "FORCE_IDLE_LB",
    ];
    let json: Value = serde_json::from_str(&stdout(&arguments)).unwrap();
    for variant in json["variants"].as_array().unwrap() {
        let forced = variant["forced_idle"]["time_s"].as_f64().unwrap();
        let wait = &variant["metrics"]["rq_wait_s"];
        let wait = wait["mean"].as_f64().unwrap() * wait["n"].as_f64().unwrap();
        assert!(forced > 0.0 && forced <= wait, "{forced} {wait} {variant}");
    }
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
