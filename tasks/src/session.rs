//! What a task runs with: its processes, and how it shows progress.
use crate::communicator::RunCommunicator;
use crate::progress::ProgressKind;

/// Processes of a task and how it shows progress.
#[derive(Clone)]
pub struct Session {
    /// The processes.
    pub comm: RunCommunicator,
    /// How progress is shown.
    pub progress: ProgressKind,
}
