//! Counters of the work of a level of a multigrid cycle.

use std::cell::Cell;
use std::time::Instant;

/// Counters of a level, summed over all calls since the level was created or its report was reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelReport {
    /// Number of calls.
    pub calls: usize,
    /// Number of iterations in all calls. The solver or level that makes the report defines what an iteration is.
    pub iterations: usize,
    /// Wall-clock time of this process in all calls, in seconds, including all inner parts. If operations are queued for a
    /// device, it is the time until they were queued; only reductions wait for their results.
    pub seconds: f64,
}

/// Counters of a [`LevelReport`] that a preconditioner updates.
#[derive(Default)]
pub(super) struct Counters(Cell<LevelReport>);

impl Counters {
    pub fn get(&self) -> LevelReport {
        self.0.get()
    }
    pub fn reset(&self) {
        self.0.take();
    }
    /// Adds a call that began at `started` and ends now to the counters.
    pub fn add(&self, started: Instant, iterations: usize) {
        let mut report = self.0.get();
        report.calls += 1;
        report.iterations += iterations;
        report.seconds += started.elapsed().as_secs_f64();
        self.0.set(report);
    }
}
