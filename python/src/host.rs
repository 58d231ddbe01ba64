//! Host work on a thread of its own, so that the interpreter's thread can poll for signals such as Ctrl-C.
use crate::failure::{Returned, caught};
use crate::fork;
use ferrite::solvers::{Iteration, Observer, Step};
use ferrite_tasks::{Failure, Outcome};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time between two polls for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time to wait for work after a stop was requested. Work that takes longer ends by itself later.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Request to stop, which the thread of the work polls.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns whether a stop was requested.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// Returns whether work should continue. The work calls this function between its steps.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
    /// Returns an error if a stop was requested.
    pub fn check(&self) -> Outcome {
        if self.is_asked() { Err(Failure::stopped()) } else { Ok(()) }
    }
}

impl Observer for Stop {
    fn iteration(&mut self, _: &Iteration<'_>) -> ControlFlow<()> {
        self.flow()
    }
    fn step(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        self.flow()
    }
}

/// Effect of Ctrl-C while Python waits for work.
pub enum OnSignal<'a> {
    /// No effect: one of several processes must not end alone, and `mpirun` ends all of them.
    Ignore,
    /// A stop is requested. `KeyboardInterrupt` is raised when the work has ended, or after [`PATIENCE`]. In the latter case the work ends
    /// by itself later, and its outcome is dropped.
    Stop(&'a Stop),
    /// `KeyboardInterrupt` is raised at once. The work continues to its end, and its outcome is dropped.
    Leave,
}

/// Waits for the outcome of work. Releases the interpreter's lock while it waits, and polls for signals.
pub fn wait<T: Send>(py: Python<'_>, mut receive: Receiver<Outcome<T>>, on_signal: &OnSignal<'_>) -> Returned<T> {
    let mut interrupted: Option<(PyErr, Instant)> = None;
    loop {
        let found;
        (receive, found) = py.detach(move || {
            let found = receive.recv_timeout(LOOK);
            (receive, found)
        });
        match (found, interrupted.take()) {
            (Ok(_), Some((signal, _))) => return Err(signal.into()),
            (Ok(done), None) => return Ok(done?),
            (Err(RecvTimeoutError::Disconnected), _) => return Err(Failure::failed("the device is closed").into()),
            (Err(RecvTimeoutError::Timeout), Some((signal, since))) if since.elapsed() > PATIENCE => {
                return Err(signal.into());
            }
            (Err(RecvTimeoutError::Timeout), before) => {
                interrupted = match (before, on_signal) {
                    (None, OnSignal::Ignore) => None,
                    (None, OnSignal::Leave) => {
                        py.check_signals()?;
                        None
                    }
                    (None, OnSignal::Stop(stop)) => py.check_signals().err().map(|signal| {
                        stop.0.store(true, Ordering::Relaxed);
                        (signal, Instant::now())
                    }),
                    (before, _) => before,
                };
            }
        }
    }
}

/// Runs `work` on a thread of its own and waits for it. After Ctrl-C, Python stops waiting, and the thread continues to the end of the
/// work.
pub fn on_host<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Returned<T> {
    let (send, receive) = channel();
    let thread = std::thread::Builder::new().name("ferrite host".into());
    let started = thread.spawn(move || {
        // Nothing receives the outcome after Ctrl-C, or if the interpreter is ending.
        let _ = send.send(caught(|| in_pool(work)));
    });
    started.map_err(|why| Failure::failed(format!("a thread of the CPU cannot be started: {why}")))?;
    wait(py, receive, &OnSignal::Leave)
}

/// Runs work that must not be interrupted, such as writing a file, without the interpreter's lock. Ctrl-C takes effect after the work.
pub fn undisturbed<T: Send>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send) -> Returned<T> {
    Ok(py.detach(|| caught(|| in_pool(work)))?)
}

/// Does work with the threads of this process.
fn in_pool<T: Send>(work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    match fork::pool()? {
        None => work(),
        Some(pool) => pool.install(work),
    }
}
