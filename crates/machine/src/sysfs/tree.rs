//! Reading single files of the tree, and saying what is wrong with them.

use super::archive::Archive;
use crate::error::MachineError;
use crate::excerpt::excerpt;
use crate::ids::CpuId;
use crate::mask::{CpuListError, CpuMask};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most idle states looked for (the kernel's `CPUIDLE_STATE_MAX` is 10).
pub(super) const STATES_MAX: usize = 16;
/// The most cache indices looked for.
pub(super) const CACHES_MAX: usize = 16;
/// The largest file that is read: a file of sysfs has at most a page, a cpulist a little more.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 16;

/// A sysfs tree; paths are relative to its `devices/system`.
pub(super) enum Tree {
    /// In directories.
    Directory(PathBuf),
    /// In memory.
    Archive(Archive),
}

impl Tree {
    /// The tree below `root`, which is a `/sys`, or a directory with a `sys` in it.
    pub fn new(root: &Path) -> Tree {
        let within = root.join("sys/devices/system");
        Tree::Directory(if within.is_dir() {
            within
        } else {
            root.join("devices/system")
        })
    }

    pub fn exists(&self, path: &str) -> bool {
        match self {
            Tree::Directory(system) => system.join(path).exists(),
            Tree::Archive(archive) => archive.exists(path),
        }
    }

    fn name(&self, path: &str) -> String {
        match self {
            Tree::Directory(system) => system.join(path).display().to_string(),
            Tree::Archive(archive) => archive.name(path),
        }
    }

    /// The error that the word should not be in the file.
    pub fn wrong(&self, path: &str, word: &str, expected: &str) -> MachineError {
        MachineError::Sysfs {
            file: self.name(path),
            word: excerpt(word),
            expected: expected.to_owned(),
        }
    }

    /// The file's text without the blanks around it; none if there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>, MachineError> {
        let bytes = match self {
            Tree::Directory(system) => read_file(&system.join(path)),
            Tree::Archive(archive) => Ok(archive.get(path).map(<[u8]>::to_vec)),
        };
        let text = bytes.map_err(|error| error.to_string()).and_then(|bytes| {
            let text = bytes.map(String::from_utf8).transpose();
            text.map_err(|_| "no text".to_owned())
        });
        match text {
            // Copies can have a zero behind the text.
            Ok(text) => Ok(text.map(|text| {
                let end = text.find('\0').unwrap_or(text.len());
                text[..end].trim().to_owned()
            })),
            Err(message) => Err(MachineError::Read {
                file: self.name(path),
                message,
            }),
        }
    }

    pub fn cpulist(&self, path: &str) -> Result<Option<CpuMask>, MachineError> {
        self.cpus(path, CpuMask::from_cpulist)
    }

    /// The CPUs of the first of these files that tells any, with its path: cpulists, whose names end
    /// in `list`, and bit masks, which are all that kernels before 2.6.26 have. A file that has the
    /// `member` in it goes before one that has not.
    pub fn cpu_set(
        &self,
        paths: &[String],
        member: Option<CpuId>,
    ) -> Result<Option<(String, CpuMask)>, MachineError> {
        let mut first = None;
        for path in paths {
            let read = if path.ends_with("list") {
                CpuMask::from_cpulist
            } else {
                CpuMask::from_hex_words
            };
            let Some(mask) = self.cpus(path, read)?.filter(|mask| !mask.is_empty()) else {
                continue;
            };
            if member.is_none_or(|cpu| mask.contains(cpu)) {
                return Ok(Some((path.clone(), mask)));
            }
            first = first.or(Some((path.clone(), mask)));
        }
        Ok(first)
    }

    fn cpus(
        &self,
        path: &str,
        read: impl Fn(&str) -> Result<CpuMask, CpuListError>,
    ) -> Result<Option<CpuMask>, MachineError> {
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        let mask = read(&text).map_err(|source| MachineError::CpuList {
            file: self.name(path),
            source,
        })?;
        Ok(Some(mask))
    }

    /// A number that is not negative.
    pub fn number(&self, path: &str) -> Result<Option<u64>, MachineError> {
        self.parsed(path, "a number of at most 10^9", |word| {
            word.parse().ok().filter(|&number| number <= 1_000_000_000)
        })
    }

    /// An identifier, which is -1 where the firmware tells none.
    pub fn id(&self, path: &str) -> Result<Option<i32>, MachineError> {
        self.parsed(path, "a number", |word| word.parse().ok())
    }

    fn parsed<T>(
        &self,
        path: &str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, MachineError> {
        // A copied tree has an empty file where the kernel refused to be read.
        let Some(text) = self.text(path)?.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        match parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(path, &text, expected)),
        }
    }

    /// The numbers N of the directories `{prefix}N` in a directory, ascending.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Result<Vec<u32>, MachineError> {
        let names = match self {
            Tree::Archive(archive) => Ok(archive.names(directory)),
            Tree::Directory(system) => names(&system.join(directory)),
        };
        let names = names.map_err(|error| MachineError::Read {
            file: self.name(directory),
            message: error.to_string(),
        })?;
        let number = |name: &String| name.strip_prefix(prefix)?.parse::<u32>().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The file's bytes; none if there is no such file.
fn read_file(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > FILE_BYTES_MAX => Err(std::io::Error::other(format!(
            "larger than {FILE_BYTES_MAX} bytes, so no file of sysfs"
        ))),
        Ok(_) => Ok(Some(bytes)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names in a directory; none if there is no such directory.
fn names(directory: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name =
        |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    Ok(entries.filter_map(name).collect())
}
