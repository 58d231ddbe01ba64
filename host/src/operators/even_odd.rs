//! What even-odd preconditioned Dirac operators have in common.
use crate::domain::Result;
use crate::field::{DeviceField, FieldSpace, FullField};
use solvers::LinearOperator;
use std::cell::Cell;

/// What is made of an operator M.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperatorForm {
    /// M
    #[default]
    Plain,
    /// M†
    Dagger,
    /// M†M, of the normal equations.
    Normal,
}

/// For how many right-hand sides of its fields an operator works: all, or only the first ones while a solver has made
/// its batch smaller ([`LinearOperator::narrow`]). Operators look at it wherever they launch a kernel.
#[derive(Debug, Default)]
pub(super) struct Width(Cell<Option<usize>>);

impl Width {
    /// From now on the first `nrhs` of the `full` that the operator has memory for.
    pub fn narrow(&self, nrhs: usize, full: usize) -> bool {
        self.0.set((nrhs < full).then_some(nrhs));
        true
    }
    /// Number of right-hand sides to work on of a field that has `nrhs`: never more than those.
    pub fn of(&self, nrhs: usize) -> usize {
        self.0.get().map_or(nrhs, |narrow| narrow.min(nrhs))
    }
}

/// A Dirac operator M on all sites, and its Schur complement M̂ on the even sites, which is the linear operator.
pub trait EvenOdd: LinearOperator<FieldSpace> {
    /// The right-hand side of the system M̂ ψ_e = η̂ that is equivalent to M ψ = η.
    fn prepare(&self, eta: &FullField, even: &mut DeviceField) -> Result;
    /// The odd half of ψ from its even half, written to `psi.odd`.
    fn reconstruct(&self, eta: &FullField, psi: &mut FullField) -> Result;
    /// `out` = M ψ, or M† ψ, on the sites of `parity`, not by the kernels that M̂ uses.
    fn row(&self, parity: usize, dagger: bool, psi: &FullField, out: &mut DeviceField) -> Result;
    /// `out` = M ψ, or M† ψ, on all sites.
    fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        (0..2).try_for_each(|parity| self.row(parity, dagger, psi, out.parity_mut(parity)))
    }
    /// `out` = M†M ψ on all sites. ψ is lost.
    fn normal(&self, psi: &mut FullField, out: &mut FullField) -> Result {
        self.full(false, psi, out)?;
        std::mem::swap(psi, out);
        self.full(true, psi, out)
    }
    /// ‖η − M ψ‖ over ‖η̂ − M̂ ψ_e‖ when ψ_o is the reconstructed one: exact, or near enough to aim with.
    fn residual_factor(&self) -> f64;
    /// Whether M̂ is Hermitian and positive, so that CG needs no normal equations.
    fn is_positive(&self) -> bool {
        false
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
