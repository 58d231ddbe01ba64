//! Files that many processes write together, each its own part. A file is written completely or not at all.
use super::error::Problem;
use super::parts::{agree, gather};
use crate::network::Network;
use crate::system::atomic::{self, Created, Destination, SystemError, Temporary};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// *Collective.* Writes a file like [`atomic::write`] from many processes. Rank 0 makes a temporary file of `length` bytes. Each process
/// then writes its part with `fill`, and rank 0 writes the rest with `finish`, which receives the results of all `fill`. Either all
/// processes succeed, or all fail with the same error and no file is left. All processes must see the same folder.
pub(crate) fn write_parts(
    path: &Path,
    length: u64,
    network: &dyn Network,
    fill: impl FnOnce(&File) -> Result<Vec<u8>, SystemError>,
    finish: impl FnOnce(&File, Vec<Vec<u8>>) -> Result<(), SystemError>,
) -> Result<(), Problem> {
    let attempt = || {
        let output = SharedOutput::create(path, length, network)?;
        let (_, answers) = gather(network, fill(&output.file), Vec::clone)?;
        let finished = if network.rank() == 0 { finish(&output.file, answers) } else { Ok(()) };
        output.finish(finished, network)
    };
    settle(network, attempt())
}

/// *Collective.* Returns a result that is the same on all processes, after all have waited for rank 0 to remove temporary files.
pub(crate) fn settle<T>(network: &dyn Network, result: Result<T, Problem>) -> Result<T, Problem> {
    if !matches!(result, Err(Problem::Comm(_))) {
        network.barrier()?;
    }
    result
}

/// A temporary file that many processes have open to write their parts. Rank 0 removes it if it drops this value without a call of
/// [`finish`](Self::finish).
#[derive(Debug)]
pub(crate) struct SharedOutput {
    /// Path of the output file and the temporary file that will replace it; `None` on ranks other than 0.
    names: Option<(PathBuf, Temporary)>,
    pub file: File,
}

impl SharedOutput {
    /// *Collective.* Makes a temporary file of `length` bytes on rank 0, and opens it on the other ranks. If this fails, call [`settle`]
    /// next.
    pub fn create(path: &Path, length: u64, network: &dyn Network) -> Result<Self, Problem> {
        atomic::hidden(path, "")?;
        let created = if network.rank() == 0 { make_room(path, length).map(Some) } else { Ok(None) };
        let encode = |created: &Option<(PathBuf, Created)>| {
            created.as_ref().map_or(Vec::new(), |(_, created)| created.temporary.path().as_os_str().as_bytes().to_vec())
        };
        let (created, answers) = gather(network, created, encode)?;
        let (names, file) = match created {
            Some((place, Created { temporary, file })) => (Some((place, temporary)), Ok(file)),
            None => {
                let name = Path::new(OsStr::from_bytes(&answers[0]));
                let file = OpenOptions::new().write(true).open(name);
                (
                    None,
                    file.map_err(SystemError::of(
                        "open the temporary file that rank 0 has created in a folder that all hosts should share",
                    )),
                )
            }
        };
        Ok(Self { names, file: agree(network, file)? })
    }
    /// *Collective.* Flushes and renames the file if `finished` is `Ok` on all processes, and otherwise fails on all. Call [`settle`] next.
    pub fn finish(self, finished: Result<(), SystemError>, network: &dyn Network) -> Result<(), Problem> {
        let Self { names, file } = self;
        let flushed = finished.and_then(|()| file.sync_all().map_err(SystemError::of("flush to the device")));
        drop(file);
        agree(network, flushed)?;
        let renamed = match names {
            Some((place, temporary)) => temporary.rename(&place),
            None => Ok(()),
        };
        agree(network, renamed)
    }
}

/// Makes a temporary file of `length` bytes. Returns it with the path of the output file, in which symbolic links are resolved.
fn make_room(path: &Path, length: u64) -> Result<(PathBuf, Created), SystemError> {
    let place = match Destination::of(path).map_err(SystemError::of("follow the symbolic links"))? {
        Destination::File(place) => place,
        Destination::Stream(_) => {
            let why = io::Error::other(
                "the output is a pipe or a device, which cannot be written in parts; name a regular file",
            );
            return Err(SystemError::of("write")(why));
        }
    };
    let created = atomic::create(&place)?;
    created.file.set_len(length).map_err(SystemError::of("make room for the data"))?;
    Ok((place, created))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::{Communicator, Threads};
    use std::fs;
    use std::os::unix::fs::FileExt;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ferrite-collective-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Returns the message of each of three ranks when the named step fails on one of them.
    fn sentences(path: &Path, step: &str, rank: usize) -> Vec<String> {
        let full =
            |action| SystemError { action: String::from(action).into(), source: io::ErrorKind::StorageFull.into() };
        let answers = Threads::run(3, |world| {
            let me = Communicator::rank(&world);
            let fails = |now: &str| if now == step && me == rank { Err(full("write")) } else { Ok(()) };
            let fill = |file: &File| {
                file.write_all_at(&[me as u8; 1000], 1000 * me as u64).unwrap();
                fails("fill").map(|()| vec![me as u8])
            };
            let finish = |file: &File, answers: Vec<Vec<u8>>| {
                assert_eq!((me, answers), (0, vec![vec![0], vec![1], vec![2]]));
                file.write_all_at(b"head", 0).unwrap();
                fails("finish")
            };
            let result = write_parts(path, 3000, &world, fill, finish);
            let left = fs::read_dir(path.parent().unwrap()).map_or(0, Iterator::count);
            Ok::<_, io::Error>(format!("{}; {left} files", result.map_or_else(|e| e.to_string(), |()| "done".into())))
        });
        answers.unwrap()
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
        assert!(
            nowhere[0].starts_with("cannot create a temporary file in the same folder: No such file"),
            "{nowhere:?}"
        );
        assert!(nowhere.iter().all(|said| *said == nowhere[0]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
