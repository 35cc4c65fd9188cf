//! sysbench's command line: a test, options with `=`, and the command `run`.

use super::{Sysbench, Test};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::seconds;
use wakelab_machine::Ns;

const NAME: &str = "sysbench";
const EXPECTED: &str = "expected 'sysbench cpu|memory --threads=N --time=SECONDS run', with \
     --cpu-max-prime=N, or --memory-block-size=SIZE and --memory-total-size=SIZE";

/// The slowest search for primes taken: its divisions are counted before the run.
const MAX_PRIME: u64 = 1_000_000;

/// What is given, for either test.
struct Given {
    threads: u32,
    time: Ns,
    max_prime: u32,
    block: u64,
    total: u64,
}

const SIZE: &str = "a size of at least 4 bytes, such as 1K, 1M or 100G";

const fn long(long: &'static str, takes: Takes<Given>) -> Opt<Given> {
    Opt {
        short: '\0',
        long,
        takes,
    }
}

const GRAMMAR: Grammar<Given> = Grammar {
    benchmark: NAME,
    expected: EXPECTED,
    options: &[
        long(
            "threads",
            Takes::Number {
                low: 1,
                high: MAX_TASKS,
                set: |given, n| given.threads = n as u32,
            },
        ),
        long(
            "time",
            Takes::Text {
                expected: "a time above 0, in seconds or with a unit",
                set: |given, text| {
                    given.time = seconds(text)?;
                    Some(())
                },
            },
        ),
        long(
            "cpu-max-prime",
            Takes::Number {
                low: 5,
                high: MAX_PRIME,
                set: |given, n| given.max_prime = n as u32,
            },
        ),
        long(
            "memory-block-size",
            Takes::Text {
                expected: SIZE,
                set: |given, text| {
                    given.block = size(text)?;
                    Some(())
                },
            },
        ),
        long(
            "memory-total-size",
            Takes::Text {
                expected: SIZE,
                set: |given, text| {
                    given.total = size(text)?;
                    Some(())
                },
            },
        ),
    ],
};

/// Bytes, with the units of powers of 1024.
fn size(text: &str) -> Option<u64> {
    const LARGEST: u64 = 1 << 50;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << unit)?;
    (4..=LARGEST).contains(&bytes).then_some(bytes)
}

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Sysbench, WorkloadError> {
    let (options, names): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('-'));
    // The program knows no value apart from its option.
    let apart = options.iter().find(|word| {
        !word.contains('=')
            && GRAMMAR
                .options
                .iter()
                .any(|o| **word == format!("--{}", o.long))
    });
    if let Some(word) = apart {
        return Err(WorkloadError::MissingValue {
            benchmark: NAME,
            option: (*word).to_owned(),
            expected: "its value after '='",
        });
    }
    let default = Given {
        threads: 1,
        time: Ns(10_000_000_000),
        max_prime: 10_000,
        block: 1 << 10,
        total: 100 << 30,
    };
    let given = GRAMMAR.read(default, options.into_iter())?;
    check_tasks(NAME, given.threads.into())?;
    let test = match names.as_slice() {
        ["cpu", "run"] => Test::Cpu {
            max_prime: given.max_prime,
        },
        ["memory", "run"] => Test::Memory {
            block: given.block,
            total: given.total,
        },
        other => {
            let known = ["cpu", "memory", "run"];
            let unknown = other.iter().find(|word| !known.contains(word));
            return Err(match unknown {
                Some(word) => WorkloadError::Option {
                    benchmark: NAME,
                    word: (*word).to_owned(),
                    expected: EXPECTED,
                },
                None => WorkloadError::Together {
                    benchmark: NAME,
                    message: EXPECTED,
                },
            });
        }
    };
    Ok(Sysbench {
        test,
        threads: given.threads,
        time: given.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn read(line: &str) -> Result<Sysbench, WorkloadError> {
        parse(line.split_whitespace())
    }

    #[test]
    fn tests_have_the_programs_defaults() {
        let cpu = read("cpu run").unwrap();
        assert_eq!((cpu.threads, cpu.time), (1, Ns(10_000_000_000)));
        assert_eq!(cpu.test, Test::Cpu { max_prime: 10_000 });
        let memory = read("--threads=3 memory --time=2 run --memory-block-size=4K").unwrap();
        let (block, total) = (4096, 100 << 30);
        assert_eq!(
            (memory.threads, memory.test),
            (3, Test::Memory { block, total })
        );
        assert_eq!(
            cpu.command_line(),
            "sysbench cpu --cpu-max-prime=10000 --threads=1 --time=10 run"
        );
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("", "sysbench: expected 'sysbench cpu|memory"),
            ("cpu", "sysbench: expected 'sysbench cpu|memory"),
            ("run cpu", "sysbench: expected"),
            ("cpu prepare", "'prepare'"),
            ("fileio run", "'fileio'"),
            (
                "cpu --threads 4 run",
                "'--threads' needs its value after '='",
            ),
            ("cpu --threads=0 run", "0 for '--threads'"),
            ("cpu --cpu-max-prime=9999999 run", "9999999"),
            ("memory --memory-block-size=1X run", "'1X'"),
            ("memory --memory-block-size=2 run", "'2'"),
            ("memory --memory-total-size=9999999T run", "'9999999T'"),
            ("cpu --time=0 run", "'0' for '--time'"),
            ("cpu --rate=5 run", "'--rate=5'"),
            ("cpu -t run", "'-t'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "(cpu |memory )?[-=a-zA-Z0-9 .é]{0,40}( run)?") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(
            threads in 1u32..1000, ns in 1u64..1_000_000_000_000, max_prime in 5u32..99_999,
            block in 4u64..1 << 30, memory: bool,
        ) {
            let test = if memory {
                Test::Memory { block, total: 100 * block }
            } else {
                Test::Cpu { max_prime }
            };
            let sysbench = Sysbench { test, threads, time: Ns(ns) };
            let line = sysbench.command_line();
            prop_assert_eq!(read(line.strip_prefix("sysbench").unwrap()).unwrap(), sysbench);
        }
    }
}
