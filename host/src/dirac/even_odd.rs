//! What even-odd preconditioned Dirac operators have in common.
use crate::backend::Backend;
use crate::domain::Result;
use crate::field::{DeviceSpinor, FullSpinor, SpinorSpace};
use gpu_kernels::storage::Precision;
use solvers::LinearOperator;

/// A Dirac operator M on all sites, and its Schur complement M̂ on the even sites, which is the linear operator.
pub trait EvenOdd<B: Backend, P: Precision>: LinearOperator<SpinorSpace<B, P>> {
    /// The right-hand side of the system M̂ ψ_e = η̂ that is equivalent to M ψ = η.
    fn prepare(&self, eta: &FullSpinor<B, P>, even: &mut DeviceSpinor<B, P>) -> Result;
    /// The odd half of ψ from its even half, written to `psi.odd`.
    fn reconstruct(&self, eta: &FullSpinor<B, P>, psi: &mut FullSpinor<B, P>) -> Result;
    /// `out` = M ψ, or M† ψ, on the sites of `parity`, not by the kernels that M̂ uses.
    fn row(&self, parity: usize, dagger: bool, psi: &FullSpinor<B, P>, out: &mut DeviceSpinor<B, P>) -> Result;
    /// ‖η − M ψ‖ over ‖η̂ − M̂ ψ_e‖ when ψ_o is the reconstructed one: exact, or near enough to aim with.
    fn residual_factor(&self) -> f64;
}
