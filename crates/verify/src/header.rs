//! The first line of a recording: what was recorded, on which kernel.

use crate::error::Problem;
use crate::wire::{cpu, from_line, mask};
use serde::Deserialize;
use std::collections::BTreeMap;
use wakelab_machine::CpuMask;
use wakelab_sched::features::{Origin, words_of};
use wakelab_sched::{Feat, Features, Release};

/// The schema of recorded decisions.
const DECISIONS: u64 = 1;
/// The schema of recorded arithmetic.
const ARITHMETIC: u64 = 2;

/// What every header has; the decisions' has more.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a header")]
pub(crate) struct Preamble {
    k: String,
    schema: u64,
    kernel: String,
    /// Records in the file.
    pub nrec: u64,
    kind: Option<String>,
}

/// Which records follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents<'a> {
    /// Calls of `select_task_rq_fair()`.
    Decisions,
    /// Calls of the functions of this kind.
    Arithmetic(&'a str),
}

impl Preamble {
    /// Reads it from the first line.
    ///
    /// # Errors
    /// If the line is no header.
    pub fn parse(line: &[u8]) -> Result<Preamble, Problem> {
        let preamble: Preamble = from_line(line)?;
        if preamble.k != "hdr" {
            return Err(Problem::value("k", &preamble.k, "a header ('hdr')"));
        }
        Ok(preamble)
    }

    /// What follows.
    ///
    /// # Errors
    /// If the schema is not one of those read here.
    pub fn contents(&self) -> Result<Contents<'_>, Problem> {
        match (self.schema, &self.kind) {
            (DECISIONS, None) => Ok(Contents::Decisions),
            (ARITHMETIC, Some(kind)) => Ok(Contents::Arithmetic(kind)),
            (ARITHMETIC, None) => Err(Problem::value("kind", "nothing", "the kind of record")),
            (DECISIONS, Some(kind)) => Err(Problem::value(
                "schema",
                "1",
                format!("2 for the kind '{kind}'"),
            )),
            (found, _) => Err(Problem::Schema {
                found,
                known: "1 (decisions) and 2 (arithmetic)",
            }),
        }
    }

    /// The release whose rules the kernel follows.
    ///
    /// # Errors
    /// If the model does not know it.
    pub fn release(&self) -> Result<Release, Problem> {
        let known = |release: &Release| {
            let rest = self.kernel.strip_prefix(release.name());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        let found = Release::ALL.into_iter().find(known);
        let names = || Release::ALL.map(Release::name).join(", ");
        found.ok_or_else(|| {
            let expected = format!("a kernel of one of {}", names());
            Problem::value("kernel", format!("'{}'", self.kernel), expected)
        })
    }
}

/// The header of a recording of arithmetic.
#[derive(Debug)]
pub(crate) struct Header {
    /// The kernel's release.
    pub release: Release,
    /// CPUs of the machine.
    pub ncpu: usize,
    /// Ticks a second.
    pub hz: u64,
    cpus: Option<Vec<Place>>,
    sets: Vec<Set>,
}

/// A CPU of the machine.
#[derive(Debug, Deserialize)]
struct Place {
    cpu: u64,
    smt: u64,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a header")]
struct ArithmeticHeader {
    ncpu: usize,
    hz: u64,
    cpus: Option<Vec<Place>>,
    sets: Vec<Set>,
}

/// The settings of a part of the records.
#[derive(Debug, Deserialize)]
struct Set {
    feats: BTreeMap<String, u8>,
    /// The default slice in force, ns.
    base_slice: Option<u64>,
}

impl Header {
    /// Reads the first line.
    ///
    /// # Errors
    /// If a field is missing or cannot be.
    pub fn parse(preamble: &Preamble, line: &[u8]) -> Result<Header, Problem> {
        let header: ArithmeticHeader = from_line(line)?;
        if !(1..=64).contains(&header.ncpu) {
            return Err(Problem::value("ncpu", header.ncpu, "1 to 64 CPUs"));
        }
        if header.hz == 0 {
            return Err(Problem::value("hz", 0, "ticks a second"));
        }
        Ok(Header {
            release: preamble.release()?,
            ncpu: header.ncpu,
            hz: header.hz,
            cpus: header.cpus,
            sets: header.sets,
        })
    }

