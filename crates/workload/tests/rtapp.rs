//! Files of rt-app in the engine: each event takes the time that it should and wakes whom it should.

#[path = "rtapp/examples.rs"]
mod examples;
mod support;

use support::{Load, config, metric, preset};
use wakelab_sim::{Outcome, RunError};
use wakelab_workload::{Companion, WorkloadError, run};

/// A load of these tasks, which has a `global`, on the given machine.
fn load(global: &str, tasks: &str) -> Load {
    Load::new(&format!(
        "{{\"global\": {{{global}}}, \"tasks\": {{{tasks}}}}}"
    ))
}

fn time_s(outcome: &Outcome) -> f64 {
    metric(outcome, "time_s")
}

/// About the same, within a share of it.
#[track_caller]
fn about(value: f64, expected: f64, share: f64) {
    assert!(
        (value - expected).abs() <= share * expected,
        "{value} is not about {expected}"
    );
}

#[test]
fn run_takes_its_time_at_full_speed() {
    let outcome = load("", "'t': {'loop': 50, 'run': 2000}").run("smt2-8");
    about(time_s(&outcome), 0.1, 0.003);
    about(metric(&outcome, "rtapp_run_mean_us"), 2000.0, 0.002);
    assert_eq!(metric(&outcome, "rtapp_loops"), 50.0);
    about(metric(&outcome, "cpus_utilized"), 1.0, 0.01);
}

#[test]
fn run_is_so_many_whole_loops_if_their_length_is_given() {
    let us = |calibration: &str| {
        let global = format!("'calibration': {calibration}");
        let outcome = load(&global, "'t': {'loop': 20, 'run': 1000}").run("smt2-8");
        metric(&outcome, "rtapp_run_mean_us")
    };
    about(us("'CPU0'"), 1000.0, 0.001);
    // 3 loops of 300 us, none of 1001 us.
    about(us("300000"), 900.0, 0.001);
    assert_eq!(us("1001000"), 0.0);
}

#[test]
fn run_takes_longer_on_a_small_cpu_and_beside_a_busy_sibling_and_runtime_does_not() {
    // CPU 0 does half of what CPU 7 does.
    let us = |event: &str, cpu: u32, calibration: u32| {
        let global = format!("'calibration': 'CPU{calibration}'");
        let tasks = format!("'t': {{'cpus': [{cpu}], 'loop': 10, '{event}': 5000}}");
        metric(
            &load(&global, &tasks).run("big-little-8"),
            "rtapp_run_mean_us",
        )
    };
    about(us("run", 7, 7), 5000.0, 0.01);
    about(us("run", 0, 7), 10_000.0, 0.01);
    about(us("run", 0, 0), 5000.0, 0.01);
    about(us("run", 7, 0), 2500.0, 0.01);
    for cpu in [0, 7] {
        let runtime = us("runtime", cpu, 7);
        assert!((5000.0..5100.0).contains(&runtime), "{runtime}");
    }
    let beside = |event: &str| {
        let task = |cpu: u32| format!("{{'cpus': [{cpu}], 'loop': 9, '{event}': 9000}}");
        let tasks = format!("'a': {}, 'b': {}", task(0), task(4));
        metric(&load("", &tasks).run("smt2-8"), "rtapp_run_mean_us")
    };
    assert!(beside("run") > 11_000.0, "CPUs 0 and 4 are siblings");
    about(beside("runtime"), 9000.0, 0.01);
}

#[test]
fn sleep_takes_its_time_and_the_timer_slack() {
    let outcome = load("", "'t': {'loop': 100, 'sleep': 1000}").run("smt2-8");
    about(time_s(&outcome), 100.0 * 1.05e-3, 0.02);
    assert_eq!(metric(&outcome, "wakeups").round(), 100.0 + 1.0);
}

