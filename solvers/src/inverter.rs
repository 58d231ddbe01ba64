//! Inverters: solvers composed of solvers.
//!
//! An [`Inverter`] solves A x = b for any suitable [`System`]. The innermost parts of a composition are Krylov methods; all
//! others take an inverter and are one:
//!
//! | | |
//! |---|---|
//! | [`cg()`], [`bicgstab()`], [`idr()`], [`cgnr()`], [`cgne()`], [`block_cg()`], [`block_cgnr()`] | the functions of these names, with memory of their own |
//! | [`gcr`]`(k_max, preconditioner)` | GCR around any [`Preconditioner`](crate::Preconditioner): domains, multigrid, or an inverter by [`as_preconditioner()`] |
//! | [`mixed_precision`]`(space, operator, inner)` | the iteration of `inner` in another space, with reliable updates |
//! | [`defect_correcting`]`(params, inner)` | `inner` for one correction after another, in the sloppy space of the system |
//! | [`deflated`]`(vectors, eigenvalues, inner)` | `inner` from the solution in the space of these eigenvectors |
//! | [`preconditioned`]`(left, inner)` | `inner` for L A L† |
//!
//! ```
//! use num_complex::Complex64;
//! use solvers::inverter::{Inverter, cg, deflated};
//! use solvers::{LengthError, LinearOperator, PlainSpace, SolverParams, Uniform, VectorSpace};
//!
//! /// A = diag(1, 2, …) but for one eigenvalue of 1e-6.
//! struct Light;
//! impl LinearOperator<PlainSpace> for Light {
//!     fn apply(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
//!         out.iter_mut().zip(x).enumerate().for_each(|(i, (y, x))| *y = x * if i == 0 { 1e-6 } else { i as f64 });
//!         Ok(())
//!     }
//!     fn apply_dagger(&self, x: &Vec<Complex64>, out: &mut Vec<Complex64>) -> Result<(), LengthError> {
//!         self.apply(x, out)
//!     }
//!     fn flops(&self) -> f64 { 2.0 * 64.0 }
//! }
//!
//! let space = PlainSpace::new(64);
//! let system = Uniform::new(&space, &Light);
//! let mut vector = space.allocate()?;
//! vector[0] = Complex64::ONE;
//! let (b, mut x) = (vec![Complex64::ONE; 64], space.allocate()?);
//! let params = SolverParams { tol: 1e-12, ..Default::default() };
//! let mut inverter = deflated(vec![vector], vec![1e-6], cg());
//! let info = inverter.invert(&system, &b, &mut x, &params, &mut ())?;
//! assert!(info.worst_residual() <= 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Your own
//! An inverter of your own takes about ten lines, since the trait has one method. The inverter below begins with the solution
//! of the previous system, which helps if systems change slowly.
//! ```
//! use solvers::inverter::Inverter;
//! use solvers::{Info, Observer, Precise, SolveError, SolverParams, System, VectorSpace};
//!
//! struct FromLast<V, I> { last: Option<V>, inner: I }
//! impl<Y: System, I: Inverter<Y>> Inverter<Y> for FromLast<Precise<Y>, I> {
//!     fn invert(
//!         &mut self, system: &Y, b: &Precise<Y>, x: &mut Precise<Y>, params: &SolverParams, observer: &mut dyn Observer,
//!     ) -> Result<Info, SolveError<Y::Error>> {
//!         let last = self.last.get_or_insert(system.precise().allocate()?);
//!         system.precise().copy(last, x)?;
//!         let solved = self.inner.invert(system, b, x, params, observer);
//!         system.precise().copy(x, last)?;
//!         solved
//!     }
//! }
//! ```

mod around;
mod deflated;
mod krylov;
mod preconditioned;
mod sides;

pub use around::{DefectCorrecting, MixedPrecision, defect_correcting, mixed_precision};
pub use deflated::{Deflated, deflated};
pub use krylov::{
    Bicgstab, BlockCg, BlockCgnr, Cg, Cgne, Cgnr, Gcr, Idr, bicgstab, block_cg, block_cgnr, cg, cgne, cgnr, gcr, idr,
};
pub use preconditioned::{InverterPreconditioner, Preconditioned, as_preconditioner, preconditioned};

use crate::error::SolveError;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Mixed, Precise, System, Uniform};
use crate::params::SolverParams;
use crate::traits::LinearOperator;

/// A solver of systems of type `Y`. It may contain other inverters, and owns the memory that it needs.
pub trait Inverter<Y: System> {
    /// Solves A x_j = b_j. `x` holds the initial guess on entry and the solution on exit, with ‖b_j − A x_j‖ ≤ ε ‖b_j‖ for
    /// ε = [`SolverParams::tol`].
    ///
    /// # Errors
    /// A [`SolveError`], whose documentation states the content of `x`.
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>>;
}

impl<Y: System, I: Inverter<Y> + ?Sized> Inverter<Y> for Box<I> {
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        (**self).invert(system, b, x, params, observer)
    }
}

/// Type of the system that an inverter passes to an inner inverter: one operator on one space.
pub type OneSpace<'a, S> = Uniform<'a, S, dyn LinearOperator<S> + 'a>;
/// Type of the system that [`mixed_precision`] passes to its inner inverter: operators on a precise and a sloppy space.
pub type TwoSpaces<'a, P, S> = Mixed<'a, P, dyn LinearOperator<P> + 'a, S, dyn LinearOperator<S> + 'a>;