    /// The cores of the machine; all CPUs are one where the header does not tell.
    ///
    /// # Errors
    /// If a CPU is in none or in two.
    pub fn cores(&self) -> Result<Vec<CpuMask>, Problem> {
        let Some(places) = &self.cpus else {
            return Ok(vec![CpuMask::first_n(self.ncpu)]);
        };
        let mut cores: Vec<CpuMask> = Vec::new();
        for place in places {
            let own = cpu("cpus.cpu", place.cpu, self.ncpu)?;
            let smt = mask("cpus.smt", place.smt, self.ncpu)?;
            let known = cores.contains(&smt);
            let apart = |core: &CpuMask| !core.intersects(&smt);
            if !smt.contains(own) || !known && !cores.iter().all(apart) {
                let expected = "the CPUs of one core";
                return Err(Problem::value("cpus.smt", place.smt, expected));
            }
            if !known {
                cores.push(smt);
            }
        }
        let covered = cores.iter().map(CpuMask::weight).sum::<usize>();
        if covered != self.ncpu {
            return Err(Problem::value("cpus", covered, "all CPUs"));
        }
        Ok(cores)
    }

    fn set(&self, set: usize) -> Result<&Set, Problem> {
        let expected = || format!("a set below {}", self.sets.len());
        let found = self.sets.get(set);
        found.ok_or_else(|| Problem::value("s", set, expected()))
    }

    /// The features in force in a set; of those, the ones that the model knows. A word that the kernel did
    /// not have is as a stock kernel behaves.
    ///
    /// # Errors
    /// If there is no such set.
    pub fn features(&self, set: usize) -> Result<Features, Problem> {
        let mut features = Features(0);
        let patches = words_of(Release::V6_12).filter(|word| word.origin == Origin::Patch);
        for word in patches {
            features.set(word.feat, word.default_in(Release::V6_12) == Some(true));
        }
        for (name, on) in &self.set(set)?.feats {
            if let Some(feat) = Feat::from_name(name) {
                features.set(feat, *on != 0);
            }
        }
        Ok(features)
    }

    /// The default slice of a set, ns.
    ///
    /// # Errors
    /// If there is no such set or it does not tell.
    pub fn base_slice(&self, set: usize) -> Result<u64, Problem> {
        let slice = self.set(set)?.base_slice;
        let field = || format!("sets[{set}].base_slice");
        slice.ok_or_else(|| Problem::value(field(), "nothing", "the default slice"))
    }

    /// Whether a feature was on in a set (`s` of the record).
    ///
    /// # Errors
    /// If there is no such set or it does not tell.
    pub fn feature(&self, set: usize, name: &str) -> Result<bool, Problem> {
        let on = self.set(set)?.feats.get(name).map(|on| *on != 0);
        on.ok_or_else(|| Problem::value(format!("sets[{set}].feats"), format!("no {name}"), "it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Result<(u64, Release, bool), String> {
        let preamble = Preamble::parse(text.as_bytes()).map_err(|problem| problem.to_string())?;
        let contents = preamble.contents().map_err(|problem| problem.to_string())?;
        let release = preamble.release().map_err(|problem| problem.to_string())?;
        Ok((preamble.nrec, release, contents == Contents::Decisions))
    }

    #[test]
    fn the_schema_tells_what_follows() {
        let decisions = r#"{"k":"hdr","schema":1,"kernel":"6.12.117 #1 SMP","nrec":3}"#;
        assert_eq!(header(decisions), Ok((3, Release::V6_12, true)));
        let arithmetic = r#"{"k":"hdr","schema":2,"kind":"pelt","kernel":"6.12","nrec":0}"#;
        assert_eq!(header(arithmetic), Ok((0, Release::V6_12, false)));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let refused = |text: &str| header(text).unwrap_err();
        let schema = refused(r#"{"k":"hdr","schema":3,"kernel":"6.12.1","nrec":3}"#);
        assert!(schema.contains("unknown schema version 3"), "{schema}");
        let kernel = refused(r#"{"k":"hdr","schema":1,"kernel":"6.120.1","nrec":3}"#);
        assert!(kernel.contains("'6.120.1'"), "{kernel}");
        let record = refused(r#"{"k":"x","schema":1,"kernel":"6.12.1","nrec":3}"#);
        assert!(record.contains("'k'"), "{record}");
        assert!(refused(r#"{"i":1,"cpu":0}"#).contains("missing field `k`"));
    }
}
