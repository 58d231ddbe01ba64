//! Parameters common to all solvers.

/// Requested accuracy and limits of a solve.
///
/// Every solver takes one of these. Solvers with further parameters have a small struct that contains this one as `solver`:
/// [`GcrParams`](crate::GcrParams), [`BlockCgParams`](crate::BlockCgParams), [`DefectParams`](crate::DefectParams) and
/// [`MultiShiftParams`](crate::MultiShiftParams). They can be made from this one:
/// ```
/// use solvers::{GcrParams, SolverParams};
/// let solver = SolverParams { tol: 1e-8, ..Default::default() };
/// let params = GcrParams { k_max: 8, ..solver.into() };
/// assert_eq!((params.solver.tol, params.k_max), (1e-8, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverParams {
    /// ε: the solve ends when ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for every j, by the true residual. Finite and not negative.
    pub tol: f64,
    /// Maximum number of iterations. An iteration of BiCGstab has two applications, one of IDR(s) s + 1; in
    /// [`defect_correction`](crate::defect_correction) those of the inner solver count, summed over all calls.
    pub max_iterations: usize,
    /// δ of paper 001, Algorithm 2: a right-hand side requests a reliable update when its residual is below δ times the largest
    /// since the last update, or when it seems to have converged. The update is made, for all, when half of the batch requests
    /// one or one cannot wait: its residual is below δ² times the largest, or a tenth of the requested one.
    /// [`block_cg`](crate::block_cg()) makes an update when every right-hand side requests it. In [`gcr`](crate::gcr) (paper
    /// 004, Algorithm 1) an update is a restart.
    ///
    /// At least 0 and below 1. With 0 only apparent convergence counts. `None` is 0.1 for a system of two precisions and 0 for
    /// one. [`defect_correction`](crate::defect_correction) and [`multishift_cg`](crate::multishift_cg) have no reliable
    /// updates.
    pub delta: Option<f64>,
    /// Number of consecutive stalls after which a right-hand side is given up, at least 1. A stall is a reliable update (or a
    /// correction of [`defect_correction`](crate::defect_correction)) whose true residual did not fall, although the
    /// recurrence's did.
    pub max_stalls: usize,
    /// Number of iterations of a right-hand side without a new smallest residual after which it is given up; `Some(0)` for no
    /// limit. `None` is 500 for [`gcr`](crate::gcr), which may stagnate forever because it restarts, and no limit for all
    /// others.
    pub stagnation_window: Option<usize>,
    /// A shorter limit of this kind, for solves that can continue in a higher precision; `None` for none.
    pub patience: Option<Patience>,
    /// Relative size of a quantity at or below which a method breaks down. In [`bicgstab`](crate::bicgstab) it is the cosine of
    /// the angle between two vectors, which then count as orthogonal; in [`gcr`](crate::gcr) the fraction of an image that
    /// remains when it is made orthogonal to those before it; in [`idr`](crate::idr()) again a cosine. Other methods do not
    /// break down.
    pub breakdown: f64,
    /// Number of consecutive restarts after breakdowns without progress, after which a right-hand side is given up; at least 1.
    pub max_breakdowns: usize,
}

/// Limit on the iterations without a new smallest residual, for a right-hand side that the precision may hold back: a number of
/// iterations that grows with those before the smallest residual. A slowly converging solve has long plateaus only after many
/// iterations of progress; one that is limited by rounding has them from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Minimum number of iterations.
    pub least: usize,
    /// Minimum limit as a fraction of the number of iterations up to the smallest residual.
    pub share: f64,
}

impl Default for SolverParams {
    fn default() -> Self {
        Self {
            tol: 1e-10,
            max_iterations: 10_000,
            delta: None,
            max_stalls: 5,
            stagnation_window: None,
            patience: None,
            breakdown: 1e-14,
            max_breakdowns: 5,
        }
    }
}
