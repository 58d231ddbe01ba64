//! Records that commands write as JSON, a line for each, and that reports read.
//!
//! | module | what |
//! |---|---|
//! | [`trajectories`] | `trajectories.jsonl` of `ferrite rhmc` |
//! | [`run_settings`] | the settings of a run, as its lines tell them |
//! | [`correlators`] | `correlators.jsonl` of `ferrite spectrum` |
//! | [`content`] | what the file of a configuration held |
pub mod content;
pub mod correlators;
pub mod run_settings;
pub mod trajectories;

/// Where the last whole line ends.
pub fn end_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}
