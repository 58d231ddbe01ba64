//! Results and failures of a solve.
use super::choice::MethodChange;
use super::methods::Method;
use super::schwarz::SchwarzError;
use crate::domain::DeviceError;
use crate::field::host::{Fermion, HostField, Spinor};
use crate::multigrid::{LevelCheck, MultigridError};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{Info, SolveError, Unsolved};

/// Error of a solver on fields.
pub(super) type EscalationError = SolveError<DeviceError>;

/// Precision escalation: the reason why the solve could not continue in its previous formats, and the formats in which it continued from
/// the best iterate.
#[derive(Clone, Debug, PartialEq)]
pub struct Escalation {
    /// Number of iterations before the escalation.
    pub iterations: usize,
    /// Reason why the solver gave up, with the solver's report since the previous escalation.
    pub reason: Unsolved,
    /// Precision of the iteration after the escalation.
    pub precision: Precision,
    /// Precision of the solver's true residuals after the escalation.
    pub outer: Precision,
    /// Storage of the links after the escalation.
    pub reconstruction: LinkStorage,
}

/// Report of a solve. Its residuals ‖η − M ψ‖ / ‖η‖ are those of the full system, computed at the end in double precision with the unfused
/// operator.
#[derive(Clone, Debug)]
pub struct Report {
    /// Report of the solver, for the Schur complement.
    pub info: Info,
    /// True residual ‖η − M ψ‖ / ‖η‖ of each right-hand side.
    pub true_residual: Vec<f64>,
    /// Whether every true residual is at or below the tolerance. It is false if a source is not a number, or if the tolerance is below what
    /// double precision can reach.
    pub converged: bool,
    /// Precision of the iteration at the end of the solve.
    pub precision: Precision,
    /// Precision of the solver's true residuals at the end of the solve.
    pub outer: Precision,
    /// Precision escalations of the solve.
    pub escalations: Vec<Escalation>,
    /// Method with which the solve ended.
    pub method: &'static Method,
    /// Changes of the method during the solve.
    pub method_changes: Vec<MethodChange>,
    /// Methods that were used, in the order of their first use; empty if the solve was stopped before the first one.
    pub tried: Vec<&'static Method>,
    /// Method that was not tried and may help, if the solver failed and there is such a method.
    pub may_help: Option<&'static Method>,
    /// Reason why a solver gave up although the true residuals of its solutions are at or below the tolerance; `None` otherwise.
    pub gave_up: Option<Unsolved>,
    /// Storage of the links. It differs from the requested one if that cannot represent all links; for example, it has 12 reals if 8 were
    /// requested but the first row of a link is (a, 0, 0).
    pub reconstruction: LinkStorage,
    /// Report of multigrid, if multigrid was the method.
    pub multigrid: Option<MultigridReport>,
    /// Duration of the iteration, in seconds, without transfers between host and device.
    pub seconds: f64,
    /// Duration of the solve, in seconds, from the first transfer to the last one.
    pub total_seconds: f64,
    /// Rate of operator applications during [`seconds`](Self::seconds), in 10⁹ operations per second.
    pub gflops: f64,
}

/// Report of multigrid in a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MultigridReport {
    /// Duration of the setup, in seconds, even if an earlier solve made the setup.
    pub setup_seconds: f64,
    /// Levels of multigrid, the finest one first.
    pub levels: Vec<MultigridLevel>,
}

/// Description of a level of multigrid, and its work in a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MultigridLevel {
    /// Extents of the level's lattice on each process.
    pub lattice: [usize; 4],
    /// Extents of an aggregate, if there is a coarser level.
    pub block: Option<[usize; 4]>,
    /// Number of near-null vectors, if there is a coarser level.
    pub vectors: Option<usize>,
    /// Total number of iterations of the level's solver.
    pub iterations: usize,
    /// Time spent on this level and on coarser levels, in seconds.
    pub seconds: f64,
    /// Result of the check after the setup, if it was requested and there is a coarser level.
    pub check: Option<LevelCheck>,
}

/// Reason why a solve has no solution.
#[derive(Debug, thiserror::Error)]
pub enum SolveFailure<T: Fermion = Spinor> {
    /// A solver that could not start.
    #[error(transparent)]
    Solver(SolveError<DeviceError>),
    /// A preconditioner of GCR-DD that cannot be made.
    #[error(transparent)]
    Schwarz(#[from] SchwarzError),
    /// A multigrid setup that cannot be made.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// A solver that gave up, or that the observer stopped.
    #[error("{error}")]
    Unfinished {
        /// Reason why the solver ended.
        #[source]
        error: Unsolved,
        /// Best iterate of each right-hand side.
        solutions: Vec<HostField<T>>,
        /// Report of the solve that ended.
        report: Box<Report>,
    },
    /// A right-hand side whose solution double precision cannot hold: the largest element is above 1.8·10³⁰⁸ or below 2.2·10⁻³⁰⁸.
    #[error(
        "double precision cannot represent the solution of right-hand side {0}: its largest element is above 1.8e308 \
         or below 2.2e-308; scale the source so that it is nearer to 1"
    )]
    OutOfRange(usize),
    /// Failure of the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl<T: Fermion> SolveFailure<T> {
    /// Applies `change` to the solutions of the failure, if it has any.
    pub(super) fn with_solutions(self, change: impl FnOnce(Vec<HostField<T>>) -> Vec<HostField<T>>) -> Self {
        match self {
            SolveFailure::Unfinished { error, solutions, report } => {
                SolveFailure::Unfinished { error, solutions: change(solutions), report }
            }
            other => other,
        }
    }
    /// Converts the failure to one for another type of field, and drops its solutions.
    pub(super) fn forget_solutions<U: Fermion>(self) -> SolveFailure<U> {
        match self {
            SolveFailure::Solver(error) => SolveFailure::Solver(error),
            SolveFailure::Schwarz(error) => SolveFailure::Schwarz(error),
            SolveFailure::Multigrid(error) => SolveFailure::Multigrid(error),
            SolveFailure::Unfinished { error, report, .. } => {
                SolveFailure::Unfinished { error, solutions: Vec::new(), report }
            }
            SolveFailure::OutOfRange(rhs) => SolveFailure::OutOfRange(rhs),
            SolveFailure::Device(error) => SolveFailure::Device(error),
        }
    }
    /// Returns the failure of a batch, with right-hand sides counted after the `first` ones before the batch.
    pub(super) fn counted_from(self, first: usize) -> Self {
        match self {
            SolveFailure::OutOfRange(rhs) => SolveFailure::OutOfRange(first + rhs),
            other => other,
        }
    }
}

/// Returns the rate of `flops` operations in `seconds`, in 10⁹ operations per second; 0 if there was nothing to do.
pub(super) fn gflops(flops: f64, seconds: f64) -> f64 {
    if flops == 0.0 { 0.0 } else { flops / seconds * 1e-9 }
}
