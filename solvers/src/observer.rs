//! What a caller sees of a running solve.

use std::ops::ControlFlow;

/// What has just happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationKind {
    /// An iteration of the recurrence; the residuals are the recurrence's.
    Iterate,
    /// The true residual was computed and the solution summed up; the residuals are true.
    ReliableUpdate,
    /// As `ReliableUpdate`, and at least one right-hand side forgot its search directions.
    Restart,
}

/// One event of a solve.
#[derive(Clone, Copy, Debug)]
pub struct Iteration<'a> {
    /// Iterations done so far.
    pub iteration: usize,
    /// ‖r_j‖ / ‖b_j‖ for every right-hand side, 0 where b_j = 0.
    pub residuals: &'a [f64],
    /// Which residuals these are.
    pub kind: IterationKind,
}

impl Iteration<'_> {
    /// The largest of the residuals: the one progress bars want.
    pub fn worst(&self) -> f64 {
        self.residuals.iter().copied().fold(0.0, f64::max)
    }
}

/// A step of long work that is no iteration of a solve, such as a multigrid setup.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// Name of the work, for people.
    pub work: &'a str,
    /// Share of the work that is done, from 0 to 1, in proportion to the time that it takes; `None` where nobody knows.
    pub done: Option<f64>,
}

/// Sees every iterate and can stop the solve by returning `Break`.
///
/// On several processes the answer must be the same on all of them, or they wait for each other forever.
/// Closures `FnMut(&Iteration) -> ControlFlow<()>` are observers, and `()` is the one that does not look.
pub trait Observer {
    /// Called after every iteration and every update.
    fn iteration(&mut self, event: &Iteration<'_>) -> ControlFlow<()>;
    /// Called after every step of work beside the iterations. `Break` ends the work with
    /// [`Cancelled`](crate::SolveError::Cancelled). Goes on unless it is overridden.
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
