//! Upper bound of the eigenvalues of A = −D², which ends the interval of rational approximations. The lower bound is 0.
use super::HmcError;
use super::fermions::{QuarkOperator, draw_noise};
use super::links::EvolvingLinks;
use crate::domain::DeviceError;
use crate::field::{DeviceField, FieldShape, FieldSpace};
use gpu_kernels::random::purpose;
use gpu_kernels::{LinkStorage, Precision};
use solvers::{SolveError, largest_eigenvalue};

/// Maximum number of applications of A.
const STEPS: usize = 60;
/// Largest relative excess of the bound over the largest eigenvalue.
const TOLERANCE: f64 = 1e-3;

/// Factor by which intervals of rational functions extend above the largest eigenvalue.
const MARGIN: f64 = 1.15;
/// Fraction of the computed smallest eigenvalue at which intervals begin. Inverse iteration approaches the eigenvalue from above, and the
/// eigenvalue changes from one trajectory to the next.
const BELOW: f64 = 0.4;

/// Returns the upper end of the interval of a rational function of A = −D². `largest` is an upper bound of the eigenvalues of A.
pub fn end_of_interval(largest: f64) -> f64 {
    MARGIN * largest
}

/// Returns the interval of a rational function of K = M̂†M̂ for these spectral bounds of K. The interval has a margin at both ends.
pub fn interval([smallest, largest]: [f64; 2]) -> [f64; 2] {
    [BELOW * smallest, MARGIN * largest]
}

/// Converts the error of a search for the largest eigenvalue.
pub(super) fn of_search(error: SolveError<DeviceError>) -> HmcError {
    match error {
        SolveError::Backend(error) => error.into(),
        SolveError::Cancelled { .. } => HmcError::Stopped,
        why => HmcError::Solver { quarks: "the largest eigenvalue".into(), why: Box::new(why) },
    }
}

/// *Collective.* Computes an upper bound of the eigenvalues of A = −D², at most a thousandth above the largest one.
pub fn largest(links: &EvolvingLinks, operator: &QuarkOperator, seed: u64) -> Result<f64, HmcError> {
    let domain = links.own().domain();
    let square = operator.on(links, Precision::Double, LinkStorage::FULL, 0, 0.0, 1)?;
    let mut start = DeviceField::zero(domain, FieldShape::colours(Precision::Double, 1))?;
    draw_noise(&mut start, 0, purpose::NOISE, (1 << 12) - 1, seed, 0)?;
    let space = FieldSpace::new(domain, FieldShape::colours(Precision::Double, 1));
    // `square` is A/4, because the mass is 0; the bound is multiplied by 4 below.
    let found = largest_eigenvalue(&space, &square, &mut start, STEPS, TOLERANCE, &mut links.stop().clone());
    Ok(4.0 * found.map_err(of_search)?.bound())
}
