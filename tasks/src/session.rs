//! Processes of a task, and the form of its progress.
use crate::communicator::RunCommunicator;
use crate::progress::ProgressKind;

/// Processes of a task and the form of its progress.
#[derive(Clone)]
pub struct Session {
    /// The processes.
    pub comm: RunCommunicator,
    /// Form of progress.
    pub progress: ProgressKind,
}
