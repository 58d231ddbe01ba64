//! The largest and the smallest eigenvalue of a Hermitian operator, by the Lanczos method (1950).

use crate::cg::{CgWorkspace, cg};
use crate::error::SolveError;
use crate::observer::{Observer, Step};
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::range;
use crate::traits::{LinearOperator, VectorSpace};
use num_complex::Complex64;
use std::ops::ControlFlow;

/// Estimate of the largest eigenvalue of a Hermitian operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargestEigenvalue {
    /// Largest eigenvalue on the Krylov space. Apart from rounding, it is not above the largest eigenvalue of the operator.
    pub ritz: f64,
    /// Residual of the Ritz vector: an eigenvalue lies within this distance of `ritz`, in practice the largest one.
    pub residual: f64,
    /// Number of applications of the operator.
    pub steps: usize,
}

impl LargestEigenvalue {
    /// Returns `ritz` + `residual`, which is in practice an upper bound of the largest eigenvalue.
    pub fn bound(&self) -> f64 {
        self.ritz + self.residual
    }
}

/// Estimates the largest eigenvalue of a Hermitian operator from the Krylov space of `start`. The search ends after `steps`
/// applications, or when the residual of the Ritz vector is below `tol` times the Ritz value. `start` should have a component
/// along every eigenvector, as noise has; it is overwritten. The space must have one right-hand side.
///
/// Vectors are not reorthogonalised. This produces copies of eigenvalues that were already found, but does not affect the
/// largest one. The method keeps three vectors.
///
/// The observer receives a [step](Observer::step) after each application, and can end the search.
///
/// # Errors
/// The errors of the backend; `Cancelled` if the observer ended the search. If `start` is zero, the result is 0.
///
/// # Panics
/// If vectors of `space` are blocks of several right-hand sides.
pub fn largest_eigenvalue<S: VectorSpace, A: LinearOperator<S> + ?Sized>(
    space: &S,
    operator: &A,
    start: &mut S::Vector,
    steps: usize,
    tol: f64,
    observer: &mut dyn Observer,
) -> Result<LargestEigenvalue, SolveError<S::Error>> {
    let mut applied = 0;
    lanczos(space, start, steps, tol, |x, out| {
        operator.apply(x, out)?;
        applied += 1;
        match observer.step(&Step { work: "largest eigenvalue", done: None }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(SolveError::Cancelled { iteration: applied, info: Box::default() }),
        }
    })
}

/// Estimate of the smallest eigenvalue of a Hermitian positive operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmallestEigenvalue {
    /// Inverse of the largest eigenvalue of A⁻¹ on the Krylov space. Apart from rounding, it is not below the smallest
    /// eigenvalue of A.
    pub ritz: f64,
    /// Interval that certainly contains an eigenvalue, in practice the smallest. The upper end is infinite if the first steps
    /// are not conclusive.
    pub bounds: [f64; 2],
    /// Number of applications of A⁻¹.
    pub steps: usize,
    /// Number of CG iterations in all applications of A⁻¹.
    pub iterations: usize,
}

/// Estimates the smallest eigenvalue of a Hermitian positive operator A by the Lanczos method for A⁻¹, whose largest
/// eigenvalues are well separated even if the smallest ones of A are close. Each step solves A x = b by [`cg`] with `params`.
/// The search ends after `steps` steps, or when the residual of the Ritz vector is below `tol` times the Ritz value. `start`
/// has the same requirements as in [`largest_eigenvalue`].
///
/// If A⁻¹ has the Ritz value θ with residual r, it has an eigenvalue in [θ − r, θ + r]. The error of the solutions is added
/// to r: ‖A⁻¹ b − x‖ ≤ ‖A⁻¹‖ ‖b − A x‖, which is θ times the residual of CG.
///
/// # Errors
/// The errors of [`cg`].
///
/// # Panics
/// If vectors of the space are blocks of several right-hand sides.
pub fn smallest_eigenvalue<Y: System>(
    system: &Y,
    start: &mut Precise<Y>,
    steps: usize,
    tol: f64,
    params: &SolverParams,
    observer: &mut dyn Observer,
) -> Result<SmallestEigenvalue, SolveError<Y::Error>> {
    let space = system.precise();
    let mut workspace = CgWorkspace::new(system)?;
    let mut iterations = 0;
    let found = lanczos(space, start, steps, tol, |b, x| {
        space.zero(x)?;
        iterations += cg(system, b, x, params, &mut workspace, observer)?.iterations;
        Ok::<(), SolveError<Y::Error>>(())
    })?;
    let off = found.residual + params.tol * found.ritz;
    let high = if off < found.ritz { 1.0 / (found.ritz - off) } else { f64::INFINITY };
    let bounds = [1.0 / (found.ritz + off), high];
    Ok(SmallestEigenvalue { ritz: 1.0 / found.ritz, bounds, steps: found.steps, iterations })
}

