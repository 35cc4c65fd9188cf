//! Reading a machine from its TOML description.
//!
//! A description gives the shape in a few numbers, which become CPUs numbered as Linux numbers
//! them; the idle states; and the costs, each with its source. `costs.like` names a preset whose
//! costs stand in where none is given.
//!
//! ```
//! let machine = wakelab_machine::Machine::from_toml(
//!     r#"
//!     name = "desktop"
//!     description = "6 cores, SMT2, one LLC"
//!     arch = "x86"                  # or "power", "arm64"
//!
//!     [topology]
//!     packages = 1
//!     llcs_per_die = 1
//!     cores_per_llc = 6
//!     threads_per_core = 2
//!     numbering = "siblings-last"   # or "consecutive"
//!
//!     [[idle_state]]
//!     name = "C1"
//!     exit_latency_us = 1
//!     target_residency_us = 2
//!     polling = true                # woken by a store, without an interrupt
//!     source = "cpuidle on the machine itself"
//!
//!     [costs]
//!     like = "smt2-8"
//!     transfer_llc_ns = { value = 21, low = 18, high = 25, source = "measured" }
//!     "#,
//!     "desktop.toml",
//! )?;
//! assert_eq!(machine.siblings(wakelab_machine::CpuId(0)).to_string(), "0,6");
//! # Ok::<(), wakelab_machine::MachineError>(())
//! ```
//!
//! A machine without such a regular shape names its CPUs instead, each set as a cpulist:
//!
//! ```toml
//! [places]                          # instead of [topology]
//! cores = ["0", "1", "2,4", "3,5"]  # the hardware threads of each core; all CPUs from 0 on
//! clusters = ["0-1", "2,4", "3,5"]  # optional, as are dies (each package is one)
//! llcs = ["0-1", "2-5"]
//! packages = ["0-5"]
//! nodes = ["0-1", "2-5"]            # optional: one node
//! node_distance = [[10, 20], [20, 10]]
//! ```
//!
//! Optional in `[topology]`: `dies_per_package` and `nodes_per_package` (1), `cores_per_cluster` (no
//! clusters). Optional in both: `node_distance` (needed with several nodes), `isolated` (a cpulist), and
//! `capacity = [{ cpus = "0-3", capacity = 512 }]`. Optional on top: `hz` (250) and
//! `node_reclaim_distance` (30, on POWER 10).

use crate::costs::{Costs, Figure, RawCosts, RawFigure};
use crate::error::MachineError;
use crate::excerpt::{excerpt, excerpt_message};
use crate::ids::Ns;
use crate::preset;
use crate::topology::{Arch, Cpu, IdleState, Machine};
use serde::Deserialize;
use toml::Spanned;

mod expand;
mod places;
mod write;

/// How many presets may lean on each other with `costs.like`.
const LIKE_DEPTH_MAX: usize = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: Spanned<String>,
    description: String,
    arch: Arch,
    hz: Option<Spanned<u32>>,
    node_reclaim_distance: Option<Spanned<u32>>,
    topology: Option<Shape>,
    places: Option<places::RawPlaces>,
    idle_state: Vec<Spanned<RawIdleState>>,
    costs: RawCosts,
}

/// The shape of a machine in numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    packages: Spanned<u32>,
    dies_per_package: Option<Spanned<u32>>,
    llcs_per_die: Spanned<u32>,
    cores_per_llc: Spanned<u32>,
    cores_per_cluster: Option<Spanned<u32>>,
    threads_per_core: Spanned<u32>,
    nodes_per_package: Option<Spanned<u32>>,
    numbering: Numbering,
    node_distance: Option<Spanned<Vec<Vec<u32>>>>,
    isolated: Option<Spanned<String>>,
    #[serde(default)]
    capacity: Vec<Spanned<CapacityRange>>,
}

/// How Linux numbers hardware threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Numbering {
    /// First one thread of each core of the machine, then the second ones (x86: siblings `N` and
    /// `N + cores`).
    SiblingsLast,
    /// All threads of a core, then the next core's (POWER).
    Consecutive,
}

/// The arch capacity of a range of CPUs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacityRange {
    cpus: String,
    capacity: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIdleState {
    name: String,
    exit_latency_us: f64,
    target_residency_us: f64,
    #[serde(default)]
    polling: bool,
    source: String,
}

impl Machine {
    /// Reads a machine from its description; `file` is what errors call it.
    ///
    /// # Errors
    /// If the text is not TOML, has unknown or missing keys, or values that cannot be: zero or more
    /// than 1024 CPUs, node distances that are no square table, cost ranges that do not contain their
    /// value. The error names file, line and word.
    pub fn from_toml(text: &str, file: &str) -> Result<Machine, MachineError> {
        Reader {
            text,
            file,
            depth: 0,
        }
        .machine()
    }
}

