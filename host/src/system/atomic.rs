//! Files that are written completely or not at all.
//!
//! Symbolic links are followed: the file that they point to is written or created, and the links remain. A file that replaces another one
//! gets the mode of the old file, and its owner if the system allows it. Pipes, devices and open files of the process under `/dev/fd`
//! cannot be replaced, so data is written to them directly.
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Failed operation of the operating system.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct SystemError {
    /// Description of the operation, for the message `cannot …`.
    pub action: Cow<'static, str>,
    /// Error of the operating system.
    pub source: io::Error,
}

impl SystemError {
    /// Returns a function that turns an error of the operating system into the error of this operation.
    pub(crate) fn of(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { action: action.into(), source }
    }
}

/// Reason why a file was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A call of the operating system failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The path cannot name a file.
    #[error("cannot be written: {why}")]
    Unwritable {
        /// Reason why the path cannot name a file.
        why: &'static str,
    },
}

/// Destination of data that is written to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A regular file, which may exist or not. The last component of the path has no symbolic links.
    File(PathBuf),
    /// A pipe, a device or an open file of the process, to which data is written directly.
    Stream(PathBuf),
}

impl Destination {
    /// Returns the destination of a path. A folder counts as a regular file; the attempt to write it fails.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut place = path.to_owned();
        // Linux also follows at most 40 symbolic links.
        for _ in 0..40 {
            let Ok(link) = fs::symlink_metadata(&place) else { return Ok(Self::File(place)) };
            if !link.is_symlink() {
                let is_file = link.is_file() || link.is_dir();
                return Ok(if is_file { Self::File(place) } else { Self::Stream(path.to_owned()) });
            }
            let folder = folder_of(&place);
            // Open files of a process appear in `/proc/…/fd` as links to the paths with which they were opened.
            if fs::canonicalize(folder).is_ok_and(|real| real.starts_with("/proc") && real.ends_with("fd")) {
                return Ok(Self::Stream(path.to_owned()));
            }
            place = place.with_file_name(fs::read_link(&place)?);
        }
        Err(io::Error::other("the symbolic links form a loop"))
    }
    /// Whether the destination is the standard output of the process.
    pub fn is_stdout(&self) -> bool {
        let Self::Stream(path) = self else { return false };
        is_same(path, Path::new("/proc/self/fd/1"))
    }
}

/// Whether two paths lead to the same file, pipe or device: their device and inode numbers are equal.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).ok().map(|there| (there.dev(), there.ino()));
    id(one).is_some_and(|found| Some(found) == id(other))
}

/// Opens a [`Destination::Stream`] for appending.
pub(crate) fn open_stream(path: &Path) -> Result<File, SystemError> {
    let own = |number: &str| is_same(path, &Path::new("/proc/self/fd").join(number));
    let opened = if own("1") {
        // A duplicate of the open file shares its offset. A socket cannot be opened by its name at all.
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    } else if own("2") {
        io::stderr().as_fd().try_clone_to_owned().map(File::from)
    } else {
        OpenOptions::new().append(true).open(path)
    };
    opened.map_err(SystemError::of("open for writing"))
}

/// Returns the folder that contains a file; `.` for a bare name.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file with the content that `fill` produces. The file is written under a temporary name in the same folder, flushed to the
/// storage device, and then renamed. If anything fails, an existing file at `path` remains unchanged, and the temporary file is removed. A
/// [`Destination::Stream`] is written directly.
pub fn write<E: From<WriteError>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    hidden(path, "")?;
    let destination =
        Destination::of(path).map_err(SystemError::of("follow the symbolic links")).map_err(WriteError::from)?;
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
    // The writer is taken apart, because dropping it would repeat a failed write.
    let (file, rest) = writer.into_parts();
    filled?;
    let rest = rest.map_err(|_| WriteError::Unwritable { why: "an earlier write panicked" })?;
    Ok(finish(&path, temporary, file, &rest)?)
}

/// Writes the rest of a file, flushes it to the device, and renames it.
fn finish(path: &Path, temporary: Temporary, file: File, rest: &[u8]) -> Result<(), WriteError> {
    (&file).write_all(rest).map_err(SystemError::of("write"))?;
    file.sync_all().map_err(SystemError::of("flush to the device"))?;
    drop(file);
    Ok(temporary.rename(path)?)
}

/// A new temporary file, open for writing.
pub(crate) struct Created {
    pub temporary: Temporary,
    pub file: File,
}

