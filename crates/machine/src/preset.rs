//! The machines that come with the program: `machines/*.toml`.

use crate::error::MachineError;
use crate::topology::Machine;

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const PRESETS: &[(&str, &str)] = presets![
    "altra-80",
    "epyc-7763-2s",
    "epyc-9654-2s",
    "hypervisor-64",
    "kunpeng-920",
    "power10-llc4",
    "power9-2s44c",
    "smt2-8",
    "xeon-2s96c",
    "xeon-8360y-2s",
    "xeon-8480-1s",
    "xeon-8480-2s",
];

/// Name and TOML text of each preset, by name.
pub fn presets() -> &'static [(&'static str, &'static str)] {
    PRESETS
}

/// The file that the preset comes from, as errors name it.
pub(crate) fn file_name(name: &str) -> String {
    format!("machines/{name}.toml")
}

/// The text of the preset.
pub(crate) fn find(name: &str) -> Result<&'static str, MachineError> {
    let known = PRESETS.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, text)| *text)
        .ok_or_else(|| MachineError::UnknownPreset {
            name: name.to_owned(),
            near: near(name),
        })
}

impl Machine {
    /// The preset of this name.
    ///
    /// # Errors
    /// If there is none; the error lists names that are near.
    pub fn preset(name: &str) -> Result<Machine, MachineError> {
        Machine::from_toml(find(name)?, &file_name(name))
    }
}

/// Up to three presets whose names contain the word, are contained in it or differ in few letters.
fn near(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase();
    let distance = |name: &str| {
        let related = !word.is_empty() && (name.contains(&word) || word.contains(name));
        if related {
            0
        } else {
            edit_distance(&word, name)
        }
    };
    let mut names: Vec<_> = PRESETS
        .iter()
        .map(|(name, _)| (distance(name), *name))
        .collect();
    names.sort();
    names
        .into_iter()
        .filter(|(d, name)| *d <= name.len() / 2)
        .take(3)
        .map(|(_, n)| n)
        .collect()
}

/// How many letters must be put in, taken out or changed to make `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