/// A preset's costs alone.
fn costs_of_preset(name: &str, depth: usize) -> Result<Costs, MachineError> {
    let text = preset::find(name)?;
    let file = preset::file_name(name);
    let reader = Reader {
        text,
        file: &file,
        depth,
    };
    let description = reader.parse()?;
    reader.costs(&description.costs, 1)
}

/// A preset's costs as stand-ins for a machine that has none of its own. Threads beyond those of
/// the preset's cores run at the speed of its last.
pub(crate) fn borrowed_costs(name: &str, threads: usize) -> Result<Costs, MachineError> {
    let costs = costs_of_preset(name, 0)?;
    let mut costs = lend(costs, name);
    let last = costs.smt_throughput.last().cloned();
    while let Some(figure) = &last
        && costs.smt_throughput.len() < threads
    {
        costs.smt_throughput.push(figure.clone());
    }
    costs.smt_throughput.truncate(threads.max(1));
    Ok(costs)
}

/// The costs as another machine's stand-ins.
fn lend(mut costs: Costs, name: &str) -> Costs {
    let names: Vec<String> = costs.figures().map(|(name, _)| name).collect();
    for figure in names {
        if let Some(figure) = costs.figure_mut(&figure) {
            *figure = figure.borrowed_from(name);
        }
    }
    costs
}

