//! Defect correction: Clark et al. 2009, Algorithm 1.

use crate::error::SolveError;
use crate::info::Info;
use crate::observer::{Iteration, IterationKind, Observer};
use crate::operator::{Precise, Sloppy, System};
use crate::params::SolverParams;
use crate::range;
use crate::reliable::scale_for;
use crate::stopping::{ConvergenceHistory, RhsFailures, StoppingRule};
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Parameters of [`defect_correction`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DefectParams {
    /// Parameters common to all solvers.
    pub solver: SolverParams,
    /// Tolerance ε_in between 0 and 1, requested from the inner solver relative to its right-hand side. The last
    /// correction requests only what the outer tolerance still needs.
    pub inner_tol: f64,
    /// Maximum number of corrections.
    pub max_corrections: usize,
}

impl Default for DefectParams {
    fn default() -> Self {
        SolverParams::default().into()
    }
}

impl From<SolverParams> for DefectParams {
    fn from(solver: SolverParams) -> Self {
        Self { solver, inner_tol: 1e-3, max_corrections: 100 }
    }
}

/// Memory of [`defect_correction`] without that of the inner solver: one precise block and two sloppy blocks.
pub struct DefectWorkspace<P: VectorSpace, S: VectorSpace> {
    residual: P::Vector,
    rhs: S::Vector,
    correction: S::Vector,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> DefectWorkspace<P, S> {
    /// Allocates the workspace for `system`. Any system on the same spaces can use it.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        Ok(Self {
            residual: system.precise().allocate()?,
            rhs: system.sloppy().allocate()?,
            correction: system.sloppy().allocate()?,
        })
    }
}

/// Solves A x_j = b_j by defect correction (Clark et al. 2009, Algorithm 1) around any solver of the sloppy space.
///
/// While a residual is too large, `inner(r, e, params)` solves Â e = r approximately, with e = 0 as initial guess; then x ←
/// x + e and r ← b − A x in the precise space. The inner solver gets the parameters common to all solvers, with its own
/// tolerance and the remaining iterations. Finished right-hand sides enter the inner solve as zero. If an inner solve ends in
/// `NoConvergence`, `Stagnation`, `Breakdown` or `NotPositiveDefinite`, its e is still added; only a true residual that no
/// longer falls ends the whole solve. If a correction makes the residual of a right-hand side larger, it is undone, up to the
/// rounding of x + e.
///
/// `Info::history` contains one entry for each correction, and `Info::reliable_updates` the number of corrections.
/// Applications in the inner solver count as sloppy ones.
///
/// # Errors
/// `NoConvergence`, `Stagnation`, `NotANumber`, `Cancelled`, `Invalid`, `Backend`.
pub fn defect_correction<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &DefectParams,
    workspace: &mut DefectWorkspace<Y::Precise, Y::Sloppy>,
    mut inner: impl FnMut(&Sloppy<Y>, &mut Sloppy<Y>, &SolverParams) -> Result<Info, SolveError<Y::Error>>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let mut run = DefectCorrection::begin(system, b, x, params, workspace)?;
    // r = b − A x
    run.true_residual()?;
    while !run.finished(observer)? {
        // r̂ = r in the sloppy format, e = 0
        let request = run.demote()?;
        // Solves Â e = r̂ to the tolerance ε_in.
        let solved = inner(&run.w.rhs, &mut run.w.correction, &request);
        run.take_inner(solved)?;
        // x ← x + e
        run.correct()?;
        // r ← b − A x
        run.true_residual()?;
        // x ← x − e if the residual is larger than before
        if run.take_back()? {
            run.true_residual()?;
        }
    }
    Ok(run.report())
}

/// Range of residual norms that inner solvers get without scaling, if the format has no target norm: about 2^±100.
const USUAL: std::ops::Range<f64> = 7.9e-31..1.26e30;

/// A defect-correction solve in progress.
struct DefectCorrection<'a, Y: System> {
    system: &'a Y,
    b: &'a Precise<Y>,
    x: &'a mut Precise<Y>,
    params: &'a DefectParams,
    rule: StoppingRule,
    w: &'a mut DefectWorkspace<Y::Precise, Y::Sloppy>,
    info: Info,
    failures: RhsFailures,
    corrections: usize,
    /// Whether the inner solve was cancelled.
    cancelled: bool,
    /// ‖b_j‖.
    norms: Vec<f64>,
    /// ‖r_j‖ / ‖b_j‖.
    residuals: Vec<f64>,
    progress: Vec<ConvergenceHistory>,
    /// Factor of r̂_j and e_j relative to the residual and the correction that they represent.
    scale: Vec<f64>,
    unscale: Vec<f64>,
    zeros: Vec<Complex64>,
}

