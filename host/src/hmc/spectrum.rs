//! The largest eigenvalue of A = −D², which bounds the interval of rational approximations. The smallest is not below 0.
use super::HmcError;
use super::fermions::{QuarkOperator, draw_noise};
use super::links::EvolvingLinks;
use crate::field::{DeviceField, FieldSpace};
use gpu_kernels::random::purpose;
use gpu_kernels::{FermionKind, LinkStorage, Precision};
use solvers::largest_eigenvalue;

/// Most applications of A.
const STEPS: usize = 60;
/// The bound is at most this much too large.
const TOLERANCE: f64 = 1e-3;

/// *Collective.* What the eigenvalues of A are not above, to a thousandth.
pub fn largest(links: &EvolvingLinks, operator: &QuarkOperator, seed: u64) -> Result<f64, HmcError> {
    let domain = links.own().domain();
    let square = operator.on(links, Precision::Double, LinkStorage::FULL, 0, 0.0, 1)?;
    let mut start = DeviceField::zero(domain, FermionKind::Staggered, Precision::Double, 1)?;
    draw_noise(&mut start, 0, purpose::NOISE, (1 << 12) - 1, seed, 0)?;
    let space = FieldSpace::new(domain, FermionKind::Staggered, Precision::Double, 1);
    // The operator is a quarter of A.
    Ok(4.0 * largest_eigenvalue(&space, &square, &mut start, STEPS, TOLERANCE)?.bound())
}
