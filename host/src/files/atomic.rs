//! Files that appear whole or not at all.
use super::error::{Problem, Trouble};
use super::parts::{agree, gather};
use crate::halo::Network;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `path` through `fill`: under a temporary name in the same folder, flushed to the device, then renamed. If
/// anything fails, a file that was at `path` before is still there as it was, and the temporary one is gone.
pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Problem>) -> Result<(), Problem> {
    hidden(path, "")?;
    let Created { temporary, file, .. } = create(path).map_err(Problem::io("create a file in its folder"))?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let filled = fill(&mut writer);
    // Taken apart by hand: dropping the writer would try once more to write what could not be written.
    let (file, rest) = writer.into_parts();
    filled?;
    let rest = rest.map_err(|_| Problem::Unwritable { why: "an earlier write panicked" })?;
    (&file).write_all(&rest).map_err(Problem::io("write"))?;
    file.sync_all().map_err(Problem::io("flush to the device"))?;
    drop(file);
    Ok(temporary.rename(path)?)
}

/// *Collective.* [`write`] by many processes, each its own part. Rank 0 makes the temporary file, of `length` bytes;
/// then each process writes its part through `fill`, and rank 0 through `finish`, with what every `fill` returned, the
/// rest. All processes succeed, or all fail alike and no file is left. The folder has to be one that all of them share.
pub(crate) fn write_parts(
    path: &Path,
    length: u64,
    network: &dyn Network,
    fill: impl FnOnce(&File) -> Result<Vec<u8>, Trouble>,
    finish: impl FnOnce(&File, Vec<Vec<u8>>) -> Result<(), Trouble>,
) -> Result<(), Problem> {
    let result = attempt(path, length, network, fill, finish);
    if !matches!(result, Err(Problem::Comm(_))) {
        // Nobody leaves before rank 0 has removed what has to go.
        network.barrier()?;
    }
    result
}

fn attempt(
    path: &Path,
    length: u64,
    network: &dyn Network,
    fill: impl FnOnce(&File) -> Result<Vec<u8>, Trouble>,
    finish: impl FnOnce(&File, Vec<Vec<u8>>) -> Result<(), Trouble>,
) -> Result<(), Problem> {
    hidden(path, "")?;
    let first = network.rank() == 0;
    let created = if first { make_room(path, length).map(Some) } else { Ok(None) };
    let tell = |created: &Option<Created>| created.as_ref().map_or(Vec::new(), |created| created.suffix.clone().into());
    let (created, told) = gather(network, created, tell)?;
    let (temporary, file) = match created {
        Some(Created { temporary, file, .. }) => (Some(temporary), Ok(file)),
        None => {
            let name = hidden(path, &String::from_utf8_lossy(&told[0]))?;
            let file = OpenOptions::new().write(true).open(name);
            (None, file.map_err(Trouble::io("open the file that rank 0 has created")))
        }
    };
    let file = agree(network, file)?;
    let (_, told) = gather(network, fill(&file), Vec::clone)?;
    let finished = if first { finish(&file, told) } else { Ok(()) };
    let flushed = finished.and_then(|()| file.sync_all().map_err(Trouble::io("flush to the device")));
    drop(file);
    agree(network, flushed)?;
    let renamed = match temporary {
        Some(temporary) => temporary.rename(path),
        None => Ok(()),
    };
    agree(network, renamed)
}

/// Gives the finished file `path` a second name `to` in the same file system, in one step: what had that name before is
/// gone, and the file stays when either name goes. Nobody may write into a file with two names; [`write()`] does not, it makes
/// another file.
///
/// # Errors
/// Of the file system; some cannot do it. What was at `to` is still there then.
pub fn link(path: &Path, to: &Path) -> io::Result<()> {
    let temporary = create_by(to, |hidden| fs::hard_link(path, hidden))?.1;
    fs::rename(&temporary.0, to)?;
    sync_folder(to);
    // Two names of one file are not renamed to each other; then the temporary one goes here.
    drop(temporary);
    Ok(())
}

/// A temporary file just made.
struct Created {
    suffix: String,
    temporary: Temporary,
    file: File,
}

fn make_room(path: &Path, length: u64) -> Result<Created, Trouble> {
    let created = create(path).map_err(Trouble::io("create a file in its folder"))?;
    created.file.set_len(length).map_err(Trouble::io("make room for the data"))?;
    Ok(created)
}

