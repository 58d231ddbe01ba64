//! The transfer between two neighbouring levels.

use crate::traits::VectorSpace;

/// Restriction R from the space `F` to a coarser space `C`, and prolongation P back.
///
/// In aggregation-based multigrid, near-null vectors are restricted to aggregates and made orthonormal there; they are the
/// columns of P, and R = P†. Then R P = 1, and P R = P P† is the orthogonal projector on the range of P (Babich et al., arXiv
/// 1005.3043; Frommer et al., arXiv 1303.1377). If aggregates also separate the chiralities, P commutes with γ₅, and the
/// coarse operator R A P is γ₅-Hermitian if A is. Nothing in this crate requires R = P†, but
/// [`projection_error`](crate::projection_error) is zero only with R P = 1.
///
/// A transfer that needs scratch memory owns it, like a [`LinearOperator`](crate::LinearOperator).
pub trait TransferOperator<F: VectorSpace, C: VectorSpace<Error = F::Error>> {
    /// Computes `coarse`_j ← R `fine`_j.
    ///
    /// # Errors
    /// The errors of the backend.
    fn restrict(&self, fine: &F::Vector, coarse: &mut C::Vector) -> Result<(), F::Error>;

    /// Computes `fine`_j ← P `coarse`_j. The old content of `fine` is not read.
    ///
    /// # Errors
    /// The errors of the backend.
    fn prolong(&self, coarse: &C::Vector, fine: &mut F::Vector) -> Result<(), F::Error>;

    /// Narrows both directions to the first `nrhs` right-hand sides, like
    /// [`LinearOperator::narrow`](crate::LinearOperator::narrow). Returns whether that is possible. The default returns
    /// false.
    fn narrow(&self, _nrhs: usize) -> bool {
        false
    }

    /// Returns the floating-point operations of one restriction, or of one prolongation, for one right-hand side; 0 leaves
    /// them uncounted.
    fn flops(&self) -> f64 {
        0.0
    }
}

impl<F, C, T> TransferOperator<F, C> for &T
where
    F: VectorSpace,
    C: VectorSpace<Error = F::Error>,
    T: TransferOperator<F, C> + ?Sized,
{
    fn restrict(&self, fine: &F::Vector, coarse: &mut C::Vector) -> Result<(), F::Error> {
        (**self).restrict(fine, coarse)
    }
    fn prolong(&self, coarse: &C::Vector, fine: &mut F::Vector) -> Result<(), F::Error> {
        (**self).prolong(coarse, fine)
    }
    fn narrow(&self, nrhs: usize) -> bool {
        (**self).narrow(nrhs)
    }
    fn flops(&self) -> f64 {
        (**self).flops()
    }
}