#[test]
fn a_timer_keeps_the_period_and_says_how_late_it_woke() {
    let timer = "'timer': {'ref': 'unique', 'period': 10000}";
    let outcome = load("", &format!("'t': {{'loop': 100, 'run': 3000, {timer}}}")).run("smt2-8");
    about(metric(&outcome, "rtapp_period_mean_us"), 10_000.0, 0.002);
    // Each turn begins 50 us of slack and an idle state's exit after the timer.
    let late = metric(&outcome, "rtapp_wu_lat_p50_us");
    assert!((50.0..80.0).contains(&late), "{late}");
    about(
        metric(&outcome, "rtapp_slack_mean_us"),
        7000.0 - late,
        0.003,
    );
    assert_eq!(metric(&outcome, "rtapp_missed"), 0.0);
}

#[test]
fn a_missed_period_moves_a_relative_timer_and_not_an_absolute_one() {
    let run = |mode: &str| {
        let timer = format!("'timer': {{'ref': 'unique', 'period': 10000, 'mode': '{mode}'}}");
        let phases = format!(
            "'first': {{'run': 25000, {timer}}}, 'others': {{'loop': 5, 'run': 1000, {timer}}}"
        );
        load("", &format!("'t': {{'loop': 1, 'phases': {{{phases}}}}}")).run("smt2-8")
    };
    let [relative, absolute] = ["relative", "absolute"].map(run);
    assert_eq!(metric(&relative, "rtapp_missed"), 1.0);
    about(time_s(&relative), 0.075, 0.01);
    // At 25 ms it is past 10 ms, at 26 ms past 20 ms; the others are 30 to 60 ms.
    assert_eq!(metric(&absolute, "rtapp_missed"), 2.0);
    about(time_s(&absolute), 0.060, 0.01);
    about(metric(&absolute, "rtapp_slack_min_us"), -15_000.0, -0.01);
}

#[test]
fn instances_share_a_timer_unless_it_is_unique() {
    let period = |name: &str| {
        let tasks = format!(
            "'t': {{'instance': 4, 'loop': 10, 'run': 100, 'timer': {{'ref': '{name}', 'period': 1000}}}}"
        );
        time_s(&load("", &tasks).run("smt2-8"))
    };
    about(period("unique1"), 0.010, 0.05);
    about(period("tick"), 0.040, 0.05);
}

#[test]
fn slack_is_the_last_ones_or_all_together() {
    let mean = |cumulative: bool| {
        let timer = |n: u32| format!("'timer{n}': {{'ref': 'unique', 'period': 5000}}");
        let tasks = format!(
            "'t': {{'loop': 20, 'run1': 1000, {}, 'run2': 3000, {}}}",
            timer(1),
            timer(2)
        );
        let global = format!("'cumulative_slack': {cumulative}");
        metric(&load(&global, &tasks).run("smt2-8"), "rtapp_slack_mean_us")
    };
    about(mean(false), 2000.0, 0.05);
    about(mean(true), 6000.0, 0.05);
}

#[test]
fn a_delay_counts_from_when_all_are_there() {
    let tasks = "'t': {'instance': 3, 'delay': 20000, 'loop': 1, 'run': 1000}";
    about(time_s(&load("", tasks).run("smt2-8")), 0.02105, 0.01);
}

#[test]
fn phases_follow_each_other_and_begin_again() {
    let tasks = "'t': {'loop': 3, 'phases': {'a': {'loop': 2, 'run': 1000}, 'b': {'run': 5000}}}";
    let outcome = load("", tasks).run("smt2-8");
    assert_eq!(metric(&outcome, "rtapp_loops"), 9.0);
    about(time_s(&outcome), 3.0 * 7e-3, 0.01);
}