impl<'a, Y: System> DefectCorrection<'a, Y> {
    /// Creates the solve and computes ‖b_j‖. Sets x_j = 0 if b_j = 0, whatever the initial guess.
    fn begin(
        system: &'a Y,
        b: &'a Precise<Y>,
        x: &'a mut Precise<Y>,
        params: &'a DefectParams,
        workspace: &'a mut DefectWorkspace<Y::Precise, Y::Sloppy>,
    ) -> Result<Self, SolveError<Y::Error>> {
        let rule = StoppingRule::new(&params.solver, 0)?;
        if !(params.inner_tol > 0.0 && params.inner_tol < 1.0) {
            return Err(SolveError::Invalid("the inner tolerance must be between 0 and 1"));
        }
        let n = system.precise().nrhs();
        let mut run = Self {
            system,
            b,
            x,
            params,
            rule,
            w: workspace,
            info: Info::begin(n, params.max_corrections.saturating_add(1).min(1000)),
            failures: RhsFailures::new(n),
            corrections: 0,
            cancelled: false,
            norms: vec![0.0; n],
            residuals: vec![0.0; n],
            progress: vec![ConvergenceHistory::new(f64::INFINITY); n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
            zeros: vec![Complex64::ZERO; n],
        };
        let space = system.precise();
        space.norm2(b, &mut run.norms)?;
        run.info.reductions += 1;
        range::check(space, b, &run.norms, &mut run.w.residual)?;
        if run.failures.record_not_finite(&run.norms, 0) {
            return Err(run.failure());
        }
        run.norms.iter_mut().for_each(|v| *v = v.sqrt());
        let mask = mask(&run.norms, |norm| norm != 0.0);
        space.axpby(&run.zeros, b, &mask, run.x)?;
        Ok(run)
    }

    /// Computes r ← b − A x, and its norms relative to those of b.
    fn true_residual(&mut self) -> Result<(), SolveError<Y::Error>> {
        self.system.apply(self.x, &mut self.w.residual)?;
        self.system.precise().sub_norm2(self.b, &mut self.w.residual, &mut self.residuals)?;
        self.info.precise_applications += 1;
        self.info.reductions += 1;
        if self.failures.record_not_finite(&self.residuals, self.info.iterations) {
            return Err(self.failure());
        }
        for (residual, norm) in self.residuals.iter_mut().zip(&self.norms) {
            *residual = if *norm == 0.0 { 0.0 } else { residual.sqrt() / norm };
        }
        Ok(())
    }

    /// Checks the true residuals. Returns true if all are small enough, an error if there is a reason to stop, and otherwise
    /// false.
    fn finished(&mut self, observer: &mut dyn Observer) -> Result<bool, SolveError<Y::Error>> {
        let (tol, iteration) = (self.params.solver.tol, self.info.iterations);
        for (j, residual) in self.residuals.iter().enumerate() {
            self.info.history[j].push(*residual);
            let converged = StoppingRule::converged(*residual, tol);
            if let Some(failure) = self.rule.true_residual(&mut self.progress[j], *residual, converged, true) {
                self.failures.record(j, failure, iteration);
            }
        }
        self.info.true_residual.copy_from_slice(&self.residuals);
        self.info.reliable_updates = self.corrections;
        self.info.converged = self.residuals.iter().all(|v| StoppingRule::converged(*v, tol));
        if self.corrections > 0 {
            let kind = IterationKind::ReliableUpdate;
            let event = Iteration { iteration, residuals: &self.residuals, kind };
            self.cancelled |= observer.iteration(&event).is_break();
        }
        if self.info.converged {
            return Ok(true);
        }
        let exhausted = self.rule.exhausted(iteration) || self.corrections >= self.params.max_corrections;
        match self.rule.stop(self.cancelled, self.failures.any(), exhausted) {
            Some(stop) => {
                let info = Box::new(self.report());
                Err(self.failures.stopped(stop, info))
            }
            None => Ok(false),
        }
    }

    /// Sets r̂ ← r in the sloppy format, and e ← 0. Finished right-hand sides become zero, so that the inner solver has
    /// nothing to do for them. Returns the parameters of the inner solve.
    fn demote(&mut self) -> Result<SolverParams, Y::Error> {
        let SolverParams { tol, max_iterations, .. } = self.params.solver;
        let target_norm = self.system.sloppy().target_norm();
        for j in 0..self.norms.len() {
            let norm = self.residuals[j] * self.norms[j];
            // A residual far from 1 could underflow or overflow in the inner solver.
            self.scale[j] = scale_for(target_norm.or((!USUAL.contains(&norm)).then_some(1.0)), norm, 1.0);
            self.unscale[j] = 1.0 / self.scale[j];
        }
        self.system.demote(&self.scale, &self.w.residual, &mut self.w.rhs)?;
        self.system.sloppy().zero(&mut self.w.correction)?;
        let unfinished = |residual: f64| !StoppingRule::converged(residual, tol);
        let mask = mask(&self.residuals, unfinished);
        self.system.sloppy().axpby(&self.zeros, &self.w.correction, &mask, &mut self.w.rhs)?;
        let largest = self.residuals.iter().copied().filter(|v| unfinished(*v)).fold(0.0, f64::max);
        // The factor ½ covers losses in the last conversion and summation.
        let inner_tol = self.params.inner_tol.max(0.5 * tol / largest);
        let max_iterations = max_iterations - self.info.iterations;
        self.corrections += 1;
        Ok(SolverParams { tol: inner_tol, max_iterations, ..self.params.solver })
    }

    /// Adds the report of the inner solver. Failures of the inner solver do not end the whole solve, except for NaN.
    fn take_inner(&mut self, solved: Result<Info, SolveError<Y::Error>>) -> Result<(), SolveError<Y::Error>> {
        let mut error = match solved {
            Ok(work) => {
                self.info.absorb(&work);
                return Ok(());
            }
            Err(error) => error,
        };
        let Some(work) = error.info_mut() else { return Err(error) };
        self.info.absorb(work);
        if matches!(error, SolveError::NotANumber { .. }) {
            error.replace_info(self.report());
            return Err(error);
        }
        self.cancelled = matches!(error, SolveError::Cancelled { .. });
        Ok(())
    }

    /// Computes x ← x + e. Fails before x changes if the correction is not finite.
    fn correct(&mut self) -> Result<(), SolveError<Y::Error>> {
        let mut norm2 = vec![0.0; self.norms.len()];
        self.system.sloppy().norm2(&self.w.correction, &mut norm2)?;
        self.info.reductions += 1;
        if self.failures.record_not_finite(&norm2, self.info.iterations) {
            return Err(self.failure());
        }
        Ok(self.system.accumulate(&self.unscale, &self.w.correction, self.x)?)
    }

    /// Computes x ← x − e for right-hand sides whose residual has become larger. Returns whether there are any.
    fn take_back(&mut self) -> Result<bool, Y::Error> {
        let worse: Vec<bool> = self.residuals.iter().zip(&self.progress).map(|(v, known)| *v > known.best).collect();
        if !worse.contains(&true) {
            return Ok(false);
        }
        let minus = |worse: &bool| if *worse { -Complex64::ONE } else { Complex64::ZERO };
        let mask: Vec<_> = worse.iter().map(minus).collect();
        self.system.sloppy().axpby(&self.zeros, &self.w.rhs, &mask, &mut self.w.correction)?;
        self.system.accumulate(&self.unscale, &self.w.correction, self.x)?;
        Ok(true)
    }

    /// Returns the error of the first right-hand side that failed.
    fn failure(&mut self) -> SolveError<Y::Error> {
        let info = Box::new(self.report());
        self.failures.error(info)
    }

    /// Completes the counts of the report, and returns it.
    fn report(&mut self) -> Info {
        let mut info = std::mem::take(&mut self.info);
        info.precise_rhs = info.precise_applications * self.norms.len();
        info.flops += info.precise_applications as f64 * self.system.flops() * self.norms.len() as f64;
        info
    }
}

/// Returns 1 for right-hand sides whose number satisfies `choose`, else 0.
fn mask(numbers: &[f64], choose: impl Fn(f64) -> bool) -> Vec<Complex64> {
    numbers.iter().map(|v| if choose(*v) { Complex64::ONE } else { Complex64::ZERO }).collect()
}
