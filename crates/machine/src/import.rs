//! Reading a machine from wherever it was described: a sysfs tree, a tar archive of one, an XML file
//! of hwloc, or a synthetic string of hwloc's.
//!
//! | what | from hwloc | where that is missing |
//! | --- | --- | --- |
//! | CPUs | PUs, of version 1 those in `online_cpuset` | error |
//! | core, die, package | the object of that type | each CPU is a core, one package, a die a package |
//! | cluster | a Group of subtype Cluster, on x86 else the L2, if below the LLC | no clusters |
//! | LLC | the highest cache that holds data and all of the core | all CPUs of the package and node |
//! | node | the NUMANode with the fewest CPUs, of these the first by number | one node |
//! | distance | the latencies between NUMANodes, if a SLIT can hold them | 20 between nodes |
//! | capacity | `LinuxCapacity` of a CPU kind | 1024 |
//! | architecture | `Architecture` | x86 |
//!
//! hwloc tells neither isolated CPUs nor idle states. What [`sysfs`] tells of trees, of
//! numbers and of costs holds here too.
//!
//! Input may come from anyone: an archive is read in memory and writes nothing, names with `..` are
//! refused, and files, trees and numbers have limits.

use crate::error::MachineError;
use crate::layout::Layout;
use crate::mask::CpuMask;
use crate::sysfs::{self, archive::ARCHIVE_BYTES_MAX};
use crate::topology::Machine;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

mod objects;
mod synthetic;
mod xml;

/// The largest XML file that is read.
const XML_BYTES_MAX: u64 = 1 << 26;

/// A machine with what is known of where it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Import {
    /// The file or directory; `synthetic` if the string itself was given.
    pub file: String,
    /// What that is.
    pub format: Format,
    /// The machine's CPUs as the source numbers them; in the machine they are 0, 1 and so on.
    pub cpus: String,
    /// CPUs that the source names but that are not online, or not allowed for who made the file.
    pub offline: String,
    /// What was found and not taken as it is.
    pub notes: Vec<String>,
    /// The machine.
    pub machine: Machine,
}

/// Where a machine comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A sysfs tree in directories.
    SysfsTree,
    /// A sysfs tree in a tar archive.
    SysfsArchive,
    /// XML as hwloc 1 writes it.
    HwlocXml1,
    /// XML as hwloc 2 writes it.
    HwlocXml2,
    /// XML as hwloc 3 writes it.
    HwlocXml3,
    /// A synthetic description as hwloc understands it.
    HwlocSynthetic,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::SysfsTree => "a sysfs tree",
            Format::SysfsArchive => "a sysfs tree in an archive",
            Format::HwlocXml1 => "hwloc XML 1",
            Format::HwlocXml2 => "hwloc XML 2",
            Format::HwlocXml3 => "hwloc XML 3",
            Format::HwlocSynthetic => "a synthetic string",
        }
    }
}

impl Import {
    /// Reads what the word names: a directory, a file, or else a synthetic string.
    ///
    /// # Errors
    /// If there is no such file and the word is no synthetic string, or what is read is not as it
    /// should be; the error names file, place and word.
    pub fn read(word: &str) -> Result<Import, MachineError> {
        let path = Path::new(word);
        if path.is_dir() {
            let name = name_of(path);
            let read = sysfs::read_directory(path, &name, "A sysfs tree")?;
            return Ok(Import::new(word, Format::SysfsTree, read));
        }
        if !path.exists() && is_synthetic(word) {
            return Import::from_synthetic(word);
        }
        match File::open(path) {
            Ok(file) => Import::from_reader(file, word),
            Err(error) => Err(unreadable(word, &error)),
        }
    }

    /// Reads a synthetic string, such as `Package:2 L3Cache:4 Core:8 PU:2`.
    ///
    /// # Errors
    /// If it is none, or has more CPUs than a machine can have.
    pub fn from_synthetic(text: &str) -> Result<Import, MachineError> {
        let objects = synthetic::read(text)?;
        let read = objects.machine("synthetic", "A synthetic machine")?;
        Ok(Import::new("synthetic", Format::HwlocSynthetic, read))
    }

