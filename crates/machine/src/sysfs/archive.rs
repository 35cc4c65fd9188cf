//! A sysfs tree in a tar archive, held in memory: nothing is ever written to a file system, so no
//! name in it can lead anywhere. Links are not followed; the files that are read are none.

use super::tree::FILE_BYTES_MAX;
use crate::error::MachineError;
use crate::excerpt::{excerpt, excerpt_message};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Component, Path};

/// The most bytes that an archive may have when unpacked; trees of hundreds of CPUs have some 20 MB.
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 1 << 29;
/// The most entries that an archive may have.
const ENTRIES_MAX: usize = 1 << 20;
/// The most bytes of files that are kept.
const KEPT_BYTES_MAX: usize = 1 << 27;
/// What is looked for in names.
const SYSTEM: &str = "devices/system/";

/// The files below one `devices/system/` of an archive.
pub(super) struct Archive {
    /// The archive's name, and the place in it.
    name: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Reads a tar archive that is not compressed; `name` is what errors call it.
    ///
    /// # Errors
    /// If it is no tar archive, has a name with `..` in it, is too large, or has no
    /// `devices/system/cpu` in it.
    pub fn read(reader: impl Read, name: &str) -> Result<Archive, MachineError> {
        let mut roots = BTreeMap::<String, BTreeMap<String, Vec<u8>>>::new();
        let mut archive = tar::Archive::new(reader);
        let wrong = |message: String| MachineError::Read {
            file: name.to_owned(),
            message,
        };
        let mut kept = 0;
        let entries = archive
            .entries()
            .map_err(|error| wrong(broken(0, &error)))?;
        for (count, entry) in entries.enumerate() {
            let entry = entry.map_err(|error| wrong(broken(count, &error)))?;
            let full = plain_path(&entry.path_bytes());
            let path = full.as_ref().unwrap_or_else(|bad| bad);
            let shown = excerpt(path);
            if full.is_err() {
                return Err(wrong(format!("'{shown}': expected a name without '..'")));
            }
            if count >= ENTRIES_MAX {
                return Err(wrong(format!(
                    "'{shown}': expected at most {ENTRIES_MAX} entries"
                )));
            }
            let Some((root, file)) = place(path) else {
                continue;
            };
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let size = entry.size();
            if size > FILE_BYTES_MAX {
                return Err(wrong(format!(
                    "'{shown}': {size} bytes: expected at most {FILE_BYTES_MAX}"
                )));
            }
            let mut bytes = Vec::new();
            let read = entry.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
            read.map_err(|error| wrong(format!("'{shown}': {error}")))?;
            kept += file.len() + bytes.len();
            if kept > KEPT_BYTES_MAX {
                return Err(wrong(format!(
                    "'{shown}': expected at most {KEPT_BYTES_MAX} bytes of files below {SYSTEM}"
                )));
            }
            let files = roots.entry(root.to_owned()).or_default();
            files.insert(file.to_owned(), bytes);
        }
        let mut with_cpus = roots
            .into_iter()
            .filter(|(_, files)| files.keys().any(|file| file.starts_with("cpu/")));
        // Roots are in the order of their names, so the outermost comes first.
        let (root, files) = with_cpus
            .next()
            .ok_or_else(|| wrong("expected a sysfs tree with devices/system/cpu in it".into()))?;
        Ok(Archive {
            name: format!("{name}: {root}{SYSTEM}"),
            files,
        })
    }

    pub fn name(&self, path: &str) -> String {
        format!("{}{path}", self.name)
    }

    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Whether there is such a file, or a directory with files in it.
    pub fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.below(path).next().is_some()
    }

    /// The names in a directory.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let start = directory.len() + 1;
        let name = |path: &String| path[start..].split('/').next().map(str::to_owned);
        let names: BTreeSet<String> = self.below(directory).filter_map(name).collect();
        names.into_iter().collect()
    }

    fn below(&self, directory: &str) -> impl Iterator<Item = &String> {
        let prefix = format!("{directory}/");
        let from = self.files.range(prefix.clone()..);
        from.map(|(path, _)| path)
            .take_while(move |path| path.starts_with(&prefix))
    }
}

/// What is wrong with the entry after so many. Of a header that is none the tar reader repeats what is
/// there instead, which may be anything and tells nobody what to do.
fn broken(entries: usize, error: &std::io::Error) -> String {
    let error = error.to_string();
    let header = error.contains(" when getting ") || error.contains("checksum mismatch");
    match (header, entries) {
        (true, 0) => "expected a tar archive of a sysfs tree or XML of hwloc".to_owned(),
        (true, _) => format!("tar entry {}: expected a header of tar", entries + 1),
        (false, _) => format!("no tar archive of sysfs: {}", excerpt_message(&error)),
    }
}

/// The path without `.` and leading slashes, or the path that has `..` in it.
fn plain_path(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = Vec::new();
    for component in Path::new(&*text).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            Component::ParentDir => return Err(text.into_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(parts.join("/"))
}

/// What comes before `devices/system/` in a path, and what comes after.
fn place(path: &str) -> Option<(&str, &str)> {
    let start = if path.starts_with(SYSTEM) {
        0
    } else {
        path.find("/devices/system/")? + 1
    };
    let (root, rest) = path.split_at(start);
    let file = &rest[SYSTEM.len()..];
    let wanted = file.starts_with("cpu/") || file.starts_with("node/");
    wanted.then_some((root, file))
}
