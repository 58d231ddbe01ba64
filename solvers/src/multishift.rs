//! Multi-shift conjugate gradients: (A + σ_i) x_i = b for many shifts at the price of one Krylov space.
//!
//! The method is CG-M of Jegerlehner, hep-lat/9612014; see also Babich et al. 2011, eq. 4 and section 8.2. CG on A + σ₀, the *base
//! system* with the smallest shift, is
//!
//! α_k = ‖r_k‖²/(p_k, (A + σ₀) p_k),  r_{k+1} = r_k − α_k (A + σ₀) p_k,  β_k = ‖r_{k+1}‖²/‖r_k‖²,
//! p_{k+1} = r_{k+1} + β_k p_k.
//!
//! From x = 0 the Krylov spaces of all A + σ_i are the same, and CG residuals of the same degree are collinear: r^i_k = ζ^i_k
//! r_k with ζ^i_0 = 1. Each further system therefore costs two vector updates and no application.
//!
//! # The recurrence
//! Eliminating p from CG gives r_{k+1} = (1 + t_k) r_k − α_k (A + σ₀) r_k − t_k r_{k−1} with t_k = α_k β_{k−1}/α_{k−1}
//! and t_0 = 0. Comparing coefficients with the same formula for A + σ_i, δ = σ_i − σ₀ ≥ 0, gives for the ratio
//! ρ_{k+1} = ζ_{k+1}/ζ_k
//!
//! e_{k+1} = δ α_k + t_k g_k,  ρ_{k+1} = 1/(1 + e_{k+1}),  g_{k+1} = 1 − ρ_{k+1} = e_{k+1} ρ_{k+1},  g_0 = 0.
//!
//! **Rounding.** α, t, δ and g are not negative, so e is a sum of positive terms and 1 − ρ is never formed as a
//! difference: each step keeps its digits however small δ is, and 0 < ρ ≤ 1 holds in floating point too.
//!
//! **Range.** ζ is a falling product. System i is dropped as soon as ζ ‖r‖ ≤ τ ‖b‖, and τ ≥ [`SMALLEST_TOLERANCE`] =
//! 10⁻¹⁸. CG keeps ‖r‖ ≤ √κ ‖b‖, κ the condition number of A + σ₀. Hence every ζ from which a step starts is larger
//! than 10⁻¹⁸/√κ and far from underflow; only the step that drops the system can go further down, and its ζ is used
//! once: for the last contribution to x_i, α ζ ≈ 1/δ for a large δ. What remains is the overflow of e itself, at
//! δ α > 10³⁰⁸, and that is reported as not a number.
//!
//! **Directions.** The direction of system i is kept as p^i/ζ^i. With it the updates are
//!
//! x_i ← x_i + α_k ζ_{k+1} p_i,  p_i ← r_{k+1} + β_k ρ_{k+1} p_i,
//!
//! so that p_i has the size of r, in any format, whatever ζ is, and the coefficient of r is 1.
//!
//! # Order of work
//! Only the base system's direction is needed for the next application, and an iteration needs two sums
//! ([`LinearOperator::cg_step`](crate::LinearOperator::cg_step), where the first one may be known on the device only). Updates
//! of other systems can therefore overlap with the two reductions of the *next* iteration: a device executes them while sums
//! are transferred to the host, and coefficients back. [`VectorSpace::overlapped_updates`] is the number of updates for which
//! that pays. They need r_{k+1} until then, hence r_{k+2} takes the place of (A + σ₀) p, and the two blocks exchange their
//! roles.

mod solve;
mod workspace;

pub use workspace::MultiShiftWorkspace;

use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::params::SolverParams;
use crate::stopping::ROUNDING;
use crate::traits::{LinearOperator, VectorSpace};
use solve::MultiShiftSolve;

/// Minimum tolerance. With a smaller one, the recurrence would run on until it underflows.
const SMALLEST_TOLERANCE: f64 = ROUNDING;

