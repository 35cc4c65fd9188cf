//! The experiments that come with the program, and finding one by name or file.

use crate::text_file;
use anyhow::bail;
use std::path::Path;

/// Name and text of each file of `experiments/`, by name.
const EXPERIMENTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Name and text of each experiment that comes with the program, by name.
pub fn names_and_texts() -> &'static [(&'static str, &'static str)] {
    EXPERIMENTS
}

/// The text of an experiment, with the names by which it and its file are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The experiment's name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// The file's text.
    pub text: String,
}

impl Source {
    /// An experiment that comes with the program.
    pub fn embedded((name, text): &(&str, &str)) -> Source {
        Source {
            name: (*name).to_owned(),
            file: format!("experiments/{name}.toml"),
            text: (*text).to_owned(),
        }
    }
}

/// The experiment that the word names: one that comes with the program, else a file if the word
/// looks like one (it ends in `.toml` or has a separator).
///
/// # Errors
/// If there is no such experiment or the file cannot be read.
pub fn find(word: &str) -> anyhow::Result<Source> {
    if let Some(known) = EXPERIMENTS.iter().find(|(name, _)| *name == word) {
        return Ok(Source::embedded(known));
    }
    let path = Path::new(word);
    let is_file_name = path
        .extension()
        .is_some_and(|extension| extension == "toml")
        || path.components().count() > 1;
    if !is_file_name {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        bail!(
            "no experiment is named '{word}'; there are {}",
            names.join(", ")
        );
    }
    let text = text_file::read(word)?;
    let name = path.file_stem().map_or_else(
        || word.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    Ok(Source {
        name,
        file: word.to_owned(),
        text,
    })
}
