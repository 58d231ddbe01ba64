//! Observers of tasks: they receive the progress and can stop the work.
use super::Code;
use ferrite_records::progress::ProgressLine;

/// Observer of tasks on a process. It receives their progress and can request a stop. Every method has a default; `()` observes nothing.
pub trait TaskObserver: Send + Sync {
    /// Returns whether [`progress`](Self::progress) should be called for the next step; `false` if the observer would not show it.
    fn wants(&self) -> bool {
        false
    }
    /// Receives the progress of a step if the observer [wants](Self::wants) it, and that of important steps in any case.
    fn progress(&self, _event: &ProgressEvent<'_>) {}
    /// Called after the last step of a task.
    fn finish(&self) {}
    /// Called when a task starts to poll [`stop`](Self::stop).
    fn listen(&self) {}
    /// Returns the exit code with which this process requests a stop; `None` to continue. If one process requests it, all stop.
    fn stop(&self) -> Option<Code> {
        None
    }
}

impl TaskObserver for () {}

/// Progress of a task at one step.
#[derive(Clone, Copy, Debug)]
pub struct ProgressEvent<'a> {
    /// Task and progress as a record.
    pub line: &'a ProgressLine,
    /// Progress as text for people.
    pub text: &'a str,
}
