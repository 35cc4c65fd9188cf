use super::*;
use proptest::prelude::*;

fn read(line: &str) -> Result<Schbench, WorkloadError> {
    Schbench::parse(line.split_whitespace())
}

#[test]
fn the_mails_line_leaves_the_rest_at_its_defaults() {
    let spec = read("-m44 -t 1").unwrap();
    assert_eq!((spec.messengers, spec.workers), (44, 1));
    assert_eq!((spec.sleep_us, spec.think_us), (30_000, 30_000));
    assert_eq!(spec.time, Ns(30_000_000_000));
    assert_eq!(read("").unwrap(), Schbench::default());
    let scaled = read("-r 100").unwrap().scaled(0.01).command_line();
    assert!(scaled.contains("-r 1s"), "{scaled}");
}

#[test]
fn wrong_words_and_other_modes_are_named() {
    for (line, word) in [
        ("-p 65536", "'-p' is not modelled"),
        ("-R 100", "'-R' is not modelled here"),
        ("--auto", "'-a' is not modelled"),
        ("-F 256", "'-F'"),
        ("-t 0", "0 for '-t'"),
        ("-m 60000 -t 60000", "number of tasks"),
        ("-r x", "'x' for '-r'"),
        ("-s", "'-s' needs a number"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn it_prints_as_the_program_does() {
    let mut run = Run::new(&Schbench::default());
    (1..=1000).for_each(|us| run.latencies.add(us));
    assert_eq!(
        run.log(Ns(0)),
        [
            "Latency percentiles (usec)",
            "\t50.0000th: 500",
            "\t75.0000th: 751",
            "\t90.0000th: 901",
            "\t95.0000th: 951",
            "\t*99.0000th: 991",
            "\t99.5000th: 995",
            // 99.9 of a hundred times 1000 is a little above 999 in floating point, as in the program.
            "\t99.9000th: 1001",
            "\tmin=0, max=1000",
        ]
    );
}

proptest! {
    #[test]
    fn any_words_give_a_result_or_an_error(line in "[-=a-z0-9 .é]{0,40}") {
        let _ = read(&line);
    }

    #[test]
    fn what_it_prints_it_reads(
        messengers in 1u32..100, workers in 1u32..100, ns in 1u64..1_000_000_000_000_000,
        sleep_us in 0u64..1_000_000_000, think_us in 0u64..1_000_000_000,
    ) {
        let spec = Schbench { messengers, workers, time: Ns(ns), sleep_us, think_us };
        let line = spec.command_line();
        prop_assert_eq!(read(line.strip_prefix(NAME).unwrap()).unwrap(), spec);
    }
}
