//! Counters of the work of a level of a multigrid cycle.

use std::cell::Cell;
use std::time::Instant;

/// Counters of one level, summed over all calls since its creation or since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelReport {
    /// Number of calls.
    pub calls: usize,
    /// Number of iterations in all calls. The source of the report defines what an iteration is.
    pub iterations: usize,
    /// Wall-clock seconds of this process in all calls, including everything inside them. If operations are queued for a
    /// device, this is the time until they were queued; only reductions wait for their results.
    pub seconds: f64,
}

/// A [`LevelReport`] kept by a preconditioner.
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
