//! hackbench's command line, read as `getopt_long` reads it.

use super::{Hackbench, Transport};
use crate::command_line::WorkloadError;

const NAME: &str = "hackbench";
const EXPECTED: &str = "expected -g/--groups N, -f/--fds N, -l/--loops N, -s/--datasize N, -p/--pipe, \
     -i/--inet, -T/--threads, -P/--process or -F/--fifo";

/// Most loops of a sender.
pub(super) const MAX_LOOPS: u64 = 1_000_000_000_000;
const MAX_TASKS: u64 = 65_536;
const MAX_DATASIZE: u64 = 1 << 20;

/// What an option takes.
#[derive(Clone, Copy)]
enum Takes {
    Nothing(fn(&mut Hackbench)),
    Number {
        high: u64,
        set: fn(&mut Hackbench, u64),
    },
}

const OPTIONS: &[(char, &str, Takes)] = &[
    (
        'g',
        "groups",
        Takes::Number {
            high: MAX_TASKS,
            set: |h, n| h.groups = n as u32,
        },
    ),
    (
        'f',
        "fds",
        Takes::Number {
            high: MAX_TASKS,
            set: |h, n| h.fds = n as u32,
        },
    ),
    (
        'l',
        "loops",
        Takes::Number {
            high: MAX_LOOPS,
            set: |h, n| h.loops = n,
        },
    ),
    (
        's',
        "datasize",
        Takes::Number {
            high: MAX_DATASIZE,
            set: |h, n| h.datasize = n as u32,
        },
    ),
    (
        'p',
        "pipe",
        Takes::Nothing(|h| h.transport = Transport::Pipe),
    ),
    ('i', "inet", Takes::Nothing(inet)),
    ('T', "threads", Takes::Nothing(|h| h.threads = true)),
    ('P', "process", Takes::Nothing(|h| h.threads = false)),
    ('F', "fifo", Takes::Nothing(|h| h.fifo = true)),
];

/// Pipes win, whatever the order of the options.
fn inet(hackbench: &mut Hackbench) {
    if hackbench.transport == Transport::Socket {
        hackbench.transport = Transport::Inet;
    }
}

/// Reads the words.
pub(super) fn parse<'a>(
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Hackbench, WorkloadError> {
    let mut hackbench = Hackbench::default();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            parse_long(&mut hackbench, word, long, &mut words)?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) {
            parse_cluster(&mut hackbench, word, cluster, &mut words)?;
        } else {
            return Err(unknown(word));
        }
    }
    check(hackbench)
}

fn unknown(word: &str) -> WorkloadError {
    WorkloadError::Option {
        benchmark: NAME,
        word: word.to_owned(),
        expected: EXPECTED,
    }
}

/// `--groups 32`, `--groups=32`.
fn parse_long<'a>(
    hackbench: &mut Hackbench,
    word: &str,
    long: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), WorkloadError> {
    let (name, given) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let option = OPTIONS
        .iter()
        .find(|option| option.1 == name)
        .ok_or_else(|| unknown(word))?;
    match option.2 {
        Takes::Nothing(_) if given.is_some() => Err(unknown(word)),
        Takes::Nothing(set) => {
            set(hackbench);
            Ok(())
        }
        Takes::Number { high, set } => {
            let value = given.or_else(|| words.next());
            set(hackbench, number(&format!("--{name}"), value, high)?);
            Ok(())
        }
    }
}

/// `-g 32`, `-g32`, `-pTg 32`.
fn parse_cluster<'a>(
    hackbench: &mut Hackbench,
    word: &str,
    cluster: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(), WorkloadError> {
    for (at, letter) in cluster.char_indices() {
        let option = OPTIONS
            .iter()
            .find(|o| o.0 == letter)
            .ok_or_else(|| unknown(word))?;
        match option.2 {
            Takes::Nothing(set) => set(hackbench),
            Takes::Number { high, set } => {
                let rest = &cluster[at + letter.len_utf8()..];
                let value = if rest.is_empty() {
                    words.next()
                } else {
                    Some(rest)
                };
                set(hackbench, number(&format!("-{letter}"), value, high)?);
                return Ok(());
            }
        }
    }
    Ok(())
}

fn number(option: &str, value: Option<&str>, high: u64) -> Result<u64, WorkloadError> {
    let option = || option.to_owned();
    let value = value.ok_or_else(|| WorkloadError::MissingValue {
        benchmark: NAME,
        option: option(),
    })?;
    let parsed = value
        .parse::<u64>()
        .map_err(|_| WorkloadError::NotANumber {
            benchmark: NAME,
            option: option(),
            value: value.to_owned(),
        })?;
    if parsed == 0 || parsed > high {
        let range = WorkloadError::Range {
            benchmark: NAME,
            option: option(),
            value: parsed,
            low: 1,
            high,
        };
        return Err(range);
    }
    Ok(parsed)
}

fn check(hackbench: Hackbench) -> Result<Hackbench, WorkloadError> {
    let tasks = hackbench.tasks();
    if tasks > MAX_TASKS {
        return Err(WorkloadError::TooMuch {
            benchmark: NAME,
            what: "the number of tasks",
            value: tasks.into(),
            limit: MAX_TASKS.into(),
        });
    }
    Ok(hackbench)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Hackbench, WorkloadError> {
        parse(line.split_whitespace())
    }

    #[test]
    fn the_mails_command_line_is_understood() {
        let h = read("-g 32 -f 20 --threads --pipe -l 480000 -s 100").unwrap();
        assert_eq!(
            (h.groups, h.fds, h.loops, h.datasize),
            (32, 20, 480_000, 100)
        );
        assert!(h.threads && h.transport == Transport::Pipe);
        assert_eq!((h.tasks(), h.messages()), (1280, 6_144_000_000));
    }

    #[test]
    fn all_spellings_say_the_same() {
        let want = read("--groups 3 --pipe --threads").unwrap();
        for line in ["-g3 -p -T", "--groups=3 -pT", "-pTg 3", "-P -Tpg3"] {
            assert_eq!(read(line).unwrap(), want, "{line}");
        }
        assert_eq!(read("").unwrap(), Hackbench::default());
        for line in ["-i", "--inet", "-iT -P"] {
            assert_eq!(read(line).unwrap().transport, Transport::Inet, "{line}");
        }
        for line in ["-ip", "-pi", "--pipe --inet"] {
            assert_eq!(read(line).unwrap().transport, Transport::Pipe, "{line}");
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("-x", "'-x'"),
            ("--pipes", "'--pipes'"),
            ("-g", "'-g' needs"),
            ("-g x", "'x' for '-g'"),
            ("-l 0", "0 for '-l'"),
            ("-f 99999999", "99999999"),
            ("-g 60000 -f 60000", "number of tasks"),
            ("stray", "'stray'"),
            ("--inet=1", "'--inet=1'"),
            ("--pipe=1", "'--pipe=1'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "[-=a-zA-Z0-9 é]{0,40}") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(
            groups in 1u32..100, fds in 1u32..100, loops in 1u64..1000, datasize in 1u32..5000,
            transport in 0usize..3, threads: bool, fifo: bool,
        ) {
            let transport = [Transport::Socket, Transport::Pipe, Transport::Inet][transport];
            let h = Hackbench { groups, fds, loops, datasize, transport, threads, fifo };
            let line = h.command_line();
            prop_assert_eq!(read(line.strip_prefix("hackbench").unwrap()).unwrap(), h);
        }
    }
}
