//! Records of solves with one operator, and of solves for several masses or shifts.
use crate::kernels::KernelTimesRecord;
use crate::operator::OperatorWithSources;
use crate::place::PlaceRecord;
use crate::{Record, real};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Outcome of a solve, for every interface that calls the solver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SolveOutcome {
    /// Whether every true residual is at or below the requested tolerance, even if the solver reported a failure.
    pub converged: bool,
    /// Requested tolerance.
    #[serde(default = "real::unknown")]
    pub tol: f64,
    /// Iterations of the slowest source.
    pub iterations: usize,
    /// Iterations of each source.
    pub iterations_per_source: Vec<usize>,
    /// Largest ‖b − M x‖ / ‖b‖ over all sources for the full system, computed in double precision from the solution.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub true_residual: f64,
    /// True residual ‖b − M x‖ / ‖b‖ of each source.
    #[serde(deserialize_with = "real::read")]
    pub true_residuals: Vec<f64>,
    /// Seconds of the iterations.
    #[serde(default = "real::unknown")]
    pub seconds: f64,
    /// Seconds of the solve including transfers and the final check.
    #[serde(default = "real::unknown")]
    pub total_seconds: f64,
    /// 10⁹ floating-point operations of M per second of the iterations. Wilson-like operators count 1320 per site for the hopping term and
    /// 504 for the clover term.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
    /// Method at the end: `bicgstab`, `idr`, `cg`, `cgne`, `block-cg`, `gcr-dd` or `multigrid`.
    pub solver: String,
    /// Precision of the iteration at the end.
    pub precision: String,
    /// Precision of the solution and of the residuals of reliable updates at the end.
    pub outer: String,
    /// Number of reals stored per link at the end.
    pub reconstruct: String,
    /// Continuations in a higher precision.
    pub escalations: Vec<EscalationRecord>,
    /// Continuations with another method: `auto` continued with `multigrid` or `cg`, or `multigrid` did not converge.
    pub method_changes: Vec<MethodChangeRecord>,
    /// Reason why a solver gave up although the true residual of its solution is at or below the requested tolerance; `None` otherwise.
    /// `converged` depends on the true residual alone.
    pub gave_up: Option<String>,
    /// Number of times that the host waited for sums over the lattice on the device.
    pub reductions: usize,
    /// Number of true residuals computed during the iteration, including the last check.
    pub reliable_updates: usize,
    /// Number of restarts, at which search directions were discarded.
    pub restarts: usize,
    /// Numbers of applications of the even-odd operator.
    pub applications: Applications,
    /// Work of multigrid; `None` if the solve did not use multigrid.
    pub multigrid: Option<MultigridRecord>,
    /// Residuals ‖r‖ / ‖b‖ of the even-odd preconditioned system: `history[source][k]` after k iterations, or after k corrections with
    /// `defect`; k = 0 is the start.
    #[serde(deserialize_with = "real::read")]
    pub history: Vec<Vec<f64>>,
}

/// Continuation of a solve in a higher precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EscalationRecord {
    /// Number of iterations before the continuation.
    pub iterations: usize,
    /// Reason for the continuation.
    pub reason: String,
    /// Precision of the iteration after the change.
    pub precision: String,
    /// Precision of the solution and of the residuals of reliable updates after the change.
    pub outer: String,
    /// Number of reals stored per link after the change.
    pub reconstruct: String,
}

/// Continuation of a solve with another method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodChangeRecord {
    /// Number of iterations before the continuation; 0 if the solve begins with the method.
    pub iterations: usize,
    /// Method after the change.
    pub solver: String,
    /// Reason for the change.
    pub reason: String,
}

/// Numbers of applications of the even-odd operator: for true residuals, in the iteration, and in domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applications {
    /// Number of applications for true residuals.
    pub precise: usize,
    /// Number of applications in the iteration.
    pub sloppy: usize,
    /// Number of applications inside the domains of GCR-DD, without neighbours.
    pub in_domains: usize,
}

