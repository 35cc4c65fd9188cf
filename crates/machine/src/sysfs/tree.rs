//! Reading single files of the tree, and saying what is wrong with them.

use crate::error::MachineError;
use crate::mask::CpuMask;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most idle states looked for (the kernel's `CPUIDLE_STATE_MAX` is 10).
pub(super) const STATES_MAX: usize = 16;
/// The most cache indices looked for.
pub(super) const CACHES_MAX: usize = 16;

/// A sysfs tree; paths are relative to its `devices/system`.
pub(super) struct Tree {
    system: PathBuf,
}

impl Tree {
    pub fn new(root: &Path) -> Tree {
        Tree {
            system: root.join("devices/system"),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.system.join(path).exists()
    }

    fn name(&self, path: &str) -> String {
        self.system.join(path).display().to_string()
    }

    /// The error that the word should not be in the file.
    pub fn wrong(&self, path: &str, word: &str, expected: &str) -> MachineError {
        MachineError::Sysfs {
            file: self.name(path),
            word: word.chars().take(64).collect(),
            expected: expected.to_owned(),
        }
    }

    /// The file's text without the blanks around it; none if there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>, MachineError> {
        match std::fs::read_to_string(self.system.join(path)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) => Err(MachineError::Read {
                file: self.name(path),
                message: error.to_string(),
            }),
        }
    }

    pub fn cpulist(&self, path: &str) -> Result<Option<CpuMask>, MachineError> {
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        let mask = CpuMask::from_cpulist(&text).map_err(|source| MachineError::CpuList {
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
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        match parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(self.wrong(path, &text, expected)),
        }
    }

    /// The numbers N of the directories `{prefix}N` in a directory, ascending.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Result<Vec<u32>, MachineError> {
        let entries = match std::fs::read_dir(self.system.join(directory)) {
            Ok(entries) => entries,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => {
                let file = self.name(directory);
                return Err(MachineError::Read {
                    file,
                    message: error.to_string(),
                });
            }
        };
        let number = |name: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| number(entry.ok()?.file_name().to_str()?))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}
