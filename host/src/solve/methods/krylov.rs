//! Krylov methods, with reliable updates or in defect correction.
use super::super::report::EscalationError;
use super::super::request::{Correction, Request};
use super::{Limits, OperatorPair, PreparedMethod};
use crate::field::{DeviceField, FieldSpace};
use gpu_kernels::{LinkStorage, Precision};
use solvers::inverter::{Inverter, OneSpace, TwoSpaces, defect_correcting};
use solvers::{DefectParams, Info, Observer, SolverParams};

/// δ of CG on a positive operator in 16 bits with small eigenvalues. The rounded operator has other small eigenvalues, so the iteration
/// needs the true residual far more often than rounding alone requires; docs/measurements/staggered.md has measurements.
const HALF_DELTA: f64 = 0.6;
/// Smallest eigenvalues below which [`HALF_DELTA`] applies, for fields in 16 bits and for 16-bit links beside fields in single precision.
const SMALL: [f64; 2] = [0.035 * 0.035, 0.01 * 0.01];

/// Inverter on fields, in two precisions or in one.
pub(super) trait FieldInverter:
    for<'a> Inverter<TwoSpaces<'a, FieldSpace, FieldSpace>> + for<'a> Inverter<OneSpace<'a, FieldSpace>>
{
}
impl<I> FieldInverter for I where
    I: for<'a> Inverter<TwoSpaces<'a, FieldSpace, FieldSpace>> + for<'a> Inverter<OneSpace<'a, FieldSpace>>
{
}

/// Method that needs nothing but the operator.
struct Krylov(MakeInverter);

type MakeInverter = fn(&OperatorPair, &Request) -> Box<dyn FieldInverter>;

/// Prepares a method that needs nothing but the operator; `make` makes its inverter.
pub(super) fn krylov(make: MakeInverter) -> Result<Box<dyn PreparedMethod>, EscalationError> {
    Ok(Box::new(Krylov(make)))
}

impl PreparedMethod for Krylov {
    fn iterate(
        &self,
        pair: &OperatorPair,
        rhs: &DeviceField,
        x: &mut DeviceField,
        limits: &Limits<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let mut inverter = (self.0)(pair, limits.request);
        match limits.request.correction {
            Correction::Reliable { delta } => {
                let params = limits.params(delta.or(default_delta(pair)));
                inverter.invert(&pair.mixed(), rhs, x, &params, observer)
            }
            Correction::Defect { inner_tol } => {
                let corrections = SolverParams { max_stalls: 3, ..Default::default() };
                let outer = DefectParams { solver: corrections, inner_tol, max_corrections: 1000 };
                defect_correcting(outer, inverter).invert(&pair.mixed(), rhs, x, &limits.params(Some(0.0)), observer)
            }
        }
    }
}

/// Returns the default δ of reliable updates; `None` for the default of the solvers. With all reals of the links and in the same precision,
/// the iteration needs no reliable updates. Reconstructed links differ slightly: links of a file in single precision are unitary only to
/// 1e-7, and differ from their reconstruction by that much.
fn default_delta(pair: &OperatorPair) -> Option<f64> {
    let level = pair.level;
    let is_below = |limit: f64| pair.positive.is_some_and(|bound| bound < limit);
    match level.reconstruction {
        _ if level.precision == Precision::Half && is_below(SMALL[0]) => Some(HALF_DELTA),
        storage if storage.half && is_below(SMALL[1]) => Some(HALF_DELTA),
        storage if level.precision != level.outer || storage.half => None,
        LinkStorage::FULL => Some(0.0),
        _ => Some(1e-4),
    }
}
