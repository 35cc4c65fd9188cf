//! What can be wrong with the description of a machine.

use crate::mask::CpuListError;

/// Why a machine could not be built. Every text names the file and the word.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MachineError {
    /// No preset has this name.
    #[error("no machine is named '{name}'{hint}", hint = did_you_mean(.near))]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// Presets with a similar name, nearest first.
        near: Vec<&'static str>,
    },
    /// The TOML text does not parse, or has an unknown key or a value of the wrong kind.
    #[error("{file}:{line}: {message}{word}", word = quoted(.word))]
    Toml {
        /// The file as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The text at fault, empty if the fault has no place.
        word: String,
        /// What is wrong and what was expected.
        message: String,
    },
    /// A value that parses but cannot be.
    #[error("{file}:{line}: {key} = {value}: expected {expected}")]
    Value {
        /// The file as the caller named it.
        file: String,
        /// The line of the value, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A key without which there is no machine.
    #[error("{file}: {key}: nothing there, expected {expected}")]
    Missing {
        /// The file as the caller named it.
        file: String,
        /// The key.
        key: String,
        /// What would be right.
        expected: String,
    },
    /// A file that could not be read, or that is nothing that can be.
    #[error("{file}: {message}")]
    Read {
        /// The file.
        file: String,
        /// What the system says.
        message: String,
    },
    /// A file of a sysfs tree with something else in it than it should have.
    #[error("{file}: '{word}': expected {expected}")]
    Sysfs {
        /// The file.
        file: String,
        /// The text at fault.
        word: String,
        /// What would be right.
        expected: String,
    },
    /// An XML file with something else at a line than it should have.
    #[error("{file}:{line}: '{word}': expected {expected}")]
    Xml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The text at fault.
        word: String,
        /// What would be right.
        expected: String,
    },
    /// A synthetic description with something else at a place than it should have.
    #[error("synthetic string, character {character}: '{word}': expected {expected}")]
    Synthetic {
        /// The place in the string, from 1.
        character: usize,
        /// The text at fault.
        word: String,
        /// What would be right.
        expected: String,
    },
    /// A cpulist of a sysfs tree or a description that is none.
    #[error("{file}: {source}")]
    CpuList {
        /// The file.
        file: String,
        /// What is wrong with the list.
        source: CpuListError,
    },
}

fn did_you_mean(near: &[&str]) -> String {
    if near.is_empty() {
        return "; 'wakelab machine list' shows the names".to_owned();
    }
    format!("; did you mean {}?", near.join(" or "))
}

fn quoted(word: &str) -> String {
    if word.is_empty() {
        String::new()
    } else {
        format!(" at '{word}'")
    }
}
