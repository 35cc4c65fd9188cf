//! The command line of `cyclictest`.

use super::{Affinity, Cyclictest, Histogram, NAME};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::seconds;
use wakelab_machine::{CpuMask, Ns};

/// What is given so far.
struct Given {
    threads: Option<u32>,
    interval_us: u64,
    distance_us: u64,
    loops: u64,
    time: Option<Ns>,
    affinity: Affinity,
    smp: bool,
    histogram: Option<Histogram>,
    latency_us: Option<u64>,
    priority: u64,
}

const MAX_US: u64 = 1_000_000_000;
const MAX_LOOPS: u64 = 1_000_000_000;
/// The program's own limit of the histogram, us.
const MAX_HISTOGRAM: u64 = 1_000_000;
/// What stands for a number or a set that is not given.
const ALL: &str = "all";
/// No letter has been given to the option.
const NO_LETTER: char = '\0';

const fn number(
    short: char,
    long: &'static str,
    (low, high): (u64, u64),
    set: fn(&mut Given, u64),
) -> Opt<Given> {
    let takes = Takes::Number { low, high, set };
    Opt { short, long, takes }
}

const fn text(
    short: char,
    long: &'static str,
    expected: &'static str,
    set: fn(&mut Given, &str) -> Option<()>,
) -> Opt<Given> {
    let takes = Takes::Text { expected, set };
    Opt { short, long, takes }
}

const fn flag(short: char, long: &'static str, set: fn(&mut Given)) -> Opt<Given> {
    let takes = Takes::Nothing(set);
    Opt { short, long, takes }
}

const GRAMMAR: Grammar<Given> = Grammar {
    benchmark: NAME,
    expected: "expected -t/--threads [N], -i/--interval US, -d/--distance US, -l/--loops N, \
         -D/--duration TIME, -a/--affinity [CPUS], -S/--smp, -h/--histogram US, -H/--histofall US, \
         -q/--quiet, -m/--mlockall, -p/--prio 0, --policy other, --latency US or --default-system",
    options: &[
        text('t', "threads", "a number of threads", |g, text| {
            g.threads = match text {
                ALL => None,
                text => Some(
                    text.parse::<u32>()
                        .ok()
                        .filter(|&n| (1..=MAX_TASKS as u32).contains(&n))?,
                ),
            };
            Some(())
        }),
        text('a', "affinity", "CPUs such as 0-3,8", |g, text| {
            g.affinity = match text {
                ALL => Affinity::All,
                text => {
                    let cpus = CpuMask::from_cpulist(text).ok()?;
                    (!cpus.is_empty()).then_some(Affinity::Some(cpus))?
                }
            };
            Some(())
        }),
        number('i', "interval", (1, MAX_US), |g, n| g.interval_us = n),
        number('d', "distance", (0, MAX_US), |g, n| g.distance_us = n),
        number('l', "loops", (0, MAX_LOOPS), |g, n| g.loops = n),
        text('D', "duration", crate::TIMEOUT_EXPECTED, |g, text| {
            g.time = Some(seconds(text)?);
            Some(())
        }),
        number('h', "histogram", (1, MAX_HISTOGRAM), |g, n| {
            g.histogram = Some(Histogram {
                limit_us: n as u32,
                of_all: false,
            });
        }),
        number('H', "histofall", (1, MAX_HISTOGRAM), |g, n| {
            g.histogram = Some(Histogram {
                limit_us: n as u32,
                of_all: true,
            });
        }),
        number('p', "prio", (0, 99), |g, n| g.priority = n),
        text(NO_LETTER, "policy", "other or normal", |_, text| {
            matches!(text, "other" | "normal").then_some(())
        }),
        number(NO_LETTER, "latency", (0, MAX_US), |g, n| {
            g.latency_us = Some(n);
        }),
        flag(NO_LETTER, "default-system", |g| g.latency_us = None),
        flag(NO_LETTER, "laptop", |g| g.latency_us = None),
        flag('S', "smp", |g| g.smp = true),
        // The output is the summary in any case, and memory is never swapped.
        flag('q', "quiet", |_| {}),
        flag('m', "mlockall", |_| {}),
    ],
};

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Cyclictest, WorkloadError> {
    let given = Given {
        threads: Some(1),
        interval_us: 1000,
        distance_us: 500,
        loops: 0,
        time: None,
        affinity: Affinity::Free,
        smp: false,
        histogram: None,
        latency_us: Some(0),
        priority: 0,
    };
    let words = with_values(words);
    let mut given = GRAMMAR.read(given, words.into_iter())?;
    if given.priority > 0 {
        return Err(WorkloadError::Together {
            benchmark: NAME,
            message: "'-p' above 0 is SCHED_FIFO, which is not modelled: without it the threads are \
                SCHED_OTHER",
        });
    }
    if given.smp {
        given.threads = None;
        given.affinity = Affinity::All;
    }
    let loops = (given.loops > 0).then_some(given.loops);
    check_tasks(NAME, given.threads.unwrap_or(1).into())?;
    Ok(Cyclictest {
        threads: given.threads,
        interval_us: given.interval_us,
        distance_us: given.distance_us,
        loops,
        time: given.time,
        affinity: given.affinity,
        histogram: given.histogram,
        latency_us: given.latency_us,
    })
}

/// The values of `-t` and `-a` may be left out, and may be words of their own: gives them one.
fn with_values<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words = words.peekable();
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        all.push(word);
        let long = matches!(word, "--threads" | "--affinity");
        let cluster = word.strip_prefix('-').filter(|_| !word.starts_with("--"));
        let short = cluster.is_some_and(|letters| {
            letters.ends_with(['t', 'a']) && letters.chars().all(|c| "tamqS".contains(c))
        });
        let value = words
            .peek()
            .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()));
        if (long || short) && !value {
            all.push(ALL);
        }
    }
    all
}
