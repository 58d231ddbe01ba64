//! CGNE: conjugate gradients on M M† y = b, for operators that are not positive.

use crate::cg::cg_on;
use crate::cgnr::CgNormalWorkspace;
use crate::compact::Rhs;
use crate::error::SolveError;
use crate::failure::RhsFailure;
use crate::info::Info;
use crate::normal::count_flops;
use crate::observer::{Iteration, Observer};
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::reliable::Criterion;
use crate::stopping::{RhsFailures, StopReason, StoppingRule};
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Solves M x_j = b_j for a general M by conjugate gradients on M M† y = b − M x₀; the solution is x = x₀ + M†y.
///
/// The residual of the CG iteration is b − M x, that of the original system, so the tolerance needs no conversion. x is the
/// solution closest to x₀: the error is smallest over the Krylov space, while the residual oscillates more than that of
/// [`cgnr`](crate::cgnr()). Applications of M and M† count one each.
///
/// # Errors
/// The errors of [`cg`](crate::cg()).
pub fn cgne<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &SolverParams,
    workspace: &mut CgNormalWorkspace<Y::Precise, Y::Sloppy>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    let rule = StoppingRule::new(params, 0)?;
    let CgNormalWorkspace { cg, normal, .. } = workspace;
    let (normal_system, r, y, norms) = normal.error_equations(system, b)?;
    let space = system.precise();
    let mut run = Cgne::new(system, b, norms);
    // b_j = 0 has the solution x_j = 0, whatever the initial guess.
    let (zeros, ones) = (vec![Complex64::ZERO; norms.len()], vec![Complex64::ONE; norms.len()]);
    let mask: Vec<_> = norms.iter().map(|b| if *b == 0.0 { Complex64::ZERO } else { Complex64::ONE }).collect();
    space.axpby(&zeros, b, &mask, x)?;
    let mut smallest = f64::INFINITY;
    loop {
        // r = b − M x is the residual of the initial guess before the first pass, and of the result after each pass.
        let residual = run.residual(x, r)?;
        run.info.converged = StoppingRule::converged(residual, params.tol);
        if run.info.converged {
            return Ok(run.info);
        }
        let spent = run.info.iterations;
        if spent > 0 && rule.exhausted(spent) {
            return Err(run.stopped(StopReason::IterationLimit));
        }
        if residual >= smallest {
            return Err(run.stopped(StopReason::Stagnation));
        }
        smallest = residual;
        // M M† y = r from y = 0
        space.zero(y)?;
        let pass = SolverParams { max_iterations: params.max_iterations - spent, ..*params };
        let criterion = Criterion { reference: Some(norms), check: None };
        let mut counted =
            |event: &Iteration<'_>| observer.iteration(&Iteration { iteration: event.iteration + spent, ..*event });
        let mut result = cg_on(&normal_system, Rhs::Own(r), y, &pass, cg, &mut counted, criterion);
        let info = match &mut result {
            Ok(info) => info,
            Err(error) => match error.info_mut() {
                Some(info) => info,
                None => return result,
            },
        };
        // x ← x + M† y
        system.apply_dagger(y, r)?;
        space.axpby(&ones, r, &ones, x)?;
        run.add(info);
        if let Err(mut error) = result {
            run.residual(x, r)?;
            error.replace_info(run.info);
            return Err(error);
        }
    }
}

/// A CGNE solve in progress: passes of CG, each followed by a check of the true residual.
struct Cgne<'a, Y: System> {
    system: &'a Y,
    b: &'a Precise<Y>,
    norms: &'a [f64],
    /// Report of all passes so far, in the form of a single solve of M x = b.
    info: Info,
}

impl<'a, Y: System> Cgne<'a, Y> {
    fn new(system: &'a Y, b: &'a Precise<Y>, norms: &'a [f64]) -> Self {
        // The norms of b took one reduction.
        Self { system, b, norms, info: Info { reductions: 1, ..Info::begin(norms.len(), 0) } }
    }

    /// Computes r ← b − M x, and writes its norms relative to ‖b_j‖ to the report. Returns the largest of them, or NaN if one
    /// is NaN, which the next pass reports.
    fn residual(&mut self, x: &Precise<Y>, r: &mut Precise<Y>) -> Result<f64, Y::Error> {
        self.system.apply(x, r)?;
        self.system.precise().sub_norm2(self.b, r, &mut self.info.true_residual)?;
        self.info.precise_applications += 1;
        self.info.precise_rhs += self.norms.len();
        self.info.reductions += 1;
        for (residual, norm) in self.info.true_residual.iter_mut().zip(self.norms) {
            *residual = if *norm == 0.0 { 0.0 } else { residual.sqrt() / norm };
        }
        count_flops(self.system, &mut self.info);
        Ok(self.info.worst_residual())
    }

    /// Adds the report of a pass to the total. Each application of the pass was one of M and one of M†; M†y is added.
    fn add(&mut self, pass: &mut Info) {
        let info = &mut self.info;
        info.precise_applications += 1 + 2 * pass.precise_applications;
        info.precise_rhs += self.norms.len() + 2 * pass.precise_rhs;
        info.sloppy_applications += 2 * pass.sloppy_applications;
        info.sloppy_rhs += 2 * pass.sloppy_rhs;
        info.reductions += pass.reductions;
        info.reliable_updates += pass.reliable_updates;
        info.restarts += pass.restarts;
        info.iterations += pass.iterations;
        info.failed.clone_from(&pass.failed);
        info.given_up.clone_from(&pass.given_up);
        for j in 0..self.norms.len() {
            info.iterations_per_rhs[j] += pass.iterations_per_rhs[j];
            // The history of a pass begins with the last residual of the pass before, which is not repeated.
            let again = usize::from(!info.history[j].is_empty()).min(pass.history[j].len());
            info.history[j].extend(pass.history[j].drain(..).skip(again));
        }
    }

    /// Returns the error of a solve that ended with `stop`. In the case of stagnation, it names the right-hand side with the
    /// largest residual.
    fn stopped(self, stop: StopReason) -> SolveError<Y::Error> {
        let mut failures = RhsFailures::new(self.norms.len());
        if stop == StopReason::Stagnation {
            let largest = self.info.worst_residual();
            let rhs = self.info.true_residual.iter().position(|residual| *residual == largest).unwrap_or(0);
            failures.record(rhs, RhsFailure::Stagnation, self.info.iterations);
        }
        failures.stopped(stop, Box::new(self.info))
    }
}
