//! Files that appear whole or not at all.
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct SystemError {
    /// What was tried.
    pub action: Cow<'static, str>,
    /// What the system said.
    pub source: io::Error,
}

impl SystemError {
    /// The error of an action.
    pub(crate) fn of(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { action: action.into(), source }
    }
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refused.
    #[error(transparent)]
    System(#[from] SystemError),
    /// No file can be written so.
    #[error("cannot be written: {why}")]
    Unwritable {
        /// Why not.
        why: &'static str,
    },
}

/// Writes `path` through `fill`: under a temporary name in the same folder, flushed to the device, then renamed. If
/// anything fails, a file that was at `path` before is still there as it was, and the temporary one is gone.
pub fn write<E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    hidden(path, "")?;
    let Created { temporary, file, .. } = create(path).map_err(WriteError::from)?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let filled = fill(&mut writer);
    // Taken apart by hand: dropping the writer would try once more to write what could not be written.
    let (file, rest) = writer.into_parts();
    filled?;
    let rest = rest.map_err(|_| WriteError::Unwritable { why: "an earlier write panicked" })?;
    Ok(finish(path, temporary, file, &rest)?)
}

/// Writes the rest of a file and gives it its name.
fn finish(path: &Path, temporary: Temporary, file: File, rest: &[u8]) -> Result<(), WriteError> {
    (&file).write_all(rest).map_err(SystemError::of("write"))?;
    file.sync_all().map_err(SystemError::of("flush to the device"))?;
    drop(file);
    Ok(temporary.rename(path)?)
}

/// A temporary file just made.
pub(crate) struct Created {
    /// What tells its name from that of others.
    pub suffix: String,
    pub temporary: Temporary,
    pub file: File,
}

/// A temporary file for `path`, empty.
pub(crate) fn create(path: &Path) -> Result<Created, SystemError> {
    let new = |hidden: &Path| OpenOptions::new().write(true).create_new(true).open(hidden);
    let (suffix, temporary, file) = create_by(path, new).map_err(SystemError::of("create a file in its folder"))?;
    Ok(Created { suffix, temporary, file })
}

/// A new file next to `path` that `make` makes, under a name that no other thread or process of this machine has, nor one
/// that was killed: in a container, numbers of processes begin anew.
fn create_by<F>(path: &Path, make: impl Fn(&Path) -> io::Result<F>) -> io::Result<(String, Temporary, F)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let suffix = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let hidden = hidden(path, &suffix).map_err(|problem| io::Error::other(problem.to_string()))?;
        match make(&hidden) {
            Ok(file) => return Ok((suffix, Temporary(hidden), file)),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
}

/// Removes what writers that were killed left in a folder, of files that are `meant`. Nobody may be writing one.
pub fn remove_left(folder: &Path, meant: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let hidden = entry.file_name();
        let parts = hidden.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.'));
        let Some((name, suffix)) = parts else { continue };
        if meant(name) && suffix.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The temporary name next to `path`.
pub(crate) fn hidden(path: &Path, suffix: &str) -> Result<PathBuf, WriteError> {
    let name = path.file_name().ok_or(WriteError::Unwritable { why: "the path names no file" })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{suffix}.part"));
    Ok(path.with_file_name(hidden))
}

/// A file that is removed when this is dropped.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    /// Gives the finished file its name.
    pub fn rename(self, path: &Path) -> Result<(), SystemError> {
        fs::rename(&self.0, path).map_err(SystemError::of("rename the finished file"))?;
        sync_folder(path);
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing more can be done if this fails; the error that led here is the one to report.
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the new name itself survive a power failure, where the system allows it.
fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ferrite-atomic-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A writer of some bytes.
    fn text(bytes: &[u8]) -> impl FnOnce(&mut BufWriter<File>) -> Result<(), WriteError> {
        move |writer| Ok(writer.write_all(bytes).map_err(SystemError::of("write"))?)
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = folder("full");
        let path = folder.join("field");
        fs::write(&path, "old").unwrap();
        let result = write(&path, |w| {
            w.write_all(&vec![1; 3 << 20]).unwrap();
            Err(WriteError::from(SystemError::of("write")(io::Error::from(io::ErrorKind::StorageFull))))
        });
        assert!(result.unwrap_err().to_string().contains("cannot write"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        write(&path, text(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_killed_writers_left_is_in_nobodys_way() {
        let folder = folder("left");
        let path = folder.join("field.0");
        // Names that this process comes to next, as if one of its number had been killed.
        for number in 0..1000 {
            fs::write(hidden(&path, &format!("{}-{number}", std::process::id())).unwrap(), "half").unwrap();
        }
        write(&path, text(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let others = [".field.0.part", ".field.1.7-7.part", ".field.0.7-x.part", "field.0.7-7.part", ".field.0.7-7"];
        others.iter().for_each(|name| fs::write(folder.join(name), "another's").unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1001 + others.len());
        remove_left(&folder, |name| name == "field.0").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1 + others.len());
        assert!(others.iter().all(|name| folder.join(name).exists()));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_before_the_first_byte() {
        let folder = folder("missing");
        let missing = folder.join("nowhere").join("field");
        assert!(write(&missing, text(b"")).unwrap_err().to_string().contains("create a file in its folder"));
        // A folder stands where the file should: the rename fails, the temporary file goes.
        let taken = folder.join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write(&taken, text(b"")).unwrap_err().to_string().contains("rename"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
