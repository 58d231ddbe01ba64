//! The processes of a task, and its observer.
use crate::communicator::RunCommunicator;
use crate::observer::TaskObserver;
use crate::{Code, Failure};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Processes of a task, with its observer. Clones share the exit code of a requested stop.
#[derive(Clone)]
pub struct Session {
    /// Communicator of the processes.
    pub comm: RunCommunicator,
    observer: Arc<dyn TaskObserver>,
    /// Number of the exit code with which all processes have agreed to stop; 0 for none.
    stop: Arc<AtomicU8>,
}

/// Number of events between two exchanges of stop requests among the processes.
const INTERVAL: usize = 16;

impl Session {
    /// Returns the session of a task that `observer` observes on this process.
    pub fn new(comm: RunCommunicator, observer: Arc<dyn TaskObserver>) -> Self {
        Session { comm, observer, stop: Arc::default() }
    }
    /// Returns the observer of this process.
    pub(crate) fn observer(&self) -> &dyn TaskObserver {
        &*self.observer
    }
    /// Announces to the observer that the task polls [`is_stopped`](Self::is_stopped) from now on.
    pub fn listen(&self) {
        self.observer.listen();
    }
    /// *Collective.* Returns whether the observer of any process requests a stop; the result is the same on all processes. `event` is the
    /// number of the call: several processes exchange their requests only if it is a multiple of 16.
    pub fn is_stopped(&self, event: usize) -> bool {
        let own = self.observer.stop().map_or(0, Code::number);
        let code = match self.comm.size() {
            1 => own,
            _ if !event.is_multiple_of(INTERVAL) => return false,
            // If this exchange fails, the next one also fails and reports the error.
            _ => self.comm.largest(f64::from(own)).map_or(0, |code| code as u8),
        };
        if code != 0 {
            self.stop.store(code, Ordering::Relaxed);
        }
        code != 0
    }
    /// *Collective.* Returns whether work with long steps should continue. Such work calls this function after each step.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_stopped(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    /// Returns the exit code of work that was stopped: the one on which the processes agreed. If no signal was received, as after a time
    /// limit, returns [`Code::Interrupted`].
    pub fn stop_code(&self) -> Code {
        match self.stop.load(Ordering::Relaxed) {
            0 => Code::Interrupted,
            number => Code::from_number(number),
        }
    }
    /// Returns a failure with the message `why`, for work that was stopped on all processes.
    pub fn stopped(&self, why: impl Display) -> Failure {
        Failure::new(self.stop_code(), why).shared()
    }
    /// Returns a failure for work called `work` that was stopped without a result.
    pub fn stopped_during(&self, work: &str) -> Failure {
        self.stopped(format!("interrupted during the {work}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::{Solo, Threads};

    /// Asks for a stop with a code, or for none.
    struct Asks(Option<Code>);
    impl TaskObserver for Asks {
        fn stop(&self) -> Option<Code> {
            self.0
        }
    }

    #[test]
    fn all_processes_stop_with_the_code_of_one() {
        let run = Threads::run(3, |threads| {
            let comm = RunCommunicator::of(threads);
            let asks = Asks((comm.rank() == 1).then_some(Code::Terminated));
            let session = Session::new(comm, Arc::new(asks));
            // Between two exchanges there is no message, and no process stops.
            let before = session.is_stopped(1);
            let stops = session.clone().is_stopped(INTERVAL);
            Ok::<_, String>((before, stops, session.stop_code().number(), session.stopped("why").is_shared()))
        });
        assert_eq!(run.unwrap_or_else(|failure| panic!("{failure}")), [(false, true, 143, true); 3]);
    }

    #[test]
    fn a_process_by_itself_stops_at_any_event() {
        let session = |asks| Session::new(RunCommunicator::of(Solo::new()), Arc::new(Asks(asks)));
        let asked = session(Some(Code::HungUp));
        assert!(asked.is_stopped(1) && asked.flow().is_break());
        assert_eq!(asked.stop_code(), Code::HungUp);
        // A time limit also stops work, with the code of Ctrl-C.
        let free = session(None);
        assert!(!free.is_stopped(0) && free.flow().is_continue());
        assert_eq!(free.stop_code(), Code::Interrupted);
    }
}
