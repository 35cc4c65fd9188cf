//! What can be wrong with a recording, and where.

use std::io;
use std::path::PathBuf;
use wakelab_machine::{excerpt, excerpt_message};

/// A recording that cannot be read: the file, the line, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {problem}", file.display())]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 before the first could be read.
    pub line: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a line of a recording.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be opened or read. A gzip stream that is cut off shows as an early end.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A gzip stream that ends before its end.
    #[error("the gzip data is cut off")]
    TruncatedGzip,
    /// More than any record is long.
    #[error("the line is longer than {0} bytes")]
    LongLine(u64),
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    Json(String),
    /// JSON, but a field is missing, or not what it should be.
    #[error("{place}: {what}")]
    Field {
        /// Where in the line, such as `field 'cpus[3].doms[0].lvl'`, or `the record` if a field of
        /// that is missing.
        place: String,
        /// What was found and what was expected.
        what: String,
    },
    /// A value that no recording can have.
    #[error("field '{field}': {found} where {expected} was expected")]
    Value {
        /// The field.
        field: String,
        /// What it has.
        found: String,
        /// What it could have.
        expected: String,
    },
    /// A recording has a header and so many records as it says.
    #[error("the file ends after {found} of {expected} records")]
    FewRecords {
        /// Records read.
        found: u64,
        /// Records that the header tells.
        expected: u64,
    },
    /// More records than the header says.
    #[error("more than the {0} records that the header tells")]
    ManyRecords(u64),
    /// Nothing in it.
    #[error("the file has no header")]
    Empty,
    /// A schema that is not read here.
    #[error("unknown schema version {found}; known are {known}")]
    Schema {
        /// The version.
        found: u64,
        /// Versions known.
        known: &'static str,
    },
    /// A recording of functions that are not compared.
    #[error("the model has no comparison for records of kind '{}'", excerpt(.0))]
    UnknownKind(String),
}

impl Problem {
    /// What serde found wrong, at this path.
    pub(crate) fn json(path: &str, error: &serde_json::Error) -> Problem {
        // The line is one of the file's, which the caller names: only the column says more.
        let text =
            excerpt_message(&error.to_string()).replace(" at line 1 column ", ", at column ");
        if error.classify() != serde_json::error::Category::Data {
            return Problem::Json(text);
        }
        Problem::Field {
            place: match path {
                "." => "the record".to_owned(),
                path => format!("field '{}'", excerpt(path)),
            },
            what: text,
        }
    }

    /// A value that is not what was expected.
    pub(crate) fn value(
        field: impl Into<String>,
        found: impl ToString,
        expected: impl Into<String>,
    ) -> Problem {
        Problem::Value {
            field: field.into(),
            found: excerpt(&found.to_string()),
            expected: expected.into(),
        }
    }
}
