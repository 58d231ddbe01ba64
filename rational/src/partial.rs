//! Partial fractions, which is what solvers of shifted systems take.

use crate::real::{BigFloat, Bits, Target, abs, double};
use crate::zolotarev::ZolotarevStart;
use crate::{Error, Interval, Power};
use serde::{Deserialize, Serialize};

/// A_i/(x + σ_i).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pole {
    /// A_i.
    pub residue: f64,
    /// σ_i > 0: the pole is at x = −σ_i.
    pub shift: f64,
}

/// R(x) = A₀ + Σ_i A_i/(x + σ_i).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialFractions {
    /// A₀.
    pub constant: f64,
    /// A_i and σ_i, in ascending order of σ.
    pub poles: Vec<Pole>,
}

/// How well partial fractions with coefficients in double precision do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// max |1 − R/f| where R is evaluated in multiple precision: what the rounded coefficients allow.
    pub error: f64,
    /// max |1 − R/f| where R is evaluated in double precision too.
    pub error_in_double: f64,
    /// max (|A₀| + Σ |A_i|/(x + σ_i))/f(x). Rounding errors are multiplied by this; it is 1 + error where all terms
    /// are positive, as for negative powers, and about √(b/a) for x^{1/2}.
    pub condition: f64,
}

/// Bits for evaluations with coefficients in double precision: 53, what a large condition takes, and a reserve.
const PRECISION: Bits = Bits(256);

impl PartialFractions {
    /// R(x) in double precision, from the largest shift to the smallest.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.poles.iter().rev().fold(self.constant, |sum, pole| sum + pole.residue / (x + pole.shift))
    }

    /// The shifts σ_i, as a solver takes them.
    pub fn shifts(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.poles.iter().map(|pole| pole.shift)
    }

    /// How well it approximates f on an interval, whoever made it: looked at in 16 n + 9 places, denser towards the ends
    /// as extrema of best approximations are, both ends among them. Errors are infinite where a coefficient is not
    /// finite, or where a pole is in one of these places.
    pub fn check(&self, function: &Power, interval: Interval) -> Form {
        let none = Form { error: f64::INFINITY, error_in_double: f64::INFINITY, condition: f64::INFINITY };
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
        let mut found = Form { error: 0.0, error_in_double: 0.0, condition: 0.0 };
        for at in points {
            // 1 × length may be rounded to beyond the end.
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

    /// λ^p R(x/λ).
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
