//! netperf's command line: options of its own, then `--`, then those of the test.

use super::{Netperf, Test};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::{self, seconds};
use wakelab_machine::Ns;

const NAME: &str = "netperf";
const MAX_BYTES: u32 = 1 << 20;

impl Default for Netperf {
    fn default() -> Self {
        Netperf {
            test: Test::TcpRr,
            time: Ns(10_000_000_000),
            request: 1,
            response: 1,
            pairs: 1,
            every: Ns(0),
        }
    }
}

const GRAMMAR: Grammar<Netperf> = Grammar {
    benchmark: NAME,
    expected: "expected -H 127.0.0.1, -t TCP_RR|UDP_RR, -l SECONDS, -4, --pairs N, --every TIME, then -- and \
         the test's -r REQUEST,RESPONSE",
    options: &[
        Opt {
            short: 'H',
            long: "",
            takes: Takes::Text {
                expected: "127.0.0.1 or localhost: only loopback is simulated",
                set: |_, text| matches!(text, "127.0.0.1" | "localhost").then_some(()),
            },
        },
        Opt {
            short: 't',
            long: "",
            takes: Takes::Text {
                expected: "TCP_RR or UDP_RR",
                set: |netperf, text| {
                    let tests = [Test::TcpRr, Test::UdpRr];
                    netperf.test = tests.into_iter().find(|test| test.name() == text)?;
                    Some(())
                },
            },
        },
        Opt {
            short: 'l',
            long: "",
            takes: Takes::Text {
                expected: "a time above 0, in seconds or with a unit",
                set: |netperf, text| {
                    netperf.time = seconds(text)?;
                    Some(())
                },
            },
        },
        Opt {
            short: '4',
            long: "",
            takes: Takes::Nothing(|_| ()),
        },
        Opt {
            short: '\0',
            long: "pairs",
            takes: Takes::Number {
                low: 1,
                high: MAX_TASKS,
                set: |netperf, n| netperf.pairs = n as u32,
            },
        },
        Opt {
            short: '\0',
            long: "every",
            takes: Takes::Text {
                expected: "a time with a unit, such as 1ms",
                set: |netperf, text| {
                    netperf.every = quantity::time(text)?;
                    Some(())
                },
            },
        },
    ],
};

/// The options of the request/response tests.
const TEST: Grammar<Netperf> = Grammar {
    benchmark: NAME,
    expected: "expected -r REQUEST,RESPONSE after --",
    options: &[Opt {
        short: 'r',
        long: "",
        takes: Takes::Text {
            expected: "bytes of a request and of a response, such as 1,1",
            set: |netperf, text| {
                let (request, response) = text.split_once(',').unwrap_or((text, text));
                netperf.request = bytes(request)?;
                netperf.response = bytes(response)?;
                Some(())
            },
        },
    }],
};

fn bytes(text: &str) -> Option<u32> {
    let bytes = text.parse().ok()?;
    (1..=MAX_BYTES).contains(&bytes).then_some(bytes)
}

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Netperf, WorkloadError> {
    let mut words = words;
    let own = words.by_ref().take_while(|&word| word != "--");
    let netperf = GRAMMAR.read(Netperf::default(), own)?;
    let netperf = TEST.read(netperf, words)?;
    check_tasks(NAME, 2 * u64::from(netperf.pairs))?;
    Ok(netperf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn read(line: &str) -> Result<Netperf, WorkloadError> {
        parse(line.split_whitespace())
    }

    #[test]
    fn global_options_come_before_the_tests_own() {
        let n = read("-4 -H 127.0.0.1 -t UDP_RR -l 100 -- -r 64,128").unwrap();
        let said = (n.test, n.time, n.request, n.response, n.pairs);
        assert_eq!(said, (Test::UdpRr, Ns(100_000_000_000), 64, 128, 1));
        assert_eq!(read("").unwrap(), Netperf::default());
        assert_eq!(read("-Hlocalhost --pairs=224").unwrap().pairs, 224);
        assert_eq!(read("--pairs 2 --every 1ms").unwrap().every, Ns(1_000_000));
        assert_eq!(
            Netperf::default().command_line(),
            "netperf -H 127.0.0.1 -t TCP_RR -l 10"
        );
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("-H 10.0.0.1", "'10.0.0.1' for '-H'"),
            ("-t TCP_STREAM", "'TCP_STREAM' for '-t'"),
            ("-l 0", "'0' for '-l'"),
            ("--every 1", "'1' for '--every'"),
            ("-r 1,1", "'-r'"),
            ("-- -r 0,1", "'0,1' for '-r'"),
            ("-- -r 1,9999999", "'1,9999999'"),
            ("-- -l 5", "'-l'"),
            ("--pairs 60000", "number of tasks"),
            ("--", ""),
        ] {
            match read(line) {
                Ok(_) => assert_eq!(word, "", "{line}"),
                Err(error) => assert!(error.to_string().contains(word), "{line}: {error}"),
            }
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "[-=a-zA-Z0-9 .,é]{0,40}") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(
            udp: bool, ns in 1u64..1_000_000_000_000, request in 1u32..9, response in 1u32..2000, pairs in 1u32..99,
            every in 0u64..3_000_000_000,
        ) {
            let test = if udp { Test::UdpRr } else { Test::TcpRr };
            let every = Ns(every);
            let netperf = Netperf { test, time: Ns(ns), request, response, pairs, every };
            let line = netperf.command_line();
            prop_assert_eq!(read(line.strip_prefix("netperf").unwrap()).unwrap(), netperf);
        }
    }
}