/// Makes an empty temporary file for `path`. If `path` exists, the new file gets the owner of the existing file if the system allows it.
/// Until it is renamed, it has only permissions that the existing file also has, and its owner can read and write it. Then it gets the mode
/// of the existing file.
pub(crate) fn create(path: &Path) -> Result<Created, SystemError> {
    let new = |hidden: &Path| OpenOptions::new().write(true).create_new(true).open(hidden);
    let (mut temporary, file) =
        create_by(path, new).map_err(SystemError::of("create a temporary file in the same folder"))?;
    // The lock shows to calls of `remove_abandoned` on other machines that the file is in use. Some network file systems cannot lock.
    let _ = file.try_lock();
    if let Ok(existing) = fs::metadata(path)
        && existing.is_file()
    {
        let kept = keep_owner_and_mode(&existing, &file).map_err(SystemError::of("set the mode of a new file"))?;
        temporary.permissions = kept;
    }
    Ok(Created { temporary, file })
}

/// Gives a new file the owner of the existing one. Returns the permissions to set at the end: other processes may still have to open the
/// file for writing, and both a write and a change of owner can clear bits.
fn keep_owner_and_mode(existing: &Metadata, file: &File) -> io::Result<Option<Permissions>> {
    let new = file.metadata()?;
    let (uid, gid) = (existing.uid(), existing.gid());
    let is_given_away = (new.uid(), new.gid()) != (uid, gid)
        // Only root can change the owner, but a user can choose among their groups.
        && fchown(file, Some(uid), Some(gid)).or_else(|_| fchown(file, None, Some(gid))).is_ok();
    // File systems without permissions report the same mode for all files, and may reject a change.
    if new.mode() == existing.mode() && !is_given_away {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(existing.mode() & 0o777 | 0o600))?;
    Ok(Some(existing.permissions()))
}

/// Checks that a file can be created in the folder of `path`.
pub fn probe(path: &Path) -> io::Result<()> {
    let new = |hidden: &Path| OpenOptions::new().write(true).create_new(true).open(hidden);
    create_by(path, new).map(|_| ())
}

/// Paths of the temporary files of this process.
static TEMPORARIES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn temporaries() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard of a process that exits. As long as the guard exists, the process has no temporary files, and threads that create or rename one
/// wait.
pub struct Closing(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Removes all temporary files of a process that is about to exit, even if other threads are still running. Until the returned guard is
/// dropped, no other thread can create a temporary file.
pub fn close() -> Closing {
    let mut closing = Closing(temporaries());
    for hidden in std::mem::take(&mut *closing.0) {
        let _ = fs::remove_file(hidden);
    }
    closing
}

/// Makes a temporary file next to `path`; `make` creates it. No other thread or process of this machine uses the name. A killed process
/// with the same number, as in a container, may have left a file of that name; then the next name is used.
fn create_by<F>(path: &Path, make: impl Fn(&Path) -> io::Result<F>) -> io::Result<(Temporary, F)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let suffix = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let hidden = hidden(path, &suffix).map_err(|problem| io::Error::other(problem.to_string()))?;
        let mut all = temporaries();
        match make(&hidden) {
            Ok(file) => {
                all.insert(hidden.clone());
                return Ok((Temporary { path: hidden, permissions: None }, file));
            }
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why),
        }
    }
}

/// Removes temporary files that killed processes have left in a folder; `meant` selects them by the name of the final file. No process may
/// be writing one of these files.
pub fn remove_left(folder: &Path, meant: impl Fn(&str) -> bool) -> io::Result<()> {
    for (hidden, _) in left(folder, meant)? {
        fs::remove_file(hidden)?;
    }
    Ok(())
}

/// Removes temporary files like [`remove_left`], but only if the process that made them has ended. Other processes may still be writing
/// some of the files. Returns the number of removed files.
///
/// A process counts as running if this machine has a process of its number, or if the file is locked, possibly by another machine.
pub fn remove_abandoned(folder: &Path, meant: impl Fn(&str) -> bool) -> io::Result<usize> {
    // Without `/proc` it is unknown which processes are running.
    if !Path::new("/proc/self").exists() {
        return Ok(0);
    }
    let mut removed = 0;
    for (hidden, process) in left(folder, meant)? {
        // In a container, a killed process may have had the number of this process.
        let is_own = process == std::process::id();
        let is_there = if is_own {
            temporaries().contains(&hidden)
        } else {
            Path::new("/proc").join(process.to_string()).exists()
        };
        let is_free = || match File::open(&hidden).map(|file| file.try_lock()) {
            Ok(Err(fs::TryLockError::WouldBlock)) => false,
            Ok(_) => true,
            // The file was renamed or removed in the meantime.
            Err(_) => false,
        };
        if !is_there && is_free() {
            fs::remove_file(&hidden)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns the temporary files in a folder whose final name `meant` selects, each with the number of the process that made it.
fn left(folder: &Path, meant: impl Fn(&str) -> bool) -> io::Result<Vec<(PathBuf, u32)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let hidden = entry.file_name();
        let parts = hidden.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.'));
        let Some((name, suffix)) = parts else { continue };
        let process = suffix.split_once('-').filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
        if let Some(process) = process.and_then(|(process, _)| process.parse().ok())
            && meant(name)
        {
            found.push((entry.path(), process));
        }
    }
    Ok(found)
}

/// Returns the temporary name in the folder of `path`: `.NAME.SUFFIX.part`.
pub(crate) fn hidden(path: &Path, suffix: &str) -> Result<PathBuf, WriteError> {
    let name = path.file_name().ok_or(WriteError::Unwritable { why: "the path does not name a file" })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{suffix}.part"));
    Ok(path.with_file_name(hidden))
}

/// Temporary file, which is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    /// Permissions to set before the file is renamed.
    permissions: Option<Permissions>,
}

