//! The largest eigenvalue of A = −D², which bounds the interval of rational approximations. The smallest is not below 0.
use super::HmcError;
use super::fermions::{QuarkOperator, draw_noise};
use super::links::EvolvingLinks;
use crate::domain::DeviceError;
use crate::field::{DeviceField, FieldShape, FieldSpace};
use gpu_kernels::random::purpose;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{SolveError, largest_eigenvalue};

/// Most applications of A.
const STEPS: usize = 60;
/// The bound is at most this much too large.
const TOLERANCE: f64 = 1e-3;

/// How far intervals of rational functions reach beyond the largest eigenvalue.
const MARGIN: f64 = 1.15;
/// Inverse iteration comes from above, and the smallest eigenvalue moves from one trajectory to the next: intervals begin at this
/// fraction of what was found.
const BELOW: f64 = 0.4;

/// Where the interval of a rational function of A = −D² ends, of whose eigenvalues none is above `largest`.
pub fn end_of_interval(largest: f64) -> f64 {
    MARGIN * largest
}

/// The interval of a rational function of K = M̂†M̂, whose smallest and largest eigenvalues these are.
pub fn interval([smallest, largest]: [f64; 2]) -> [f64; 2] {
    [BELOW * smallest, MARGIN * largest]
}

/// The error of a search for the largest eigenvalue.
pub(super) fn of_search(error: SolveError<DeviceError>) -> HmcError {
    match error {
        SolveError::Backend(error) => error.into(),
        SolveError::Cancelled { .. } => HmcError::Stopped,
        why => HmcError::Solver { quarks: "the largest eigenvalue".into(), why: Box::new(why) },
    }
}

/// *Collective.* What the eigenvalues of A are not above, to a thousandth.
pub fn largest(links: &EvolvingLinks, operator: &QuarkOperator, seed: u64) -> Result<f64, HmcError> {
    let domain = links.own().domain();
    let square = operator.on(links, Precision::Double, LinkStorage::FULL, 0, 0.0, 1)?;
    let mut start = DeviceField::zero(domain, FieldShape::colours(Precision::Double, 1))?;
    draw_noise(&mut start, 0, purpose::NOISE, (1 << 12) - 1, seed, 0)?;
    let space = FieldSpace::new(domain, FieldShape::colours(Precision::Double, 1));
    // The operator is a quarter of A.
    let found = largest_eigenvalue(&space, &square, &mut start, STEPS, TOLERANCE, &mut links.stop().clone());
    Ok(4.0 * found.map_err(of_search)?.bound())
}
