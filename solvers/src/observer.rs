//! Events of a running solve that its caller can observe.

use std::ops::ControlFlow;

/// Kind of an event of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationKind {
    /// An iteration of the recurrence. The residuals are those of the recurrence.
    Iterate,
    /// A reliable update: the true residual was computed and the correction added to the solution. The residuals are true.
    ReliableUpdate,
    /// A reliable update at which at least one right-hand side discarded its search directions. The residuals are true.
    Restart,
}

/// Event of a solve: an iteration or an update.
#[derive(Clone, Copy, Debug)]
pub struct Iteration<'a> {
    /// Number of iterations so far.
    pub iteration: usize,
    /// Relative residuals ‖r_j‖ / ‖b_j‖ of all right-hand sides; 0 where b_j = 0.
    pub residuals: &'a [f64],
    /// Kind of the event, which determines the kind of the residuals.
    pub kind: IterationKind,
}

impl Iteration<'_> {
    /// Returns the largest of the residuals, for progress bars.
    pub fn worst(&self) -> f64 {
        self.residuals.iter().copied().fold(0.0, f64::max)
    }
}

/// A step of long work that is not an iteration of a solve, such as a multigrid setup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// Name of the work, for display to users.
    pub work: &'a str,
    /// Fraction of the work that is done, from 0 to 1, in proportion to the time it takes; `None` if unknown.
    pub done: Option<f64>,
}

/// Observer of a solve. It receives every iterate and can stop the solve by returning `Break`.
///
/// On several processes all must return the same value, or they wait for each other forever. Closures `FnMut(&Iteration) ->
/// ControlFlow<()>` are observers, and `()` ignores all events.
pub trait Observer {
    /// Receives the event of each iteration and each update. `Break` ends the solve.
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()>;
    /// Receives each step of work other than iterations. `Break` ends the work with
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
