//! What can be wrong with an experiment's file, and where.

use std::ops::Range;
use wakelab_machine::{excerpt, excerpt_message};

/// Why a file is not an experiment: `file:line:column: message at 'word'`, the word only if the message
/// does not name it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}:{column}: {message}{word}", word = quoted(.word, .message))]
pub struct ExperimentError {
    /// The file as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text at fault, empty if the fault has no place of its own.
    pub word: String,
    /// What is wrong and what was expected.
    pub message: String,
}

fn quoted(word: &str, message: &str) -> String {
    let quoted = format!("'{word}'");
    if word.is_empty() || message.contains(&quoted) {
        return String::new();
    }
    format!(" at {quoted}")
}

/// A file being read, to make errors with places of.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file as the caller named it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Place<'_> {
    /// The place of these bytes of the text: `file:line:column`.
    pub fn name(self, span: &Range<usize>) -> String {
        let (line, column) = self.line_and_column(span.start);
        format!("{}:{line}:{column}", self.file)
    }

    fn line_and_column(self, offset: usize) -> (usize, usize) {
        let before = self
            .text
            .get(..offset.min(self.text.len()))
            .unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        )
    }

    /// An error at these bytes of the text.
    pub fn error(self, span: Range<usize>, message: impl Into<String>) -> ExperimentError {
        let start = span.start.min(self.text.len());
        let (line, column) = self.line_and_column(start);
        let at_fault = self
            .text
            .get(start..span.end.min(self.text.len()))
            .unwrap_or_default();
        ExperimentError {
            file: self.file.to_owned(),
            line,
            column,
            word: shortened(at_fault),
            message: message.into(),
        }
    }

    /// What the TOML reader found wrong.
    pub fn toml_error(self, error: &toml::de::Error) -> ExperimentError {
        let span = error.span().unwrap_or(0..0);
        let mut message = excerpt_message(&error.message().trim_end().replace('\n', ", "));
        if message.starts_with("unknown field")
            && message
                .split('`')
                .nth(1)
                .is_some_and(|key| key.contains("cost"))
        {
            message = "an experiment cannot set costs, which belong to machines".to_owned();
        }
        self.error(span, message)
    }
}

/// The first line of the text at fault, without quotes and not too long.
fn shortened(text: &str) -> String {
    let line = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .trim_matches('"');
    excerpt(line)
}