impl Temporary {
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Renames the finished file to `path`.
    pub fn rename(mut self, path: &Path) -> Result<(), SystemError> {
        if let Some(permissions) = self.permissions.take() {
            fs::set_permissions(&self.path, permissions).map_err(SystemError::of("set the mode of the new file"))?;
        }
        {
            let mut all = temporaries();
            fs::rename(&self.path, path).map_err(SystemError::of("rename the finished file"))?;
            all.remove(&self.path);
        }
        sync_folder(path);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the file was renamed, another file may have its old name.
        if temporaries().remove(&self.path) {
            // A failure is ignored, because the caller reports the error that came before.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Flushes the folder of a new file to the device if the system allows it, so that the name survives a power failure.
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

    /// Symbolic links stay links, and replaced files keep their mode.
    #[test]
    fn links_are_followed_and_modes_kept() {
        use std::os::unix::fs::symlink;
        let folder = folder("links");
        let [file, link, chain, dangling] = ["file", "link", "chain", "dangling"].map(|name| folder.join(name));
        fs::create_dir_all(folder.join("inside")).unwrap();
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
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
        assert!(write(&endless, text(b"")).unwrap_err().to_string().contains("form a loop"));
        // A read-only file is replaced by a read-only one, which can be written until then.
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        let created = create(&file).unwrap();
        assert_eq!(created.file.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
        created.temporary.rename(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o444);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 6, "a temporary file is left");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Pipes, devices and open files are not replaced.
    #[test]
    fn streams_are_written_directly() {
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
        // An open file is appended to.
        let folder = folder("open");
        let mut file = File::create(folder.join("log")).unwrap();
        file.write_all(b"before, ").unwrap();
        write(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), text(b"after")).unwrap();
        assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), "before, after");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_of_killed_processes_do_no_harm() {
        let folder = folder("left");
        let path = folder.join("field.0");
        // The names that this process would use next, as if one with the same number had been killed.
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
    fn files_of_living_processes_stay() {
        let folder = folder("abandoned");
        let path = folder.join("field");
        let own = create(&path).unwrap();
        // A process that has ended, one that has not, a file of this process's number that it did not make, and one that another
        // machine's process may have locked.
        let gone = {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        let parent = std::os::unix::process::parent_id();
        let names = [gone, parent, std::process::id(), gone].into_iter().zip([1, 1, 1_000_000, 2]);
        let names: Vec<_> = names.map(|(id, n)| hidden(&path, &format!("{id}-{n}")).unwrap()).collect();
        names.iter().for_each(|name| fs::write(name, "half").unwrap());
        let locked = File::open(&names[3]).unwrap();
        locked.try_lock().unwrap();
        assert_eq!(remove_abandoned(&folder, |name| name == "other").unwrap(), 0);
        assert_eq!(remove_abandoned(&folder, |name| name == "field").unwrap(), 2);
        assert_eq!([0, 1, 2, 3].map(|k: usize| names[k].exists()), [false, true, false, true]);
        assert!(own.temporary.path().exists());
        drop(locked);
        assert_eq!(remove_abandoned(&folder, |name| name == "field").unwrap(), 1);
        own.temporary.rename(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_before_the_first_byte() {
        let folder = folder("missing");
        let missing = folder.join("nowhere").join("field");
        assert!(
            write(&missing, text(b"")).unwrap_err().to_string().contains("create a temporary file in the same folder")
        );
        // The path is a folder: renaming fails, and the temporary file is removed.
        let taken = folder.join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write(&taken, text(b"")).unwrap_err().to_string().contains("rename"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