/// Parameters of [`multishift_cg`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiShiftParams<'a> {
    /// Parameters common to all solvers. System i is dropped for right-hand side j when the residual of the recurrence is at
    /// most τ_i ‖b_j‖. τ_i is `tol` for all shifts, unless [`tolerances`](Self::tolerances) are given. The
    /// `stagnation_window` applies to the residual of the base system, that of the smallest shift.
    pub solver: SolverParams,
    /// Tolerances τ_i: one entry for each shift, or a single entry for all shifts; empty if `solver.tol` applies to
    /// all. Each tolerance must be at least 10⁻¹⁸, including `solver.tol` if it applies.
    pub tolerances: &'a [f64],
    /// Whether all systems continue until the base system, that of the smallest shift, reaches its tolerance, as in MILC's
    /// code. The tolerances of the other systems are ignored in this case. Otherwise each system is dropped at its own
    /// tolerance.
    pub together: bool,
    /// Whether to compute the true residuals b_j − (A + σ_i) x_ij for all i at the end, which takes one application for each
    /// shift. Without it only the residuals of the recurrence are known; the lower the precision, the less reliable they are.
    pub check: bool,
}

impl Default for MultiShiftParams<'_> {
    fn default() -> Self {
        SolverParams::default().into()
    }
}

impl From<SolverParams> for MultiShiftParams<'_> {
    fn from(solver: SolverParams) -> Self {
        Self { solver, tolerances: &[], together: false, check: true }
    }
}

impl MultiShiftParams<'_> {
    fn tolerance(&self, shift: usize) -> f64 {
        match self.tolerances {
            [] => self.solver.tol,
            [one] => *one,
            each => each[shift],
        }
    }

    fn validate<E: std::error::Error>(&self, shifts: &[f64]) -> Result<(), SolveError<E>> {
        if shifts.is_empty() {
            return Err(SolveError::Invalid("a multi-shift solve needs at least one shift"));
        }
        if self.tolerances.len() > 1 && self.tolerances.len() != shifts.len() {
            return Err(SolveError::Invalid("a multi-shift solve needs one tolerance, or one for each shift"));
        }
        let meaningful = |tol: f64| tol >= SMALLEST_TOLERANCE && tol.is_finite();
        if !(0..shifts.len()).all(|shift| meaningful(self.tolerance(shift))) {
            return Err(SolveError::Invalid(
                "the tolerances of a multi-shift solve must be finite and at least 1e-18, the limit of double precision",
            ));
        }
        let (low, high) = shifts.iter().fold((shifts[0], shifts[0]), |(low, high), s| (s.min(low), s.max(high)));
        // The minimum and maximum ignore NaN, so each shift is checked.
        if !(shifts.iter().all(|s| s.is_finite()) && (high - low).is_finite()) {
            return Err(SolveError::Invalid("the shifts and their differences must be finite numbers"));
        }
        Ok(())
    }
}

/// Result of [`multishift_cg`] for one shift.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftInfo {
    /// Shift σ_i.
    pub shift: f64,
    /// Iteration after which each right-hand side was dropped.
    pub iterations: Vec<usize>,
    /// Residual ‖b_j − (A + σ_i) x_ij‖ / ‖b_j‖ of the recurrence when right-hand side j was dropped; 0 for b_j = 0.
    pub residual: Vec<f64>,
    /// True residual ‖b_j − (A + σ_i) x_ij‖ / ‖b_j‖ from the operator, in the precision of the solve; NaN if it was not
    /// computed.
    pub true_residual: Vec<f64>,
}

/// Report of [`multishift_cg`], for the whole solve and for each shift.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiShiftInfo {
    /// Report of the whole solve. The history is that of the base system, whose residual is the largest of all. For each
    /// right-hand side, `true_residual` is the largest of all shifts, or NaN without [`check`](MultiShiftParams::check).
    /// `converged` is true if all residuals were computed and are within their tolerances, so it is false without `check`.
    /// Applications in the iteration count as sloppy ones, those of the check as precise.
    pub whole: Info,
    /// Results of the shifts, in the order in which the caller passed the shifts.
    pub shifts: Vec<ShiftInfo>,
}

