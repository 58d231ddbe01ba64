//! Solves.
use crate::kernels::KernelTimes;
use crate::operator::OperatorWithSources;
use crate::place::Place;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Outcome of a solve, whichever interface called the solver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SolveOutcome {
    /// Whether every true residual is at or below the requested one, whatever the solver reported.
    pub converged: bool,
    /// Requested residual.
    #[serde(default = "real::unknown")]
    pub tol: f64,
    /// Iterations of the slowest source.
    pub iterations: usize,
    /// Iterations of each source.
    pub iterations_per_source: Vec<usize>,
    /// ‖b − M x‖ / ‖b‖ of the full system, computed in double precision from the solution: the largest of all sources.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub true_residual: f64,
    /// ‖b − M x‖ / ‖b‖ of each source.
    #[serde(deserialize_with = "real::read")]
    pub true_residuals: Vec<f64>,
    /// Seconds of the iteration.
    #[serde(default = "real::unknown")]
    pub seconds: f64,
    /// Seconds with transfers and the final check.
    #[serde(default = "real::unknown")]
    pub total_seconds: f64,
    /// 10⁹ operations of M per second of the iteration: of Wilson-like operators 1320 per site for hopping, 504 for the clover
    /// term.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
    /// Method at the end: `bicgstab`, `idr`, `cg`, `cgne`, `block-cg`, `gcr-dd` or `multigrid`.
    pub solver: String,
    /// Precision of the iteration at the end.
    pub precision: String,
    /// Precision of the solver's true residuals at the end.
    pub outer: String,
    /// Reals stored of a link at the end.
    pub reconstruct: String,
    /// Continuations in a higher precision.
    pub escalations: Vec<Escalation>,
    /// Continuations with another method: `auto` went on with `multigrid` or `cg`, or `multigrid` did not converge.
    pub method_changes: Vec<MethodChange>,
    /// Why a solver gave up whose solution is nevertheless at or below the requested residual, which alone decides.
    pub gave_up: Option<String>,
    /// Number of times that the host waited for sums over the lattice.
    pub reductions: usize,
    /// Number of true residuals computed in between, the last check included.
    pub reliable_updates: usize,
    /// Number of restarts, at which directions were forgotten.
    pub restarts: usize,
    /// Applications of the even-odd operator.
    pub applications: Applications,
    /// Work of multigrid; `None` where it did not solve.
    pub multigrid: Option<Multigrid>,
    /// ‖r‖ / ‖b‖ of the even-odd preconditioned system: `history[source][k]` after k iterations, or k corrections with `defect`;
    /// entry 0 is the start.
    #[serde(deserialize_with = "real::read")]
    pub history: Vec<Vec<f64>>,
}

/// A continuation of a solve in a higher precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Escalation {
    /// Iterations before it.
    pub iterations: usize,
    /// Why the solve did not go on as it was.
    pub reason: String,
    /// Precision of the iteration from here on.
    pub precision: String,
    /// Precision of the solver's true residuals from here on.
    pub outer: String,
    /// Reals stored of a link from here on.
    pub reconstruct: String,
}

/// A continuation of a solve with another method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodChange {
    /// Iterations before it.
    pub iterations: usize,
    /// Method from here on.
    pub solver: String,
    /// Why.
    pub reason: String,
}

/// Applications of the even-odd operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applications {
    /// Applications for true residuals.
    pub precise: usize,
    /// Applications in the iteration.
    pub sloppy: usize,
    /// Applications by GCR-DD in its domains, without neighbours.
    pub in_domains: usize,
}

/// Work of multigrid in a solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Multigrid {
    /// Seconds of the setup, whenever it was made.
    pub setup_seconds: f64,
    /// Levels, from the lattice itself down.
    pub levels: Vec<MultigridLevel>,
}

/// A level of multigrid. The coarsest one has no `block`, `vectors` and `check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultigridLevel {
    /// Extents of its lattice on a process.
    pub lattice: [usize; 4],
    /// Extents of an aggregate on a process; `None` of the coarsest level.
    pub block: Option<[usize; 4]>,
    /// Number of near-null vectors; `None` of the coarsest level.
    pub vectors: Option<usize>,
    /// Iterations of its solver in all.
    pub iterations: usize,
    /// Seconds in it and in coarser levels.
    pub seconds: f64,
    /// Relative errors of the setup, with `--check-setup`; else `None`, as of the coarsest level.
    pub check: Option<LevelCheck>,
}

/// Relative errors of a level after the setup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCheck {
    /// (1 − P P†) v of the near-null vectors.
    #[serde(deserialize_with = "real::read")]
    pub near_null: f64,
    /// Coarse operator against P† M P.
    #[serde(deserialize_with = "real::read")]
    pub galerkin: f64,
    /// γ5-hermiticity of the coarse operator.
    #[serde(deserialize_with = "real::read")]
    pub gamma5: f64,
}

/// Batches of right-hand sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batches {
    /// Right-hand sides that were solved together, one batch after the other.
    pub batches: Vec<usize>,
    /// Why there are several batches: `memory`, `asked` (`--batch`), `size` (more than 16, or another number than 16, 12, 8, 6, 4,
    /// 3, 2, 1) or `before`; `None` for one.
    pub batches_limited_by: Option<String>,
}

