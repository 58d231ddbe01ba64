//! Records that commands write as JSON, a line for each, and that reports read.
//!
//! | module | what |
//! |---|---|
//! | [`trajectories`] | `trajectories.jsonl` of `ferrite rhmc` |
//! | [`run_settings`] | the settings of a run, as its lines tell them |
//! | [`correlators`] | `correlators.jsonl` of `ferrite spectrum` |
//! | [`measurements`] | lines of `ferrite measure` |
//! | [`content`] | what the file of a configuration held |
pub mod content;
pub mod correlators;
pub mod measurements;
pub mod run_settings;
pub mod trajectories;

use crate::error::ReportError;
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

/// Where the last whole line ends.
pub fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
