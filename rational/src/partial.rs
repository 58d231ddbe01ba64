//! Partial fractions, the form of rational functions that solvers of shifted systems use.

use crate::real::{BigFloat, Bits, Target, abs, double};
use crate::zolotarev::ZolotarevStart;
use crate::{Error, Interval, Power};
use serde::{Deserialize, Serialize};

/// Term A_i/(x + σ_i).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pole {
    /// Residue A_i.
    pub residue: f64,
    /// Shift σ_i > 0: the pole is at x = −σ_i.
    pub shift: f64,
}

/// Partial fractions R(x) = A₀ + Σ_i A_i/(x + σ_i).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialFractions {
    /// Constant A₀.
    pub constant: f64,
    /// Residues A_i and shifts σ_i, in ascending order of σ.
    pub poles: Vec<Pole>,
}

/// Accuracy of partial fractions with coefficients in double precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartialFractionAccuracy {
    /// max |1 − R/f|, with R evaluated in multiple precision: the accuracy that the rounded coefficients allow.
    pub error: f64,
    /// max |1 − R/f|, with R evaluated in double precision.
    pub error_in_double: f64,
    /// max (|A₀| + Σ |A_i|/(x + σ_i))/f(x), the factor that multiplies rounding errors. It is 1 + error if all terms
    /// are positive, as for negative powers, and about √(b/a) for x^{1/2}.
    pub condition: f64,
}

/// Precision of evaluations with coefficients in double precision, in bits: 53, the loss from a large condition, and
/// a reserve.
const PRECISION: Bits = Bits(256);

impl PartialFractions {
    /// Evaluates R(x) in double precision, from the largest shift to the smallest.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.poles.iter().rev().fold(self.constant, |sum, pole| sum + pole.residue / (x + pole.shift))
    }

    /// Returns the shifts σ_i in ascending order, as a solver of shifted systems takes them.
    pub fn shifts(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.poles.iter().map(|pole| pole.shift)
    }

    /// Computes the accuracy as an approximation of `function` on `interval`. The partial fractions are evaluated at
    /// 16 n + 9 points, which are denser towards the ends, like the extrema of best approximations, and include both
    /// ends. Errors are infinite if a coefficient is not finite, or if a pole is at one of these points.
    pub fn check(&self, function: &Power, interval: Interval) -> PartialFractionAccuracy {
        let none =
            PartialFractionAccuracy { error: f64::INFINITY, error_in_double: f64::INFINITY, condition: f64::INFINITY };
        let numbers = self.poles.iter().flat_map(|pole| [pole.residue, pole.shift]);
        if !numbers.chain([self.constant]).all(f64::is_finite) {
            return none;
        }
        let points = ZolotarevStart::new(function, interval).points(8 * (2 * self.poles.len() + 1));
        let length = interval.high() - interval.low();
        let target = Target::new(function, PRECISION);
        let real = |x: f64| PRECISION.real(x);
        let poles: Vec<(BigFloat, BigFloat)> =
            self.poles.iter().map(|pole| (real(pole.residue), real(pole.shift))).collect();
        let mut found = PartialFractionAccuracy { error: 0.0, error_in_double: 0.0, condition: 0.0 };
        for at in points {
            // Rounding may move `low + at * length` beyond the end of the interval.
            let x = if at < 1.0 { (interval.low() + at * length).min(interval.high()) } else { interval.high() };
            let in_double = self.evaluate(x);
            let x = real(x);
            let f = target.evaluate(&(&x + &target.origin));
            let (mut sum, mut sizes) = (real(self.constant), real(self.constant.abs()));
            for (residue, shift) in &poles {
                let distance = &x + shift;
                if distance == BigFloat::ZERO || !in_double.is_finite() {
                    return none;
                }
                let term = residue / distance;
                sizes += abs(&term);
                sum += term;
            }
            let error = |value: &BigFloat| double(&abs(&(value / &f - real(1.0))));
            found.error = found.error.max(error(&sum));
            found.error_in_double = found.error_in_double.max(error(&real(in_double)));
            found.condition = found.condition.max(double(&(sizes / &f)));
        }
        found
    }

    /// Returns the partial fractions of λ^p R(x/λ) for λ = `by` and p = `power`.
    pub(crate) fn scaled(&self, by: f64, power: f64) -> Result<Self, Error> {
        let factor = by.powf(power);
        let scale = |pole: &Pole| Pole { residue: factor * by * pole.residue, shift: by * pole.shift };
        let scaled = Self { constant: factor * self.constant, poles: self.poles.iter().map(scale).collect() };
        let numbers = scaled.poles.iter().flat_map(|pole| [pole.residue, pole.shift]);
        if numbers.chain([scaled.constant]).all(f64::is_normal) {
            Ok(scaled)
        } else {
            Err(Error::Range { what: format!("a coefficient, scaled by {by:e},") })
        }
    }
}
