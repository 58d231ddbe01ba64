//! Checks of a transfer and of a coarse operator, as first diagnostics of a multigrid setup.

use super::TransferOperator;
use crate::reliable::relative;
use crate::traits::{LinearOperator, VectorSpace};

/// Computes ‖(1 − P R) v_j‖/‖v_j‖ for each right-hand side of a fine vector: the distance of v from the range of P, if R
/// P = 1. It is zero up to rounding for the near-null vectors from which P was made. The result is 0 for v_j = 0, and NaN if
/// v_j is not finite.
///
/// Allocates a block of each space.
///
/// # Errors
/// The errors of the backend.
pub fn projection_error<F, C, T>(fine: &F, coarse: &C, transfer: &T, v: &F::Vector) -> Result<Vec<f64>, F::Error>
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    T: TransferOperator<F, C> + ?Sized,
{
    let (mut restricted, mut projected) = (coarse.allocate()?, fine.allocate()?);
    transfer.restrict(v, &mut restricted)?;
    transfer.prolong(&restricted, &mut projected)?;
    difference(fine, v, &mut projected)
}

/// Computes ‖(1 − R P) v_j‖/‖v_j‖ for each right-hand side of a coarse vector. It is zero up to rounding if the columns of P
/// are orthonormal and R = P†. The result is 0 for v_j = 0, and NaN if v_j is not finite.
///
/// Allocates a block of each space.
///
/// # Errors
/// The errors of the backend.
pub fn orthonormality_error<F, C, T>(fine: &F, coarse: &C, transfer: &T, v: &C::Vector) -> Result<Vec<f64>, F::Error>
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    T: TransferOperator<F, C> + ?Sized,
{
    let (mut prolonged, mut restricted) = (fine.allocate()?, coarse.allocate()?);
    transfer.prolong(v, &mut prolonged)?;
    transfer.restrict(&prolonged, &mut restricted)?;
    difference(coarse, v, &mut restricted)
}

/// Computes ‖(R A P − A_c) v_j‖/‖A_c v_j‖ for each right-hand side of a coarse vector. It is zero up to rounding if A_c is
/// the Galerkin operator. The result is 0 if both images are zero, infinite if only A_c v_j is, and NaN if one is not finite.
///
/// Allocates two blocks of each space.
///
/// # Errors
/// The errors of the backend.
pub fn galerkin_error<F, C, A, B, T>(
    fine: &F,
    operator: &A,
    coarse: &C,
    coarse_operator: &B,
    transfer: &T,
    v: &C::Vector,
) -> Result<Vec<f64>, F::Error>
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    A: LinearOperator<F> + ?Sized,
    B: LinearOperator<C> + ?Sized,
    T: TransferOperator<F, C> + ?Sized,
{
    let (mut prolonged, mut image) = (fine.allocate()?, fine.allocate()?);
    let (mut restricted, mut coarse_image) = (coarse.allocate()?, coarse.allocate()?);
    transfer.prolong(v, &mut prolonged)?;
    operator.apply(&prolonged, &mut image)?;
    transfer.restrict(&image, &mut restricted)?;
    coarse_operator.apply(v, &mut coarse_image)?;
    difference(coarse, &coarse_image, &mut restricted)
}

/// Computes ‖x_j − y_j‖/‖x_j‖ for each right-hand side. `y` is overwritten.
fn difference<S: VectorSpace>(space: &S, x: &S::Vector, y: &mut S::Vector) -> Result<Vec<f64>, S::Error> {
    let n = space.nrhs();
    let (mut difference, mut whole) = (vec![0.0; n], vec![0.0; n]);
    space.sub_norm2(x, y, &mut difference)?;
    space.norm2(x, &mut whole)?;
    Ok(difference.iter().zip(&whole).map(|(part, whole)| relative(part.sqrt(), whole.sqrt())).collect())
}
