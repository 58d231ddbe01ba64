//! Identity of the configuration from which a result was computed. The contents of its file determine it, because the path does not
//! suffice: a repeated run writes other links under the same names, and folders are moved.
//!
//! Two files are the same configuration if they have the same name, apart from folders, and the same bytes. The name is needed because a
//! chain that rejects its trajectories writes the same links several times, and each file counts.
pub use ferrite_records::configuration::{ContentRecord, Stamp};

use super::communicator::RunCommunicator;
use super::{Failure, Outcome};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracing::{info, warn};

/// File of a configuration, with the path, the file size and the checksum that identify it.
#[derive(Clone, Debug)]
pub struct Configured {
    /// Path of the file as typed.
    pub typed: PathBuf,
    /// Absolute path without symbolic links; the same for all names of a file.
    pub canonical: String,
    /// Current length and modification time of the file; `None` for a line of an earlier version.
    pub stamp: Option<Stamp>,
    /// Length, modification time and checksum of the file once it was read; `None` before, and for a line of an earlier version.
    pub content: Option<ContentRecord>,
}

/// Relation between a configuration and the one from which an earlier result was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The result was computed from another configuration.
    Other,
    /// The result was computed from this configuration.
    Same,
    /// The result was computed from a file with the same path that held other links.
    Replaced,
}

fn crc32_of(path: &Path) -> std::io::Result<String> {
    let (mut file, mut piece, mut sum) = (File::open(path)?, vec![0; 1 << 22], crc32fast::Hasher::new());
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(format!("{:08x}", sum.finalize())),
            n => sum.update(&piece[..n]),
        }
    }
}

