//! Records that commands write as JSON, a line for each, and that reports read.
//!
//! | module | what |
//! |---|---|
//! | [`trajectories`] | `trajectories.jsonl` of `ferrite rhmc` |
//! | [`run_settings`] | settings of a run, from its lines |
//! | [`correlators`] | `correlators.jsonl` of `ferrite spectrum` |
//! | [`measurements`] | lines of `ferrite measure` |
//! | [`traces`] | lines of `ferrite trace` |
//! | [`inputs`] | differences between the inputs of two lines |
//! | [`ensemble`] | lines that belong together, their order, and streams |
pub mod correlators;
pub mod ensemble;
pub mod inputs;
pub mod measurements;
pub mod run_settings;
mod sampled;
pub mod traces;
pub mod trajectories;

use crate::error::ReportError;
use ensemble::{LinePosition, RecordLine};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file to read, in bytes. Ferrite does not write larger files.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the content of a file; returns an error if it is too large.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ReportError> {
    let refused = |why: String| ReportError::Unreadable(format!("{} {why}", path.display()));
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(length) if length as u64 > MOST_BYTES => Err(refused("is too large for a report".into())),
        Ok(_) => Ok(bytes),
        Err(why) => Err(refused(format!("cannot be read: {why}"))),
    }
}

/// Lines of JSON from one or several files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordLines {
    /// Lines of all files, in the order of the files.
    pub lines: Vec<RecordLine>,
    /// Files whose last line was left out because it is incomplete, as in a measurement in progress.
    pub half: Vec<PathBuf>,
}

/// Reads the lines of JSON in files. A file may also hold a single object over several lines. Of a folder of `ferrite spectrum`, the file
/// [`LINES`](correlators::LINES) is read.
///
/// # Errors
/// A [`ReportError`] if a file cannot be read, or if a line is not JSON.
pub fn read_all(paths: &[PathBuf]) -> Result<RecordLines, ReportError> {
    let mut all = RecordLines::default();
    for path in paths {
        let path = if path.is_dir() { path.join(correlators::LINES) } else { path.clone() };
        let bytes = read_bytes(&path)?;
        let file = path.display().to_string();
        let (lines, half) = lines_of(&bytes, &file).map_err(|why| ReportError::Unreadable(why.in_file(&file)))?;
        all.lines.extend(lines);
        all.half.extend(half.then_some(path));
    }
    Ok(all)
}

/// Position in a file where the text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotJson {
    /// Line number, counted from 1.
    pub line: usize,
    /// Column number, counted from 1.
    pub column: usize,
}

impl NotJson {
    /// Returns the error message for this position in the file `file`.
    pub fn in_file(self, file: &str) -> String {
        format!("{file}, line {}: this is not JSON at column {}", self.line, self.column)
    }
}

/// Returns the lines of a file, and whether the last line was left out because it is incomplete.
pub(crate) fn lines_of(bytes: &[u8], file: &str) -> Result<(Vec<RecordLine>, bool), NotJson> {
    let name: Arc<str> = file.into();
    let (whole, end) = whole_lines(bytes);
    let half = end == LastLine::Torn && !bytes[whole.len()..].trim_ascii().is_empty();
    let lines = whole.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
    let objects = lines.map(|(text, line)| match serde_json::from_slice(text) {
        Ok(value) => Ok(RecordLine { place: LinePosition { file: name.clone(), line }, value }),
        Err(why) => Err(NotJson { line, column: why.column() }),
    });
    match objects.collect() {
        Ok(lines) => Ok((lines, half)),
        // The file may hold a single object over several lines.
        Err(why) => match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => Ok((vec![RecordLine { place: LinePosition { file: name, line: 1 }, value }], false)),
            Err(_) => Err(why),
        },
    }
}

/// State of the last line in a file of lines of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastLine {
    /// The file ends with a newline, or is empty.
    #[default]
    Ended,
    /// The last line is complete but has no newline, as editors and shells may leave it.
    Unended,
    /// The last line is incomplete: it is being written, or the machine stopped while it was written.
    Torn,
}

/// Returns the bytes of a file of lines of JSON up to its last complete line, and the state of the last line. A last line without a newline
/// is complete if it can be parsed, because no proper part of a JSON object is an object.
pub fn whole_lines(bytes: &[u8]) -> (&[u8], LastLine) {
    let (ended, rest) = bytes.split_at(end_of_lines(bytes));
    if rest.is_empty() {
        return (ended, LastLine::Ended);
    }
    match serde_json::from_slice::<Value>(rest) {
        Ok(value) if value.is_object() => (bytes, LastLine::Unended),
        _ => (ended, LastLine::Torn),
    }
}

/// Returns the position after the last newline; 0 if there is no newline.
pub fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
