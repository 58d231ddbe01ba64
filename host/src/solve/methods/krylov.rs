//! Krylov methods with reliable updates, or within defect correction.
use super::super::escalation::EscalationError;
use super::super::request::Correction;
use super::{Limits, OperatorPair, Prepare, PreparedMethod};
use crate::domain::DeviceError;
use crate::field::DeviceField;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{
    DefectParams, DefectWorkspace, Info, Iteration, IterationKind, Observer, Precise, SolveError, SolverParams, System,
    Uniform, defect_correction,
};
use std::cell::RefCell;
use std::ops::ControlFlow;

/// δ of CG on a positive operator that is kept in 16 bits. What the iteration solves has other small eigenvalues, so that
/// it has to hear of the true residual far more often than rounding alone asks for: docs/measurements/staggered.md.
const HALF_DELTA: f64 = 0.6;

/// A function of `solvers` with its workspace.
pub(super) trait KrylovMethod: Default + 'static {
    /// Solves A x = b. `kind`: whether A is Hermitian and positive, and the precision of the iteration.
    fn solve<Y: System<Error = DeviceError>>(
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        kind: (bool, Precision),
        observer: &mut dyn Observer,
    ) -> std::result::Result<Info, EscalationError>;
}

/// Prepares a method that needs nothing but the operator.
pub(super) const fn prepare<K: KrylovMethod>() -> Prepare {
    |_, _, _, _| Ok(Box::new(K::default()))
}

impl<K: KrylovMethod> PreparedMethod for K {
    fn iterate(
        &self,
        pair: &OperatorPair,
        rhs: &DeviceField,
        x: &mut DeviceField,
        limits: &Limits<'_>,
        observer: &mut dyn Observer,
    ) -> std::result::Result<Info, EscalationError> {
        let OperatorPair { level, sloppy_space, sloppy, positive, .. } = pair;
        let Limits { tol, max_iterations, patience, request } = *limits;
        let (system, kind) = (pair.mixed(), (*positive, level.precision));
        let stagnation_window = Some(request.stagnation_window);
        match request.correction {
            Correction::Reliable { delta } => {
                // On the very same links and in the same precision the iteration needs no reliable updates.
                // Reconstructed links are others, if only a little: those of a file in single precision are unitary to
                // 1e-7 only, and so far from their reconstruction.
                let half = level.precision == Precision::Half || level.reconstruction.half;
                let default = match level.reconstruction {
                    _ if *positive && half => Some(HALF_DELTA),
                    _ if level.precision != level.outer || level.reconstruction.half => None,
                    LinkStorage::FULL => Some(0.0),
                    _ => Some(1e-4),
                };
                let delta = delta.or(default);
                let params =
                    SolverParams { tol, max_iterations, delta, stagnation_window, patience, ..Default::default() };
                K::solve(&system, rhs, x, &params, kind, observer)
            }
            Correction::Defect { inner_tol } => {
                let inner = Uniform::new(sloppy_space, &**sloppy);
                let solver = SolverParams { tol, max_iterations, max_stalls: 3, ..Default::default() };
                let params = DefectParams { solver, inner_tol, max_corrections: 1000 };
                let mut workspace = DefectWorkspace::new(&system).map_err(SolveError::Backend)?;
                let seen = RefCell::new(Nested { observer, iterations: 0, level: 1.0, residuals: Vec::new() });
                let solve = |r: &DeviceField, e: &mut DeviceField, asked: &SolverParams| {
                    let mut inside = |event: &Iteration<'_>| seen.borrow_mut().inside(event);
                    let SolverParams { tol, max_iterations, .. } = *asked;
                    let delta = Some(0.0);
                    let params =
                        SolverParams { tol, max_iterations, delta, stagnation_window, patience, ..Default::default() };
                    K::solve(&inner, r, e, &params, kind, &mut inside)
                };
                let mut outside = |event: &Iteration<'_>| seen.borrow_mut().outside(event);
                defect_correction(&system, rhs, x, &params, &mut workspace, solve, &mut outside)
            }
        }
    }
}

/// Shows the iterations of inner and outer solver to one observer.
struct Nested<'a> {
    observer: &'a mut dyn Observer,
    /// Iterations of the inner solves before.
    iterations: usize,
    /// The residual that the inner solve began with.
    level: f64,
    residuals: Vec<f64>,
}
impl Nested<'_> {
    fn outside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        (self.iterations, self.level) = (event.iteration, event.worst());
        self.observer.iteration(event)
    }
    fn inside(&mut self, event: &Iteration<'_>) -> ControlFlow<()> {
        self.residuals.clear();
        self.residuals.extend(event.residuals.iter().map(|r| r * self.level));
        let iteration = self.iterations + event.iteration;
        self.observer.iteration(&Iteration { iteration, residuals: &self.residuals, kind: IterationKind::Iterate })
    }
}
