//! A recording: its header, and its records one after the other.

use crate::decisions::Machine;
use crate::error::{Problem, ReadError};
use crate::header::{Contents, Header, Preamble};
use crate::kinds::{self, Kind};
use crate::lines::Lines;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the kind of recorded decisions is called, of which their header tells none.
pub const DECISIONS: &str = "decisions";

/// A recording whose header has been read.
pub struct Recording {
    file: PathBuf,
    lines: Lines,
    nrec: u64,
    pub(crate) body: Body,
}

/// What the records are, with what the header says of them.
pub(crate) enum Body {
    /// Wake-up decisions on this machine.
    Decisions(Box<Machine>),
    /// Calls of this kind.
    Arithmetic(&'static Kind, Header),
}

/// A line of a recording.
pub(crate) struct Line<'a> {
    /// From 1.
    pub number: u64,
    /// JSON.
    pub text: &'a [u8],
}

impl Recording {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read or does not begin with a header, or its kind is not known.
    pub fn open(file: &Path) -> Result<Recording, ReadError> {
        Recording::with_lines(file, Lines::open(file))
    }

    /// Reads a recording from somewhere else; `file` is its name in errors.
    ///
    /// # Errors
    /// As [`open`](Recording::open).
    pub fn from_reader(
        file: &Path,
        source: impl Read + Send + 'static,
    ) -> Result<Recording, ReadError> {
        Recording::with_lines(file, Lines::new(source).map_err(Problem::Io))
    }

    fn with_lines(file: &Path, lines: Result<Lines, Problem>) -> Result<Recording, ReadError> {
        let at = |line: u64| move |problem| error(file, line, problem);
        let mut lines = lines.map_err(at(0))?;
        let first = first_line(&mut lines).map_err(at(1))?;
        let (nrec, body) = parse_header(&first).map_err(at(1))?;
        Ok(Recording {
            file: file.to_owned(),
            lines,
            nrec,
            body,
        })
    }

    /// The file's name.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// [`DECISIONS`], or the name of the kind of arithmetic.
    pub fn kind(&self) -> &'static str {
        match &self.body {
            Body::Decisions(_) => DECISIONS,
            Body::Arithmetic(kind, _) => kind.name,
        }
    }

    /// Gives every record to `take`, until the end (true) or until `stop` says so (false).
    ///
    /// # Errors
    /// The first that reading or `take` meets, with its place.
    pub(crate) fn each(
        &mut self,
        stop: &dyn Fn() -> bool,
        mut take: impl FnMut(&Body, Line<'_>) -> Result<(), Problem>,
    ) -> Result<bool, ReadError> {
        let Recording {
            file,
            lines,
            nrec,
            body,
        } = self;
        let mut records = 0;
        while !stop() {
            let number = lines.number() + 1;
            let at = |problem| error(file, number, problem);
            let Some(text) = lines.next_line().map_err(at)? else {
                if records < *nrec {
                    return Err(at(Problem::FewRecords {
                        found: records,
                        expected: *nrec,
                    }));
                }
                return Ok(true);
            };
            records += 1;
            if records > *nrec {
                return Err(at(Problem::ManyRecords(*nrec)));
            }
            take(body, Line { number, text }).map_err(at)?;
        }
        Ok(false)
    }
}

fn error(file: &Path, line: u64, problem: Problem) -> ReadError {
    ReadError {
        file: file.to_owned(),
        line,
        problem,
    }
}

fn first_line(lines: &mut Lines) -> Result<Vec<u8>, Problem> {
    let line = lines.next_line()?;
    line.map(<[u8]>::to_vec).ok_or(Problem::Empty)
}

fn parse_header(line: &[u8]) -> Result<(u64, Body), Problem> {
    let preamble = Preamble::parse(line)?;
    let body = match preamble.contents()? {
        Contents::Decisions => Body::Decisions(Box::new(Machine::parse(&preamble, line)?)),
        Contents::Arithmetic(name) => {
            let kind = kinds::find(name);
            let kind = kind.ok_or_else(|| Problem::UnknownKind(name.to_owned()))?;
            Body::Arithmetic(kind, Header::parse(&preamble, line)?)
        }
    };
    Ok((preamble.nrec, body))
}
