//! Defect correction: paper 001, Algorithm 1.

use crate::error::SolveError;
use crate::info::Info;
use crate::observer::{Iteration, Kind, Observer};
use crate::operator::{Precise, Sloppy, System};
use crate::reliable::scale_for;
use crate::traits::VectorSpace;
use num_complex::Complex64;

/// Parameters of [`defect_correction`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DefectParams {
    /// ε: the solve ends when ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for every j.
    pub tol: f64,
    /// ε_in: the tolerance the inner solver is asked for, relative to the residual it is given. It is never asked for
    /// more than what is left to do.
    pub inner_tol: f64,
    /// Most iterations of the inner solver, all calls together.
    pub max_iterations: usize,
    /// Most corrections.
    pub max_corrections: usize,
    /// Corrections in a row without progress of the true residual after which the solve gives up.
    pub max_stalls: usize,
}

impl Default for DefectParams {
    fn default() -> Self {
        Self { tol: 1e-10, inner_tol: 1e-3, max_iterations: 10_000, max_corrections: 100, max_stalls: 3 }
    }
}

/// What the inner solver is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InnerRequest {
    /// Relative tolerance.
    pub tol: f64,
    /// Most iterations.
    pub max_iterations: usize,
}

/// Memory of [`defect_correction`], that of the inner solver not included: one precise block and two sloppy ones.
pub struct DefectWorkspace<P: VectorSpace, S: VectorSpace> {
    residual: P::Vector,
    rhs: S::Vector,
    correction: S::Vector,
    norms: Vec<f64>,
    verified: Vec<f64>,
    best: Vec<f64>,
    stalls: Vec<usize>,
    scale: Vec<f64>,
    unscale: Vec<f64>,
    mask: Vec<Complex64>,
    zeros: Vec<Complex64>,
}

impl<P: VectorSpace, S: VectorSpace<Error = P::Error>> DefectWorkspace<P, S> {
    /// Allocates for `system`; reusable for every system on the same spaces.
    pub fn new(system: &impl System<Precise = P, Sloppy = S, Error = P::Error>) -> Result<Self, P::Error> {
        let n = system.precise().nrhs();
        Ok(Self {
            residual: system.precise().allocate()?,
            rhs: system.sloppy().allocate()?,
            correction: system.sloppy().allocate()?,
            norms: vec![0.0; n],
            verified: vec![0.0; n],
            best: vec![0.0; n],
            stalls: vec![0; n],
            scale: vec![1.0; n],
            unscale: vec![1.0; n],
            mask: vec![Complex64::ZERO; n],
            zeros: vec![Complex64::ZERO; n],
        })
    }
}