/// Circumstances of `ferrite solve`: the system, and where and how it was solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveCircumstances {
    /// The system that was solved.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// `reliable` or `defect`.
    pub correction: String,
    /// Batches of sources.
    #[serde(flatten)]
    pub batches: Batches,
    /// Device and processes.
    #[serde(flatten)]
    pub place: Place,
    /// With `--profile`: times of kernels of the first process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelTimes>,
    /// File of the solutions.
    pub output: Option<PathBuf>,
}

/// The result of `ferrite solve` with one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveRecord {
    /// Outcome of the solve.
    #[serde(flatten)]
    pub outcome: SolveOutcome,
    /// The system, and where and how it was solved.
    #[serde(flatten)]
    pub circumstances: SolveCircumstances,
    /// Bare mass.
    pub mass: f64,
    /// File of the convergence plot.
    pub plot: Option<PathBuf>,
}

impl Record for SolveRecord {
    const SCHEMA: &'static str = "ferrite.solve/1";
}

/// Outcome of solves for several masses or shifts, whichever interface called the solvers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftsOutcome {
    /// Whether every true residual of every system is at or below the requested one.
    pub converged: bool,
    /// Requested residual.
    #[serde(default = "real::unknown")]
    pub tol: f64,
    /// Systems in the order of their masses or shifts.
    pub systems: Vec<SystemOutcome>,
    /// Precision of multi-shift CG, `double` or `single`; `None` if there was none.
    pub first_precision: Option<String>,
    /// Precision of the iteration that refines each system, before any escalation.
    pub precision: String,
    /// Reals stored of a link.
    pub reconstruct: String,
    /// Precision of the solver's true residuals.
    pub outer: String,
    /// Seconds of multi-shift CG.
    #[serde(default = "real::unknown")]
    pub first_seconds: f64,
    /// Seconds of all iterations, those of multi-shift CG included.
    #[serde(default = "real::unknown")]
    pub seconds: f64,
    /// Seconds with transfers and the final check.
    #[serde(default = "real::unknown")]
    pub total_seconds: f64,
    /// 10⁹ operations of M†M per second of all iterations.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
}

/// Outcome of the solve for one mass or shift.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemOutcome {
    /// Mass of M x = b.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// σ of (M†M + σ) x = b.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<f64>,
    /// Iterations of multi-shift CG until the system was dropped, those of both parities together; 0 without it.
    pub iterations: usize,
    /// Iterations after that, likewise.
    pub refinement_iterations: usize,
    /// Number of true residuals computed in between, the last check included.
    pub reliable_updates: usize,
    /// The largest ‖b − M x‖ / ‖b‖, or ‖b − (M†M + σ) x‖ / ‖b‖.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub true_residual: f64,
    /// The same of each source.
    #[serde(deserialize_with = "real::read")]
    pub true_residuals: Vec<f64>,
    /// Continuations in a higher precision.
    pub escalations: Vec<Escalation>,
    /// Why the solver gave up; `None` where the true residual is at or below the requested one.
    pub failure: Option<String>,
    /// Why a solver gave up whose solution is nevertheless at or below the requested residual.
    pub gave_up: Option<String>,
}

/// Mass and methods of solves for several masses or shifts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftSolvers {
    /// Mass of M with shifts; `None` with masses.
    pub mass: Option<f64>,
    /// `cg` or `block-cg`, which solves or refines each system.
    pub solver: String,
    /// `multishift` or `sequential`; with `block-cg` always `sequential`, which has to be asked for.
    pub shift_solver: String,
}

/// The result of `ferrite solve` for several masses or shifts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftsRecord {
    /// Outcome of the solves.
    #[serde(flatten)]
    pub outcome: ShiftsOutcome,
    /// The systems, and where and how they were solved.
    #[serde(flatten)]
    pub circumstances: SolveCircumstances,
    /// Mass and methods.
    #[serde(flatten)]
    pub solvers: ShiftSolvers,
    /// Axes of the solutions before those of a field: number of masses or shifts, and with several sources their number.
    pub output_axes: Vec<usize>,
}

impl Record for ShiftsRecord {
    const SCHEMA: &'static str = "ferrite.solve_shifts/1";
}

/// Outcome of a solve with its true residuals on the way, for interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedSolve {
    /// Outcome.
    #[serde(flatten)]
    pub outcome: SolveOutcome,
    /// Why the solver gave up; `None` where it did not.
    pub failure: Option<String>,
    /// Iterations at which true residuals were computed, with those of the right-hand sides of the batch.
    pub updates: Vec<(usize, Vec<f64>)>,
}

/// Outcome of solves for several masses or shifts, for interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedShifts {
    /// Outcome.
    #[serde(flatten)]
    pub outcome: ShiftsOutcome,
    /// Always `None`: each system has its own reason.
    pub failure: Option<String>,
}

/// A multigrid setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupRecord {
    /// Seconds of the setup.
    pub seconds: f64,
    /// Levels that have a coarser one.
    pub levels: Vec<SetupLevel>,
    /// Near-null vectors of the finest level.
    pub vectors: usize,
}

/// A level of a multigrid setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupLevel {
    /// Extents of the aggregates.
    pub block: Vec<usize>,
    /// Near-null vectors.
    pub vectors: usize,
}

/// A method in the list of all methods of solves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodEntry {
    /// Name of the method.
    pub name: String,
    /// Name in sentences.
    pub title: String,
    /// Description; empty where the name is enough.
    pub help: String,
    /// Whether it solves for Wilson-like operators.
    pub wilson: bool,
    /// Whether it solves for staggered operators.
    pub staggered: bool,
}
