//! The lines of a recording, gzipped or plain, one at a time.

use crate::error::Problem;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// No record is nearly so long; a small gzip file can claim to hold anything.
const MAX_LINE: u64 = 16 << 20;

/// The first two bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads lines and counts them.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    text: Vec<u8>,
    number: u64,
}

impl Lines {
    /// The lines of a file.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> Result<Lines, Problem> {
        Ok(Lines::new(File::open(path)?)?)
    }

    /// The lines of anything that can be read; that it is gzipped is seen from how it begins.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(source: impl Read + Send + 'static) -> io::Result<Lines> {
        let mut source = BufReader::new(source);
        let gzip = source.fill_buf()?.starts_with(&GZIP_MAGIC);
        Ok(Lines {
            reader: if gzip {
                Box::new(BufReader::new(MultiGzDecoder::new(source)))
            } else {
                Box::new(source)
            },
            text: Vec::new(),
            number: 0,
        })
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end, or none after the last.
    ///
    /// # Errors
    /// If the file ends early or cannot be read; [`number`](Lines::number) then is the line's.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Problem> {
        self.number += 1;
        self.text.clear();
        let mut limited = self.reader.by_ref().take(MAX_LINE + 1);
        if let Err(error) = limited.read_until(b'\n', &mut self.text) {
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => Problem::TruncatedGzip,
                _ => Problem::Io(error),
            });
        }
        if self.text.len() as u64 > MAX_LINE {
            return Err(Problem::LongLine(MAX_LINE));
        }
        if self.text.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.text.trim_ascii_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::{Cursor, Write as _};

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn all(bytes: Vec<u8>) -> Result<Vec<String>, Problem> {
        let mut lines = Lines::new(Cursor::new(bytes)).unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.next_line()? {
            read.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(lines.number(), read.len() as u64 + 1);
        Ok(read)
    }

    #[test]
    fn plain_and_gzipped_files_have_the_same_lines() {
        let text = b"one\ntwo\r\nthree";
        for bytes in [text.to_vec(), gzipped(text)] {
            assert_eq!(all(bytes).unwrap(), ["one", "two", "three"]);
        }
    }

    #[test]
    fn a_gzip_file_that_is_cut_off_anywhere_is_an_error() {
        let whole = gzipped(b"one\ntwo\n");
        for len in 2..whole.len() {
            let cut = all(whole[..len].to_vec());
            assert!(matches!(cut, Err(Problem::TruncatedGzip)), "{len}: {cut:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let cut = all(gzipped(&vec![b'x'; MAX_LINE as usize + 1]));
        assert!(matches!(cut, Err(Problem::LongLine(_))), "{cut:?}");
    }
}
