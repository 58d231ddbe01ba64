//! Solution of the systems for all poles of a rational function.
use super::HmcError;
use super::links::StopSignal;
use crate::domain::{DeviceError, Result};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use gpu_kernels::Precision;
use num_complex::Complex64;
use rational::PartialFractions;
use solvers::{
    ConvertFrom, LinearOperator, MultiShiftParams, MultiShiftWorkspace, Patience, SolveError, SolverParams,
    VectorSpace, multishift_cg, worse_residual,
};
use std::cell::Cell;

/// Patience of the solvers of a trajectory. A solver gives up after as many iterations without a new smallest residual as it took to reach
/// that residual, but at least 2000. Without this limit, a solver that fluctuates at the level of rounding would continue to its last
/// iteration.
pub(super) const PATIENCE: Patience = Patience { least: 2000, share: 1.0 };

/// Parameters of the solver for the systems (A + σ) x = b with several shifts σ.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftedSolver {
    /// Whether to solve in single precision, with links of 12 reals.
    pub single: bool,
    /// Requested relative residuals: a single one for all shifts, or one for each shift.
    pub tol: Vec<f64>,
    /// Whether all systems continue until the system of the smallest shift reaches its requested residual, as in MILC; otherwise each
    /// system stops at its own requested residual.
    pub together: bool,
    /// Maximum number of iterations.
    pub max_iterations: usize,
}

impl ShiftedSolver {
    /// Returns the precision of the solver's vectors.
    pub fn precision(&self) -> Precision {
        if self.single { Precision::Single } else { Precision::Double }
    }
}

/// Error of a solver, with the solver's report.
pub type SolverError = SolveError<DeviceError>;

/// Work and residual of solvers since the last call that read them.
#[derive(Default)]
pub(super) struct SolverCounts {
    /// Number of iterations, summed over right-hand sides.
    pub iterations: Cell<usize>,
    /// Largest true residual of the solves, relative to the right-hand side.
    pub residual: Cell<f64>,
}

/// Computes (K + σ_j)⁻¹ b for all shifts, in the precision of b. If `check` is set, computes and records true residuals. `name` is the name
/// of the quarks for errors, and `stop` may end the solve.
pub(super) fn solutions(
    operator: &impl LinearOperator<FieldSpace>,
    shifts: &[f64],
    solver: &ShiftedSolver,
    check: bool,
    b: &DeviceField,
    (name, counts, stop): (&str, &SolverCounts, &StopSignal),
) -> std::result::Result<Vec<DeviceField>, HmcError> {
    let space = FieldSpace::new(b.domain(), b.shape());
    let mut x = shifts.iter().map(|_| space.allocate()).collect::<Result<Vec<_>>>()?;
    let mut workspace = MultiShiftWorkspace::new(&space, shifts.len())?;
    let limit = SolverParams { max_iterations: solver.max_iterations, patience: Some(PATIENCE), ..Default::default() };
    let params = MultiShiftParams { tolerances: &solver.tol, together: solver.together, check, ..limit.into() };
    // A solver that gave up may nevertheless have reached the tolerance. Its true residuals decide.
    let smallest = solver.tol.iter().copied().fold(f64::INFINITY, f64::min);
    let info = multishift_cg(&space, operator, shifts, b, &mut x, &params, &mut workspace, &mut stop.clone())
        .map(|info| info.whole)
        .or_else(|error| error.unless_converged(smallest))
        .map_err(|error| HmcError::Solver { quarks: name.into(), why: Box::new(error) })?;
    counts.iterations.set(counts.iterations.get() + info.iterations_per_rhs.iter().sum::<usize>());
    if check {
        let residual = &counts.residual;
        residual.set(info.true_residual.iter().copied().fold(residual.get(), worse_residual));
    }
    Ok(x)
}

/// Computes r(K) b in double precision from b and the vectors x_j, with (K + σ_j)⁻¹ b = `factor` x_j.
pub(super) fn sum(function: &PartialFractions, factor: f64, b: &DeviceField, x: &[DeviceField]) -> Result<DeviceField> {
    let n = b.nrhs();
    let space = FieldSpace::new(b.domain(), FieldShape::new(b.kind(), Precision::Double, n));
    let mut out = space.allocate()?;
    let constant = |a: f64| vec![Complex64::new(a, 0.0); n];
    space.axpby(&constant(function.constant), b, &constant(0.0), &mut out)?;
    for (pole, x) in function.poles.iter().zip(x) {
        space.accumulate(&vec![factor * pole.residue; n], x, &mut out)?;
    }
    Ok(out)
}
