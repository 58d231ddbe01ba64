//! Files that appear whole or not at all.
use super::Problem;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes `path` through `fill`: under a temporary name in the same folder, flushed to the device, then renamed. If
/// anything fails, a file that was at `path` before is still there as it was, and the temporary one is gone.
pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), Problem>) -> Result<(), Problem> {
    let hidden = name_beside(path)?;
    let file = OpenOptions::new().write(true).create_new(true).open(&hidden);
    let file = file.map_err(Problem::io("create a file in its folder"))?;
    let temporary = Temporary(hidden);
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let filled = fill(&mut writer);
    // Taken apart by hand: dropping the writer would try once more to write what could not be written.
    let (file, rest) = writer.into_parts();
    filled?;
    let rest = rest.map_err(|_| Problem::Unwritable { why: "an earlier write panicked" })?;
    (&file).write_all(&rest).map_err(Problem::io("write"))?;
    file.sync_all().map_err(Problem::io("flush to the device"))?;
    drop(file);
    fs::rename(&temporary.0, path).map_err(Problem::io("rename the finished file"))?;
    sync_folder(path);
    std::mem::forget(temporary);
    Ok(())
}

/// A name next to `path` that no other thread or process uses.
fn name_beside(path: &Path) -> Result<PathBuf, Problem> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or(Problem::Unwritable { why: "the path names no file" })?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{}.part", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(hidden))
}

/// A file that is removed when this is dropped.
struct Temporary(PathBuf);

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
    use std::io;

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
}
