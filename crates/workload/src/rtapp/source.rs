//! The file itself, and the places in it that errors and warnings name.

use super::fields::Problem;
use super::file::File;
use super::{NAME, json, read};
use crate::command_line::WorkloadError;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use wakelab_machine::excerpt;

/// No file of a workload is longer.
const MAX_BYTES: u64 = 16 << 20;

pub(super) struct Source {
    /// As errors repeat it.
    pub name: String,
    text: Vec<u8>,
}

impl Source {
    /// Reads a file, whose name is relative to a directory, or standard input (`-`).
    pub fn open(name: &str, directory: &Path) -> Result<Source, WorkloadError> {
        if name == "-" {
            return Source::whole(name, io::stdin().lock());
        }
        let path = directory.join(name);
        let name = path.to_string_lossy().into_owned();
        let unreadable = |message: String| WorkloadError::Unreadable {
            benchmark: NAME,
            file: name.clone(),
            message,
        };
        // Nothing that could give bytes for ever, or wait for them.
        let metadata = fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreadable("it is no regular file".to_owned()));
        }
        let file = fs::File::open(&path).map_err(|error| unreadable(error.to_string()))?;
        Source::whole(&name, file)
    }

    /// What can be read under a name.
    fn whole(name: &str, from: impl Read) -> Result<Source, WorkloadError> {
        let mut text = Vec::new();
        let read = from.take(MAX_BYTES + 1).read_to_end(&mut text);
        let message = match read {
            Err(error) => error.to_string(),
            Ok(_) if text.len() as u64 > MAX_BYTES => "it is longer than 16 MiB".to_owned(),
            Ok(_) => {
                return Ok(Source {
                    name: name.to_owned(),
                    text,
                });
            }
        };
        Err(WorkloadError::Unreadable {
            benchmark: NAME,
            file: name.to_owned(),
            message,
        })
    }

    /// What is in a file of this name.
    pub fn of(name: &str, text: &[u8]) -> Source {
        Source {
            name: name.to_owned(),
            text: text.to_vec(),
        }
    }

    /// What the file says.
    pub fn read(&self) -> Result<File, WorkloadError> {
        let root = json::read(&self.text).map_err(|fault| {
            self.error(Problem {
                at: fault.at,
                word: self.word(fault.at),
                expected: fault.expected.to_owned(),
            })
        })?;
        read::read(&root, &|at| self.place(at)).map_err(|problem| self.error(problem))
    }

    fn error(&self, problem: Problem) -> WorkloadError {
        let (line, column) = self.line_and_column(problem.at);
        WorkloadError::File {
            file: self.name.clone(),
            line,
            column,
            word: excerpt(&problem.word),
            expected: excerpt_of_expected(&problem.expected),
        }
    }

    /// A place as warnings name it.
    fn place(&self, at: usize) -> String {
        let (line, column) = self.line_and_column(at);
        format!("{}:{line}:{column}", self.name)
    }

    /// Both from 1; columns count characters.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at.min(self.text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let begin = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        (
            line,
            String::from_utf8_lossy(&before[begin..]).chars().count() + 1,
        )
    }

    /// What stands at a place, to the next blank or sign.
    fn word(&self, at: usize) -> String {
        let rest = &self.text[at.min(self.text.len())..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",:{}[]".contains(byte);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        match rest {
            [] => "end of file".to_owned(),
            [_, ..] => String::from_utf8_lossy(&rest[..length.max(1)]).into_owned(),
        }
    }
}

/// What was expected may repeat a key.
fn excerpt_of_expected(expected: &str) -> String {
    const LIMIT: usize = 160;
    if expected.chars().count() <= LIMIT && !expected.chars().any(char::is_control) {
        return expected.to_owned();
    }
    excerpt(expected)
}