impl Configured {
    /// *Collective.* Returns the configurations of the files `paths`, with the absolute paths and stamps that the first process finds. The
    /// failure names all files that cannot be read.
    pub fn all(paths: &[PathBuf], comm: &RunCommunicator) -> Outcome<Vec<Self>> {
        let (mut mine, mut lost) = (Vec::new(), Vec::new());
        for path in paths {
            match std::fs::canonicalize(path).and_then(|found| Ok((Stamp::of(&found)?, found))) {
                Ok((stamp, found)) => mine.push((found.display().to_string(), stamp.bytes, stamp.modified)),
                Err(why) => lost.push(format!("{} cannot be read: {why}", path.display())),
            }
        }
        comm.agree(if lost.is_empty() { Ok(()) } else { Err(Failure::refused(lost.join("\n  "))) })?;
        let mine = serde_json::to_string(&mine).map_err(Failure::failed)?;
        let first = comm.texts(&mine)?.swap_remove(0);
        let all: Vec<(String, u64, String)> = serde_json::from_str(&first)
            .map_err(|why| Failure::failed(format!("the processes could not exchange file names: {why}")))?;
        let one = |(typed, (canonical, bytes, modified)): (&PathBuf, (String, u64, String))| {
            let stamp = Some(Stamp { bytes, modified });
            Configured { typed: typed.clone(), canonical, stamp, content: None }
        };
        Ok(paths.iter().zip(all).map(one).collect())
    }
    /// Returns the file's name without its folders.
    pub fn file(&self) -> String {
        let path = Path::new(&self.canonical);
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
    /// Returns a number that depends only on the file's name as typed, without its folders.
    pub fn hash(&self) -> u64 {
        let name = self.typed.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        u64::from(crc32fast::hash(name.as_bytes())) << 32
    }
    /// *Collective.* Reads the file on the first process, unless it has been read before, and returns its length, time and checksum on all
    /// processes.
    pub fn hold(&mut self, comm: &RunCommunicator) -> Outcome<&ContentRecord> {
        let mut mine = String::new();
        comm.once(|| {
            let content = self.content.take().map_or_else(|| self.read(), Ok)?;
            mine = serde_json::to_string(&content).map_err(Failure::failed)?;
            Ok(())
        })?;
        let first = comm.texts(&mine)?.swap_remove(0);
        self.content = serde_json::from_str(&first).map_err(Failure::failed)?;
        self.content.as_ref().ok_or_else(|| Failure::failed(format!("{} was not read", self.typed.display())))
    }
    fn read(&self) -> Outcome<ContentRecord> {
        let path = Path::new(&self.canonical);
        let cannot = |why| Failure::refused(format!("{} cannot be read: {why}", self.typed.display()));
        let stamp = Stamp::of(path).map_err(cannot)?;
        Ok(ContentRecord { stamp, crc32: crc32_of(path).map_err(cannot)? })
    }
    /// Compares this configuration with that of a result. The result was written at `made`, and its configuration was at `canonical` with
    /// `content`. Reads the file if its length and modification time are inconclusive. Called on one process.
    pub fn compare(
        &mut self,
        canonical: &str,
        content: Option<&ContentRecord>,
        made: Option<SystemTime>,
    ) -> Outcome<Match> {
        let (same_place, same_name) = (canonical == self.canonical, {
            let other = Path::new(canonical).file_name().map(|name| name.to_string_lossy().into_owned());
            other.is_some_and(|other| other == self.file())
        });
        let Some(content) = content else {
            // Earlier versions recorded only the path. A file that was written after the result is a different configuration.
            let newer = |made| self.stamp.as_ref().is_some_and(|stamp| stamp.is_after(made));
            return Ok(match (same_place, made.is_some_and(newer)) {
                (false, _) => Match::Other,
                (true, true) => Match::Replaced,
                (true, false) => Match::Same,
            });
        };
        if !same_name {
            return Ok(Match::Other);
        }
        if same_place && self.stamp.as_ref() == Some(&content.stamp) {
            return Ok(Match::Same);
        }
        let differs = if same_place { Match::Replaced } else { Match::Other };
        if self.stamp.as_ref().is_some_and(|stamp| stamp.bytes != content.stamp.bytes) {
            return Ok(differs);
        }
        if self.content.is_none() {
            self.content = Some(self.read()?);
        }
        let same = self.content.as_ref().is_some_and(|own| own.is_of_same_bytes(content));
        Ok(if same { Match::Same } else { differs })
    }
    /// *Collective.* Returns whether this configuration is one of those in `before`, or a copy of one in another folder. Reports the
    /// repetition, because a configuration counts once. Reads only files with the same name and length.
    pub fn is_among<'a>(
        &mut self,
        before: impl Iterator<Item = &'a mut Self>,
        comm: &RunCommunicator,
    ) -> Outcome<bool> {
        let length = |one: &Self| one.stamp.as_ref().map(|stamp| stamp.bytes);
        for other in before {
            let may_be = self.canonical != other.canonical && self.file() == other.file();
            if may_be && length(self) == length(other) {
                self.hold(comm)?;
                other.hold(comm)?;
            }
            if self.is_same(other) {
                let (first, second) = (other.typed.display(), self.typed.display());
                match self.canonical == other.canonical {
                    true => info!("{second}: listed twice"),
                    false => warn!("{second} is a copy of {first} (same name and contents) and is skipped"),
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
    /// Returns whether this configuration is the same as `other`, judged by the paths and, if both files were read, by their contents.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_bytes = match (&self.content, &other.content) {
            (Some(own), Some(its)) => own.is_of_same_bytes(its),
            _ => false,
        };
        self.canonical == other.canonical || self.file() == other.file() && same_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &Path) -> Configured {
        let stamp = Some(Stamp::of(path).unwrap());
        Configured { typed: path.into(), canonical: path.display().to_string(), stamp, content: None }
    }

    #[test]
    fn files_are_what_they_hold() {
        let room = std::env::temp_dir().join(format!("ferrite-configured-{}", std::process::id()));
        let (first, moved) = (room.join("cfg"), room.join("there/cfg"));
        std::fs::create_dir_all(room.join("there")).unwrap();
        std::fs::write(&first, "links").unwrap();
        std::fs::write(&moved, "links").unwrap();
        let known = found(&first).read().unwrap();
        let kept = serde_json::to_value(&known).unwrap();
        assert_eq!(serde_json::from_value::<ContentRecord>(kept).unwrap(), known);
        // crc32 of "links", as zlib has it.
        assert_eq!((known.crc32.as_str(), known.stamp.bytes), ("d182a118", 5));
        let at = first.display().to_string();
        let seen = |path: &Path| found(path).compare(&at, Some(&known), None).unwrap();
        assert_eq!((seen(&first), seen(&moved)), (Match::Same, Match::Same));
        // As long as before, but other bytes.
        std::fs::write(&moved, "lines").unwrap();
        std::fs::write(&first, "lines").unwrap();
        assert_eq!((seen(&first), seen(&moved)), (Match::Replaced, Match::Other));
        // Of the same bytes under another name: a chain may repeat its links.
        let other = room.join("cfg2");
        std::fs::write(&other, "links").unwrap();
        assert_eq!(seen(&other), Match::Other);
        // Results of earlier versions: by place and time.
        let before = SystemTime::now() - std::time::Duration::from_secs(3600);
        let after = SystemTime::now() + std::time::Duration::from_secs(3600);
        for (path, made, expected) in
            [(&first, before, Match::Replaced), (&first, after, Match::Same), (&moved, after, Match::Other)]
        {
            assert_eq!(found(path).compare(&at, None, Some(made)).unwrap(), expected);
        }
        assert!(serde_json::from_value::<ContentRecord>(serde_json::json!({ "bytes": 5 })).is_err());
        std::fs::remove_dir_all(room).unwrap();
    }
}
