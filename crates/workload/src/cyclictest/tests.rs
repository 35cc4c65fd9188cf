use super::*;
use proptest::prelude::*;

fn read(line: &str) -> Result<Cyclictest, WorkloadError> {
    Cyclictest::parse(line.split_whitespace())
}

#[test]
fn defaults_and_options_are_the_programs() {
    let plain = read("-l 100").unwrap();
    assert_eq!((plain.threads, plain.loops), (Some(1), Some(100)));
    assert_eq!((plain.interval_us, plain.distance_us), (1000, 500));
    assert_eq!(plain.affinity, Affinity::Free);
    assert_eq!(plain.latency_us, Some(0));
    assert_eq!(plain.interval(3), Ns(2_500_000));
    let smp = read("-Smq -p 0 --policy=other -h 400 -D 1m").unwrap();
    assert_eq!((smp.threads, smp.affinity.clone()), (None, Affinity::All));
    assert_eq!(smp.time, Some(Ns(60_000_000_000)));
    assert_eq!(
        smp.interval(3),
        Ns(1_000_000),
        "no distance with a histogram"
    );
    assert_eq!(read("--default-system -l 1").unwrap().latency_us, None);
}

#[test]
fn numbers_of_threads_and_sets_of_cpus_may_be_left_out() {
    let cases = [
        ("-t -l 1", None, Affinity::Free),
        ("-t 4 -l 1", Some(4), Affinity::Free),
        ("-t4 -l 1", Some(4), Affinity::Free),
        ("-a -t -l 1", None, Affinity::All),
        (
            "-qt -a 0-1 -l 1",
            None,
            Affinity::Some(CpuMask::from_cpulist("0-1").unwrap()),
        ),
        ("-l 1 --threads", None, Affinity::Free),
        (
            "--threads=2 --affinity 3 -l 1",
            Some(2),
            Affinity::Some(CpuMask::from_cpulist("3").unwrap()),
        ),
    ];
    for (line, threads, affinity) in cases {
        let spec = read(line).unwrap();
        assert_eq!((spec.threads, spec.affinity), (threads, affinity), "{line}");
    }
}

#[test]
fn threads_share_the_cpus_in_turn() {
    let run = |line: &str| Run::new(&read(line).unwrap(), 8);
    assert_eq!(run("-S -l 1").max_tasks(), 9);
    let three = run("-t 3 -a 6-7 -l 1");
    assert_eq!(three.cpus, [6, 7, 6].map(|cpu| Some(CpuId(cpu))));
    assert_eq!(run("-t 2 -l 1").cpus, [None, None]);
    assert_eq!(
        run("-a 100-120 -t 1 -l 1").cpus,
        [None],
        "CPUs that do not exist"
    );
}

#[test]
fn wrong_and_missing_words_are_named() {
    for (line, word) in [
        ("-l x", "'x' for '-l'"),
        ("-p 80 -l 1", "SCHED_FIFO"),
        ("--policy=fifo -l 1", "'fifo'"),
        ("-t 0 -l 1", "'0' for '-t'"),
        ("-a x -l 1", "'x'"),
        ("-i 0 -l 1", "0 for '-i'"),
        ("-h 0 -l 1", "0 for '-h'"),
        ("-D", "'-D' needs"),
        ("-b 100 -l 1", "'-b'"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn measured_it_needs_an_end() {
    for (line, ends) in [("", false), ("-l 0", false), ("-l 1", true), ("-D 1", true)] {
        assert_eq!(read(line).unwrap().lacks_end().is_none(), ends, "{line}");
    }
}

#[test]
fn a_record_prints_as_the_program_does() {
    let mut record = Record::new(vec![1000, 1500], None, Some(0));
    record.spawned(0, TaskId(1));
    record.spawned(1, TaskId(2));
    for late in [53, 52, 60] {
        record.add(0, late);
    }
    record.add(1, 1234);
    assert_eq!(
        record.text(),
        "# /dev/cpu_dma_latency set to 0us\n\
         T: 0 (    1) P: 0 I:1000 C:      3 Min:     52 Act:   60 Avg:   55 Max:      60\n\
         T: 1 (    2) P: 0 I:1500 C:      1 Min:   1234 Act: 1234 Avg: 1234 Max:    1234\n"
    );
    let histogram = Histogram {
        limit_us: 3,
        of_all: true,
    };
    let mut record = Record::new(vec![1000, 1000], Some(histogram), None);
    for (thread, late) in [(0, 1), (0, 1), (1, 2), (1, 7)] {
        record.add(thread, late);
    }
    assert_eq!(
        record.text(),
        "# Histogram\n\
         000000 000000\t000000\t000000\n\
         000001 000002\t000000\t000002\n\
         000002 000000\t000001\t000001\n\
         # Total: 000000002 000000001 000000003\n\
         # Min Latencies: 00001 00002\n\
         # Avg Latencies: 00001 00004\n\
         # Max Latencies: 00001 00007 00007\n\
         # Histogram Overflows: 00000 00001 00001\n\
         # Histogram Overflow at cycle number:\n\
         # Thread 0:\n\
         # Thread 1: 00001\n\n"
    );
}

proptest! {
    #[test]
    fn any_words_give_a_result_or_an_error(line in "[-=a-zA-Z0-9 .é]{0,40}") {
        let _ = read(&line);
    }

    #[test]
    fn what_it_prints_it_reads(
        threads in proptest::option::of(1u32..1000),
        interval_us in 1u64..1_000_000,
        distance_us in 0u64..1_000_000,
        loops in proptest::option::of(1u64..1_000_000),
        ns in proptest::option::of(1u64..1_000_000_000_000),
        cpus in "[1-9]|0-3,8",
        affinity in 0u8..3,
        limit in proptest::option::of((1u32..1_000_000, any::<bool>())),
        latency_us in proptest::option::of(0u64..1000),
    ) {
        let spec = Cyclictest {
            threads,
            interval_us,
            distance_us,
            loops,
            time: ns.map(Ns),
            affinity: match affinity {
                0 => Affinity::Free,
                1 => Affinity::All,
                _ => Affinity::Some(CpuMask::from_cpulist(&cpus).unwrap()),
            },
            histogram: limit.map(|(limit_us, of_all)| Histogram { limit_us, of_all }),
            latency_us,
        };
        let line = spec.command_line();
        prop_assert_eq!(read(line.strip_prefix(NAME).unwrap()).unwrap(), spec);
    }
}
