//! Command lines put together from words of all benchmarks: each is read or refused with an error that
//! names something of it, what is read prints as a line that reads the same, and its scaled forms too.

use proptest::prelude::*;
use wakelab_workload::Workload;

const BENCHMARKS: [&str; 9] = [
    "hackbench",
    "worksleep",
    "stress-ng",
    "spin",
    "vms",
    "kworkers",
    "daemons",
    "rt-app",
    "schbunch",
];

const OPTIONS: [&str; 24] = [
    "-t",
    "-n",
    "-w",
    "-s",
    "-c",
    "-g",
    "-f",
    "-l",
    "-p",
    "-T",
    "-v",
    "-b",
    "-m",
    "--work",
    "--sleep",
    "--cookies",
    "--cpu",
    "--timeout",
    "--hwlat",
    "--vmm",
    "--load",
    "--busy",
    "--vms",
    "--start",
];

const VALUES: [&str; 22] = [
    "0",
    "1",
    "4",
    "65536",
    "65537",
    "18446744073709551616",
    "-1",
    "10ms",
    "0-10ms",
    "0.5ms/50ms",
    "50ms/0.5ms",
    "width=1ms,period=3ms",
    "width=3ms,period=1ms",
    "threshold=0ns",
    "pairs",
    "none",
    "vm",
    "matched",
    "1e9",
    "99999999999s",
    "é",
    "",
];

/// Ends that make many of the lines complete.
const ENDS: [&str; 4] = ["", " -t 10ms", " -t 10ms -n 3", " -t 10ms -c 0"];

/// What may stand before a command, good and bad.
const BEFORE: [&str; 12] = [
    "",
    "",
    "",
    "taskset -c 0-3,9 ",
    "nice ",
    "nice -n -7 chrt -b 0 ",
    "chrt --idle 0 ",
    "numactl -N 0 ",
    "coresched new -- ",
    "coresched new -t pgid -- nice -n3 ",
    "taskset 4 ",
    "chrt -f 1 ",
];

fn line() -> impl Strategy<Value = String> {
    let option = (0..OPTIONS.len(), 0..VALUES.len(), 0usize..3);
    let options = prop::collection::vec(option, 0..5);
    let numbers = (0..BENCHMARKS.len(), 0..ENDS.len(), 0..BEFORE.len());
    (numbers, options).prop_map(|((benchmark, end, before), options)| {
        let words = options.into_iter().map(|(option, value, form)| {
            let separator = [" ", "=", ""][form];
            format!(" {}{separator}{}", OPTIONS[option], VALUES[value])
        });
        let line = words.fold(
            format!("{}{}", BEFORE[before], BENCHMARKS[benchmark]),
            |line, word| line + &word,
        );
        line + ENDS[end]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_line_is_read_or_refused(line in line(), scale in 1e-12f64..1e9) {
        match Workload::parse(&line) {
            Ok(workload) => {
                for form in [workload.clone(), workload.scaled(scale)] {
                    prop_assert_eq!(Workload::parse(&form.command_line()), Ok(form));
                }
            }
            Err(error) => {
                let text = error.to_string();
                let named = line.split([' ', '=']).any(|word| text.contains(word));
                prop_assert!(named, "{}: {}", line, text);
            }
        }
    }
}

#[test]
fn some_lines_of_every_benchmark_are_read() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut read = [0; BENCHMARKS.len()];
    for _ in 0..4000 {
        let line = line().new_tree(&mut runner).expect("a line").current();
        let benchmark = BENCHMARKS
            .iter()
            .position(|name| line.split(' ').any(|word| word == *name));
        read[benchmark.expect("one of them")] += usize::from(Workload::parse(&line).is_ok());
    }
    assert!(read[..7].iter().all(|&lines| lines > 5), "{read:?}");
    // rt-app's need a file.
    assert_eq!(read[7..], [0, 0]);
}
