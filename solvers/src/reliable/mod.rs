//! What CG, BiCGstab and GCR share: the bookkeeping of reliable updates (paper 001, Algorithm 2).
//!
//! The solution is x + x̂: x in the precise space, and x̂, the sum of the steps since the last update, in the sloppy
//! one. An update adds x̂ to x, clears it and replaces the recurrence's residual by b − A x. A right-hand side wants one
//! when ‖r̂_j‖ < δ M_j, M_j being the largest residual since the last update, and **when it seems to have converged**: only
//! a residual from the precise operator finishes a right-hand side.
//!
//! An update is one of all right-hand sides, and costs as much as several iterations. Of a batch the first to want one
//! would have all of them updated far more often than each needs it, so an update is due when half of those that move want
//! one, or one of them has gone on for too long: ‖r̂_j‖ < δ² M_j, or it claims more than was asked for ([`URGENT`]). Block CG
//! makes one when every right-hand side wants it.
//!
//! GCR has no recurrence that could go on after an update: all its directions are forgotten then. A right-hand side for
//! which an update is due *waits* until all others want one too, so that none costs another its directions.
//!
//! CG, BiCGstab and GCR let right-hand sides that are finished leave the batch after an update ([`Run::compact`]). What
//! belongs to a right-hand side is found by its slot from then on; reports are in the caller's order throughout.

mod batch;
mod ending;
mod outer;
mod run;
mod update;

pub(crate) use ending::{Trouble, failure};
pub(crate) use outer::Outer;
pub(crate) use run::Run;

use crate::compact::Plan;
use crate::error::SolveError;
use crate::operator::{Precise, System};

/// A residual counts as progress when it is below this fraction of the best one so far.
pub(crate) const PROGRESS: f64 = 0.9;
/// Wrong claims of convergence without progress in between after which the precision is blamed.
const FALSE_CLAIMS: usize = 4;
/// A right-hand side that claims to have converged waits for others no longer when its residual has fallen to this fraction
/// of what it is to be.
const URGENT: f64 = 0.1;
/// No residual relative to ‖b‖ below this means anything in double precision.
pub(crate) const ROUNDING: f64 = 1e-18;
/// Histories are reserved for this many iterations at most; longer ones grow.
pub(crate) const HISTORY: usize = 10_000;

/// The parameters that all solvers with reliable updates have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub tol: f64,
    pub max_iterations: usize,
    pub delta: Option<f64>,
    pub max_stalls: usize,
    pub stagnation_window: usize,
    /// Whether each update forgets all directions (GCR). Updates may then be due when nothing much was promised: only
    /// a truth that is far from the recurrence counts against the precision.
    pub restarting: bool,
    /// Whether an update is due only when each right-hand side wants one: where all go on together in any case.
    pub together: bool,
}

impl Control {
    pub fn check<E: std::error::Error>(&self) -> Result<(), SolveError<E>> {
        if !(self.tol >= 0.0 && self.tol.is_finite()) {
            return Err(SolveError::Invalid("the tolerance has to be a finite number that is not negative"));
        }
        if self.delta.is_some_and(|delta| !(0.0..1.0).contains(&delta)) {
            return Err(SolveError::Invalid("δ has to be at least 0 (off) and below 1"));
        }
        if self.max_stalls == 0 {
            return Err(SolveError::Invalid("max_stalls has to be at least 1"));
        }
        Ok(())
    }
}

/// Measures the residual the caller cares about, ‖b_j − M x_j‖, where the iterated one is that of another system
/// (CGNR iterates M†(b − M x)).
pub(crate) trait Judge<Y: System> {
    /// Measures.
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error>;
    /// Whether it can follow a plan.
    fn can_move(&self) -> bool;
    /// Follows a plan: x comes in another order from now on. `scratch` loses its content.
    fn follow(&mut self, plan: &Plan, scratch: &mut Precise<Y>) -> Result<(), Y::Error>;
    /// x comes in the caller's order again, and follows no more plans.
    fn restore(&mut self);
}

/// What differs between a plain solve and one made on behalf of another system.
pub(crate) struct Claim<'a, Y: System> {
    /// The norms that tolerances refer to; ‖b_j‖ where absent.
    pub reference: Option<&'a [f64]>,
    /// The norms that judged residuals refer to, in the caller's order, and the judge.
    pub judge: Option<(&'a [f64], &'a mut (dyn Judge<Y> + 'a))>,
}

impl<Y: System> Default for Claim<'_, Y> {
    fn default() -> Self {
        Self { reference: None, judge: None }
    }
}

/// The power of two that brings `norm` next to the comfortable norm of a format; `before` where that has no meaning.
pub(crate) fn scale_for(comfortable: Option<f64>, norm: f64, before: f64) -> f64 {
    /// Keeps the factor in the range of single precision.
    const LARGEST: f64 = 100.0;
    match comfortable {
        Some(target) if norm > 0.0 && norm.is_finite() => {
            2f64.powi((target / norm).log2().round().clamp(-LARGEST, LARGEST) as i32)
        }
        _ => before,
    }
}

/// `norm / reference`, with 0/0 = 0 for right-hand sides that vanish.
pub(crate) fn relative(norm: f64, reference: f64) -> f64 {
    if reference == 0.0 && norm == 0.0 { 0.0 } else { norm / reference }
}