#[test]
fn the_duration_ends_tasks_that_never_end() {
    let outcome = load("'duration': 2", "'t': {'run': 1000, 'sleep': 3000}").run("smt2-8");
    about(time_s(&outcome), 2.0, 1e-4);
    about(metric(&outcome, "cpus_utilized"), 0.25, 0.02);
    let endless = load("", "'t': {'loop': -1, 'run': 1000}");
    let error = endless.parse("").unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, WorkloadError::NeverEnds { .. }) && text.contains("'-t TIME'"),
        "{text}"
    );
    about(
        time_s(&endless.run_with("-t 500ms", "smt2-8").unwrap()),
        0.5,
        1e-4,
    );
}

#[test]
fn suspended_tasks_are_resumed() {
    let tasks = "'a': {'loop': 100, 'run': 500, 'resume': 'b', 'suspend': 'a'},
         'b': {'loop': 100, 'suspend': 'b', 'run': 500, 'resume': 'a'}";
    let outcome = load("", tasks).run("smt2-8");
    // One after the other, and each is woken by the other each time.
    about(time_s(&outcome), 0.1, 0.03);
    assert!(metric(&outcome, "wakeups") >= 199.0);
    let lost = load(
        "",
        "'a': {'loop': 1, 'resume': 'b', 'run': 1}, 'b': {'loop': 1, 'sleep': 100, 'suspend': 'b'}",
    );
    let error = lost.run_with("", "smt2-8").unwrap_err();
    assert!(
        error.to_string().contains("a signal of condition variable"),
        "{error}"
    );
}

#[test]
fn one_task_at_a_time_has_a_mutex() {
    let task = "{'loop': 20, 'lock': 'm', 'run': 1000, 'sleep': 500, 'unlock': 'm'}";
    for pi in [false, true] {
        let global = format!("'pi_enabled': {pi}");
        let outcome =
            load(&global, &format!("'a': {task}, 'b': {task}, 'c': {task}")).run("smt2-8");
        about(time_s(&outcome), 60.0 * 1.55e-3, 0.03);
    }
}

#[test]
fn a_signal_wakes_one_and_a_broadcast_all() {
    let waiters = "'w': {'instance': 4, 'loop': 1, 'lock': 'm', 'wait': {'ref': 'c', 'mutex': 'm'}, 'unlock': 'm', 'run': 100}";
    let signaller = |event: &str, loops: u32| {
        format!(
            "{waiters}, 's': {{'loop': {loops}, 'sleep': 1000, 'lock': 'm', '{event}': 'c', 'unlock': 'm'}}"
        )
    };
    let one = load("", &signaller("signal", 3))
        .run_with("", "smt2-8")
        .unwrap_err();
    assert!(
        matches!(one, RunError::Stuck { tasks: 2, .. }),
        "one waits on, and the main task: {one}"
    );
    about(
        time_s(&load("", &signaller("signal", 4)).run("smt2-8")),
        4.3e-3,
        0.1,
    );
    about(
        time_s(&load("", &signaller("broad", 1)).run("smt2-8")),
        1.2e-3,
        0.2,
    );
}

#[test]
fn sync_signals_and_waits() {
    let tasks = "'a': {'loop': 5, 'lock': 'm', 'wait': {'ref': 'c', 'mutex': 'm'}, 'signal': 'c', 'unlock': 'm'},
         'b': {'delay': 1000, 'loop': 5, 'lock': 'm', 'sync': {'ref': 'c', 'mutex': 'm'}, 'unlock': 'm', 'sleep': 300}";
    let outcome = load("", tasks).run("smt2-8");
    assert_eq!(metric(&outcome, "rtapp_loops"), 10.0);
}

#[test]
fn nobody_passes_a_barrier_before_all_are_there() {
    let tasks = "'slow': {'loop': 10, 'run': 3000, 'barrier': 'B'},
         'fast': {'instance': 3, 'loop': 10, 'run': 100, 'barrier': 'B'}";
    let outcome = load("", tasks).run("smt2-8");
    about(time_s(&outcome), 0.03, 0.03);
    about(metric(&outcome, "rtapp_period_mean_us"), 3000.0, 0.03);
}

