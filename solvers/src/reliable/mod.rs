//! Reliable updates (Clark et al. 2009, Algorithm 2): the bookkeeping shared by CG, BiCGstab and GCR.
//!
//! The solution is x + x̂: x in the precise space, and x̂, the sum of the steps since the last update, in the sloppy
//! one. An update adds x̂ to x, clears it and replaces the recurrence's residual by b − A x. A right-hand side requests one
//! when ‖r̂_j‖ < δ M_j, M_j being the largest residual since the last update, and **when it seems to have converged**: only a
//! residual from the precise operator finishes a right-hand side.
//!
//! An update concerns all right-hand sides, and costs as much as several iterations. If the first request in a batch triggered
//! an update of all, updates would be far more frequent than each right-hand side needs, so an update is due when half of those
//! that move request one, or when one of them cannot wait longer: ‖r̂_j‖ < δ² M_j, or its recurrence is far below the requested
//! residual ([`URGENT`]). Block CG makes one when every right-hand side requests it.
//!
//! GCR has no recurrence that could continue after an update: all its directions are discarded then. A right-hand side for
//! which an update is due *waits* until all others request one as well, so that none costs another its directions.
//!
//! CG, BiCGstab and GCR let finished right-hand sides leave the batch after an update ([`ReliableSolve::compact`]). Data of a
//! right-hand side is found by its slot from then on; reports are in the caller's order throughout.

mod batch;
mod ending;
mod solve;
mod state;
mod update;

pub(crate) use solve::ReliableSolve;
pub(crate) use state::ReliableState;

use crate::compact::Compaction;
use crate::operator::{Precise, System};

/// Fraction of its target at which an apparently converged right-hand side requests an update without waiting for others.
const URGENT: f64 = 0.1;
/// Maximum number of entries that are reserved for a history; longer histories grow.
pub(crate) const HISTORY: usize = 10_000;

/// Rule by which a method makes reliable updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdatePolicy {
    /// Updates are due when half of the right-hand sides request one; directions are kept (CG, BiCGstab).
    Half,
    /// Updates are due when every right-hand side requests one; all continue together until then (block CG).
    All,
    /// Each update discards all directions (GCR). An update may be due although the recurrence has made little progress, so a
    /// stall counts only if the true residual is far above that of the recurrence.
    Restart,
}

/// Check of the residual that the caller requested, ‖b_j − M x_j‖, for a recurrence that has the residual of another system
/// (CGNR iterates M†(b − M x)).
pub(crate) trait ResidualCheck<Y: System> {
    /// Measures the norms of the residuals of `x`, and writes them to `out`.
    fn measure(&mut self, x: &Precise<Y>, out: &mut [f64]) -> Result<(), Y::Error>;
    /// Whether the check can continue after a compaction.
    fn can_move(&self) -> bool;
    /// Applies a compaction: from now on, x comes in the new order. `scratch` loses its content.
    fn follow(&mut self, compaction: &Compaction, scratch: &mut Precise<Y>) -> Result<(), Y::Error>;
    /// Restores the caller's order of x. The check follows no compactions after this call.
    fn restore(&mut self);
}

/// Measure of convergence for a system that is solved on behalf of another one. Its own residual and right-hand side do not
/// decide.
pub(crate) struct Criterion<'a, Y: System> {
    /// Norms to which tolerances refer; `None` if they refer to ‖b_j‖.
    pub reference: Option<&'a [f64]>,
    /// Norms to which checked residuals refer, in the caller's order, and the check itself.
    pub check: Option<(&'a [f64], &'a mut (dyn ResidualCheck<Y> + 'a))>,
}

impl<Y: System> Default for Criterion<'_, Y> {
    fn default() -> Self {
        Self { reference: None, check: None }
    }
}

/// Returns the power of two that brings `norm` next to the target norm of a format; returns `before` if the format has no
/// target norm, or if `norm` is zero or not finite.
pub(crate) fn scale_for(target: Option<f64>, norm: f64, before: f64) -> f64 {
    /// Largest base-2 exponent of the factor, within the range of single precision.
    const LARGEST: f64 = 100.0;
    match target {
        Some(target) if norm > 0.0 && norm.is_finite() => {
            2f64.powi((target / norm).log2().round().clamp(-LARGEST, LARGEST) as i32)
        }
        _ => before,
    }
}

/// Returns `norm / reference`, and 0 for 0/0.
pub(crate) fn relative(norm: f64, reference: f64) -> f64 {
    if reference == 0.0 && norm == 0.0 { 0.0 } else { norm / reference }
}
