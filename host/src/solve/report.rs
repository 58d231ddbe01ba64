//! What came out of a solve.
use super::choice::MethodChange;
use super::methods::Method;
use super::request::SchwarzError;
use crate::domain::DeviceError;
use crate::field::host::{Fermion, HostField, Spinor};
use crate::multigrid::{LevelCheck, MultigridError};
use gpu_kernels::{LinkStorage, Precision};
use solvers::{Info, SolveError, Unsolved};

/// The error of a solver on fields.
pub(super) type EscalationError = SolveError<DeviceError>;

/// A precision escalation: why the solve could not go on as it was, and how it went on from the best iterate.
#[derive(Clone, Debug, PartialEq)]
pub struct Escalation {
    /// Iterations done before.
    pub iterations: usize,
    /// The solver's reason, with its account of the iterations since the step before.
    pub reason: Unsolved,
    /// Precision of the iteration from here on.
    pub precision: Precision,
    /// Precision of the solver's true residuals from here on.
    pub outer: Precision,
    /// Reals kept of a link from here on.
    pub reconstruction: LinkStorage,
}

/// What a solve did. Residuals are those of the full system, computed at the end as ‖η − M ψ‖ / ‖η‖ in double with the
/// unfused operator.
#[derive(Clone, Debug)]
pub struct Report {
    /// The solver's own account, on the Schur complement.
    pub info: Info,
    /// ‖η − M ψ‖ / ‖η‖ per right-hand side.
    pub true_residual: Vec<f64>,
    /// Whether every true residual is at or below the tolerance. Not where that is closer to zero than double precision
    /// can tell, or a source is not a number.
    pub converged: bool,
    /// The precision of the iteration at the end.
    pub precision: Precision,
    /// The precision of the solver's true residuals at the end.
    pub outer: Precision,
    /// The precision escalations.
    pub escalations: Vec<Escalation>,
    /// The method at the end.
    pub method: &'static Method,
    /// Changes from one method to another.
    pub method_changes: Vec<MethodChange>,
    /// The methods that were used, in the order of their first use; empty where the solve was stopped before the first one.
    pub tried: Vec<&'static Method>,
    /// A method that may lead to a solution where those tried did not, if the solver failed and there is one.
    pub may_help: Option<&'static Method>,
    /// Why a solver gave up whose solution turned out to be good enough: the check in double decides.
    pub gave_up: Option<Unsolved>,
    /// How links were stored: with 12 real numbers where 8 were asked for but some links are singular, with 13 where 12 were
    /// asked for but long links are in U(3).
    pub reconstruction: LinkStorage,
    /// What multigrid did.
    pub multigrid: Option<MultigridReport>,
    /// Seconds of the iteration, transfers excluded.
    pub seconds: f64,
    /// Seconds from the first transfer to the last.
    pub total_seconds: f64,
    /// Operator applications only, over `seconds`.
    pub gflops: f64,
}

/// What multigrid did in a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct MultigridReport {
    /// Seconds of the setup, whenever it was made.
    pub setup_seconds: f64,
    /// The levels, the finest one first.
    pub levels: Vec<MultigridLevel>,
}

/// What a level of multigrid is, and what it did.
#[derive(Clone, Debug, PartialEq)]
pub struct MultigridLevel {
    /// Extents of its lattice on a process.
    pub lattice: [usize; 4],
    /// Extents of an aggregate, where there is a coarser level.
    pub block: Option<[usize; 4]>,
    /// Near-null vectors, where there is a coarser level.
    pub vectors: Option<usize>,
    /// Iterations of its solver in all.
    pub iterations: usize,
    /// Seconds in it and in coarser levels.
    pub seconds: f64,
    /// What the check after the setup found, if it was asked for and there is a coarser level.
    pub check: Option<LevelCheck>,
}

/// Why there is no solution.
#[derive(Debug, thiserror::Error)]
pub enum SolveFailure<T: Fermion = Spinor> {
    /// The solver could not start.
    #[error(transparent)]
    Solver(SolveError<DeviceError>),
    /// The preconditioner of GCR-DD cannot be made.
    #[error(transparent)]
    Schwarz(#[from] SchwarzError),
    /// Multigrid cannot be set up.
    #[error(transparent)]
    Multigrid(#[from] MultigridError),
    /// The solver gave up, or the observer stopped it.
    #[error("{error}")]
    Unfinished {
        /// Why.
        #[source]
        error: Unsolved,
        /// The best iterate of each right-hand side.
        solutions: Vec<HostField<T>>,
        /// What is known of these iterates.
        report: Box<Report>,
    },
    /// Double precision cannot hold the solution of this right-hand side: its largest element is above 1.8·10³⁰⁸ or below
    /// 2.2·10⁻³⁰⁸.
    #[error(
        "double precision cannot hold the solution of right-hand side {0}: its largest element is above 1.8e308 or below \
         2.2e-308; multiply the source by a number that brings it nearer to 1"
    )]
    OutOfRange(usize),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl<T: Fermion> SolveFailure<T> {
    /// With other solutions, where there are any.
    pub(super) fn with_solutions(self, change: impl FnOnce(Vec<HostField<T>>) -> Vec<HostField<T>>) -> Self {
        match self {
            SolveFailure::Unfinished { error, solutions, report } => {
                SolveFailure::Unfinished { error, solutions: change(solutions), report }
            }
            other => other,
        }
    }
    /// That of a solve which has none.
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
    /// Of a batch with `first` right-hand sides before it, where nothing was solved.
    pub(super) fn counted_from(self, first: usize) -> Self {
        match self {
            SolveFailure::OutOfRange(rhs) => SolveFailure::OutOfRange(first + rhs),
            other => other,
        }
    }
}

/// Operations in so many seconds, in 10⁹ a second; 0 where there was nothing to do.
pub(super) fn gflops(flops: f64, seconds: f64) -> f64 {
    if flops == 0.0 { 0.0 } else { flops / seconds * 1e-9 }
}
