//! Files that appear whole or not at all.
//!
//! Symbolic links are followed, so that the file they name is written and the link stays; a link to a file that is not there
//! makes it. A file that is replaced hands on its mode, and its owner as far as that is allowed. What is no file, such as a
//! pipe, a terminal or one of the process's own open files under `/dev/fd`, is written into as the bytes come.
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Where what is written to a path goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To a file, which is there or not: the path behind all symbolic links.
    File(PathBuf),
    /// Into something that is no file by itself, as it comes.
    Stream(PathBuf),
}

impl Destination {
    /// Of a path. A folder counts as a file, which it cannot be replaced by.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut place = path.to_owned();
        // As many links as systems follow.
        for _ in 0..40 {
            let Ok(link) = fs::symlink_metadata(&place) else { return Ok(Self::File(place)) };
            if !link.is_symlink() {
                let is_file = link.is_file() || link.is_dir();
                return Ok(if is_file { Self::File(place) } else { Self::Stream(path.to_owned()) });
            }
            let folder = folder_of(&place);
            // Open files of a process, which look like links to where they were opened.
            if fs::canonicalize(folder).is_ok_and(|real| real.starts_with("/proc") && real.ends_with("fd")) {
                return Ok(Self::Stream(path.to_owned()));
            }
            place = folder.join(fs::read_link(&place)?);
        }
        Err(io::Error::other("it is a chain of symbolic links without an end"))
    }
    /// Whether what is written comes out at standard output.
    pub fn is_stdout(&self) -> bool {
        let Self::Stream(path) = self else { return false };
        is_same(path, Path::new("/proc/self/fd/1"))
    }
}

/// Whether two paths lead to one file, or to one of anything else.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).ok().map(|there| (there.dev(), there.ino()));
    id(one).is_some_and(|found| Some(found) == id(other))
}

/// Opens what is no file by itself, to add to what came before.
pub(crate) fn open_stream(path: &Path) -> Result<File, SystemError> {
    let own = |number: &str| is_same(path, &Path::new("/proc/self/fd").join(number));
    let opened = if own("1") {
        // The same open file, with the same place in it; sockets cannot be opened by a name either.
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    } else if own("2") {
        io::stderr().as_fd().try_clone_to_owned().map(File::from)
    } else {
        OpenOptions::new().append(true).open(path)
    };
    opened.map_err(SystemError::of("open for writing"))
}

/// The folder of a file, as a path that leads there.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes `path` through `fill`: under a temporary name in the same folder, flushed to the device, then renamed. If
/// anything fails, a file that was at `path` before is still there as it was, and the temporary one is gone. What is no
/// file, see [`Destination`], is written into.
pub fn write<E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    hidden(path, "")?;
    let destination = Destination::of(path).map_err(SystemError::of("follow its links")).map_err(WriteError::from)?;
    let path = match destination {
        Destination::File(path) => path,
        Destination::Stream(path) => {
            let mut writer = BufWriter::with_capacity(1 << 20, open_stream(&path).map_err(WriteError::from)?);
            fill(&mut writer)?;
            writer.flush().map_err(SystemError::of("write")).map_err(WriteError::from)?;
            return Ok(());
        }
    };
    let Created { temporary, file } = create(&path).map_err(WriteError::from)?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let filled = fill(&mut writer);
    // Taken apart by hand: dropping the writer would try once more to write what could not be written.
    let (file, rest) = writer.into_parts();
    filled?;
    let rest = rest.map_err(|_| WriteError::Unwritable { why: "an earlier write panicked" })?;
    Ok(finish(&path, temporary, file, &rest)?)
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
    pub temporary: Temporary,
    pub file: File,
}

/// A temporary file for `path`, empty, with the mode and, where that is allowed, the owner of what is there.
pub(crate) fn create(path: &Path) -> Result<Created, SystemError> {
    let new = |hidden: &Path| OpenOptions::new().write(true).create_new(true).open(hidden);
    let (temporary, file) = create_by(path, new).map_err(SystemError::of("create a file in its folder"))?;
    if let Ok(there) = fs::metadata(path)
        && there.is_file()
    {
        hand_on(&there, &file).map_err(SystemError::of("keep the mode of the file that is there"))?;
    }
    Ok(Created { temporary, file })
}