    /// Reads an XML file of hwloc, or a tar archive of a sysfs tree, either perhaps compressed by
    /// gzip or bzip2; `file` is what errors call it.
    ///
    /// # Errors
    /// If it is neither, or what is read is not as it should be.
    pub fn from_reader(reader: impl Read, file: &str) -> Result<Import, MachineError> {
        let broken = |error: io::Error| unreadable(file, &error);
        let mut packed = BufReader::new(reader);
        let unpacked: Box<dyn Read + '_> = match packed.fill_buf().map_err(broken)? {
            [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            [b'B', b'Z', b'h', ..] => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
            _ => Box::new(packed),
        };
        let mut unpacked = BufReader::new(Bounded::new(unpacked, ARCHIVE_BYTES_MAX));
        let start = unpacked.fill_buf().map_err(broken)?;
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
        let name = name_of(Path::new(file));
        if matches!(first, Some(b'<' | 0xef)) {
            let mut bytes = Vec::new();
            let mut bounded = Bounded::new(unpacked, XML_BYTES_MAX);
            bounded.read_to_end(&mut bytes).map_err(broken)?;
            let text = text_of(bytes, file)?;
            let (format, objects) = xml::read(&text, file)?;
            let read = objects.machine(&name, "A machine that hwloc described")?;
            return Ok(Import::new(file, format, read));
        }
        let read = sysfs::read_archive(unpacked, file, &name, "A sysfs tree")?;
        Ok(Import::new(file, Format::SysfsArchive, read))
    }

    fn new(file: &str, format: Format, read: (Machine, Layout)) -> Import {
        let (machine, layout) = read;
        let cpus: CpuMask = layout.numbers.iter().copied().collect();
        Import {
            file: file.to_owned(),
            format,
            cpus: cpus.to_string(),
            offline: layout.offline.to_string(),
            notes: layout.notes,
            machine,
        }
    }

    /// The machine's description, which [`Machine::from_toml`] reads as the same machine, with where
    /// it comes from in comments.
    pub fn to_toml(&self) -> String {
        let mut comments = vec![format!("Read from {}: {}.", self.format.name(), self.file)];
        let last = self.machine.ncpu() - 1;
        if self.cpus != CpuMask::first_n(last + 1).to_string() {
            comments.push(format!("CPUs 0-{last} here are its CPUs {}.", self.cpus));
        }
        if !self.offline.is_empty() {
            comments.push(format!(
                "Left out, as they are not online: {}.",
                self.offline
            ));
        }
        comments.extend(self.notes.iter().map(|note| format!("Note: {note}.")));
        comments.push("Costs were not measured: those of a preset stand in.".to_owned());
        let mut text = String::new();
        for comment in comments {
            text.push_str("# ");
            // A file's name may hold any character; in a comment it must not end the line.
            text.push_str(&without_controls(&comment));
            text.push('\n');
        }
        let machine = Machine {
            name: without_controls(&self.machine.name),
            ..self.machine.clone()
        };
        text + "\n" + &machine.describe()
    }
}

/// The text with its control characters escaped.
fn without_controls(text: &str) -> String {
    let mut plain = String::new();
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Whether the word can be meant as a synthetic string: it tells a type with a count, or counts.
pub fn is_synthetic(word: &str) -> bool {
    word.contains(':') || word.starts_with(|first: char| first.is_ascii_digit() || first == '(')
}

/// The file's name without what tells its format.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut name = &*name;
    for ending in [".gz", ".tgz", ".bz2", ".tbz2", ".tar", ".xml"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    if name.trim().is_empty() {
        "imported"
    } else {
        name
    }
    .to_owned()
}

/// The bytes as the text that they should be; `file` is what errors call them.
///
/// # Errors
/// If they are not UTF-8, with the line at which that begins.
pub fn text_of(bytes: Vec<u8>, file: &str) -> Result<String, MachineError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        MachineError::Read {
            file: format!("{file}:{line}"),
            message: "expected text in UTF-8".to_owned(),
        }
    })
}

fn unreadable(file: &str, error: &io::Error) -> MachineError {
    MachineError::Read {
        file: file.to_owned(),
        message: error.to_string(),
    }
}

/// A reader that fails beyond a number of bytes: a small file can unpack to any size.
struct Bounded<R> {
    inner: R,
    limit: u64,
    left: u64,
}

impl<R> Bounded<R> {
    fn new(inner: R, limit: u64) -> Bounded<R> {
        Bounded {
            inner,
            limit,
            left: limit,
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(format!("expected at most {} bytes, unpacked", self.limit))
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
