//! The largest eigenvalue of A = −D², which bounds the interval of rational approximations. The smallest is not below 0.
use super::Error;
use super::fermions::{QuarkOperator, draw_noise};
use super::links::MovingLinks;
use crate::field::ColourSpace;
use crate::field::DeviceColour;
use gpu_kernels::random::purpose;
use gpu_kernels::storage::{Double, Element, Recon18};
use solvers::largest_eigenvalue;

/// Most applications of A.
const STEPS: usize = 60;
/// The bound is at most this much too large.
const TOLERANCE: f64 = 1e-3;

/// *Collective.* What the eigenvalues of A are not above, to a thousandth.
pub fn largest<T: Element>(links: &MovingLinks<T>, operator: &QuarkOperator, seed: u64) -> Result<f64, Error> {
    let domain = links.own().domain();
    let square = operator.on::<T, Double, Recon18>(links, 0, 0.0, 1)?;
    let mut start = DeviceColour::zero(domain, 1)?;
    draw_noise(&mut start, 0, purpose::NOISE, (1 << 12) - 1, seed, 0)?;
    let space = ColourSpace::<Double>::new(domain, 1);
    // The operator is a quarter of A.
    Ok(4.0 * largest_eigenvalue(&space, &*square, &mut start, STEPS, TOLERANCE)?.bound())
}
