//! Interface that all even-odd preconditioned Dirac operators share.
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace, FullField};
use solvers::LinearOperator;
use std::cell::Cell;

/// Product with the Dirac operator M that is to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorForm {
    /// Product with M.
    #[default]
    Plain,
    /// Product with M†.
    Dagger,
    /// Product with M†M of the normal equations.
    Normal,
}

/// Number of right-hand sides of its fields on which an operator works: all, or only the first ones while a solver has a smaller batch
/// ([`LinearOperator::narrow`]). Operators read it wherever they launch a kernel.
#[derive(Debug, Default)]
pub(super) struct Width(Cell<Option<usize>>);

impl Width {
    /// Restricts work to the first `nrhs` of the `full` right-hand sides for which the operator has memory.
    pub fn narrow(&self, nrhs: usize, full: usize) -> bool {
        self.0.set((nrhs < full).then_some(nrhs));
        true
    }
    /// Returns the number of right-hand sides to work on in a field with `nrhs` right-hand sides, which is at most `nrhs`.
    pub fn of(&self, nrhs: usize) -> usize {
        self.0.get().map_or(nrhs, |narrow| narrow.min(nrhs))
    }
}

/// Even-odd preconditioned Dirac operator: M on all sites, and its Schur complement M̂ on the even sites. As a linear operator it is M̂.
pub trait EvenOdd: LinearOperator<FieldSpace> {
    /// Computes the right-hand side of the system M̂ ψ_e = η̂ that is equivalent to M ψ = η.
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result;
    /// Computes the odd half of ψ from its even half, and writes it to `psi.odd`.
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result;
    /// Computes `out` = M ψ, or M† ψ if `dagger` is set, on the sites of `parity`, by other kernels than those of M̂.
    fn apply_parity(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result;
    /// Computes `out` = M ψ, or M† ψ if `dagger` is set, on all sites.
    fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        (0..2).try_for_each(|parity| self.apply_parity(parity, dagger, psi, out.parity_mut(parity)))
    }
    /// Computes `out` = M†M ψ on all sites. ψ is overwritten.
    fn normal(&self, psi: &mut FullField, out: &mut FullField) -> Result {
        self.full(false, psi, out)?;
        std::mem::swap(psi, out);
        self.full(true, psi, out)
    }
    /// Returns ‖η − M ψ‖ / ‖η̂ − M̂ ψ_e‖ for the reconstructed ψ_o, exactly or closely enough to set a tolerance.
    fn residual_factor(&self) -> f64;
    /// Returns a lower bound of the eigenvalues of M̂ if it is Hermitian and positive, so that CG needs no normal equations; `None` for
    /// other operators.
    fn positive(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Width;

    #[test]
    fn a_width_is_never_above_that_of_the_field() {
        let width = Width::default();
        assert_eq!([1, 12].map(|nrhs| width.of(nrhs)), [1, 12], "all of them");
        assert!(width.narrow(4, 12));
        assert_eq!([1, 3, 4, 12].map(|nrhs| width.of(nrhs)), [1, 3, 4, 4]);
        assert!(width.narrow(12, 12));
        assert_eq!(width.of(12), 12);
    }
}
