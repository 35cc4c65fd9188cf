//! The command line of `vms`.

use super::{Cookies, Hwlat, StartPlace, Vms};
use crate::command_line::WorkloadError;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::quantity::{Cycle, seconds};
use wakelab_machine::Ns;

pub(super) const NAME: &str = "vms";

/// What is given so far.
#[derive(Default)]
struct Given {
    vms: Option<u32>,
    vcpus: Option<u32>,
    busy: Option<u32>,
    load: Option<Cycle>,
    vmm: Option<Cycle>,
    hwlat: Option<Hwlat>,
    cookies: Option<Cookies>,
    matched: bool,
    time: Option<Ns>,
}

const CYCLE: &str = "RUN/PERIOD such as 0.5ms/50ms, the run below the period";

const fn number(short: char, long: &'static str, low: u64, set: fn(&mut Given, u64)) -> Opt<Given> {
    let high = MAX_TASKS;
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

const GRAMMAR: Grammar<Given> = Grammar {
    benchmark: NAME,
    expected: "expected -n/--vms N, -v/--vcpus N, -b/--busy N, -l/--load RUN/PERIOD, \
         -m/--vmm RUN/PERIOD, -w/--hwlat width=TIME,period=TIME,threshold=TIME, -c/--cookies vm|none|prctl, \
         -s/--start as-it-comes|matched or -t/--timeout TIME",
    options: &[
        number('n', "vms", 1, |g, n| g.vms = Some(n as u32)),
        number('v', "vcpus", 1, |g, n| g.vcpus = Some(n as u32)),
        number('b', "busy", 0, |g, n| g.busy = Some(n as u32)),
        text('l', "load", CYCLE, |g, text| {
            g.load = Some(Cycle::read(text)?);
            Some(())
        }),
        text('m', "vmm", CYCLE, |g, text| {
            g.vmm = Some(Cycle::read(text)?);
            Some(())
        }),
        text('w', "hwlat", Hwlat::EXPECTED, |g, text| {
            g.hwlat = Some(Hwlat::read(text)?);
            Some(())
        }),
        text('c', "cookies", "vm, none or prctl", |g, text| {
            g.cookies = Some(match text {
                "vm" => Cookies::Vm,
                "none" => Cookies::None,
                "prctl" => Cookies::VmByPrctl,
                _ => return None,
            });
            Some(())
        }),
        text('s', "start", "as-it-comes or matched", |g, text| {
            g.matched = either(text, "as-it-comes", "matched")?;
            Some(())
        }),
        text('t', "timeout", crate::TIMEOUT_EXPECTED, |g, text| {
            g.time = Some(seconds(text)?);
            Some(())
        }),
    ],
};

/// Whether it is the second of two words; none if it is neither.
fn either(text: &str, first: &str, second: &str) -> Option<bool> {
    if text == first {
        Some(false)
    } else {
        (text == second).then_some(true)
    }
}

/// Reads the words.
pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vms, WorkloadError> {
    let given = GRAMMAR.read(Given::default(), words)?;
    let vms = given.vms.unwrap_or(8);
    let spec = Vms {
        vms,
        vcpus: given.vcpus.unwrap_or(8),
        // All but the tracer's, which has to be idle for it to find anything but that load.
        busy: given.busy.unwrap_or(vms - u32::from(given.hwlat.is_some())),
        load: given.load,
        vmm: given.vmm,
        hwlat: given.hwlat,
        cookies: given.cookies.unwrap_or(Cookies::Vm),
        start: if given.matched {
            StartPlace::Matched
        } else {
            StartPlace::AsItComes
        },
        time: given.time,
    };
    check(spec)
}

fn check(spec: Vms) -> Result<Vms, WorkloadError> {
    check_tasks(NAME, spec.tasks())?;
    let together = |message| WorkloadError::Together {
        benchmark: NAME,
        message,
    };
    if spec.busy > spec.vms {
        return Err(together("'--busy' is more than '--vms'"));
    }
    if spec.hwlat.is_some() && spec.busy == spec.vms {
        return Err(together(
            "'--hwlat' needs an idle machine: '--busy' below '--vms'",
        ));
    }
    Ok(spec)
}
