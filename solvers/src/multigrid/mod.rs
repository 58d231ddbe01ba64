//! Multigrid: cycles, their solvers, and the setup of near-null vectors.

mod ca_gcr;
mod check;
mod coefficients;
mod inner;
mod level;
mod report;
mod setup;
mod transfer;

pub use ca_gcr::{CaGcr, CaGcrParams};
pub use check::{galerkin_error, orthonormality_error, projection_error};
pub use inner::{InnerGcr, InnerGcrParams};
pub use level::Level;
pub use report::LevelReport;
pub use setup::{inverse_iteration, inverse_iteration_while, orthonormalise};
pub use transfer::TransferOperator;

use crate::traits::{VectorSpace, with_coefficients};
use num_complex::Complex64;

/// Sets x_j ← 0 if `which`_j is true, whatever x_j was. `finite` is a vector without NaN in these right-hand sides.
fn clear_rhs<S: VectorSpace>(space: &S, which: &[bool], finite: &S::Vector, x: &mut S::Vector) -> Result<(), S::Error> {
    let n = space.nrhs();
    let keep = |j: usize| if which[j] { Complex64::ZERO } else { Complex64::ONE };
    with_coefficients(
        n,
        |_| Complex64::ZERO,
        |zeros| with_coefficients(n, keep, |keep| space.axpby(zeros, finite, keep, x)),
    )
}
