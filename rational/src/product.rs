//! Rational functions given by their poles and zeros.

use crate::Error;
use crate::failure::RemezFailure;
use crate::levelled::Levelled;
use crate::partial::{PartialFractions, Pole};
use crate::real::{BigFloat, Bits, double};
use crate::roots::{RootFailure, negative_roots};

/// Rational function R(y) = scale Π_i (y + zero_i)/(y + pole_i).
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// Limit R(∞), the factor of the product.
    pub scale: BigFloat,
    /// Moduli of the zeros in ascending order, all positive.
    pub zeros: Vec<BigFloat>,
    /// Moduli of the poles in ascending order, all positive.
    pub poles: Vec<BigFloat>,
}

impl Product {
    /// Finds the poles and zeros of a levelled function.
    pub fn new(levelled: &Levelled, precision: Bits) -> Result<Self, RemezFailure> {
        let upper: Vec<BigFloat> = levelled.weights.iter().zip(&levelled.values).map(|(b, f)| b * f).collect();
        let sum = |b: &[BigFloat]| b.iter().fold(precision.integer(0), |sum, b| sum + b);
        let below = sum(&levelled.weights);
        if below == BigFloat::ZERO {
            return Err(RemezFailure::Precision);
        }
        let named = |what| {
            move |failure| match failure {
                RootFailure::NotNegative => RemezFailure::NotNegative(what),
                RootFailure::Precision => RemezFailure::Precision,
            }
        };
        Ok(Self {
            scale: sum(&upper) / below,
            zeros: negative_roots(&levelled.nodes, &upper, precision).map_err(named("zeros"))?,
            poles: negative_roots(&levelled.nodes, &levelled.weights, precision).map_err(named("poles"))?,
        })
    }

    /// Evaluates R(y) for y > 0.
    pub fn evaluate(&self, y: &BigFloat) -> BigFloat {
        let above = self.zeros.iter().fold(self.scale.clone(), |product, zero| product * (y + zero));
        let below = self.poles.iter().map(|pole| y + pole).reduce(|product, factor| product * factor);
        below.map_or_else(|| above.clone(), |below| &above / below)
    }

    /// Computes the derivatives (log R)′ and (log R)″ at y > 0.
    pub fn log_derivatives(&self, y: &BigFloat, precision: Bits) -> (BigFloat, BigFloat) {
        let one = precision.integer(1);
        let (mut first, mut second) = (precision.integer(0), precision.integer(0));
        for (zero, pole) in self.zeros.iter().zip(&self.poles) {
            let (up, down) = (&one / (y + zero), &one / (y + pole));
            first += &up - &down;
            second += &down * &down - &up * &up;
        }
        (first, second)
    }

    /// Returns the function 1/R.
    pub fn reciprocal(&self, precision: Bits) -> Self {
        let scale = precision.integer(1) / &self.scale;
        Self { scale, zeros: self.poles.clone(), poles: self.zeros.clone() }
    }

    /// Returns the partial fractions in the variable x = y − origin, rounded to double precision: A_i = scale Π_j
    /// (zero_j − pole_i)/Π_{j≠i} (pole_j − pole_i), σ_i = pole_i + origin.
    pub fn partial_fractions(&self, origin: &BigFloat) -> Result<PartialFractions, Error> {
        let rounded = |x: &BigFloat, what: &dyn Fn() -> String| match double(x) {
            value if value.is_normal() => Ok(value),
            _ => Err(Error::Range { what: what() }),
        };
        let pole = |i: usize| {
            let at = &self.poles[i];
            let above = self.zeros.iter().fold(self.scale.clone(), |product, zero| product * (zero - at));
            let others = self.poles.iter().enumerate().filter(|(j, _)| *j != i);
            let residue = others.fold(above, |product, (_, pole)| product / (pole - at));
            Ok(Pole {
                residue: rounded(&residue, &|| format!("residue {i}"))?,
                shift: rounded(&(at + origin), &|| format!("shift {i}"))?,
            })
        };
        let poles = (0..self.poles.len()).map(pole).collect::<Result<Vec<Pole>, Error>>()?;
        if let Some(i) = poles.windows(2).position(|pair| pair[0].shift >= pair[1].shift) {
            return Err(Error::Range { what: format!("the difference of shifts {i} and {}", i + 1) });
        }
        Ok(PartialFractions { constant: rounded(&self.scale, &|| "the constant".to_string())?, poles })
    }
}