#[test]
fn semaphores_remember_posts() {
    let tasks = "'a': {'loop': 1, 'sem_post': 's', 'sem_post1': 's'},
         'b': {'loop': 2, 'sleep': 1000, 'sem_wait': 's'}, 'c': {'loop': 1, 'sem_wait': 't'},
         'd': {'loop': 1, 'sleep': 500, 'sem_post': 't'}";
    about(time_s(&load("", tasks).run("smt2-8")), 2.1e-3, 0.1);
}

#[test]
fn forked_tasks_run_beside_their_makers() {
    let tasks = "'main': {'loop': 5, 'run': 100, 'fork': 'child', 'sleep': 100},
         'child': {'instance': 0, 'loop': 1, 'run': 10000}";
    let outcome = load("", tasks).run("smt2-8");
    assert_eq!(metric(&outcome, "rtapp_loops"), 10.0);
    assert!(
        (0.010..0.02).contains(&time_s(&outcome)),
        "{}",
        time_s(&outcome)
    );
    let bomb = load("'duration': 10", "'t': {'fork': 't', 'sleep': 10}");
    let error = bomb.run_with("", "smt2-8").unwrap_err();
    assert_eq!(
        error.to_string(),
        "rt-app: task 't' is forked more than 1024 times"
    );
}

#[test]
fn a_task_that_yields_lets_another_go_first() {
    let switches = |event: &str| {
        let task = format!("{{'cpus': [0], 'loop': 200, 'run': 100, {event}}}");
        let outcome = load("", &format!("'a': {task}, 'b': {task}")).run("smt2-8");
        metric(&outcome, "context_switches")
    };
    let (with, without) = (switches("'yield': ''"), switches("'run1': 0"));
    assert!(with > 2.0 * without && with > 100.0, "{with} {without}");
}

#[test]
fn memory_and_devices_take_the_machines_time() {
    let costs = preset("smt2-8").costs;
    let us = |event: &str| {
        let outcome = load("", &format!("'t': {{'loop': 10, {event}}}")).run("smt2-8");
        metric(&outcome, "rtapp_period_mean_us")
    };
    let copy = costs.copy_ns_per_kib.value.round() * 1024.0 / 1e3;
    about(us("'mem': 1048576"), copy, 0.02);
    about(
        us("'memrun': {'type': 'read', 'size': 4096, 'count': 1048576}"),
        copy,
        0.02,
    );
    let hop = costs.transfer_llc_ns.value.round() * 10.0;
    about(
        us("'memrun': {'type': 'chase', 'size': 4096, 'count': 10000}"),
        hop,
        0.02,
    );
    let write = costs.syscall_ns.value.round() / 1e3;
    let io = us("'iorun': 4194305");
    assert!((io - 2.0 * write).abs() < 0.01, "two writes: {io}");
}

#[test]
fn nice_decides_who_gets_more() {
    let tasks = "'a': {'cpus': [0], 'priority': -5, 'run': 1000}, 'b': {'cpus': [0], 'priority': 0, 'run': 1000}";
    let outcome = load("'duration': 4", tasks).run("smt2-8");
    // 3121 : 1024 of 4 s.
    about(metric(&outcome, "rtapp_loops"), 4000.0, 0.01);
    let run = metric(&outcome, "rtapp_run_mean_us");
    assert!((1900.0..2100.0).contains(&run), "{run}");
}

#[test]
fn groups_share_a_cpu_by_groups() {
    let many =
        "'many': {'instance': 3, 'cpus': [0], 'taskgroup': '/many', 'loop': 100, 'run': 1000}";
    let lone = "'lone': {'cpus': [0], 'taskgroup': '/deep/lone', 'loop': 100, 'run': 1000}";
    let outcome = load("", &format!("{many}, {lone}")).run("smt2-8");
    // The lone one has half of the CPU and is done after 200 ms, the others after 400 ms.
    about(time_s(&outcome), 0.4, 0.02);
    let period = metric(&outcome, "rtapp_period_mean_us");
    about(period, (3.0 * 4000.0 + 2000.0) / 4.0, 0.05);
}

