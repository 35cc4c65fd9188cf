use super::*;
use proptest::prelude::*;

fn read(line: &str) -> Result<Schbench, WorkloadError> {
    Schbench::parse(line.split_whitespace())
}

#[test]
fn defaults_are_those_of_the_code_and_not_of_its_readme() {
    let spec = read("").unwrap();
    assert_eq!(spec, Schbench::default());
    assert_eq!((spec.messengers, spec.nap_us, spec.operations), (1, 100, 5));
    assert_eq!(spec.warmup, None);
    assert_eq!(spec.workers_each(52), 52);
    assert_eq!(read("-m 3").unwrap().workers_each(52), 18);
    assert_eq!(read("-m3 -t 7 -w 0").unwrap().workers_each(52), 7);
}

#[test]
fn a_request_of_the_readmes_calibration_takes_what_it_says_there() {
    let spec = read("-F 256 -n 5 --calibrate -r 10").unwrap();
    assert_eq!(spec.rows(), 104);
    assert_eq!(spec.work().0 / 1000, 9240);
    assert!(!spec.locks);
    assert_eq!(read("-F 0").unwrap().work(), Ns(0));
    assert_eq!(read("-n 10").unwrap().work().0 / 1000, 18_481);
}

#[test]
fn threads_are_bound_as_the_options_say() {
    let machine = Machine::preset("smt2-8").unwrap();
    let cpus = |line: &str| {
        let run = Run::new(&read(line).unwrap(), &machine);
        let of = |role| run.attributes(role).cpus.unwrap().to_string();
        // Two message threads, then the workers.
        [of(1), of(2), of(3)]
    };
    assert_eq!(cpus("-m 2 -t 1"), ["0-7"; 3]);
    assert_eq!(cpus("-m 2 -t 1 -M auto"), ["0", "1", "2-7"]);
    assert_eq!(cpus("-m 2 -t 1 -W auto -M 5"), ["0", "1", "2-7"]);
    assert_eq!(cpus("-m 2 -t 1 -M 4,6"), ["4", "6", "0-7"]);
    assert_eq!(cpus("-m 2 -t 1 -M 3 -W 1-2"), ["3", "3", "1-2"]);
    assert_eq!(cpus("-m 2 -t 1 -W 100"), ["0-7"; 3], "no such CPU");
}

#[test]
fn wrong_words_are_named() {
    for (line, word) in [
        ("-c 30000", "schbench-2019"),
        ("-p 4096", "'-p' is not modelled"),
        ("-A 50", "'-A' is not modelled"),
        ("-m 0", "0 for '-m'"),
        ("-m 60000 -t 60000", "number of tasks"),
        ("-r", "'-r' needs"),
        ("-r 0", "'0' for '-r'"),
        ("-w x", "'x' for '-w'"),
        ("-W 3-1", "'3-1' for '-W'"),
        ("-j out.json", "no file is written"),
        ("stray", "'stray'"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn scale_shortens_the_run_and_its_warm_up() {
    let spec = read("-r 30 -w 5").unwrap();
    let line = spec.scaled(0.1).command_line();
    let scaled = read(line.strip_prefix(NAME).unwrap()).unwrap();
    assert_eq!(scaled.time, Ns(3_000_000_000));
    assert_eq!(scaled.warmup, Some(Ns(500_000_000)));
}

proptest! {
    #[test]
    fn any_words_give_a_result_or_an_error(line in "[-=a-zA-Z0-9 .é]{0,40}") {
        let _ = read(&line);
    }

    #[test]
    fn what_it_prints_it_reads(
        threads in (1u32..100, 0u32..100),
        ns in 1u64..1_000_000_000_000,
        warm in proptest::option::of(1u64..1_000_000_000_000),
        zero in proptest::option::of(1u64..1_000_000_000_000),
        work in (0u64..100_000, 0u64..100_000, 0u64..100_000, 0u64..100_000),
        flags: [bool; 4],
        message in proptest::option::of("[1-9]|0-3,8"),
        worker in proptest::option::of("[1-9]|0-3,8"),
    ) {
        let [calibrate, no_lock, auto, json] = flags;
        let list = |text: Option<String>| text.map(|text| CpuMask::from_cpulist(&text).unwrap());
        let pins = match auto {
            true => Pins { auto, ..Pins::default() },
            false => Pins { messengers: list(message), workers: list(worker), auto },
        };
        let spec = Schbench {
            messengers: threads.0,
            workers: threads.1,
            time: Ns(ns),
            warmup: warm.map(Ns),
            interval: Ns(ns / 3 + 1),
            zero: zero.map(Ns),
            footprint_kib: work.0,
            operations: work.1,
            nap_us: work.2,
            rps: work.3,
            calibrate,
            locks: !(calibrate || no_lock),
            pins,
            json,
            job: json.then(|| "night".to_owned()),
        };
        let line = spec.command_line();
        prop_assert_eq!(read(line.strip_prefix(NAME).unwrap()).unwrap(), spec);
    }
}
