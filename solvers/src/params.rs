//! The parameters that all solvers have.

/// What a solver is asked for, and when it gives up.
///
/// Every solver takes one of these. Those that need more have a small struct of their own with this one in it, as
/// `solver`: [`GcrParams`](crate::GcrParams), [`BlockCgParams`](crate::BlockCgParams),
/// [`DefectParams`](crate::DefectParams) and [`MultiShiftParams`](crate::MultiShiftParams). They can be made from this
/// one:
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
    /// Most iterations. One of BiCGstab has two applications, one of IDR(s) s + 1; in [`defect_correction`](crate::defect_correction) those of
    /// the inner solver count, all calls together.
    pub max_iterations: usize,
    /// δ of paper 001, Algorithm 2: a right-hand side wants a reliable update when its residual is below δ times the
    /// largest since the last update, or when it seems to have converged. One is made, of all, when half of the batch
    /// want one or one cannot wait: its residual is below δ² times the largest, or a tenth of what is asked for.
    /// [`block_cg`](crate::block_cg()) makes one when every right-hand side wants it. In [`gcr`](crate::gcr) (paper 004,
    /// Algorithm 1) an update is a restart.
    ///
    /// At least 0 and below 1. With 0 only those count that seem to have converged. `None` is 0.1 for a system of two
    /// precisions and 0 for one. [`defect_correction`](crate::defect_correction) and
    /// [`multishift_cg`](crate::multishift_cg) have no reliable updates.
    pub delta: Option<f64>,
    /// Stalls in a row after which a right-hand side is given up, at least 1. A stall is a reliable update (or a
    /// correction of [`defect_correction`](crate::defect_correction)) whose true residual did not fall, although the
    /// recurrence's did.
    pub max_stalls: usize,
    /// Iterations of a right-hand side without a new smallest residual after which it is given up; `Some(0)` for no such
    /// limit. `None` is 500 for [`gcr`](crate::gcr), which may stay where it is for ever because it restarts, and no limit
    /// for all others.
    pub stagnation_window: Option<usize>,
    /// A shorter limit of this kind, for solves that can go on in a higher precision; `None` for none.
    pub patience: Option<Patience>,
    /// How small a quantity has to be in proportion for a breakdown. In [`bicgstab`](crate::bicgstab) it is the cosine of
    /// the angle between two vectors, which count as orthogonal at or below it; in [`gcr`](crate::gcr) the fraction of an
    /// image that is left when it is orthogonal to those before it; in [`idr`](crate::idr()) a cosine again. Others do not break down.
    pub breakdown: f64,
    /// Restarts in a row after breakdowns without progress, after which a right-hand side is given up; at least 1.
    pub max_breakdowns: usize,
}

/// How long a right-hand side may go without a new smallest residual where the precision may be what keeps it: a number of
/// iterations that grows with those that the smallest residual took. A solve that is slow by nature has long plateaus only
/// after many iterations of progress; one that rounding keeps where it is has them from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// At least these iterations.
    pub least: usize,
    /// At least this share of the iterations after which the smallest residual was reached.
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