/// Solves A x_j = b_j by defect correction (paper 001, Algorithm 1) around any solver of the sloppy space.
///
/// As long as a residual is too large, `inner(r, e, request)` solves Â e = r roughly, with e = 0 as guess; then
/// x ← x + e and r ← b − A x in the precise space. Right-hand sides that are finished enter the inner solve as zero.
/// An inner solve that ends in `NoConvergence`, `Stagnation`, `Breakdown` or `NotPositiveDefinite` still contributes
/// its e, and only missing progress of the true residual ends the whole. A correction that makes the residual of a
/// right-hand side larger is taken back, but for the rounding of x + e.
///
/// `Info::history` holds one entry per correction, `Info::reliable_updates` counts the corrections, applications of
/// the inner solver count as sloppy ones.
///
/// # Errors
/// `NoConvergence`, `Stagnation`, `NotANumber`, `Cancelled`, `Invalid`, `Backend`.
pub fn defect_correction<Y: System>(
    system: &Y,
    b: &Precise<Y>,
    x: &mut Precise<Y>,
    params: &DefectParams,
    workspace: &mut DefectWorkspace<Y::Precise, Y::Sloppy>,
    mut inner: impl FnMut(&Sloppy<Y>, &mut Sloppy<Y>, &InnerRequest) -> Result<Info, SolveError<Y::Error>>,
    observer: &mut dyn Observer,
) -> Result<Info, SolveError<Y::Error>> {
    if !(params.tol >= 0.0 && params.tol.is_finite()) {
        return Err(SolveError::Invalid("the tolerance has to be a finite number that is not negative"));
    }
    if !(params.inner_tol > 0.0 && params.inner_tol < 1.0) {
        return Err(SolveError::Invalid("the inner tolerance has to lie between 0 and 1"));
    }
    let DefectWorkspace { residual, rhs, correction, norms, verified, best, stalls, scale, unscale, mask, zeros } =
        workspace;
    let space = system.precise();
    let n = norms.len();
    let mut info = Info {
        iterations_per_rhs: vec![0; n],
        history: (0..n).map(|_| Vec::with_capacity(params.max_corrections.saturating_add(1).min(1000))).collect(),
        true_residual: vec![f64::NAN; n],
        ..Info::default()
    };
    space.norm2(b, norms)?;
    info.reductions += 1;
    if let Some(rhs) = norms.iter().position(|v| !v.is_finite()) {
        return Err(SolveError::NotANumber { iteration: 0, rhs, info: Box::new(info) });
    }
    for j in 0..n {
        norms[j] = norms[j].sqrt();
        mask[j] = if norms[j] == 0.0 { Complex64::ZERO } else { Complex64::ONE };
        (best[j], stalls[j]) = (f64::INFINITY, 0);
    }
    // b_j = 0 gives x_j = 0, whatever the guess.
    space.axpby(zeros, b, mask, x)?;

    let mut corrections = 0;
    let mut cancelled = false;
    let mut undone = false;
    loop {
        system.apply(x, residual)?;
        space.sub_norm2(b, residual, verified)?;
        info.precise_applications += 1;
        info.reductions += 1;
        if let Some(rhs) = verified.iter().position(|v| !v.is_finite()) {
            return Err(SolveError::NotANumber { iteration: info.iterations, rhs, info: Box::new(info) });
        }
        for j in 0..n {
            verified[j] = if norms[j] == 0.0 { 0.0 } else { verified[j].sqrt() / norms[j] };
        }
        if !undone && corrections > 0 && (0..n).any(|j| verified[j] > best[j]) {
            // Once more with the old x where the correction did harm; those right-hand sides stall.
            for j in 0..n {
                mask[j] = if verified[j] > best[j] { -Complex64::ONE } else { Complex64::ZERO };
            }
            system.sloppy().axpby(zeros, rhs, mask, correction)?;
            system.accumulate(unscale, correction, x)?;
            undone = true;
            continue;
        }
        undone = false;
        let mut stuck = None;
        for j in 0..n {
            info.history[j].push(verified[j]);
            if verified[j] < 0.9 * best[j] {
                stalls[j] = 0;
            } else if verified[j] > params.tol {
                stalls[j] += 1;
                if stalls[j] >= params.max_stalls {
                    stuck = stuck.or(Some(j));
                }
            }
            best[j] = best[j].min(verified[j]);
        }
        info.true_residual.copy_from_slice(verified);
        info.reliable_updates = corrections;
        info.converged = verified.iter().all(|v| *v <= params.tol);
        let outer_flops = info.precise_applications as f64 * system.flops() * n as f64;
        let report = |mut info: Info| {
            info.precise_sides = info.precise_applications * n;
            info.flops += outer_flops;
            info
        };
        if corrections > 0 {
            let event = Iteration { iteration: info.iterations, residuals: verified, kind: Kind::ReliableUpdate };
            cancelled |= observer.iteration(&event).is_break();
        }
        if info.converged {
            return Ok(report(info));
        }
        let iteration = info.iterations;
        if cancelled {
            return Err(SolveError::Cancelled { iteration, info: Box::new(report(info)) });
        }
        if let Some(rhs) = stuck {
            let info = Box::new(report(info));
            return Err(SolveError::Stagnation { iterations: iteration, rhs, residual: verified[rhs], info });
        }
        if iteration >= params.max_iterations || corrections >= params.max_corrections {
            let info = Box::new(report(info));
            return Err(SolveError::NoConvergence { iterations: iteration, residual: info.worst_residual(), info });
        }

        let mut left = 0.0f64;
        for j in 0..n {
            let finished = verified[j] <= params.tol;
            mask[j] = if finished { Complex64::ZERO } else { Complex64::ONE };
            left = if finished { left } else { left.max(verified[j]) };
        }
        let comfortable = system.sloppy().comfortable_norm();
        for j in 0..n {
            scale[j] = scale_for(comfortable, verified[j] * norms[j], 1.0);
            unscale[j] = 1.0 / scale[j];
        }
        system.demote(scale, residual, rhs)?;
        // A finished right-hand side is zero for the inner solver, which then has nothing to do for it.
        system.sloppy().zero(correction)?;
        blank(system.sloppy(), zeros, correction, mask, rhs)?;
        let request = InnerRequest {
            // A margin of 2 for what the last conversion and summation lose.
            tol: params.inner_tol.max(0.5 * params.tol / left),
            max_iterations: params.max_iterations - iteration,
        };
        corrections += 1;
        match inner(rhs, correction, &request) {
            Ok(work) => info.absorb(&work),
            Err(mut error) => {
                let fatal = matches!(error, SolveError::NotANumber { .. });
                let Some(work) = error.info_mut() else { return Err(error) };
                info.absorb(work);
                if fatal {
                    error.replace_info(report(info));
                    return Err(error);
                }
                cancelled = matches!(error, SolveError::Cancelled { .. });
            }
        }
        // A correction that is no number must not reach x.
        system.sloppy().norm2(correction, verified)?;
        info.reductions += 1;
        if let Some(rhs) = verified.iter().position(|v| !v.is_finite()) {
            return Err(SolveError::NotANumber { iteration: info.iterations, rhs, info: Box::new(report(info)) });
        }
        system.accumulate(unscale, correction, x)?;
    }
}

/// y_j ← `mask`_j y_j, with x any finite block.
fn blank<S: VectorSpace>(
    space: &S,
    zeros: &[Complex64],
    x: &S::Vector,
    mask: &[Complex64],
    y: &mut S::Vector,
) -> Result<(), S::Error> {
    space.axpby(zeros, x, mask, y)
}
