//! Parameters common to all solvers.

/// Requested accuracy and limits of a solve.
///
/// Every solver takes one of these. Solvers with further parameters have a small struct that contains this one as `solver`:
/// [`GcrParams`](crate::GcrParams), [`BlockCgParams`](crate::BlockCgParams), [`DefectParams`](crate::DefectParams) and
/// [`MultiShiftParams`](crate::MultiShiftParams). A [`SolverParams`] converts to each of them:
/// ```
/// use solvers::{GcrParams, SolverParams};
/// let solver = SolverParams { tol: 1e-8, ..Default::default() };
/// let params = GcrParams { k_max: 8, ..solver.into() };
/// assert_eq!((params.solver.tol, params.k_max), (1e-8, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolverParams {
    /// Tolerance ε, finite and not negative: the solve ends when the true residual satisfies ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for
    /// every j.
    pub tol: f64,
    /// Maximum number of iterations. An iteration takes two applications in BiCGstab and s + 1 in IDR(s). In
    /// [`defect_correction`](crate::defect_correction), the iterations of the inner solver count, summed over all calls.
    pub max_iterations: usize,
    /// Parameter δ of reliable updates (Clark et al. 2009, Algorithm 2). A right-hand side requests an update when its
    /// residual is below δ times the largest residual since the last update, or when it seems to have converged. All
    /// right-hand sides are updated when half of the batch requests it. A single request suffices if the residual is below
    /// δ² times the largest one, or below a tenth of the requested residual. [`block_cg`](crate::block_cg()) makes an
    /// update when every right-hand side requests it. In [`gcr`](crate::gcr) (Babich et al. 2011, Algorithm 1), an update is
    /// a restart.
    ///
    /// δ must be at least 0 and below 1. With 0, only apparent convergence leads to updates. `None` means 0.1 for a system of
    /// two precisions and 0 for a system of one. [`defect_correction`](crate::defect_correction) and
    /// [`multishift_cg`](crate::multishift_cg) have no reliable updates.
    pub delta: Option<f64>,
    /// Number of consecutive stalls after which a right-hand side is given up, at least 1. A stall is a reliable update (or a
    /// correction of [`defect_correction`](crate::defect_correction)) whose true residual did not fall although that of the
    /// recurrence did.
    pub max_stalls: usize,
    /// Number of iterations without a new smallest residual after which a right-hand side is given up; `Some(0)` for no
    /// limit. `None` means 500 for [`gcr`](crate::gcr), which may stagnate forever because it restarts, and no limit for all
    /// other methods.
    pub stagnation_window: Option<usize>,
    /// Stricter limit on iterations without a new smallest residual, for solves that can continue in a higher precision;
    /// `None` for no such limit.
    pub patience: Option<Patience>,
    /// Relative size of a quantity at or below which a method breaks down. In [`bicgstab`](crate::bicgstab) and
    /// [`idr`](crate::idr()), the quantity is the cosine of the angle between two vectors, which then count as orthogonal. In
    /// [`gcr`](crate::gcr), it is the fraction of an image that remains after orthogonalisation against the previous images.
    /// Other methods do not break down.
    pub breakdown: f64,
    /// Number of consecutive breakdowns without progress after which a right-hand side is given up, at least 1.
    pub max_breakdowns: usize,
}

/// Limit on the iterations of a right-hand side without a new smallest residual, if rounding may limit the solve. The limit
/// grows with the number of iterations up to the smallest residual: a slowly converging solve has long plateaus only after
/// many iterations of progress, whereas a solve limited by rounding has them from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Minimum limit, in iterations.
    pub least: usize,
    /// Limit as a fraction of the number of iterations up to the smallest residual; [`least`](Self::least) applies if it is
    /// larger.
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
