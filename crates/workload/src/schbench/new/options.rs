//! The command line of `schbench` from 2023 on.

use super::{NAME, Schbench};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::seconds;
use wakelab_machine::{CpuMask, Ns};

/// What is given so far.
#[derive(Default)]
struct Given {
    spec: Schbench,
    refused: Option<&'static str>,
}

const MAX_US: u64 = 1_000_000_000;
const MANY: u64 = 1_000_000;

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

const SOME_TIME: &str = crate::TIMEOUT_EXPECTED;
const CPUS: &str = "CPUs such as 0-3,8, or auto";

const GRAMMAR: Grammar<Given> = Grammar {
    benchmark: NAME,
    expected: "expected -m/--message-threads N, -t/--threads N, -r/--runtime SECONDS, \
         -w/--warmuptime SECONDS, -i/--intervaltime SECONDS, -z/--zerotime SECONDS, \
         -F/--cache_footprint KB, -n/--operations N, -s/--sleep_usec US, -R/--rps N, -L/--no-locking, \
         -C/--calibrate, -M/--message-cpus CPUS, -W/--worker-cpus CPUS, -j/--json - or -J/--jobname NAME; \
         -c is of schbench-2019",
    options: &[
        number('m', "message-threads", (1, MAX_TASKS), |g, n| {
            g.spec.messengers = n as u32;
        }),
        number('t', "threads", (0, MAX_TASKS), |g, n| {
            g.spec.workers = n as u32
        }),
        text('r', "runtime", SOME_TIME, |g, text| {
            g.spec.time = seconds(text)?;
            Some(())
        }),
        text('w', "warmuptime", "a time such as 5", |g, text| {
            g.spec.warmup = no_time_is_none(text)?;
            Some(())
        }),
        text('i', "intervaltime", SOME_TIME, |g, text| {
            g.spec.interval = seconds(text)?;
            Some(())
        }),
        text('z', "zerotime", "a time such as 5", |g, text| {
            g.spec.zero = no_time_is_none(text)?;
            Some(())
        }),
        number('F', "cache_footprint", (0, MANY), |g, n| {
            g.spec.footprint_kib = n;
        }),
        number('n', "operations", (0, MANY), |g, n| g.spec.operations = n),
        number('s', "sleep_usec", (0, MAX_US), |g, n| g.spec.nap_us = n),
        number('R', "rps", (0, MANY), |g, n| g.spec.rps = n),
        flag('L', "no-locking", |g| g.spec.locks = false),
        flag('C', "calibrate", |g| {
            g.spec.calibrate = true;
            g.spec.locks = false;
        }),
        text('M', "message-cpus", CPUS, |g, text| match text {
            "auto" => {
                g.spec.pins.auto = true;
                Some(())
            }
            text => {
                g.spec.pins.messengers = Some(cpus(text)?);
                Some(())
            }
        }),
        text('W', "worker-cpus", CPUS, |g, text| match text {
            "auto" => {
                g.spec.pins.auto = true;
                Some(())
            }
            text => {
                g.spec.pins.workers = Some(cpus(text)?);
                Some(())
            }
        }),
        text('j', "json", "'-': no file is written", |g, text| {
            g.spec.json = true;
            (text == "-").then_some(())
        }),
        text('J', "jobname", "a name", |g, text| {
            g.spec.job = Some(text.to_owned());
            Some(())
        }),
        number('p', "pipe", (0, u64::MAX), |g, _| {
            g.refused = Some("'-p' is not modelled: it copies memory between threads");
        }),
        number('A', "auto-rps", (0, u64::MAX), |g, _| {
            g.refused = Some("'-A' is not modelled: give the rate that it would find to '-R'");
        }),
    ],
};

fn no_time_is_none(text: &str) -> Option<Option<Ns>> {
    match text {
        "0" => Some(None),
        text => seconds(text).map(Some),
    }
}

fn cpus(text: &str) -> Option<CpuMask> {
    let cpus = CpuMask::from_cpulist(text).ok()?;
    (!cpus.is_empty()).then_some(cpus)
}

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Schbench, WorkloadError> {
    let Given { mut spec, refused } = GRAMMAR.read(Given::default(), words)?;
    if let Some(message) = refused {
        return Err(WorkloadError::Together {
            benchmark: NAME,
            message,
        });
    }
    if spec.pins.auto {
        (spec.pins.messengers, spec.pins.workers) = (None, None);
    }
    let each = 1 + u64::from(spec.workers);
    check_tasks(NAME, u64::from(spec.messengers) * each)?;
    Ok(spec)
}
