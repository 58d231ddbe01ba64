//! Records that commands write as JSON, a line for each, and that reports read.
//!
//! | module | what |
//! |---|---|
//! | [`trajectories`] | `trajectories.jsonl` of `ferrite rhmc` |
//! | [`run_settings`] | the settings of a run, as its lines tell them |
//! | [`correlators`] | `correlators.jsonl` of `ferrite spectrum` |
//! | [`measurements`] | lines of `ferrite measure` |
//! | [`traces`] | lines of `ferrite trace` |
//! | [`content`] | what the file of a configuration held |
pub mod content;
pub mod correlators;
pub mod measurements;
pub mod run_settings;
pub mod traces;
pub mod trajectories;

use crate::error::ReportError;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Larger files are none of ours.
const MOST_BYTES: u64 = 1 << 30;

/// All of a file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ReportError> {
    let refused = |why: String| ReportError::Unreadable(format!("{} {why}", path.display()));
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(length) if length as u64 > MOST_BYTES => Err(refused("is too large for a report".into())),
        Ok(_) => Ok(bytes),
        Err(why) => Err(refused(format!("cannot be read: {why}"))),
    }
}

/// The objects of a file of lines, or the one of a file that has no others; and whether the last line is half written, as that of what is
/// being measured may be, which is left out.
pub(crate) fn read_lines(path: &Path) -> Result<(Vec<Value>, bool), ReportError> {
    let bytes = read_bytes(path)?;
    let refused = |why: String| ReportError::Unreadable(format!("{}: {why}", path.display()));
    let (whole, rest) = bytes.split_at(end_of_lines(&bytes));
    let (whole, half) = match serde_json::from_slice::<Value>(rest) {
        // The end of the last line is missing, and nothing else.
        Ok(_) => (&bytes[..], false),
        Err(_) => (whole, !rest.trim_ascii().is_empty()),
    };
    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let objects = lines.enumerate().map(|(number, line)| {
        serde_json::from_slice(line).map_err(|why| refused(format!("line {}: this is not JSON: {why}", number + 1)))
    });
    Ok((objects.collect::<Result<_, _>>()?, half))
}

/// Where the last whole line ends.
pub fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
