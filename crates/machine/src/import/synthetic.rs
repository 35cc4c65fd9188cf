//! Synthetic descriptions as hwloc understands them: `Package:2 [NUMANode] L3Cache:4 Core:8 PU:2`.
//!
//! Each word tells how many objects of a type are in each object of the word before; the last are
//! PUs. A word may be a count alone, if all but the last are. `[NUMANode]` is a node with the CPUs of
//! the word before it. `(indexes=...)` numbers PUs and nodes, in one of three ways: number by number,
//! as loops `STEP*COUNT:...`, or by types `package:core:...`, which are the same as loops. Sizes of
//! memory and caches are read over.

use super::objects::{CACHE_LEVEL_MAX, Kind, Object, Objects};
use crate::error::MachineError;
use crate::ids::CpuId;
use crate::mask::{CpuMask, MAX_CPUS};
use expand::expand;
use words::Word;

mod expand;
mod indexes;
mod words;

/// The most levels of a string, as in hwloc.
const LEVELS_MAX: usize = 128;
/// The most nodes attached in a string.
const ATTACHED_MAX: usize = MAX_CPUS;

/// A type as a string names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Machine,
    Known(Kind),
    /// An instruction cache with its level.
    Instructions(u8),
    /// A group, with its depth if that is told.
    Group(Option<u32>),
}

/// One level: so many objects of a type in each object of the level above.
#[derive(Clone, Debug)]
struct Level {
    /// None if only a count is given.
    kind: Option<Type>,
    /// How many of it there are in all.
    width: usize,
    /// How many nodes are attached to each.
    attached: usize,
    indexes: Option<Word>,
    /// The character at which it begins, from 1.
    place: usize,
}

/// A string that is understood but not expanded: the machine is level 0.
struct Description {
    levels: Vec<Level>,
    /// How attached nodes are numbered.
    attached_indexes: Option<Word>,
    text: String,
}

/// Reads the string.
pub(super) fn read(text: &str) -> Result<Objects, MachineError> {
    let mut description = words::parse(text)?;
    description.complete()?;
    expand(&description)
}

/// The error that the word should not be at this place.
fn wrong(word: &Word, expected: &str) -> MachineError {
    Objects::default().wrong(word.place, &word.text, expected)
}

impl Description {
    fn word(&self, level: &Level) -> Word {
        let text = self.text.chars().skip(level.place - 1);
        Word {
            text: text.take_while(|c| !c.is_whitespace()).collect(),
            place: level.place,
        }
    }

    fn count(&self, kind: Kind) -> usize {
        let same = |level: &&Level| level.kind == Some(Type::Known(kind));
        self.levels.iter().filter(same).count()
    }

    fn attached(&self) -> bool {
        self.levels.iter().any(|level| level.attached > 0)
    }

    /// Gives a type to each level, checks that the types can be together, and adds the node that every
    /// machine has.
    fn complete(&mut self) -> Result<(), MachineError> {
        let last = self.levels.len() - 1;
        let bottom = &self.levels[last];
        if last == 0 || !matches!(bottom.kind, None | Some(Type::Known(Kind::Pu))) {
            return Err(wrong(&self.word(bottom), "PUs as the last objects"));
        }
        self.levels[last].kind = Some(Type::Known(Kind::Pu));
        let between = &self.levels[1..last];
        let untyped = between.iter().filter(|level| level.kind.is_none()).count();
        if untyped > 0 && untyped < between.len() {
            let level = between.iter().find(|level| level.kind.is_none());
            let word = self.word(level.unwrap_or(&self.levels[0]));
            return Err(wrong(&word, "a type, as other levels have one"));
        }
        if untyped > 0 {
            let kinds = default_types(untyped, !self.attached());
            for (level, kind) in self.levels[1..last].iter_mut().zip(kinds) {
                level.kind = Some(kind);
            }
        }
        for kind in [Kind::Pu, Kind::Package, Kind::Die, Kind::Node, Kind::Core] {
            let same = |level: &&Level| level.kind == Some(Type::Known(kind));
            if let Some(second) = self.levels.iter().filter(same).nth(1) {
                return Err(wrong(&self.word(second), "one level of this type only"));
            }
        }
        if self.count(Kind::Node) > 0 && self.attached() {
            let word = self.word(&self.levels[0]);
            return Err(wrong(&word, "nodes either as a level or attached"));
        }
        if self.count(Kind::Node) == 0 && !self.attached() {
            self.levels[0].attached = 1;
        }
        Ok(())
    }
}

/// The types of levels that have none: first of all a node, a package and a core, then up to four
/// caches, and groups for the rest.
fn default_types(count: usize, with_node: bool) -> Vec<Type> {
    let nodes = usize::from(with_node && count >= 1);
    let packages = usize::from(count > nodes);
    let cores = usize::from(count > nodes + packages);
    let rest = count - nodes - packages - cores;
    let caches = rest.min(4);
    let data = |level| Type::Known(Kind::Cache(level));
    let mut types = vec![Type::Group(None); rest - caches];
    types.extend(vec![Type::Known(Kind::Package); packages]);
    types.extend(vec![Type::Known(Kind::Node); nodes]);
    types.extend(match caches {
        0 => vec![],
        1 => vec![data(2)],
        2 => vec![data(2), data(1)],
        3 => vec![data(3), data(2), data(1)],
        _ => vec![data(3), data(2), data(1), Type::Instructions(1)],
    });
    types.extend(vec![Type::Known(Kind::Core); cores]);
    types
}

/// The type that a word names. A part of a name will do, as long as it is no other's.
fn type_of(word: &str) -> Option<Type> {
    let lower = word.to_ascii_lowercase();
    let is = |name: &str, least: usize| lower.len() >= least && name.starts_with(&lower);
    let known = [
        ("numanode", 2, Kind::Node),
        ("node", 2, Kind::Node),
        ("package", 2, Kind::Package),
        ("socket", 2, Kind::Package),
        ("die", 2, Kind::Die),
        ("core", 2, Kind::Core),
        ("pu", 2, Kind::Pu),
    ];
    if let Some((_, _, kind)) = known.iter().find(|(name, least, _)| is(name, *least)) {
        return Some(Type::Known(*kind));
    }
    if is("machine", 2) {
        return Some(Type::Machine);
    }
    if lower == "tile" || lower == "module" || is("group", 2) {
        return Some(Type::Group(None));
    }
    if let Some(depth) = lower.strip_prefix("group") {
        return Some(Type::Group(Some(depth.parse().ok()?)));
    }
    cache_of(&lower)
}

/// `l2`, `l1d`, `l1icache`...
fn cache_of(lower: &str) -> Option<Type> {
    let rest = lower.strip_prefix('l')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let level = rest[..digits].parse::<u8>().ok()?;
    let (instructions, suffix) = match rest[digits..].strip_prefix('i') {
        Some(suffix) => (true, suffix),
        None => (false, rest[digits..].trim_start_matches(['d', 'u'])),
    };
    if !"cache".starts_with(suffix) || !(1..=CACHE_LEVEL_MAX).contains(&level) {
        return None;
    }
    Some(if instructions {
        Type::Instructions(level)
    } else {
        Type::Known(Kind::Cache(level))
    })
}
