//! Where results go.

use anyhow::{Context as _, bail};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Standard output or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, replaced in one step.
    File(PathBuf),
    /// A device or a pipe, which is written to: to replace it would destroy it.
    Stream(PathBuf),
}

impl Output {
    /// Standard output, or a file that can be made: a long simulation should not end in a path that
    /// could never be written. A link stays, and what it leads to is written.
    ///
    /// # Errors
    /// If the path is a folder, or no file can be made in its folder.
    pub fn to(path: Option<PathBuf>) -> anyhow::Result<Output> {
        let Some(path) = path else {
            return Ok(Output::Stdout);
        };
        let cannot = || format!("cannot write {}", path.display());
        let path = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => fs::canonicalize(&path).with_context(cannot)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(cannot);
            }
            _ => path.clone(),
        };
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => bail!("cannot write {}: it is a folder", path.display()),
            Ok(found) if !found.is_file() => return Ok(Output::Stream(path)),
            _ => {}
        }
        if !folder_of(&path).is_dir() {
            bail!("cannot write {}: its folder does not exist", path.display());
        }
        beside(&path).with_context(|| format!("cannot write {}", path.display()))?;
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
            Output::Stream(path) => {
                pour(path, text).with_context(|| format!("cannot write {}", path.display()))
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
    unless_gone(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

fn pour(path: &Path, text: &str) -> io::Result<()> {
    let mut stream = fs::OpenOptions::new().write(true).open(path)?;
    unless_gone(stream.write_all(text.as_bytes()))
}

fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// A file of its own in the folder of the path.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wakelab-").suffix(".tmp");
    // As any new file is made; the process's umask applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder_of(path))
}

/// Written beside and renamed, so that a reader never sees half of it. Who may read a file that was
/// there stays as it is.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = beside(path)?;
    if let Ok(found) = fs::metadata(path) {
        file.as_file().set_permissions(found.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let long = folder.path().join("x".repeat(300));
        let refused = Output::to(Some(long)).unwrap_err();
        assert!(format!("{refused:#}").starts_with("cannot write "));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(
            Output::to(Some("out.json".into())).unwrap(),
            Output::File("out.json".into())
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_permissions_with_them() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [target, link, lost] = ["target", "link", "lost"].map(|name| folder.path().join(name));
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("target", &link).unwrap();
        symlink("nowhere", &lost).unwrap();
        Output::to(Some(link.clone()))
            .unwrap()
            .write("after")
            .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(Output::to(Some(lost)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let output = Output::to(Some(path.clone())).unwrap();
        let reader = path.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(reader).unwrap());
        output.write("text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    }
}
