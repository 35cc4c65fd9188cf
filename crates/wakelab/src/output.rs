//! Where results go.

use anyhow::{Context as _, bail};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Standard output or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, replaced in one step.
    File(PathBuf),
}

impl Output {
    /// Standard output, or a file in a folder that exists: a long simulation should not end in a
    /// path that could never be written.
    ///
    /// # Errors
    /// If the path is a folder or its folder does not exist.
    pub fn to(path: Option<PathBuf>) -> anyhow::Result<Output> {
        let Some(path) = path else {
            return Ok(Output::Stdout);
        };
        if path.is_dir() {
            bail!("cannot write {}: it is a folder", path.display());
        }
        if !folder_of(&path).is_dir() {
            bail!("cannot write {}: its folder does not exist", path.display());
        }
        Ok(Output::File(path))
    }

    /// Writes a whole result. A reader of standard output that has gone away wants no more: that is
    /// no error.
    ///
    /// # Errors
    /// If it cannot be written; a file then is as it was.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Output::Stdout => print(text).context("cannot write to standard output"),
            Output::File(path) => {
                replace(path, text).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Written beside and renamed, so that a reader never sees half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wakelab-").suffix(".tmp");
    // As any new file is made; the process's umask applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder_of(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.json");
        let output = Output::to(Some(path.clone())).unwrap();
        output.write("first, and longer").unwrap();
        output.write("second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn paths_that_cannot_be_written_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Output::to(Some(folder.path().to_owned())).is_err());
        assert!(Output::to(Some(folder.path().join("missing/out.json"))).is_err());
        assert_eq!(
            Output::to(Some("out.json".into())).unwrap(),
            Output::File("out.json".into())
        );
    }
}
