//! `perf bench`: the scheduler's benchmarks that ship with perf, in its word order: `perf bench sched
//! messaging ...`, `perf bench -f simple sched pipe ...`.
//!
//! `messaging` is hackbench with 20 senders and receivers a group and messages of 100 bytes; what it
//! measures is told there. `pipe` is [`pipe::Pipe`].

mod messaging;
pub mod pipe;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::options::{Grammar, Opt, Takes};
pub use messaging::Messaging;
use pipe::Pipe;

/// How the result is printed: `-f` of `perf bench`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Default,
    /// The time alone.
    Simple,
}

impl Format {
    fn read(text: &str) -> Option<Format> {
        match text {
            "default" => Some(Format::Default),
            "simple" => Some(Format::Simple),
            _ => None,
        }
    }

    /// The words up to the benchmark's own.
    fn command(self) -> &'static str {
        match self {
            Format::Default => "perf bench sched",
            Format::Simple => "perf bench -f simple sched",
        }
    }
}

const NAME: &str = "perf";
const EXPECTED: &str =
    "expected 'perf bench [-f default|simple] sched messaging|pipe' and that benchmark's options";

/// Options of `perf bench`, which stand before the collection.
const GRAMMAR: Grammar<Format> = Grammar {
    benchmark: "perf bench",
    expected: EXPECTED,
    options: &[Opt {
        short: 'f',
        long: "format",
        takes: Takes::Text {
            expected: "default or simple",
            set: |format, text| {
                *format = Format::read(text)?;
                Some(())
            },
        },
    }],
};

/// Reads the words after `perf`.
///
/// # Errors
/// Another command than `bench`, another collection than `sched`, an unknown benchmark, and whatever is
/// wrong with the options.
pub(crate) fn parse(
    words: &mut dyn Iterator<Item = &str>,
) -> Result<Box<dyn Benchmark>, WorkloadError> {
    expect(words.next(), "bench")?;
    let mut common = Vec::new();
    let collection = loop {
        match words.next() {
            Some(word) if word.starts_with('-') => {
                common.push(word);
                if matches!(word, "-f" | "--format") {
                    common.extend(words.next());
                }
            }
            other => break other,
        }
    };
    let format = GRAMMAR.read(Format::Default, common.into_iter())?;
    expect(collection, "sched")?;
    match words.next() {
        Some("messaging") => Ok(Box::new(Messaging::parse(format, words)?)),
        Some("pipe") => Ok(Box::new(Pipe::parse(format, words)?)),
        other => Err(unexpected(other)),
    }
}

fn expect(word: Option<&str>, wanted: &str) -> Result<(), WorkloadError> {
    match word {
        Some(word) if word == wanted => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(word: Option<&str>) -> WorkloadError {
    match word {
        Some(word) => WorkloadError::Option {
            benchmark: NAME,
            word: word.to_owned(),
            expected: EXPECTED,
        },
        None => WorkloadError::Together {
            benchmark: NAME,
            message: EXPECTED,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn read(line: &str) -> Result<Box<dyn Benchmark>, WorkloadError> {
        parse(&mut line.split_whitespace())
    }

    fn again(line: &str) -> String {
        read(line).unwrap().command_line()
    }

    #[test]
    fn words_are_in_perfs_order() {
        assert_eq!(
            again("bench sched messaging"),
            "perf bench sched messaging -g 10 -l 100"
        );
        assert_eq!(
            again("bench --format=simple sched messaging -g 32 -p -t -l 100000"),
            "perf bench -f simple sched messaging -g 32 -p -t -l 100000"
        );
        assert_eq!(
            again("bench sched messaging --group 2 --pipe --thread --nr_loops 5"),
            "perf bench sched messaging -g 2 -p -t -l 5"
        );
        assert_eq!(
            again("bench -f simple sched pipe"),
            "perf bench -f simple sched pipe -l 1000000"
        );
        assert_eq!(
            again("bench sched pipe --threaded --loop=7"),
            "perf bench sched pipe -T -l 7"
        );
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("", "perf: expected 'perf bench"),
            ("stat", "'stat'"),
            ("bench", "perf: expected 'perf bench"),
            ("bench mem memcpy", "'mem'"),
            ("bench sched", "perf: expected 'perf bench"),
            ("bench sched seccomp-notify", "'seccomp-notify'"),
            ("bench -f xml sched pipe", "'xml' for '-f'"),
            ("bench -x sched pipe", "'-x'"),
            ("bench -f", "'-f' needs"),
            ("bench sched pipe -l 0", "0 for '-l'"),
            ("bench sched pipe -f simple", "'-f'"),
            ("bench sched messaging -s 100", "'-s'"),
            ("bench sched messaging -g 2000", "number of tasks"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(
            line in "(bench )?(-f [a-z]{0,6} )?(sched )?(pipe|messaging)? ?[-=a-zA-Z0-9 é]{0,30}",
        ) {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(groups in 1u32..1000, loops in 1u64..1_000_000, flags in 0u8..8) {
            let flag = |bit: u8, word: &'static str| if flags >> bit & 1 == 1 { word } else { "" };
            let simple = flag(2, "-f simple");
            let messaging =
                format!("bench {simple} sched messaging -g {groups} {} {} -l {loops}", flag(0, "-p"), flag(1, "-t"));
            let pipe = format!("bench {simple} sched pipe {} -l {loops}", flag(0, "-T"));
            for line in [messaging, pipe] {
                let said = again(&line);
                prop_assert_eq!(again(said.strip_prefix("perf ").unwrap()), said);
            }
        }
    }
}