fn lanczos<S: VectorSpace, E: From<S::Error>>(
    space: &S,
    start: &mut S::Vector,
    steps: usize,
    tol: f64,
    mut apply: impl FnMut(&S::Vector, &mut S::Vector) -> Result<(), E>,
) -> Result<LargestEigenvalue, E> {
    assert_eq!(space.nrhs(), 1, "for one right-hand side");
    let real = |a: f64| [Complex64::new(a, 0.0)];
    let (mut before, mut image) = (space.allocate()?, space.allocate()?);
    let mut norm2 = [0.0];
    space.norm2(start, &mut norm2)?;
    range::bring_near_one(space, start, &mut norm2, &mut image)?;
    let (mut alphas, mut betas) = (Vec::<f64>::new(), Vec::<f64>::new());
    let mut found = LargestEigenvalue { ritz: 0.0, residual: 0.0, steps: 0 };
    if norm2[0] == 0.0 || norm2[0].is_nan() {
        return Ok(found);
    }
    let mut scale = 1.0 / norm2[0].sqrt();
    for step in 1..=steps {
        // `start` is v_k up to the factor `scale`, and `before` is v_{k−1}.
        space.copy(start, &mut image)?;
        space.axpby(&real(scale), &image, &real(0.0), start)?;
        apply(start, &mut image)?;
        let mut dot = [Complex64::ZERO];
        space.dot(start, &image, &mut dot)?;
        let (alpha, beta) = (dot[0].re, betas.last().copied().unwrap_or(0.0));
        space.axpy(&real(-alpha), start, &mut image)?;
        if beta != 0.0 {
            space.axpy(&real(-beta), &before, &mut image)?;
        }
        space.norm2(&image, &mut norm2)?;
        alphas.push(alpha);
        let next = norm2[0].sqrt();
        let (ritz, last) = largest_of(&alphas, &betas);
        found = LargestEigenvalue { ritz, residual: next * last.abs(), steps: step };
        if !found.bound().is_finite() || found.residual <= tol * ritz.abs() {
            break;
        }
        betas.push(next);
        scale = 1.0 / next;
        std::mem::swap(start, &mut before);
        std::mem::swap(start, &mut image);
    }
    Ok(found)
}

/// Returns the largest eigenvalue of a symmetric tridiagonal matrix, found by bisection, and the last component of its unit
/// eigenvector.
///
/// Each step of Lanczos needs this pair. Bisection costs O(n), where a dense eigensolver would cost O(n³): a quarter of a second for
/// 400 steps.
fn largest_of(alphas: &[f64], betas: &[f64]) -> (f64, f64) {
    let n = alphas.len();
    let beside = |k: usize| {
        let before = if k > 0 { betas[k - 1].abs() } else { 0.0 };
        before + if k + 1 < n { betas[k].abs() } else { 0.0 }
    };
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (k, alpha) in alphas.iter().enumerate() {
        (low, high) = (low.max(*alpha), high.max(alpha + beside(k)));
    }
    // By Sturm's theorem, all pivots of T − x are negative if x is above all eigenvalues.
    let above = |x: f64| {
        let mut pivot = 1.0;
        alphas.iter().enumerate().all(|(k, alpha)| {
            let square = if k > 0 { betas[k - 1] * betas[k - 1] } else { 0.0 };
            pivot = alpha - x - square / pivot;
            pivot < 0.0
        })
    };
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) { high = middle } else { low = middle }
    }
    // Computes the eigenvector from its last component to its first, which is stable for the largest eigenvalue.
    let mut components = vec![0.0; n];
    components[n - 1] = 1.0;
    for k in (0..n - 1).rev() {
        let below = if k + 2 < n { betas[k + 1] * components[k + 2] } else { 0.0 };
        components[k] = ((high - alphas[k + 1]) * components[k + 1] - below) / betas[k];
    }
    let norm = components.iter().map(|c| c * c).sum::<f64>().sqrt();
    (high, if norm.is_finite() { 1.0 / norm } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tridiagonal_matrices() {
        // 2 on the diagonal and 1 beside it: 2 + 2 cos (π / (n + 1)), with the vector sin (π k / (n + 1)).
        for n in [1usize, 2, 5, 30] {
            let (value, last) = largest_of(&vec![2.0; n], &vec![1.0; n - 1]);
            let angle = std::f64::consts::PI / (n + 1) as f64;
            assert!((value - 2.0 - 2.0 * angle.cos()).abs() < 1e-13, "{n}: {value}");
            let expected = angle.sin() / ((n + 1) as f64 / 2.0).sqrt();
            assert!((last - expected).abs() < 1e-8, "{n}: {last} {expected}");
        }
    }
}
