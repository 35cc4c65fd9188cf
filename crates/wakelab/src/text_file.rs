//! Reading files that people write.

use std::fs::File;
use std::io::{self, Read as _};
use wakelab_machine::MachineError;
use wakelab_machine::import::text_of;

/// The largest file taken for a description of a machine or an experiment.
const BYTES_MAX: u64 = 16 << 20;

/// The file's text.
///
/// # Errors
/// If it cannot be read, is far too large, or is no text; the error names the file.
pub fn read(file: &str) -> Result<String, MachineError> {
    let mut bytes = Vec::new();
    let read =
        File::open(file).and_then(|opened| opened.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    let read = read.and_then(|_| {
        let fits = bytes.len() as u64 <= BYTES_MAX;
        let large = || io::Error::other(format!("expected at most {BYTES_MAX} bytes"));
        fits.then_some(()).ok_or_else(large)
    });
    read.map_err(|error| MachineError::Read {
        file: file.to_owned(),
        message: error.to_string(),
    })?;
    text_of(bytes, file)
}
