//! Output files. They are checked before work begins, so that a task does not fail at its end.
use super::communicator::RunCommunicator;
use super::{Failure, Outcome, terminal};
use ferrite::files::Problem;
use ferrite::system::atomic::{self, Destination};
use ferrite_report::records::{LastLine, end_of_lines, whole_lines};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// *Collective.* Checks before work begins that outputs can be written, that no two of them are the same file, and that none is an input.
/// Files are compared by device and inode, so that symbolic links, hard links and other spellings of a path count. Every command that
/// writes files calls this function.
pub fn claim(comm: &RunCommunicator, inputs: &[&Path], outputs: &[&Path]) -> Outcome {
    comm.agree(claimed(inputs, outputs, comm.size()).map_err(Failure::refused))
}

/// Returns paths in the form that [`claim`] takes.
pub fn all<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<&'a Path> {
    paths.into_iter().map(PathBuf::as_path).collect()
}

fn claimed(inputs: &[&Path], outputs: &[&Path], processes: usize) -> Result<(), String> {
    for (number, output) in outputs.iter().enumerate() {
        let shown = output.display();
        check(output)?;
        // A pipe or a device may be input and output, because nothing in it is replaced.
        let is_same =
            |input: &&&Path| std::fs::metadata(input).is_ok_and(|m| m.is_file()) && atomic::is_same(input, output);
        if let Some(input) = inputs.iter().find(is_same) {
            let name = if input == output { String::new() } else { format!(", {}", input.display()) };
            return Err(format!("{shown} is an input of this command{name}: name another output file"));
        }
        let destination = destination(output)?;
        let place = match &destination {
            Destination::File(real) => place(real),
            Destination::Stream(_) if processes > 1 => {
                return Err(format!(
                    "{shown} is a pipe or a device, which only one process can write to: name an output file"
                ));
            }
            Destination::Stream(path) => path.clone(),
        };
        let is_other = |other: &&&Path| atomic::is_same(other, output) || self::place(other) == place;
        if !is_device(output)
            && let Some(other) = outputs[..number].iter().find(is_other)
        {
            return Err(format!("{} and {shown} are the same file: name two different ones", other.display()));
        }
        if destination.is_stdout() {
            terminal::take_stdout();
        }
    }
    Ok(())
}

/// Returns whether a path is a device such as `/dev/null`.
fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|existing| existing.file_type().is_char_device())
}

fn destination(path: &Path) -> Result<Destination, String> {
    Destination::of(path).map_err(|why| format!("{} cannot be written: {why}", path.display()))
}

/// Returns whether `path` is a pipe or a device, not a regular file.
pub fn is_stream(path: &Path) -> bool {
    matches!(Destination::of(path), Ok(Destination::Stream(_)))
}

/// Fails unless a file can be created at `path`, which needs write access to its folder, or `path` is a pipe or a device.
pub fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    if std::fs::metadata(path).is_ok_and(|existing| existing.is_dir()) {
        return Err(format!("{shown} is a folder: name a file to write"));
    }
    if path.file_name().is_none() {
        return Err(format!("'{shown}' does not name a file"));
    }
    let Destination::File(path) = destination(path)? else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("{shown} cannot be written: the folder {} does not exist", folder.display()));
    }
    let created = atomic::probe(&path);
    created.map_err(|why| format!("{shown} cannot be written: no file can be created in {}: {why}", folder.display()))
}

/// Checks a file to which lines are appended like [`check`]; it must also be readable.
pub fn check_lines(path: &Path) -> Result<(), String> {
    if is_stream(path) {
        return Err(format!("{} is not a regular file: name a file to write", path.display()));
    }
    check(path)
}

/// Checks the file of a plot like [`check`]; its name must end in `.svg`.
pub fn check_svg(path: &Path) -> Result<(), String> {
    if path.extension().is_none_or(|e| e != "svg") {
        return Err(format!("{}: plots are SVG; choose a name that ends in .svg", path.display()));
    }
    check(path)
}

/// Returns the absolute path of a file that may not exist yet, without symbolic links. It is the same for all spellings of a path.
pub fn place(path: &Path) -> PathBuf {
    if let Ok(there) = std::fs::canonicalize(path) {
        return there;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.into(),
    }
}

/// Locks a folder against other processes while the returned file is open. On network file systems that do not support locks, users must
/// prevent simultaneous runs themselves.
pub fn lock(folder: &Path) -> Result<std::fs::File, String> {
    let path = folder.join(".lock");
    locked(&path)?.ok_or_else(|| format!("{} is in use by another process: wait for it, or stop it", folder.display()))
}

/// Locks a file to which lines are added, and creates it if it does not exist.
pub fn lock_file(path: &Path) -> Result<std::fs::File, String> {
    locked(path)?
        .ok_or_else(|| format!("{} is being written by another process: wait for it, or stop it", path.display()))
}