/// Gives a new file the mode and owner of another one.
fn hand_on(there: &Metadata, file: &File) -> io::Result<()> {
    let made = file.metadata()?;
    let (uid, gid) = (there.uid(), there.gid());
    if (made.uid(), made.gid()) != (uid, gid) {
        // Only root gives files away; the group may be one of ours.
        let _ = fchown(file, Some(uid), Some(gid)).or_else(|_| fchown(file, None, Some(gid)));
    }
    // Last: a new owner takes bits of the mode away. A file system without modes has none to keep.
    if made.mode() == there.mode() { Ok(()) } else { file.set_permissions(there.permissions()) }
}

/// Whether a file can be made beside `path`.
pub fn probe(path: &Path) -> io::Result<()> {
    let new = |hidden: &Path| OpenOptions::new().write(true).create_new(true).open(hidden);
    create_by(path, new).map(|_| ())
}

/// Temporary files of this process.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as this is there, the process has no temporary file, and whoever wants to make or rename one waits.
pub struct Closing(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Removes all temporary files, for a process that is about to end, whatever its other threads do.
pub fn close() -> Closing {
    let mut closing = Closing(temporaries());
    for hidden in std::mem::take(&mut *closing.0) {
        let _ = fs::remove_file(hidden);
    }
    closing
}

/// A new file next to `path` that `make` makes, under a name that no other thread or process of this machine has, nor one
/// that was killed: in a container, numbers of processes begin anew.
fn create_by<F>(path: &Path, make: impl Fn(&Path) -> io::Result<F>) -> io::Result<(Temporary, F)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let suffix = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let hidden = hidden(path, &suffix).map_err(|problem| io::Error::other(problem.to_string()))?;
        let mut all = temporaries();
        match make(&hidden) {
            Ok(file) => {
                all.insert(hidden.clone());
                return Ok((Temporary(hidden), file));
            }
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
#[derive(Debug)]
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// Gives the finished file its name.
    pub fn rename(self, path: &Path) -> Result<(), SystemError> {
        {
            let mut all = temporaries();
            fs::rename(&self.0, path).map_err(SystemError::of("rename the finished file"))?;
            all.remove(&self.0);
        }
        sync_folder(path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Of one that was renamed, the name is free for others.
        if temporaries().remove(&self.0) {
            // Nothing more can be done if this fails; the error that led here is the one to report.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Makes the new name itself survive a power failure, where the system allows it.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
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

    /// Links stay links, and files keep their mode.
    #[test]
    fn links_are_followed_and_modes_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder("links");
        let [file, link, chain, dangling] = ["file", "link", "chain", "dangling"].map(|name| folder.join(name));
        fs::create_dir_all(folder.join("inside")).unwrap();
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink(&link, &chain).unwrap();
        symlink("inside/new", &dangling).unwrap();
        for (number, name) in [&file, &link, &chain].into_iter().enumerate() {
            write(name, text(format!("new {number}").as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("new {number}"));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o640);
        }
        write(&dangling, text(b"made")).unwrap();
        assert_eq!(fs::read_to_string(folder.join("inside/new")).unwrap(), "made");
        assert!([&link, &chain, &dangling].iter().all(|link| fs::symlink_metadata(link).unwrap().is_symlink()));
        let endless = folder.join("endless");
        symlink("endless", &endless).unwrap();
        assert!(write(&endless, text(b"")).unwrap_err().to_string().contains("without an end"));
        // Nothing was left behind.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// What is no file stays what it is.
    #[test]
    fn pipes_are_written_into() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/dev/fd/{}", writer.as_raw_fd()));
        assert_eq!(Destination::of(&path).unwrap(), Destination::Stream(path.clone()));
        write(&path, text(b"through the pipe")).unwrap();
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "through the pipe");
        let device = Path::new("/dev/null");
        write(device, text(b"nothing")).unwrap();
        assert!(!fs::metadata(device).unwrap().is_file());
        // A file that is open already is added to.
        let folder = folder("open");
        let mut file = File::create(folder.join("log")).unwrap();
        file.write_all(b"before, ").unwrap();
        write(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), text(b"after")).unwrap();
        assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "before, after");
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