fn create(path: &Path) -> io::Result<Created> {
    let (suffix, temporary, file) =
        create_by(path, |hidden| OpenOptions::new().write(true).create_new(true).open(hidden))?;
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

/// A name next to `path`.
fn hidden(path: &Path, suffix: &str) -> Result<PathBuf, Problem> {
    let name = path.file_name().ok_or(Problem::Unwritable { why: "the path names no file" })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{suffix}.part"));
    Ok(path.with_file_name(hidden))
}

/// A file that is removed when this is dropped.
struct Temporary(PathBuf);

impl Temporary {
    /// Gives the finished file its name.
    fn rename(self, path: &Path) -> Result<(), Trouble> {
        fs::rename(&self.0, path).map_err(Trouble::io("rename the finished file"))?;
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
    use comms::{Communicator, Threads};
    use std::os::unix::fs::FileExt;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ferrite-atomic-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = folder("full");
        let path = folder.join("field");
        fs::write(&path, "old").unwrap();
        let result = write(&path, |w| {
            w.write_all(&vec![1; 3 << 20]).unwrap();
            Err(Problem::io("write")(io::Error::from(io::ErrorKind::StorageFull)))
        });
        assert!(result.unwrap_err().to_string().contains("cannot write"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        write(&path, |w| w.write_all(b"new").map_err(Problem::io("write"))).unwrap();
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
        write(&path, |w| w.write_all(b"new").map_err(Problem::io("write"))).unwrap();
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
    fn a_second_name_is_one_of_the_same_file() {
        let folder = folder("link");
        let [path, other] = ["field", "other"].map(|name| folder.join(name));
        write(&path, |w| w.write_all(b"new").map_err(Problem::io("write"))).unwrap();
        fs::write(&other, "old").unwrap();
        // Also where it has that name already.
        for _ in 0..2 {
            link(&path, &other).unwrap();
            assert_eq!((fs::read(&other).unwrap(), fs::read_dir(&folder).unwrap().count()), (b"new".to_vec(), 2));
        }
        // Another file under one name leaves the other name as it is.
        write(&path, |w| w.write_all(b"newer").map_err(Problem::io("write"))).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&other).unwrap()), (b"newer".to_vec(), b"new".to_vec()));
        assert!(link(&folder.join("none"), &other).is_err());
        assert_eq!((fs::read(&other).unwrap(), fs::read_dir(&folder).unwrap().count()), (b"new".to_vec(), 2));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_before_the_first_byte() {
        let folder = folder("missing");
        let missing = folder.join("nowhere").join("field");
        assert!(write(&missing, |_| Ok(())).unwrap_err().to_string().contains("create a file in its folder"));
        // A folder stands where the file should: the rename fails, the temporary file goes.
        let taken = folder.join("taken");
        fs::create_dir_all(taken.join("inside")).unwrap();
        assert!(write(&taken, |_| Ok(())).unwrap_err().to_string().contains("rename"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    /// What each of three ranks says when the named step fails on one of them.
    fn sentences(path: &Path, step: &str, rank: usize) -> Vec<String> {
        let full = |action| Trouble { action: String::from(action).into(), source: io::ErrorKind::StorageFull.into() };
        let told = Threads::run(3, |world| {
            let me = Communicator::rank(&world);
            let fails = |now: &str| if now == step && me == rank { Err(full("write")) } else { Ok(()) };
            let fill = |file: &File| {
                file.write_all_at(&[me as u8; 1000], 1000 * me as u64).unwrap();
                fails("fill").map(|()| vec![me as u8])
            };
            let finish = |file: &File, told: Vec<Vec<u8>>| {
                assert_eq!((me, told), (0, vec![vec![0], vec![1], vec![2]]));
                file.write_all_at(b"head", 0).unwrap();
                fails("finish")
            };
            let result = write_parts(path, 3000, &world, fill, finish);
            let left = fs::read_dir(path.parent().unwrap()).map_or(0, Iterator::count);
            Ok::<_, io::Error>(format!("{}; {left} files", result.map_or_else(|e| e.to_string(), |()| "done".into())))
        });
        told.unwrap()
    }

    #[test]
    fn many_processes_write_one_file_or_none() {
        let folder = folder("parts");
        let path = folder.join("field");
        let failed = |on: &str| vec![format!("cannot write: no storage space{on}; 0 files"); 3];
        assert_eq!(sentences(&path, "fill", 2), failed(", on rank 2"));
        assert_eq!(sentences(&path, "fill", 1), failed(", on rank 1"));
        assert_eq!(sentences(&path, "fill", 0), failed(""));
        assert_eq!(sentences(&path, "finish", 0), failed(""));
        assert_eq!(sentences(&path, "", 0), ["done; 1 files"; 3]);
        let content = fs::read(&path).unwrap();
        assert_eq!((content.len(), &content[..4]), (3000, &b"head"[..]));
        assert_eq!([content[4], content[999], content[1000], content[2999]], [0, 0, 1, 2]);
        // What stood there before stays.
        assert_eq!(sentences(&path, "fill", 2), ["cannot write: no storage space, on rank 2; 1 files"; 3]);
        assert_eq!(fs::read(&path).unwrap(), content);
        let nowhere = sentences(&folder.join("missing").join("field"), "", 0);
        assert!(nowhere[0].starts_with("cannot create a file in its folder: No such file"), "{nowhere:?}");
        assert!(nowhere.iter().all(|said| *said == nowhere[0]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
