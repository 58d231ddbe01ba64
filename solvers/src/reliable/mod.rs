//! What CG, BiCGstab and GCR share: the bookkeeping of reliable updates (paper 001, Algorithm 2).
//!
//! The solution is x + x̂: x in the precise space, and x̂, the sum of the steps since the last update, in the sloppy
//! one. An update adds x̂ to x, clears it and replaces the recurrence's residual by b − A x. A right-hand side wants one
//! when ‖r̂_j‖ < δ M_j, M_j being the largest residual since the last update, and **when it seems to have converged**: only
//! a residual from the precise operator finishes a right-hand side.
//!
//! An update is one of all right-hand sides, and costs as much as several iterations. Of a batch the first to want one
//! would have all of them updated far more often than each needs it, so an update is due when half of those that move want
//! one, or one of them has gone on for too long: ‖r̂_j‖ < δ² M_j, or its recurrence is far below what was asked for
//! ([`URGENT`]). Block CG makes one when every right-hand side wants it.
//!
//! GCR has no recurrence that could go on after an update: all its directions are forgotten then. A right-hand side for
//! which an update is due *waits* until all others want one too, so that none costs another its directions.
//!
//! CG, BiCGstab and GCR let right-hand sides that are finished leave the batch after an update
//! ([`ReliableSolve::compact`]). What belongs to a right-hand side is found by its slot from then on; reports are in the
//! caller's order throughout.

mod batch;
mod ending;
mod solve;
mod state;
mod update;

pub(crate) use solve::ReliableSolve;
pub(crate) use state::ReliableState;

use crate::compact::Compaction;
use crate::operator::{Precise, System};

/// A right-hand side that seems to have converged waits for others no longer when its residual has fallen to this fraction
/// of what it is to be.
const URGENT: f64 = 0.1;
/// Histories are reserved for this many iterations at most; longer ones grow.
pub(crate) const HISTORY: usize = 10_000;

/// What a method does at reliable updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdatePolicy {
    /// One is due when half of the right-hand sides want one, and directions are kept (CG, BiCGstab).
    Half,
    /// One is due when each right-hand side wants one: where all go on together in any case (block CG).
    All,
    /// Each update forgets all directions (GCR). Updates may then be due when the recurrence has not got far: only a true
    /// residual that is far from the recurrence's counts against the precision.
    Restart,
}

/// Measures the residual that the caller asked for, ‖b_j − M x_j‖, where the recurrence has that of another system (CGNR
/// iterates M†(b − M x)).
pub(crate) trait ResidualCheck<Y: System> {
    /// Measures.
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error>;
    /// Whether it can follow a compaction.
    fn can_move(&self) -> bool;
    /// Follows a compaction: x comes in another order from now on. `scratch` loses its content.
    fn follow(&mut self, compaction: &Compaction, scratch: &mut Precise<Y>) -> Result<(), Y::Error>;
    /// x comes in the caller's order again, and follows no more compactions.
    fn restore(&mut self);
}

/// What convergence is measured by: not the system's own residual and right-hand side where it is solved on behalf of
/// another.
pub(crate) struct Criterion<'a, Y: System> {
    /// The norms that tolerances refer to; ‖b_j‖ where absent.
    pub reference: Option<&'a [f64]>,
    /// The norms that checked residuals refer to, in the caller's order, and the check.
    pub check: Option<(&'a [f64], &'a mut (dyn ResidualCheck<Y> + 'a))>,
}

impl<Y: System> Default for Criterion<'_, Y> {
    fn default() -> Self {
        Self { reference: None, check: None }
    }
}

/// The power of two that brings `norm` next to the target norm of a format; `before` where that has no meaning.
pub(crate) fn scale_for(target: Option<f64>, norm: f64, before: f64) -> f64 {
    /// Keeps the factor in the range of single precision.
    const LARGEST: f64 = 100.0;
    match target {
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