/// The text being read, with what is needed to say where in it something is wrong.
struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn machine(&self) -> Result<Machine, MachineError> {
        let description = self.parse()?;
        let hz = self.within("hz", &description.hz, 250, 24, 10_000)?;
        let default_reclaim = match description.arch {
            Arch::Power => 10,
            Arch::X86 | Arch::Arm64 => 30,
        };
        let reclaim = &description.node_reclaim_distance;
        let node_reclaim_distance =
            self.within("node_reclaim_distance", reclaim, default_reclaim, 10, 255)?;
        if description.name.get_ref().trim().is_empty() {
            return Err(self.value_error("name", &description.name, "a name that is not empty"));
        }
        if description.name.get_ref().contains(char::is_control) {
            let expected = "a name without control characters";
            return Err(self.value_error("name", &description.name, expected));
        }
        let (cpus, node_distance) = self.cpus(&description)?;
        let threads = cpus.iter().map(|cpu| usize::from(cpu.thread) + 1).max();
        Ok(Machine {
            cpus,
            node_distance,
            node_reclaim_distance,
            idle_states: self.idle_states(&description)?,
            costs: self.costs_for(&description.costs, threads.unwrap_or(1))?,
            hz,
            name: description.name.into_inner(),
            description: description.description,
            arch: description.arch,
        })
    }

    fn cpus(&self, description: &Description) -> Result<(Vec<Cpu>, Vec<Vec<u32>>), MachineError> {
        match (&description.topology, &description.places) {
            (Some(shape), None) => self.expand(shape),
            (None, Some(places)) => self.place(places),
            (Some(_), Some(_)) => Err(self.missing("topology", "it or [places], not both")),
            (None, None) => Err(self.missing("topology", "[topology] or [places]")),
        }
    }

    fn parse(&self) -> Result<Description, MachineError> {
        toml::from_str(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let word = self.text.get(span.clone()).unwrap_or_default();
            MachineError::Toml {
                file: self.file.to_owned(),
                line: self.line_of(span.start),
                word: excerpt(word.lines().next().unwrap_or_default()),
                message: excerpt_message(error.message()),
            }
        })
    }

    fn line_of(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|&&byte| byte == b'\n').count()
    }

    /// The error that a value cannot be, at its place.
    fn value_error<T>(&self, key: &str, value: &Spanned<T>, expected: &str) -> MachineError {
        let written = self.text.get(value.span()).unwrap_or_default();
        MachineError::Value {
            file: self.file.to_owned(),
            line: self.line_of(value.span().start),
            key: key.to_owned(),
            value: excerpt(written.lines().next().unwrap_or_default()),
            expected: expected.to_owned(),
        }
    }

    /// The error that a key is not there.
    fn missing(&self, key: &str, expected: &str) -> MachineError {
        MachineError::Missing {
            file: self.file.to_owned(),
            key: key.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn within(
        &self,
        key: &str,
        value: &Option<Spanned<u32>>,
        default: u32,
        low: u32,
        high: u32,
    ) -> Result<u32, MachineError> {
        let Some(value) = value else {
            return Ok(default);
        };
        if (low..=high).contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        Err(self.value_error(key, value, &format!("a number from {low} to {high}")))
    }

    fn idle_states(&self, description: &Description) -> Result<Vec<IdleState>, MachineError> {
        let states = &description.idle_state;
        if states.is_empty() {
            return Err(self.missing("idle_state", "at least one [[idle_state]]"));
        }
        states.iter().map(|state| self.idle_state(state)).collect()
    }

    fn idle_state(&self, state: &Spanned<RawIdleState>) -> Result<IdleState, MachineError> {
        let raw = state.get_ref();
        let ns = |us: f64| {
            let fits = us.is_finite() && (0.0..=1e9).contains(&us);
            let wrong = || self.value_error("idle_state", state, "times from 0 to 1e9 us");
            if fits {
                Ok(Ns((us * 1000.0).round() as u64))
            } else {
                Err(wrong())
            }
        };
        if raw.source.trim().is_empty() {
            return Err(self.value_error("idle_state", state, "a source that is not empty"));
        }
        Ok(IdleState {
            name: raw.name.clone(),
            exit_latency: ns(raw.exit_latency_us)?,
            target_residency: ns(raw.target_residency_us)?,
            polling: raw.polling,
            source: raw.source.clone(),
        })
    }

    /// The costs with as many SMT speeds as a core has threads.
    fn costs_for(&self, raw: &RawCosts, threads: usize) -> Result<Costs, MachineError> {
        let mut costs = self.costs(raw, threads)?;
        costs.smt_throughput.truncate(threads);
        Ok(costs)
    }

    fn costs(&self, raw: &RawCosts, threads: usize) -> Result<Costs, MachineError> {
        let borrowed = raw.like.as_ref().map(|like| self.like(like)).transpose()?;
        let smt_throughput = self.smt_throughput(raw, borrowed.as_ref(), threads)?;
        Costs::try_build(
            |name| self.figure(raw, borrowed.as_ref(), name),
            smt_throughput,
        )
    }

    /// The costs of the preset that the description leans on, marked as stand-ins.
    fn like(&self, like: &Spanned<String>) -> Result<Costs, MachineError> {
        if self.depth >= LIKE_DEPTH_MAX {
            return Err(self.value_error("like", like, "a preset that does not lean on this one"));
        }
        let name = like.get_ref();
        let costs = costs_of_preset(name, self.depth + 1).map_err(|error| match error {
            MachineError::UnknownPreset { .. } => {
                self.value_error("like", like, &format!("the name of a preset: {error}"))
            }
            other => other,
        })?;
        Ok(lend(costs, name))
    }

    fn figure(
        &self,
        raw: &RawCosts,
        borrowed: Option<&Costs>,
        name: &'static str,
    ) -> Result<Figure, MachineError> {
        if let Some(figure) = raw.get(name) {
            return self.checked(name, figure, figure.get_ref());
        }
        // Without clusters of its own, a machine's cores reach each other through the LLC. What
        // another machine lends is lent as a whole.
        let lent_llc = borrowed.is_some() && raw.get("transfer_llc_ns").is_none();
        if name == "transfer_cluster_ns" && !lent_llc {
            return self.figure(raw, borrowed, "transfer_llc_ns");
        }
        let lent = borrowed.and_then(|costs| costs.figures().find(|(known, _)| known == name));
        let lent = lent.map(|(_, figure)| figure.clone());
        lent.ok_or_else(|| self.missing(&format!("costs.{name}"), "a figure with value and source"))
    }

    fn checked<T>(
        &self,
        key: &str,
        place: &Spanned<T>,
        figure: &RawFigure,
    ) -> Result<Figure, MachineError> {
        figure
            .check()
            .map_err(|expected| self.value_error(key, place, expected))
    }

    fn smt_throughput(
        &self,
        raw: &RawCosts,
        borrowed: Option<&Costs>,
        threads: usize,
    ) -> Result<Vec<Figure>, MachineError> {
        let figures = match (&raw.smt_throughput, borrowed) {
            (Some(written), _) => {
                let check = |figure| self.checked("smt_throughput", written, figure);
                written
                    .get_ref()
                    .iter()
                    .map(check)
                    .collect::<Result<Vec<Figure>, _>>()?
            }
            (None, Some(costs)) => costs.smt_throughput.clone(),
            (None, None) => Vec::new(),
        };
        let speeds = figures
            .iter()
            .all(|figure| figure.low > 0.0 && figure.high <= 1.0);
        let alone = figures.first().is_some_and(|figure| figure.low == 1.0);
        if figures.len() < threads || !speeds || !alone {
            let expected =
                format!("{threads} figures or more, the first 1.0, all above 0 and at most 1.0");
            return Err(match &raw.smt_throughput {
                Some(written) => self.value_error("smt_throughput", written, &expected),
                None => self.missing("costs.smt_throughput", &expected),
            });
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests;
