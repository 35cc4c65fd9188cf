//! hackbench's command line, read as `getopt_long` reads it.

use super::{Hackbench, Transport};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};

const NAME: &str = "hackbench";

/// Most loops of a sender.
pub(crate) const MAX_LOOPS: u64 = 1_000_000_000_000;
const MAX_DATASIZE: u64 = 1 << 20;

const fn number(
    short: char,
    long: &'static str,
    high: u64,
    set: fn(&mut Hackbench, u64),
) -> Opt<Hackbench> {
    let low = 1;
    let takes = Takes::Number { low, high, set };
    Opt { short, long, takes }
}

const fn flag(short: char, long: &'static str, set: fn(&mut Hackbench)) -> Opt<Hackbench> {
    let takes = Takes::Nothing(set);
    Opt { short, long, takes }
}

const GRAMMAR: Grammar<Hackbench> = Grammar {
    benchmark: NAME,
    expected: "expected -g/--groups N, -f/--fds N, -l/--loops N, -s/--datasize N, -p/--pipe, \
     -i/--inet, -T/--threads, -P/--process or -F/--fifo",
    options: &[
        number('g', "groups", MAX_TASKS, |h, n| h.groups = n as u32),
        number('f', "fds", MAX_TASKS, |h, n| h.fds = n as u32),
        number('l', "loops", MAX_LOOPS, |h, n| h.loops = n),
        number('s', "datasize", MAX_DATASIZE, |h, n| h.datasize = n as u32),
        flag('p', "pipe", |h| h.transport = Transport::Pipe),
        flag('i', "inet", inet),
        flag('T', "threads", |h| h.threads = true),
        flag('P', "process", |h| h.threads = false),
        flag('F', "fifo", |h| h.fifo = true),
    ],
};

/// Pipes win, whatever the order of the options.
fn inet(hackbench: &mut Hackbench) {
    if hackbench.transport == Transport::Socket {
        hackbench.transport = Transport::Inet;
    }
}

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Hackbench, WorkloadError> {
    let hackbench = GRAMMAR.read(Hackbench::default(), words)?;
    check_tasks(NAME, hackbench.tasks())?;
    Ok(hackbench)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;
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
