//! Recorded arithmetic: single calls of one function of the kernel, by kind of record. A kind is a
//! file here and a row in [`KINDS`].

mod attach;
mod canm;
mod cdf;
mod core_sched;
mod det;
mod detach;
mod eevdf;
mod hload;
mod init;
mod lb;
mod lbres;
mod ni;
mod pelt;
mod prop;
mod removed;
mod scan;
mod shares;
mod swb;
mod tgla;
mod uest;

use crate::error::Problem;
use crate::header::Header;
use crate::outcome::Outcome;
use crate::wire::{choose, from_line};
use serde::Deserialize;
use std::sync::{Arc, LazyLock};
use wakelab_machine::Machine;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_sched::balance::{CpuIdle, MigrationType};

/// A kind of record that the model can make again.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As the header spells it.
    pub name: &'static str,
    /// The function of the kernel that was recorded.
    pub function: &'static str,
    /// Makes the call of a line again and compares.
    pub(crate) check: fn(&Header, &[u8]) -> Result<Outcome, Problem>,
}

/// All kinds, by name.
pub const KINDS: &[Kind] = &[
    attach::KIND,
    eevdf::AVGV,
    canm::KIND,
    cdf::KIND,
    core_sched::CLESS,
    core_sched::CORE,
    eevdf::CURR,
    eevdf::DEQ,
    det::KIND,
    detach::KIND,
    eevdf::ELIG,
    hload::KIND,
    init::KIND,
    eevdf::LAG,
    lb::KIND,
    lbres::KIND,
    eevdf::MSL,
    ni::KIND,
    pelt::KIND,
    eevdf::PICK,
    eevdf::PLACE,
    eevdf::PREEMPT,
    prop::KIND,
    removed::KIND,
    eevdf::REQD,
    eevdf::REWT,
    scan::KIND,
    shares::KIND,
    core_sched::STEAL,
    swb::KIND,
    tgla::KIND,
    uest::KIND,
    eevdf::UPDL,
    eevdf::YIELD,
];

/// The kind of this name.
pub(crate) fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Any machine, for calls that concern one CPU.
static TOPOLOGY: LazyLock<Arc<SchedTopology>> = LazyLock::new(|| {
    let machine = Machine::preset("smt2-8").expect("the presets can be read");
    Arc::new(SchedTopology::build(&machine, &DomainRules::v6_12()))
});

/// What the records of all kinds have.
#[derive(Deserialize)]
struct Common {
    i: u64,
}

/// The running number of a record.
///
/// # Errors
/// If it has none.
pub(crate) fn running_number(line: &[u8]) -> Result<u64, Problem> {
    Ok(from_line::<Common>(line)?.i)
}

/// `idle` of balancing.
fn cpu_idle(number: usize) -> Result<CpuIdle, Problem> {
    choose(
        "idle",
        &[CpuIdle::NotIdle, CpuIdle::Idle, CpuIdle::NewlyIdle],
        number,
    )
}

/// `mt` of balancing.
fn migration_type(number: usize) -> Result<MigrationType, Problem> {
    use MigrationType::{Load, Misfit, Task, Util};
    choose("mt", &[Load, Util, Task, Misfit], number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_order_and_none_is_there_twice() {
        assert!(KINDS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