/// Setup time and levels of multigrid in a solve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultigridRecord {
    /// Seconds of the setup, even if it was computed earlier.
    pub setup_seconds: f64,
    /// Levels, from the finest to the coarsest.
    pub levels: Vec<MultigridLevelRecord>,
}

/// Extents, iterations and time of a multigrid level. `block`, `vectors` and `check` are `None` for the coarsest level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultigridLevelRecord {
    /// Extents of the local lattice of the level on a process.
    pub lattice: [usize; 4],
    /// Extents of an aggregate on a process; `None` for the coarsest level.
    pub block: Option<[usize; 4]>,
    /// Number of near-null vectors; `None` for the coarsest level.
    pub vectors: Option<usize>,
    /// Total number of iterations of the solver on this level.
    pub iterations: usize,
    /// Seconds spent on this level and on coarser levels.
    pub seconds: f64,
    /// Relative errors of the setup, with `--check-setup`; `None` without this flag and for the coarsest level.
    pub check: Option<LevelCheckRecord>,
}

/// Relative errors of a level after the setup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCheckRecord {
    /// Relative size of (1 − P P†) v for the near-null vectors v.
    #[serde(deserialize_with = "real::read")]
    pub near_null: f64,
    /// Relative difference between the coarse operator and P† M P.
    #[serde(deserialize_with = "real::read")]
    pub galerkin: f64,
    /// Relative violation of the γ5-hermiticity of the coarse operator.
    #[serde(deserialize_with = "real::read")]
    pub gamma5: f64,
}

/// Sizes of the batches of a solve, and the reason why there are several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchesRecord {
    /// Numbers of right-hand sides that are solved together, one for each batch.
    pub batches: Vec<usize>,
    /// Reason why there are several batches: `memory`; `asked` (`--batch`); `size` (more than 16, or another number than 16, 12, 8, 6, 4,
    /// 3, 2, 1); or `before` (the batches of an earlier run). `None` for one batch.
    pub batches_limited_by: Option<String>,
}

/// Circumstances of `ferrite solve`: the system, the device and the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveCircumstances {
    /// Operator, links and sources.
    #[serde(flatten)]
    pub system: OperatorWithSources,
    /// Correction of the iteration: `reliable` (reliable updates) or `defect` (defect correction).
    pub correction: String,
    /// Batches of sources.
    #[serde(flatten)]
    pub batches: BatchesRecord,
    /// Device and processes.
    #[serde(flatten)]
    pub place: PlaceRecord,
    /// Times of kernels on rank 0; only with `--profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelTimesRecord>,
    /// File of the solutions.
    pub output: Option<PathBuf>,
}

/// Result of `ferrite solve` with one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolveRecord {
    /// Outcome of the solve.
    #[serde(flatten)]
    pub outcome: SolveOutcome,
    /// System, device and method.
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

/// Outcome of solves that differ by a mass or a shift, for every interface that calls the solvers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftsOutcome {
    /// Whether every true residual of every system is at or below the requested tolerance.
    pub converged: bool,
    /// Requested tolerance.
    #[serde(default = "real::unknown")]
    pub tol: f64,
    /// Systems in the order of their masses or shifts.
    pub systems: Vec<SystemOutcome>,
    /// Precision of multi-shift CG, `double` or `single`; `None` without multi-shift CG.
    pub first_precision: Option<String>,
    /// Precision of the iteration that refines each system, before any escalation.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Precision of the solution and of the residuals of reliable updates.
    pub outer: String,
    /// Seconds of multi-shift CG.
    #[serde(default = "real::unknown")]
    pub first_seconds: f64,
    /// Seconds of all iterations, those of multi-shift CG included.
    #[serde(default = "real::unknown")]
    pub seconds: f64,
    /// Seconds of all solves including transfers and the final check.
    #[serde(default = "real::unknown")]
    pub total_seconds: f64,
    /// 10⁹ floating-point operations of M†M per second of all iterations.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub gflops: f64,
}

