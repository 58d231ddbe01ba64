//! The report of a solve.

use crate::failure::RhsFailure;
use crate::preconditioner::Work;

/// A right-hand side that was given up, with reason and iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GivenUp {
    /// Index of the right-hand side.
    pub rhs: usize,
    /// Reason why the right-hand side was given up.
    pub why: RhsFailure,
    /// Number of iterations of the solve when the right-hand side was given up.
    pub iteration: usize,
}

/// Report of a solve: work done and accuracy reached.
#[derive(Clone, Default, PartialEq)]
pub struct Info {
    /// Number of iterations of the solve. All right-hand sides advance together, so this is the number for the slowest
    /// one.
    pub iterations: usize,
    /// Number of iterations in which each right-hand side was active.
    pub iterations_per_rhs: Vec<usize>,
    /// Whether every true residual is at or below the requested tolerance.
    pub converged: bool,
    /// Indices of the right-hand sides that were given up, in ascending order. The solve continued without them.
    pub failed: Vec<usize>,
    /// Reasons and iterations for the right-hand sides in `failed`; entries that are not known are missing.
    pub given_up: Vec<GivenUp>,
    /// True residual ‖b_j − A x_j‖ / ‖b_j‖ of the returned x for each right-hand side j, computed with the precise
    /// operator; 0 for b_j = 0.
    pub true_residual: Vec<f64>,
    /// Residual history: `history[j][k]` is ‖r_j‖/‖b_j‖ of the recurrence after k iterations; entry 0 is that of the
    /// initial guess. If a reliable update follows an iteration, the entry is the true residual.
    pub history: Vec<Vec<f64>>,
    /// Number of reductions over vectors; the host waits for the result of each.
    pub reductions: usize,
    /// Number of times that the true residual replaced that of the recurrence, including the last check.
    pub reliable_updates: usize,
    /// Number of times that a right-hand side discarded its search directions and continued. In [`gcr`](crate::gcr), each
    /// restart of a right-hand side counts.
    pub restarts: usize,
    /// Number of applications of the precise operator to a block.
    pub precise_applications: usize,
    /// Number of applications of the sloppy operator to a block.
    pub sloppy_applications: usize,
    /// Number of right-hand sides, summed over all applications of the precise operator. Finished right-hand sides that
    /// have left the batch do not count.
    pub precise_rhs: usize,
    /// Number of right-hand sides, summed over all applications of the sloppy operator.
    pub sloppy_rhs: usize,
    /// Work of the preconditioner of [`gcr`](crate::gcr). The other counts of applications and reductions do not
    /// contain this work.
    pub preconditioner: Work,
    /// Number of floating-point operations of all applications, including those in the preconditioner but not linear algebra.
    pub flops: f64,
}

/// Prints all fields except the history. Errors contain an `Info` and are printed, and a history may have tens of thousands
/// of entries.
impl std::fmt::Debug for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Info")
            .field("iterations_per_rhs", &self.iterations_per_rhs)
            .field("converged", &self.converged)
            .field("failed", &self.failed)
            .field("given_up", &self.given_up)
            .field("true_residual", &self.true_residual)
            .field("reductions", &self.reductions)
            .field("reliable_updates", &self.reliable_updates)
            .field("restarts", &self.restarts)
            .field("precise_applications", &self.precise_applications)
            .field("sloppy_applications", &self.sloppy_applications)
            .field("precise_rhs", &self.precise_rhs)
            .field("sloppy_rhs", &self.sloppy_rhs)
            .field("preconditioner", &self.preconditioner)
            .finish_non_exhaustive()
    }
}

/// Returns the larger of two residuals. NaN counts as larger than any number.
pub fn worse_residual(a: f64, b: f64) -> f64 {
    if b <= a || a.is_nan() { a } else { b }
}

/// Returns the largest residual, NaN if one of them is NaN, or 0 if `residuals` is empty.
pub fn worst_residual(residuals: &[f64]) -> f64 {
    residuals.iter().copied().fold(0.0, worse_residual)
}

impl Info {
    /// Creates the report of a solve that has not begun, with memory for `history` residuals of each right-hand side.
    pub(crate) fn begin(nrhs: usize, history: usize) -> Self {
        Self {
            iterations_per_rhs: vec![0; nrhs],
            history: (0..nrhs).map(|_| Vec::with_capacity(history)).collect(),
            true_residual: vec![f64::NAN; nrhs],
            ..Self::default()
        }
    }

    /// Returns the largest true residual of all right-hand sides, or NaN if one of them is NaN.
    pub fn worst_residual(&self) -> f64 {
        worst_residual(&self.true_residual)
    }

    /// Removes right-hand sides from the list of failed ones if `converged`, a check of the caller, returns true for them.
    pub fn forget_converged(&mut self, converged: impl Fn(usize) -> bool) {
        self.failed.retain(|rhs| !converged(*rhs));
        self.given_up.retain(|given_up| !converged(given_up.rhs));
    }

    /// Returns the combined report of this solve and of `next`, a solve that continued from its result.
    pub fn followed_by(mut self, next: Info) -> Info {
        let mut all = next.clone();
        all.history = std::mem::take(&mut self.history);
        for (mine, theirs) in all.history.iter_mut().zip(&next.history) {
            // The first entry of the later history is its initial guess, which is also the last entry of the earlier one.
            mine.extend(theirs.iter().skip(1));
        }
        for (mine, theirs) in all.iterations_per_rhs.iter_mut().zip(&self.iterations_per_rhs) {
            *mine += theirs;
        }
        all.iterations += self.iterations;
        all.reductions += self.reductions;
        all.reliable_updates += self.reliable_updates;
        all.restarts += self.restarts;
        all.precise_applications += self.precise_applications;
        all.sloppy_applications += self.sloppy_applications;
        all.precise_rhs += self.precise_rhs;
        all.sloppy_rhs += self.sloppy_rhs;
        all.preconditioner += self.preconditioner;
        all.flops += self.flops;
        all
    }

    /// Adds the work of `inner`, a solve inside this one. Its residuals are not used, because they belong to another system.
    pub(crate) fn absorb(&mut self, inner: &Info) {
        self.iterations += inner.iterations;
        for (mine, theirs) in self.iterations_per_rhs.iter_mut().zip(&inner.iterations_per_rhs) {
            *mine += theirs;
        }
        self.reductions += inner.reductions;
        self.sloppy_applications += inner.sloppy_applications + inner.precise_applications;
        self.sloppy_rhs += inner.sloppy_rhs + inner.precise_rhs;
        self.preconditioner += inner.preconditioner;
        self.flops += inner.flops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_the_worst() {
        let nan = f64::NAN;
        for residuals in [[nan, 1.0, 2.0], [1.0, nan, 2.0], [1.0, 2.0, nan]] {
            assert!(worst_residual(&residuals).is_nan(), "{residuals:?}");
        }
        assert_eq!((worst_residual(&[1.0, 3.0, 2.0]), worst_residual(&[])), (3.0, 0.0));
    }
}
