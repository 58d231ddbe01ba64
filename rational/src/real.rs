//! Numbers in multiple precision.

use crate::{Factor, Power};
use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;

/// Binary number with its own precision. Sums and products have the larger precision of their operands, so all
/// numbers of a calculation are created with the same [`Bits`].
pub(crate) type BigFloat = FBig<HalfEven, 2>;

/// Precision of a number, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits(pub usize);

impl Bits {
    /// Converts the finite number x to multiple precision, exactly.
    pub fn real(self, x: f64) -> BigFloat {
        let exact = BigFloat::try_from(x).expect("a finite number");
        exact.with_precision(self.0).value()
    }

    /// Converts an integer to multiple precision, exactly.
    pub fn integer(self, i: i64) -> BigFloat {
        BigFloat::from(i).with_precision(self.0).value()
    }

    /// Returns 2^{-exponent}.
    pub fn tiny(self, exponent: usize) -> BigFloat {
        self.integer(1) >> exponent as isize
    }
}

/// Returns the nearest number in double precision: infinity if `x` is above its range, and 0 if it is below.
pub(crate) fn double(x: &BigFloat) -> f64 {
    x.to_f64().value()
}

pub(crate) fn positive(x: &BigFloat) -> bool {
    *x > BigFloat::ZERO
}

pub(crate) fn abs(x: &BigFloat) -> BigFloat {
    if positive(x) { x.clone() } else { -x }
}

/// Computes √(x y) for x, y > 0.
pub(crate) fn geometric_mean(x: &BigFloat, y: &BigFloat) -> BigFloat {
    (x * y).sqrt()
}

/// Function f in the variable y = x + c₁, where c₁ is the smallest c_k: f = Π_k (y + d_k)^{p_k} with d_k = c_k − c₁.
///
/// For any c_k, f is analytic except on the negative real axis of y, so log y is the natural scale.
#[derive(Clone)]
pub(crate) struct Target {
    /// Smallest shift c₁.
    pub origin: BigFloat,
    /// Shift d_k and the numerator and denominator of p_k for each factor.
    pub factors: Vec<(BigFloat, BigFloat, BigFloat)>,
    pub precision: Bits,
}

impl Target {
    pub fn new(function: &Power, precision: Bits) -> Self {
        let origin = precision.real(function.factors().first().map_or(0.0, |factor| factor.shift));
        let factor = |factor: &Factor| {
            let [top, bottom] = [factor.power.numerator(), factor.power.denominator()];
            let shift = precision.real(factor.shift) - &origin;
            (shift, precision.integer(top.into()), precision.integer(bottom.into()))
        };
        Self { factors: function.factors().iter().map(factor).collect(), origin, precision }
    }

    /// Evaluates f at y > 0.
    pub fn evaluate(&self, y: &BigFloat) -> BigFloat {
        let log = |(shift, top, bottom): &(BigFloat, BigFloat, BigFloat)| (y + shift).ln() * top / bottom;
        self.factors.iter().map(log).fold(self.precision.integer(0), |sum, log| sum + log).exp()
    }

    /// Computes (log f)′ and (log f)″ at y > 0.
    pub fn log_derivatives(&self, y: &BigFloat) -> (BigFloat, BigFloat) {
        let mut sums = (self.precision.integer(0), self.precision.integer(0));
        for (shift, top, bottom) in &self.factors {
            let pole = self.precision.integer(1) / (y + shift);
            let first = &pole * top / bottom;
            sums.1 -= &first * pole;
            sums.0 += first;
        }
        sums
    }
}