/// Outcome of the solve for one mass or shift.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemOutcome {
    /// Mass of M x = b; only for solves with masses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
    /// Shift σ of (M†M + σ) x = b; only for solves with shifts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<f64>,
    /// Iterations of multi-shift CG in which the system took part, for the slowest right-hand side, summed over both parities; 0 without
    /// multi-shift CG.
    pub iterations: usize,
    /// Iterations of the refinement after multi-shift CG, summed over both parities.
    pub refinement_iterations: usize,
    /// Number of true residuals computed during the iteration, including the last check.
    pub reliable_updates: usize,
    /// Largest ‖b − M x‖ / ‖b‖, or ‖b − (M†M + σ) x‖ / ‖b‖, over all sources.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub true_residual: f64,
    /// True residual ‖b − M x‖ / ‖b‖, or ‖b − (M†M + σ) x‖ / ‖b‖, of each source.
    #[serde(deserialize_with = "real::read")]
    pub true_residuals: Vec<f64>,
    /// Continuations in a higher precision.
    pub escalations: Vec<EscalationRecord>,
    /// Reason why the solver gave up; `None` if the true residual is at or below the requested tolerance.
    pub failure: Option<String>,
    /// Reason why a solver gave up although the true residual of its solution is at or below the requested tolerance; `None` otherwise.
    pub gave_up: Option<String>,
}

/// Mass and methods of solves for several masses or shifts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShiftSolvers {
    /// Mass of M for solves with shifts; `None` for several masses.
    pub mass: Option<f64>,
    /// Method that solves each system, or refines it after multi-shift CG: `cg` or `block-cg`.
    pub solver: String,
    /// Strategy for several systems: `multishift` or `sequential`. `block-cg` requires that `sequential` is requested.
    pub shift_solver: String,
}

/// Result of `ferrite solve` for several masses or shifts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftsRecord {
    /// Outcome of the solves.
    #[serde(flatten)]
    pub outcome: ShiftsOutcome,
    /// Systems, device and method.
    #[serde(flatten)]
    pub circumstances: SolveCircumstances,
    /// Mass and methods of the solves.
    #[serde(flatten)]
    pub solvers: ShiftSolvers,
    /// Axes of the array of solutions before those of a field: number of masses or shifts, followed by the number of sources if there are
    /// several.
    pub output_axes: Vec<usize>,
}

impl Record for ShiftsRecord {
    const SCHEMA: &'static str = "ferrite.solve_shifts/1";
}

/// Outcome of a solve with the true residuals during the iteration, for interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedSolve {
    /// Outcome of the solve.
    #[serde(flatten)]
    pub outcome: SolveOutcome,
    /// Reason why the solver gave up; `None` if it did not give up.
    pub failure: Option<String>,
    /// Iterations at which true residuals were computed, each with the residuals of the right-hand sides of the batch.
    pub updates: Vec<(usize, Vec<f64>)>,
}

/// Outcome of solves for several masses or shifts, for interfaces of other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservedShifts {
    /// Outcome of the solves.
    #[serde(flatten)]
    pub outcome: ShiftsOutcome,
    /// Always `None`; each system in `outcome` has its own `failure`.
    pub failure: Option<String>,
}

/// Time and levels of a multigrid setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupRecord {
    /// Seconds of the setup.
    pub seconds: f64,
    /// Levels except the coarsest.
    pub levels: Vec<SetupLevel>,
    /// Number of near-null vectors of the finest level.
    pub vectors: usize,
}

/// Aggregates and near-null vectors of a level of a multigrid setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupLevel {
    /// Extents of the aggregates.
    pub block: Vec<usize>,
    /// Number of near-null vectors.
    pub vectors: usize,
}

/// Entry of a method in the list of all solution methods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodEntry {
    /// Name of the method.
    pub name: String,
    /// Name of the method in sentences.
    pub title: String,
    /// Description of the method; empty if its name describes it.
    pub help: String,
    /// Whether the method solves for Wilson-like operators.
    pub wilson: bool,
    /// Whether the method solves for staggered operators.
    pub staggered: bool,
}