/// Solves (A + σ_i) x_ij = b_j for all shifts σ_i and right-hand sides j by multi-shift conjugate gradients
/// (Jegerlehner, hep-lat/9612014; Babich et al. 2011, eq. 4), in one precision.
///
/// A must be Hermitian and A + min σ positive definite. The shifts may come in any order, and may be repeated. An iteration
/// takes one application and two reductions, as in [`cg`](crate::cg()), and one [`shift_update`](VectorSpace::shift_update)
/// of all systems that still move. The number of iterations is that of CG on the smallest shift, unless a larger shift has so
/// small a tolerance that it takes longer.
///
/// Right-hand sides that are finished for all shifts leave the batch, if space and operator can
/// [narrow](VectorSpace::narrow).
///
/// `x` has one block for each shift. Its content on entry is ignored, because the method has to start from zero. On exit
/// `x[i]` is the solution for `shifts[i]`.
///
/// # Meaning of the result
/// Residuals of all systems have to stay multiples of one vector, so there are no reliable updates: `Ok` means that the
/// **recurrence** fell below each tolerance. In low precision the true residual may be much larger. With
/// [`check`](MultiShiftParams::check) the report has the true residuals of this precision, and `whole.converged` compares
/// them with the tolerances. To get further (Babich et al. 2011, section 8.2), solve each system by [`cg`](crate::cg()) on a
/// [`Mixed`](crate::Mixed) system of [`Shifted`](crate::Shifted) operators, with `x[i]` as initial guess.
///
/// The method does not scale vectors: b and x have the same format, and digits of b that this format cannot represent are
/// lost before the solve. In formats of limited range ([`VectorSpace::target_norm`]), b should be brought near the target
/// norm when it is converted. Even so, the solve ends when the residual leaves the range, after it has fallen by three or
/// four digits. Such formats are not recommended here.
///
/// # Errors
/// `NoConvergence`, `Stagnation`, `NotPositiveDefinite`, `NotANumber`, `Cancelled`, `Invalid`, `Backend`. All except the last
/// two leave the last iterates in x; those of dropped systems are from the iteration in which they were dropped. These errors
/// carry the [`whole`](MultiShiftInfo::whole) of the report, with true residuals even if no check was requested.
#[allow(clippy::too_many_arguments)] // the operator and its space come apart: there is no second precision to pair
pub fn multishift_cg<S: VectorSpace, A: LinearOperator<S> + ?Sized>(
    space: &S,
    operator: &A,
    shifts: &[f64],
    b: &S::Vector,
    x: &mut [S::Vector],
    params: &MultiShiftParams<'_>,
    workspace: &mut MultiShiftWorkspace<S>,
    observer: &mut dyn Observer,
) -> Result<MultiShiftInfo, SolveError<S::Error>> {
    // x_i = 0, p_i = r = b, ζ_i = 1
    let mut run = MultiShiftSolve::begin(space, operator, shifts, b, x, params, workspace)?;
    while !run.finished() {
        run.check_limit()?;
        run.compact()?;
        // α_k = ‖r_k‖²/(p_k, (A + σ₀) p_k), r_{k+1} = r_k − α_k (A + σ₀) p_k
        run.base_step()?;
        // β_k = ‖r_{k+1}‖²/‖r_k‖²
        run.find_beta();
        // ρ_{k+1} = 1/(1 + δ α_k + t_k g_k), ζ_{k+1} = ρ_{k+1} ζ_k
        run.find_zeta();
        // x_i ← x_i + α_k ζ_{k+1} p_i, p_i ← r_{k+1} + β_k ρ_{k+1} p_i
        run.update()?;
        run.close(observer)?;
    }
    run.succeed()
}
