//! Errors of solves.

use crate::failure::{BreakdownKind, RhsFailure};
use crate::info::{GivenUp, Info};
use std::convert::Infallible;
use thiserror::Error;

/// Reason why a solve ended without the requested result.
///
/// If the error has an [`Info`], x contains the best iterate of each right-hand side: the one with the smallest true residual
/// among the initial guess, the iterates of the reliable updates and the last one. `info.true_residual` belongs to it.
/// [`multishift_cg`](crate::multishift_cg) has no reliable updates: it leaves its last iterates, and the residual is the
/// largest of all shifts.
///
/// If one of several right-hand sides cannot be solved, it is given up, and [`cg`](crate::cg()),
/// [`bicgstab`](crate::bicgstab) and [`gcr`](crate::gcr) continue with the others. At the end they return the error of the
/// first right-hand side that was given up; [`Info::given_up`] lists all of them.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SolveError<E: std::error::Error + 'static> {
    /// The maximum number of iterations was reached.
    #[error("no convergence in {iterations} iterations: the true residual is {residual:.3e}")]
    NoConvergence {
        /// Number of iterations that were done.
        iterations: usize,
        /// Largest true residual, relative to ‖b‖.
        residual: f64,
        /// The full report.
        info: Box<Info>,
    },
    /// The residual stopped falling: the system is singular, or the tolerance is below the accuracy of the precision.
    #[error(
        "stagnation after {iterations} iterations: the true residual of right-hand side {rhs} stays at {residual:.3e}{}",
        beside(info, *rhs)
    )]
    Stagnation {
        /// Number of iterations that were done.
        iterations: usize,
        /// The right-hand side that stagnates.
        rhs: usize,
        /// True residual of that right-hand side, relative to ‖b‖.
        residual: f64,
        /// The full report.
        info: Box<Info>,
    },
    /// BiCGstab or GCR broke down repeatedly although it was restarted.
    #[error("breakdown at iteration {iteration}, right-hand side {rhs}: {what}{}", beside(info, *rhs))]
    Breakdown {
        /// Quantity that vanished.
        what: BreakdownKind,
        /// Number of iterations that were done.
        iteration: usize,
        /// The right-hand side that broke down.
        rhs: usize,
        /// The full report.
        info: Box<Info>,
    },
    /// CG met a direction p with (p, A p) ≤ 0.
    #[error(
        "the operator is not Hermitian positive definite: (p, A p) = {curvature:.3e} at iteration {iteration}, \
         right-hand side {rhs}{}",
        beside(info, *rhs)
    )]
    NotPositiveDefinite {
        /// (p, A p).
        curvature: f64,
        /// Number of iterations that were done.
        iteration: usize,
        /// The right-hand side with this direction.
        rhs: usize,
        /// The full report.
        info: Box<Info>,
    },
    /// A reduction gave NaN or infinity. x is the best of the previous iterates, or the initial guess if there are none.
    #[error("not a finite number at iteration {iteration}, right-hand side {rhs}{}", beside(info, *rhs))]
    NotANumber {
        /// Number of iterations that were done.
        iteration: usize,
        /// The first right-hand side with NaN or infinity.
        rhs: usize,
        /// The full report.
        info: Box<Info>,
    },
    /// The observer requested to stop the solve.
    #[error("cancelled after {iteration} iterations")]
    Cancelled {
        /// Number of iterations that were done.
        iteration: usize,
        /// The full report.
        info: Box<Info>,
    },
    /// The norm of a right-hand side is too small or too large for squares of its residuals in double precision: 2^−200 ≤
    /// ‖b_j‖ ≤ 2^200 must hold where b_j ≠ 0. x is undefined.
    #[error(
        "right-hand side {rhs} has a norm outside 1e-60 … 1e60, so that squares of its residuals are outside the range \
         of double precision: multiply it by a power of two, and its solution by the inverse"
    )]
    OutOfRange {
        /// The first right-hand side out of range.
        rhs: usize,
    },
    /// The parameters are invalid.
    #[error("invalid solver parameters: {0}")]
    Invalid(&'static str),
    /// The vector space or the operator failed. x is undefined.
    #[error(transparent)]
    Backend(#[from] E),
}

/// Reason why a solver ended without the requested result, if neither the vector space nor the operator failed.
pub type Unsolved = SolveError<Infallible>;

/// Returns a list of the right-hand sides other than `rhs` that were given up, for a message.
fn beside(info: &Info, rhs: usize) -> String {
    let others: Vec<_> = info.failed.iter().filter(|&&j| j != rhs).map(usize::to_string).collect();
    match others.len() {
        0 => String::new(),
        1 => format!("; right-hand side {} was also given up", others[0]),
        _ => format!("; right-hand sides {} were also given up", others.join(", ")),
    }
}

impl<E: std::error::Error + 'static> SolveError<E> {
    /// Converts this error to [`Unsolved`], the type of errors that are not due to the vector space or the operator.
    ///
    /// # Errors
    /// The error of the vector space or the operator, if this is [`Backend`](Self::Backend).
    pub fn unsolved(self) -> Result<Unsolved, E> {
        Ok(match self {
            Self::NoConvergence { iterations, residual, info } => {
                Unsolved::NoConvergence { iterations, residual, info }
            }
            Self::Stagnation { iterations, rhs, residual, info } => {
                Unsolved::Stagnation { iterations, rhs, residual, info }
            }
            Self::Breakdown { what, iteration, rhs, info } => Unsolved::Breakdown { what, iteration, rhs, info },
            Self::NotPositiveDefinite { curvature, iteration, rhs, info } => {
                Unsolved::NotPositiveDefinite { curvature, iteration, rhs, info }
            }
            Self::NotANumber { iteration, rhs, info } => Unsolved::NotANumber { iteration, rhs, info },
            Self::Cancelled { iteration, info } => Unsolved::Cancelled { iteration, info },
            Self::OutOfRange { rhs } => Unsolved::OutOfRange { rhs },
            Self::Invalid(why) => Unsolved::Invalid(why),
            Self::Backend(error) => return Err(error),
        })
    }

    /// Returns the report of the solve, or `None` if the error has none.
    pub fn info(&self) -> Option<&Info> {
        match self {
            Self::NoConvergence { info, .. }
            | Self::Stagnation { info, .. }
            | Self::Breakdown { info, .. }
            | Self::NotPositiveDefinite { info, .. }
            | Self::NotANumber { info, .. }
            | Self::Cancelled { info, .. } => Some(info),
            Self::OutOfRange { .. } | Self::Invalid(_) | Self::Backend(_) => None,
        }
    }

    /// Returns the report of the solve if all true residuals are at or below `tol`, so that the solve has converged
    /// although it was given up.
    ///
    /// # Errors
    /// This error, if a true residual is above `tol` or the observer stopped the solve.
    pub fn unless_converged(self, tol: f64) -> Result<Info, Self> {
        let good =
            |info: &&Info| !info.true_residual.is_empty() && info.true_residual.iter().all(|residual| *residual <= tol);
        match self.info().filter(good).filter(|_| !matches!(self, Self::Cancelled { .. })) {
            Some(info) => Ok(Info { converged: true, failed: Vec::new(), given_up: Vec::new(), ..info.clone() }),
            None => Err(self),
        }
    }

    /// Creates the error of a right-hand side that was given up.
    pub(crate) fn about(given_up: GivenUp, info: Box<Info>) -> Self {
        let GivenUp { rhs, why, iteration } = given_up;
        match why {
            RhsFailure::NotANumber => Self::NotANumber { iteration, rhs, info },
            RhsFailure::Stagnation | RhsFailure::Plateau => {
                Self::Stagnation { iterations: iteration, rhs, residual: info.true_residual[rhs], info }
            }
            RhsFailure::Breakdown(what) => Self::Breakdown { what, iteration, rhs, info },
            RhsFailure::NotPositiveDefinite(curvature) => Self::NotPositiveDefinite { curvature, iteration, rhs, info },
        }
    }

    /// Returns the error of the first right-hand side that was given up and has not converged according to `converged`,
    /// a check of the caller. Right-hand sides that have converged no longer count as failed. An error that concerns no
    /// right-hand side stays as it is.
    ///
    /// # Errors
    /// This error, if all right-hand sides that were given up have converged.
    pub fn without_converged(mut self, converged: impl Fn(usize) -> bool) -> Result<Self, Self> {
        let (Self::Stagnation { rhs, .. }
        | Self::Breakdown { rhs, .. }
        | Self::NotPositiveDefinite { rhs, .. }
        | Self::NotANumber { rhs, .. }) = self
        else {
            return Ok(self);
        };
        let Some(info) = self.info_mut() else { return Ok(self) };
        let Some(first) = info.given_up.iter().find(|given_up| !converged(given_up.rhs)).copied() else {
            let known = info.given_up.iter().any(|given_up| given_up.rhs == rhs);
            return if known || converged(rhs) { Err(self) } else { Ok(self) };
        };
        info.forget_converged(converged);
        Ok(Self::about(first, Box::new(std::mem::take(info))))
    }

    /// Returns this error with `first` added to the indices of right-hand sides, for a batch that follows others.
    pub fn counted_from(mut self, first: usize) -> Self {
        if let Self::Stagnation { rhs, .. }
        | Self::Breakdown { rhs, .. }
        | Self::NotPositiveDefinite { rhs, .. }
        | Self::NotANumber { rhs, .. }
        | Self::OutOfRange { rhs } = &mut self
        {
            *rhs += first;
        }
        if let Some(info) = self.info_mut() {
            info.failed.iter_mut().for_each(|rhs| *rhs += first);
            info.given_up.iter_mut().for_each(|given_up| given_up.rhs += first);
        }
        self
    }

    /// Returns a mutable reference to the report, if the error has one.
    pub(crate) fn info_mut(&mut self) -> Option<&mut Info> {
        match self {
            Self::NoConvergence { info, .. }
            | Self::Stagnation { info, .. }
            | Self::Breakdown { info, .. }
            | Self::NotPositiveDefinite { info, .. }
            | Self::NotANumber { info, .. }
            | Self::Cancelled { info, .. } => Some(info),
            Self::OutOfRange { .. } | Self::Invalid(_) | Self::Backend(_) => None,
        }
    }

    /// Replaces the report, which describes the last part of a solve, by `whole`, which describes all of it.
    pub(crate) fn replace_info(&mut self, whole: Info) {
        match self {
            Self::NoConvergence { iterations, residual, .. } => {
                (*iterations, *residual) = (whole.iterations, whole.worst_residual());
            }
            Self::Stagnation { iterations, residual, rhs, .. } => {
                (*iterations, *residual) = (whole.iterations, whole.true_residual[*rhs]);
            }
            Self::Breakdown { iteration, .. }
            | Self::NotPositiveDefinite { iteration, .. }
            | Self::NotANumber { iteration, .. }
            | Self::Cancelled { iteration, .. } => *iteration = whole.iterations,
            Self::OutOfRange { .. } | Self::Invalid(_) | Self::Backend(_) => {}
        }
        if let Some(info) = self.info_mut() {
            *info = whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[test]
    fn true_residuals_decide_whether_a_solve_converged() {
        type Any = SolveError<fmt::Error>;
        let info = || Box::new(Info { true_residual: vec![1e-9, 1e-10], failed: vec![1], ..Info::default() });
        let gave_up = || Any::Stagnation { iterations: 7, rhs: 1, residual: 1e-10, info: info() };
        let solved = gave_up().unless_converged(1e-9).unwrap();
        assert!(solved.converged && solved.failed.is_empty());
        assert_eq!(gave_up().unless_converged(9e-10), Err(gave_up()));
        let cancelled = || Any::Cancelled { iteration: 7, info: info() };
        assert_eq!(cancelled().unless_converged(1.0), Err(cancelled()));
        for unknown in [vec![f64::NAN], vec![]] {
            let info = Box::new(Info { true_residual: unknown, ..Info::default() });
            assert!(Any::NotANumber { iteration: 7, rhs: 0, info }.unless_converged(1.0).is_err());
        }
    }

    #[test]
    fn an_error_is_about_a_right_hand_side_that_has_not_converged() {
        type Any = SolveError<fmt::Error>;
        let given_up = |rhs, why| GivenUp { rhs, why, iteration: 5 + rhs };
        let all = [
            given_up(1, RhsFailure::Stagnation),
            given_up(2, RhsFailure::Breakdown(BreakdownKind::Rho)),
            given_up(4, RhsFailure::NotANumber),
        ];
        let info = |given_up: &[GivenUp]| {
            let failed = given_up.iter().map(|given_up| given_up.rhs).collect();
            let (given_up, true_residual) = (given_up.to_vec(), vec![0.0, 0.1, 0.2, 0.3, 0.4]);
            Box::new(Info { failed, given_up, true_residual, ..Info::default() })
        };
        let first = || Any::about(all[0], info(&all));
        let expected = [
            Any::Stagnation { iterations: 6, rhs: 1, residual: 0.1, info: info(&all) },
            Any::Breakdown { what: BreakdownKind::Rho, iteration: 7, rhs: 2, info: info(&all[1..]) },
            Any::NotANumber { iteration: 9, rhs: 4, info: info(&all[2..]) },
        ];
        for (good, expected) in [0, 1, 2].into_iter().zip(expected) {
            assert_eq!(first().without_converged(|rhs| rhs <= good || rhs == 3), Ok(expected));
        }
        assert_eq!(first().without_converged(|rhs| rhs <= 2), Ok(Any::about(all[2], info(&all[2..]))));
        assert_eq!(first().without_converged(|_| true), Err(first()));
        let cancelled = || Any::Cancelled { iteration: 7, info: info(&all) };
        assert_eq!(cancelled().without_converged(|_| true), Ok(cancelled()));
        // An error without further information.
        let alone = || Any::NotANumber { iteration: 7, rhs: 2, info: Box::default() };
        assert_eq!(alone().without_converged(|rhs| rhs < 2), Ok(alone()));
        assert_eq!(alone().without_converged(|rhs| rhs < 3), Err(alone()));
    }

    #[test]
    fn errors_of_the_solver_are_kept_whole() {
        type Any = SolveError<fmt::Error>;
        let info = || Box::new(Info { iterations: 7, failed: vec![1, 2], ..Info::default() });
        let of_solver = [
            Any::NoConvergence { iterations: 7, residual: 0.5, info: info() },
            Any::Stagnation { iterations: 7, rhs: 2, residual: 0.5, info: info() },
            Any::Breakdown { what: BreakdownKind::Omega, iteration: 7, rhs: 2, info: info() },
            Any::NotPositiveDefinite { curvature: -0.5, iteration: 7, rhs: 2, info: info() },
            Any::NotANumber { iteration: 7, rhs: 2, info: info() },
            Any::Cancelled { iteration: 7, info: info() },
            Any::OutOfRange { rhs: 2 },
            Any::Invalid("no tolerance"),
        ];
        for error in of_solver {
            let whole = format!("{error:?}");
            assert_eq!(format!("{:?}", error.unsolved().unwrap()), whole);
        }
        assert_eq!(Any::Backend(fmt::Error).unsolved(), Err(fmt::Error));
    }
}
