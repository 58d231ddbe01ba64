//! What a level of a multigrid cycle has done.

use std::cell::Cell;
use std::time::Instant;

/// Counters of one level, summed over all calls since it was made or since its counters were reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelReport {
    /// Calls.
    pub calls: usize,
    /// Iterations in all calls. What an iteration is, is said where the report comes from.
    pub iterations: usize,
    /// Seconds on the clock of this process in all calls, everything inside them included. Where operations are queued for
    /// a device, this is the time until they were queued; only reductions wait for their results.
    pub seconds: f64,
}

/// A [`LevelReport`] that a preconditioner keeps.
#[derive(Default)]
pub(super) struct Counters(Cell<LevelReport>);

impl Counters {
    pub fn get(&self) -> LevelReport {
        self.0.get()
    }
    pub fn reset(&self) {
        self.0.take();
    }
    /// Adds a call that ends now.
    pub fn add(&self, started: Instant, iterations: usize) {
        let mut report = self.0.get();
        report.calls += 1;
        report.iterations += iterations;
        report.seconds += started.elapsed().as_secs_f64();
        self.0.set(report);
    }
}
