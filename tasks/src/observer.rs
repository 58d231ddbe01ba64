//! Observers of tasks: they see the progress and can stop the work.
use super::Code;
use ferrite_records::progress::ProgressLine;

/// Observes tasks on a process, and can ask them to stop. Every method has a default: `()` observes nothing.
pub trait TaskObserver: Send + Sync {
    /// Returns whether [`progress`](Self::progress) is to be called for the next step; `false` where nothing is shown, or not yet again.
    fn wants(&self) -> bool {
        false
    }
    /// Called after steps that the observer [wants](Self::wants), and after those that are worth a report at any time.
    fn progress(&self, _event: &ProgressEvent<'_>) {}
    /// Called after the last step of a piece of work.
    fn finish(&self) {}
    /// Called when a task polls [`stop`](Self::stop) from now on.
    fn listen(&self) {}
    /// Returns the exit code with which this process asks the task to stop; `None` to go on. One process suffices: all of them stop.
    fn stop(&self) -> Option<Code> {
        None
    }
}

impl TaskObserver for () {}

/// Progress of a piece of work.
#[derive(Clone, Copy, Debug)]
pub struct ProgressEvent<'a> {
    /// The work and its progress, as a record.
    pub line: &'a ProgressLine,
    /// The progress for people.
    pub text: &'a str,
}