/// Locks a file; `None` if another process has the lock.
fn locked(path: &Path) -> Result<Option<std::fs::File>, String> {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|why| format!("{} cannot be written: {why}", path.display()))?;
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        _ => Ok(Some(file)),
    }
}

/// Adds a line of JSON to a file, and waits until it is on the disk. Creates the file if it does not exist.
pub fn append_line(path: &Path, object: &Value) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let line = format!("{object}\n");
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_data()));
    written.map_err(|why| format!("{} cannot be written: {why}", path.display()))
}

/// Complete lines of a file; empty if the file does not exist.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines with their newlines, including that of the last line.
    pub text: String,
    /// State of the last line, which may be incomplete.
    pub end: LastLine,
}

/// Reads lines of JSON objects that all begin with `begin`, without changing the file.
///
/// # Errors
/// What cannot be read, or is none of ours: it is not text, or ends otherwise than with a line or the beginning of one.
pub fn lines(path: &Path, begin: &str) -> Result<Lines, String> {
    let shown = path.display();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Lines::default()),
        Err(why) => return Err(format!("{shown} cannot be read: {why}")),
    };
    let last = &bytes[end_of_lines(&bytes)..];
    let both = last.len().min(begin.len());
    if last[..both] != begin.as_bytes()[..both] {
        return Err(format!("{shown} ends with text that is not a line of results: name another file"));
    }
    // The end of the file may be torn within a character, so that only complete lines are certain to be text.
    let (whole, end) = whole_lines(&bytes);
    let text = std::str::from_utf8(whole).map_err(|why| format!("{shown} is not text: {why}; name another file"))?;
    let mut text = String::from(text);
    if end == LastLine::Unended {
        text.push('\n');
    }
    Ok(Lines { text, end })
}

/// Mends the end of a file from which `lines` were read: removes an incomplete last line, and completes a last line that lacks only its
/// newline.
pub fn mend_last_line(path: &Path, lines: &Lines) -> Result<(), String> {
    let mut options = std::fs::OpenOptions::new();
    let mended = match lines.end {
        LastLine::Ended => return Ok(()),
        LastLine::Torn => {
            tracing::warn!("{}: an incomplete last line was removed", path.display());
            options.write(true).open(path).and_then(|file| file.set_len(lines.text.len() as u64))
        }
        LastLine::Unended => {
            tracing::info!("{}: the last line had no newline at its end; it is kept", path.display());
            options.append(true).open(path).and_then(|mut file| file.write_all(b"\n"))
        }
    };
    mended.map_err(|why| format!("{} cannot be written: {why}", path.display()))
}

/// Writes a text to a file, as a whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), String> {
    write_bytes(path, text.as_bytes())
}

/// Writes bytes to a file, as a whole or not at all.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let fill = |file: &mut std::io::BufWriter<std::fs::File>| {
        file.write_all(bytes).map_err(|source| Problem::Io { action: "write".into(), source })
    };
    atomic::write(path, fill).map_err(|problem| format!("{}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_distinguished_from_another_file() {
        let room = std::env::temp_dir().join(format!("ferrite-target-{}", std::process::id()));
        std::fs::create_dir_all(&room).unwrap();
        let path = room.join("lines");
        let found = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            lines(&path, "{\"at\":")
        };
        let of = |text: &str, end| Ok(Lines { text: text.into(), end });
        assert_eq!(found(b""), of("", LastLine::Ended));
        assert_eq!(found(b"{\"at\":1}\n"), of("{\"at\":1}\n", LastLine::Ended));
        assert_eq!(found(b"{\"at\":1}\n{\"a"), of("{\"at\":1}\n", LastLine::Torn));
        // Torn in the middle of a letter.
        assert_eq!(found(b"{\"at\":1}\n{\"at\":\"\xc3"), of("{\"at\":1}\n", LastLine::Torn));
        let lines = found(b"{\"at\":1}\n{").unwrap();
        mend_last_line(&path, &lines).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"at\":1}\n");
        // A whole line that lacks its end is kept, and gets it.
        for before in ["", "{\"at\":1}\n"] {
            let whole = format!("{before}{{\"at\":\"\u{e9}\"}}");
            assert_eq!(found(whole.as_bytes()), of(&format!("{whole}\n"), LastLine::Unended));
            mend_last_line(&path, &found(whole.as_bytes()).unwrap()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{whole}\n"));
        }
        for other in [&b"links"[..], b"{\"at\":1}\n\0\0", b"{\"a\":1}"] {
            assert!(found(other).unwrap_err().contains("not a line of results"));
        }
        assert!(found(b"\xff\n").unwrap_err().contains("is not text"));
        assert_eq!(place(&room.join("new")), place(&room.join("./new")));
        assert_ne!(place(&room.join("new")), place(&room.join("old")));
        std::fs::remove_dir_all(room).unwrap();
    }
}
