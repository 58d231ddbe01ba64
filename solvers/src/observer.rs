//! Events of a running solve for its caller.

use std::ops::ControlFlow;

/// Kind of an event of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationKind {
    /// An iteration of the recurrence; the residuals are the recurrence's.
    Iterate,
    /// The true residual was computed and the correction added to the solution; the residuals are true.
    ReliableUpdate,
    /// A `ReliableUpdate` at which at least one right-hand side discarded its search directions.
    Restart,
}

/// One event of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Iteration<'a> {
    /// Number of iterations so far.
    pub iteration: usize,
    /// ‖r_j‖ / ‖b_j‖ for every right-hand side, 0 where b_j = 0.
    pub residuals: &'a [f64],
    /// Kind of the residuals.
    pub kind: IterationKind,
}

impl Iteration<'_> {
    /// Returns the largest of the residuals, for progress bars.
    pub fn worst(&self) -> f64 {
        self.residuals.iter().copied().fold(0.0, f64::max)
    }
}

/// A step of long work that is no iteration of a solve, such as a multigrid setup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// Name of the work, for users.
    pub work: &'a str,
    /// Fraction of the work that is done, from 0 to 1, in proportion to the time that it takes; `None` if unknown.
    pub done: Option<f64>,
}

/// Receives every iterate and can stop the solve by returning `Break`.
///
/// On several processes the return value must be the same on all of them, or they wait for each other forever. Closures
/// `FnMut(&Iteration) -> ControlFlow<()>` are observers, and `()` ignores all events.
pub trait Observer {
    /// Called after every iteration and every update.
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()>;
    /// Called after every step of work other than iterations. `Break` ends the work with
    /// [`Cancelled`](crate::SolveError::Cancelled). The default continues.
    fn step(&mut self, _step: &Step<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Observer for () {
    fn iteration(&mut self, _: &Iteration<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Iteration<'_>) -> ControlFlow<()>> Observer for F {
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self(event)
    }
}