#[test]
fn a_phase_moves_its_task_to_its_cpus_and_back() {
    let phases =
        "'p': {'cpus': [1], 'run': 1000}, 'q': {'cpus': [2], 'run': 1000}, 'r': {'run': 1000}";
    let tasks = format!("'t': {{'cpus': [0], 'loop': 10, 'phases': {{{phases}}}}}");
    let outcome = load("", &tasks).run("smt2-8");
    let moves = metric(&outcome, "cpu_migrations");
    assert!((30.0..=32.0).contains(&moves), "{moves}");
    about(time_s(&outcome), 0.03, 0.03);
    let beyond = load("", "'t': {'cpus': [8], 'loop': 1, 'run': 1}");
    let error = beyond.run_with("", "smt2-8").unwrap_err().to_string();
    assert!(
        error.ends_with(": CPU 8: the last CPU of machine 'smt2-8' is 7"),
        "{error}"
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let tasks = "'a': {'instance': 12, 'run': 700, 'timer': {'ref': 'unique', 'period': 2000}},
         'b': {'instance': 5, 'lock': 'm', 'run': 300, 'unlock': 'm', 'sleep': 900}";
    let one = || load("'duration': 1, 'pi_enabled': true", tasks).run("smt2-8");
    assert_eq!(one(), one());
}

#[test]
fn files_run_beside_others_and_others_beside_them() {
    let tasks = "'a': {'lock': 'm', 'run': 1000, 'unlock': 'm', 'sleep': 100},
         'b': {'cpus': [3], 'taskgroup': '/b', 'barrier': 'B', 'run': 300, 'sem_post': 's'},
         'c': {'barrier': 'B', 'sem_wait': 's', 'suspend': ''}, 'd': {'resume': 'c', 'sleep': 900}";
    let (one, other) = (load("'pi_enabled': true", tasks), load("", tasks));
    let endless = |load: &Load| Companion::parse(&format!("rt-app {}", load.path().display()));
    let beside = [endless(&one).unwrap(), endless(&other).unwrap()];
    let measured = load("'duration': 1", tasks).parse("").unwrap();
    let alone = run(&measured, &config("smt2-8"), &|| false).unwrap();
    let together = measured.with(&beside).unwrap();
    let together = run(&together, &config("smt2-8"), &|| false).unwrap();
    about(time_s(&together), 1.0, 1e-3);
    let busy = |outcome: &Outcome| metric(outcome, "cpus_utilized");
    about(busy(&together), 3.0 * busy(&alone), 0.2);
    let loops = |outcome: &Outcome| metric(outcome, "rtapp_loops");
    about(loops(&together), loops(&alone), 0.2);
}

#[test]
fn scaled_runs_are_shorter_and_say_so() {
    let load = load("'duration': 2", "'t': {'run': 1000, 'sleep': 1000}");
    let workload = load.parse("-l 50").unwrap().scaled(0.1);
    assert!(
        workload
            .command_line()
            .starts_with("rt-app -l 50 --scale 0.1 ")
    );
    about(
        time_s(&load.run_with("--scale 0.1", "smt2-8").unwrap()),
        0.2,
        1e-3,
    );
}

#[test]
fn wrong_words_are_named() {
    let load = load("", "'t': {'loop': 1, 'run': 1}");
    for (options, expected) in [
        (
            "-l 60",
            "'60' for '-l' is not understood; expected 10, 50, 75 or 100",
        ),
        ("-t 0", "'0' for '-t'"),
        ("--scale=-1", "'-1' for '--scale'"),
        ("-x", "unknown option '-x'"),
        ("other.json", "unknown option '"),
    ] {
        let error = load.parse(options).unwrap_err().to_string();
        assert!(error.contains(expected), "{options}: {error}");
    }
    for (line, expected) in [
        ("rt-app", "option 'FILE' is needed"),
        ("rt-app nowhere.json", "rt-app: nowhere.json: No such file"),
        (
            "rt-app /dev/zero",
            "rt-app: /dev/zero: it is no regular file",
        ),
    ] {
        let error = wakelab_workload::Workload::parse(line)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

/// The lines that `wakelab bench` prints, by words.
fn log_of(load: &Load) -> Vec<Vec<String>> {
    let workload = load.parse("").expect("it is read").logged();
    let outcome = run(&workload, &config("smt2-8"), &|| false).expect("it ends");
    let printed = workload.printed(&outcome);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    printed.lines().map(words).collect()
}

#[test]
fn the_log_of_a_thread_is_rt_apps_and_says_what_the_metrics_say() {
    let load = load(
        "'calibration': 200",
        "'tick': {'loop': 3, 'run': 1000, 'runtime': 500, 'timer': {'ref': 'u', 'period': 5000}}",
    );
    let log = log_of(&load);
    assert_eq!(log[0].join(" "), "==> rt-app-tick-0.log <==");
    assert_eq!(log[1].join(" "), "# Policy : SCHED_OTHER priority : 0");
    let head = "#idx perf run period start end rel_st slack c_duration c_period wu_lat";
    assert_eq!(log[2].join(" "), head);
    assert_eq!(log.len(), 6);
    let number = |line: usize, word: usize| log[line][word].parse::<f64>().expect("a number");
    for line in 3..6 {
        // 1000 us and 16 chunks of 32 us, of 200 ns a loop.
        assert_eq!(number(line, 1), 5000.0 + 16.0 * 160.0);
        assert!((1500.0..1560.0).contains(&number(line, 2)), "{log:?}");
        // All three are rounded.
        let period = number(line, 5) - number(line, 4);
        assert!((number(line, 3) - period).abs() <= 1.0, "{log:?}");
        assert_eq!((number(line, 8), number(line, 9)), (1500.0, 5000.0));
        // The timer's grid begins with the thread.
        let (start, left) = (number(line, 6), number(line, 7));
        let due = 5000.0 * (line - 2) as f64;
        let late = number(line, 10);
        assert!(
            (start + number(line, 3) - due - late).abs() < 3.0,
            "{log:?}"
        );
        assert!(
            (due - start - number(line, 2) - left).abs() < 10.0,
            "{log:?}"
        );
    }
}

#[test]
fn each_thread_has_a_log_and_forks_are_numbered() {
    let load = load(
        "",
        "'a': {'instance': 2, 'loop': 2, 'run': 10}, 'b': {'priority': 3, 'loop': 1, 'run': 10, 'fork': 'c'}, \
         'c': {'instance': 0, 'loop': 4, 'run': 10}",
    );
    let log = log_of(&load);
    let named = |start: &str| {
        let lines = log.iter().filter(|line| line[0] == start);
        lines.map(|line| line.join(" ")).collect::<Vec<_>>()
    };
    let names = ["a-0", "a-1", "b-2", "c-3-1"].map(|name| format!("==> rt-app-{name}.log <=="));
    assert_eq!(named("==>"), names);
    let counts = ["0", "1", "2", "3"].map(|index| named(index).len());
    assert_eq!(counts, [2, 2, 1, 4]);
    assert_eq!(named("#")[2], "# Policy : SCHED_OTHER priority : 3");
}

#[test]
fn a_log_that_nobody_asked_for_is_not_kept() {
    let load = load("", "'t': {'loop': 50, 'run': 20}");
    let workload = load.parse("").expect("it is read");
    let outcome = run(&workload, &config("smt2-8"), &|| false).expect("it ends");
    assert_eq!(workload.printed(&outcome), "");
}
