//! Setup of adaptive multigrid: near-null vectors.

use super::clear_rhs;
use crate::error::SolveError;
use crate::preconditioner::Preconditioner;
use crate::reliable::relative;
use crate::small::{GramFactor, minus};
use crate::traits::{LinearOperator, VectorSpace, with_coefficients};
use num_complex::Complex64;
use std::ops::ControlFlow;

/// Improves blocks of near-null vectors by inverse iteration with K, an approximate inverse of A:
///
/// v ← K v/‖K v‖, done `iterations` times for each right-hand side of each block of `vectors`.
///
/// K amplifies most the components for which it is a poor inverse, and a prolongator has to contain these. Adaptive setup has
/// two stages (Brannick et al., arXiv 0707.4018; Babich et al., arXiv 1005.3043; Frommer et al., arXiv 1303.1377):
///
/// 1. *Relaxation*: `vectors` are random, and K is a few steps of a smoother or of a Krylov method, such as
///    [`MinimumResidual`](crate::MinimumResidual) or [`InnerGcr`](crate::InnerGcr).
/// 2. *Adaptive steps*: a transfer and a coarse operator are made from the vectors, and K is the cycle with them, a
///    [`Level`](crate::Level). The new vectors make a better cycle; two to five such steps are usual.
///
/// Returns ‖A v‖/‖v‖ for each near-null vector, block after block: an upper bound of the smallest singular value of A.
/// Further steps are useless if the value no longer falls, and harmful if all vectors have become the same eigenvector. The
/// value is 0 for a zero vector, and NaN for a vector that is not finite.
///
/// Vectors have norm 1 on exit, or the [target norm](VectorSpace::target_norm) in formats of limited range. If K v is zero or
/// not finite, v stays as it is. Allocates a block.
///
/// # Errors
/// `Invalid` if there is no iteration; `Backend`.
pub fn inverse_iteration<S, A, K>(
    space: &S,
    operator: &A,
    solver: &K,
    vectors: &mut [S::Vector],
    iterations: usize,
) -> Result<Vec<f64>, SolveError<S::Error>>
where
    S: VectorSpace,
    A: LinearOperator<S> + ?Sized,
    K: Preconditioner<S> + ?Sized,
{
    inverse_iteration_while(space, operator, solver, vectors, iterations, &mut || ControlFlow::Continue(()))
}

/// Runs [`inverse_iteration`], and calls `after` at the end of each iteration of each block. If `after` returns `Break`, the
/// iteration ends. The resulting vectors are normalised, and some have had fewer iterations than others. On several processes
/// `after` must return the same value on all of them.
///
/// # Errors
/// The errors of [`inverse_iteration`]; `Cancelled` if `after` returned `Break`.
pub fn inverse_iteration_while<S, A, K>(
    space: &S,
    operator: &A,
    solver: &K,
    vectors: &mut [S::Vector],
    iterations: usize,
    after: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Vec<f64>, SolveError<S::Error>>
where
    S: VectorSpace,
    A: LinearOperator<S> + ?Sized,
    K: Preconditioner<S> + ?Sized,
{
    if iterations == 0 {
        return Err(SolveError::Invalid("inverse iteration needs at least one iteration"));
    }
    let n = space.nrhs();
    let size = space.target_norm().unwrap_or(1.0);
    let (mut image, mut norms) = (space.allocate()?, vec![0.0; n]);
    let mut quotients = Vec::with_capacity(n * vectors.len());
    for v in vectors {
        // Another block may have left NaN here, which a coefficient of zero would not remove.
        space.zero(&mut image)?;
        normalise(space, size, &image, v, &mut norms)?;
        for _ in 0..iterations {
            solver.apply(space, v, &norms, &mut image)?;
            let mut norm2 = vec![0.0; n];
            space.norm2(&image, &mut norm2)?;
            let useless: Vec<bool> = norm2.iter().map(|norm2| !norm2.is_normal()).collect();
            if useless.contains(&true) {
                clear_rhs(space, &useless, v, &mut image)?;
            }
            let scale = |j: usize| if useless[j] { Complex64::ZERO } else { (size / norm2[j].sqrt()).into() };
            let keep = |j: usize| if useless[j] { Complex64::ONE } else { Complex64::ZERO };
            with_coefficients(n, scale, |scale| {
                with_coefficients(n, keep, |keep| space.axpby(scale, &image, keep, v))
            })?;
            if after().is_break() {
                return Err(SolveError::Cancelled { iteration: 0, info: Box::default() });
            }
        }
        space.norm2(v, &mut norms)?;
        let mut image2 = vec![0.0; n];
        operator.apply(v, &mut image)?;
        space.norm2(&image, &mut image2)?;
        quotients.extend(image2.iter().zip(&norms).map(|(image2, norm2)| relative(image2.sqrt(), norm2.sqrt())));
    }
    Ok(quotients)
}

/// Squared sine of the angle between a near-null vector and the previous ones at or below which it counts as dependent. Sums
/// over a site in single precision are accurate to 1e-7.
const DEPENDENT: f64 = 1e-10;

/// Makes all right-hand sides of all blocks of `vectors` orthonormal, by block Gram-Schmidt with a Cholesky factorisation in
/// each block, done twice. Inverse iteration turns all near-null vectors towards the few smallest singular vectors.
/// Orthonormalisation between its steps keeps them apart, so that they span a large space. A dependent vector becomes zero.
///
/// If the space does not [mix right-hand sides](VectorSpace::mixes_rhs), the vectors stay as they are. Allocates a block.
///
/// # Errors
/// The errors of the backend.
pub fn orthonormalise<S: VectorSpace>(space: &S, vectors: &mut [S::Vector]) -> Result<(), S::Error> {
    if !space.mixes_rhs() {
        return Ok(());
    }
    let n = space.nrhs();
    let (mut gram, mut scratch) = (vec![Complex64::ZERO; n * n], space.allocate()?);
    for _ in 0..2 {
        for b in 0..vectors.len() {
            let (before, rest) = vectors.split_at_mut(b);
            let block = &mut rest[0];
            let mut before_norm2 = vec![0.0; n];
            space.norm2(block, &mut before_norm2)?;
            for earlier in before {
                space.gram(earlier, block, &mut gram)?;
                space.block_axpy(&minus(&gram), earlier, block)?;
            }
            space.gram(block, block, &mut gram)?;
            let left: Vec<bool> = (0..n).map(|j| gram[j * n + j].re > DEPENDENT * before_norm2[j]).collect();
            let factor = GramFactor::new(n, &gram, &left, DEPENDENT, 0.0);
            space.block_scale(&factor.t, block, &mut scratch)?;
            std::mem::swap(block, &mut scratch);
        }
    }
    Ok(())
}

/// Scales each nonzero v_j to norm `size`, and sets `norms`_j = ‖v_j‖.
fn normalise<S: VectorSpace>(
    space: &S,
    size: f64,
    zero: &S::Vector,
    v: &mut S::Vector,
    norms: &mut [f64],
) -> Result<(), S::Error> {
    let n = norms.len();
    space.norm2(v, norms)?;
    let scale = |norm2: f64| if norm2.is_normal() { size / norm2.sqrt() } else { 1.0 };
    let multiply =
        |scale: &[Complex64]| with_coefficients(n, |_| Complex64::ZERO, |zeros| space.axpby(zeros, zero, scale, v));
    with_coefficients(n, |j| scale(norms[j]).into(), multiply)?;
    norms.iter_mut().for_each(|norm| *norm = norm.sqrt() * scale(*norm));
    Ok(())
}
