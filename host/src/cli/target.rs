//! Output files: found unusable before the work, not after it.
use ferrite::files::{Problem, atomic};
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Whether a file can be made at `path`: it is or would be a regular file in a folder that can be written.
pub fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    // The finished file is renamed to its place: that would put a file where a device was.
    if let Ok(there) = std::fs::metadata(path)
        && !there.is_file()
    {
        let what = if there.is_dir() { "a folder" } else { "not a regular file" };
        return Err(format!("{shown} is {what}: name a file to write"));
    }
    if path.file_name().is_none() {
        return Err(format!("'{shown}' names no file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("{shown} cannot be written: there is no folder {}; make it first", folder.display()));
    }
    let probe = folder.join(format!(".ferrite-{}.probe", std::process::id()));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&probe);
    match made {
        Ok(_) => {
            // Empty and hidden; should it stay, it harms nobody.
            let _ = std::fs::remove_file(&probe);
            Ok(())
        }
        // Another process of the run is at it, on a machine that counts processes alike.
        Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(format!("{shown} cannot be written: no file can be made in {}: {why}", folder.display())),
    }
}

/// [`check`] for a plot, which is SVG.
pub fn check_svg(path: &Path) -> Result<(), String> {
    if path.extension().is_none_or(|e| e != "svg") {
        return Err(format!("{}: plots are SVG; end the name in .svg", path.display()));
    }
    check(path)
}

/// Sees to it that no other process works in a folder, as long as the file that comes back is open. Some network file
/// systems cannot lock: there it is up to the user.
pub fn lock(folder: &Path) -> Result<std::fs::File, String> {
    let path = folder.join(".lock");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(|why| format!("{} cannot be written: {why}", path.display()))?;
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(format!("{} is being worked in by another process: wait for it, or end it", folder.display()))
        }
        _ => Ok(file),
    }
}

/// Adds a line of JSON to a file, which is made if it is not there, and waits until it is on the disk.
pub fn append_line(path: &Path, object: &Value) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let line = format!("{object}\n");
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_data()));
    written.map_err(|why| format!("{} cannot be written: {why}", path.display()))
}

/// Takes half a line off the end of a file, which was being written when the machine went down; a file that is not there
/// has none.
pub fn cut_half_line(path: &Path) -> Result<(), String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(format!("{} cannot be read: {why}", path.display())),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    tracing::warn!("{}: half a line at the end is taken off", path.display());
    let cut = std::fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(whole as u64));
    cut.map_err(|why| format!("{} cannot be written: {why}", path.display()))
}

/// Writes a text, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), String> {
    let fill = |file: &mut std::io::BufWriter<std::fs::File>| {
        file.write_all(text.as_bytes()).map_err(|source| Problem::Io { action: "write".into(), source })
    };
    atomic::write(path, fill).map_err(|problem| format!("{}: {problem}", path.display()))
}
