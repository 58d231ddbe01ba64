//! Best approximations in double precision.

use crate::failure::RemezFailure;
use crate::partial::{PartialFractionAccuracy, PartialFractions, Pole};
use crate::real::{BigFloat, Bits, Target, double};
use crate::remez::{Minimax, minimax};
use crate::zolotarev::ZolotarevStart;
use crate::{Error, Interval, Power};
use serde::{Deserialize, Serialize};

/// Largest order n of an approximation; n is the number of poles.
pub const LARGEST_ORDER: usize = 80;

/// Smallest tolerance that may be requested.
pub const SMALLEST_TOLERANCE: f64 = 1e-15;

/// Largest precision that is tried, in bits.
const LARGEST_PRECISION: usize = 6000;

/// Base-10 exponent of the smallest error; approximations with smaller errors are rejected.
const SMALLEST_EXPONENT: f64 = -100.0;

/// Relative difference of the ratios b/a of two intervals that counts as rounding.
const SAME: f64 = 1e-12;

/// Best approximation R of a function f on an interval in relative error: R(x) = A₀ + Σ_{i=1}^n A_i/(x + σ_i) with
/// the smallest max |1 − R(x)/f(x)|. It also contains 1/R in the same form.
///
/// All σ_i are positive and ascending. An approximation can only be computed, or read with a check: `Deserialize`
/// computes the error over the whole interval, and rejects an approximation whose error is larger than the recorded
/// one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredApproximation", into = "StoredApproximation")]
pub struct Approximation {
    stored: StoredApproximation,
}

/// Serialised form of an [`Approximation`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredApproximation {
    function: Power,
    interval: Interval,
    order: usize,
    error: f64,
    direct: PartialFractions,
    inverse: PartialFractions,
}

/// Result of [`Approximation::check`]: accuracies of R and of 1/R.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// Accuracy of R as an approximation of f.
    pub direct: PartialFractionAccuracy,
    /// Accuracy of 1/R as an approximation of 1/f.
    pub inverse: PartialFractionAccuracy,
}

/// Computes the best approximation of order n, where numerator and denominator are polynomials of order n.
///
/// # Errors
/// Returns [`Error::Order`] unless 1 ≤ n ≤ [`LARGEST_ORDER`]; [`Error::TooExact`] if the error would be below 10⁻¹⁰⁰;
/// [`Error::Range`] if a coefficient is not a normal number in double precision. Other errors are not expected: they
/// report that the algorithm failed, and for which function, interval and order.
pub fn approximate(function: &Power, interval: Interval, order: usize) -> Result<Approximation, Error> {
    let (best, target) = solve(function, interval, order)?;
    let stored = StoredApproximation {
        function: function.clone(),
        interval,
        order,
        error: double(&best.error),
        direct: best.product.partial_fractions(&target.origin)?,
        inverse: best.product.reciprocal(target.precision).partial_fractions(&target.origin)?,
    };
    Approximation::try_from(stored)
}

/// Computes the best approximation of the lowest order whose error is at most `tolerance`.
///
/// # Errors
/// Returns [`Error::Tolerance`] unless [`SMALLEST_TOLERANCE`] ≤ tolerance < 1; [`Error::NoOrder`] if no order up to
/// [`LARGEST_ORDER`] suffices; and the errors of [`approximate`].
pub fn approximate_to(function: &Power, interval: Interval, tolerance: f64) -> Result<Approximation, Error> {
    lowest_order(function, interval, tolerance, |order| approximate(function, interval, order))
}

/// Returns the approximation of the lowest order whose error is at most `tolerance`; `get` supplies the approximation
/// of a given order.
pub(crate) fn lowest_order(
    function: &Power,
    interval: Interval,
    tolerance: f64,
    mut get: impl FnMut(usize) -> Result<Approximation, Error>,
) -> Result<Approximation, Error> {
    if !(SMALLEST_TOLERANCE..1.0).contains(&tolerance) {
        return Err(Error::Tolerance { tolerance, smallest: SMALLEST_TOLERANCE });
    }
    let start = ZolotarevStart::new(function, interval);
    let meets = |order: &usize| start.log_scale(*order) + 4f64.ln() <= tolerance.ln();
    let mut order = (1..LARGEST_ORDER).find(meets).unwrap_or(LARGEST_ORDER);
    // The estimate differs from the lowest order by at most about two, and the error decreases as the order increases.
    let mut best = get(order)?;
    if best.error() > tolerance {
        while best.error() > tolerance {
            if order == LARGEST_ORDER {
                let (function, error) = (function.to_string(), best.error());
                return Err(Error::NoOrder { function, interval, error, largest: LARGEST_ORDER, tolerance });
            }
            order += 1;
            best = get(order)?;
        }
        return Ok(best);
    }
    while order > 1 {
        order -= 1;
        let lower = get(order)?;
        if lower.error() > tolerance {
            break;
        }
        best = lower;
    }
    Ok(best)
}

/// Computes the best approximation of order `order`, and raises the precision until it suffices.
pub(crate) fn solve(function: &Power, interval: Interval, order: usize) -> Result<(Minimax, Target), Error> {
    if !(1..=LARGEST_ORDER).contains(&order) {
        return Err(Error::Order { order, largest: LARGEST_ORDER });
    }
    let start = ZolotarevStart::new(function, interval);
    let digits = start.log_scale(order) / 10f64.ln();
    if digits < SMALLEST_EXPONENT {
        return Err(Error::TooExact { function: function.to_string(), interval, order, exponent: digits as i64 });
    }
    let points = start.points(2 * order + 1);
    // The bits cover the digits of the error, the digits that nearly singular matrices lose, and the range of the
    // numbers.
    let mut bits = 192 + (-2.5 * digits * 10f64.log2() + start.log2_ratio()) as usize;
    loop {
        let precision = Bits(bits);
        let target = Target::new(function, precision);
        let end = |x: f64| precision.real(x) + &target.origin;
        let failure = match minimax(&target, &end(interval.low()), &end(interval.high()), &points) {
            Ok(best) => return Ok((best, target)),
            Err(failure) => failure,
        };
        // Insufficient precision may move roots to the wrong side, or make equal extrema differ.
        bits += bits / 2;
        if bits > LARGEST_PRECISION {
            return Err(named(failure, function, interval, order, &target.origin));
        }
    }
}

fn named(failure: RemezFailure, function: &Power, interval: Interval, order: usize, origin: &BigFloat) -> Error {
    let function = function.to_string();
    match failure {
        RemezFailure::Precision => Error::Precision { function, interval, order, bits: LARGEST_PRECISION },
        RemezFailure::NotNegative(what) => Error::NotNegative { what, function, interval, order },
        RemezFailure::NoConvergence { exchanges, spread } => {
            Error::NoConvergence { function, interval, order, exchanges, spread }
        }
        RemezFailure::NotBest { level, found, y } => {
            Error::NotBest { function, interval, order, level, found, x: double(&(y - origin)) }
        }
    }
}

impl Approximation {
    /// Returns the approximated function f.
    pub fn function(&self) -> &Power {
        &self.stored.function
    }

    /// Returns the interval on which the approximation is valid.
    pub fn interval(&self) -> Interval {
        self.stored.interval
    }

    /// Returns the order n, the number of poles.
    pub fn order(&self) -> usize {
        self.stored.order
    }

    /// Returns max |1 − R/f| on the interval, for R before its coefficients were rounded to double precision. For 1/R
    /// the value is error/(1 − error). [`check`](Self::check) returns both with rounding.
    pub fn error(&self) -> f64 {
        self.stored.error
    }

    /// Returns the constant A₀ of R.
    pub fn constant(&self) -> f64 {
        self.stored.direct.constant
    }

    /// Returns the poles of R, with their residues A_i and shifts σ_i.
    pub fn poles(&self) -> &[Pole] {
        &self.stored.direct.poles
    }

    /// Returns the partial fractions of R ≈ f.
    pub fn direct(&self) -> &PartialFractions {
        &self.stored.direct
    }

    /// Returns the partial fractions of 1/R ≈ 1/f. They are the inverse of [`direct`](Self::direct) up to rounding,
    /// and not the best approximation of 1/f, which is (1 − error²)/R.
    pub fn inverse(&self) -> &PartialFractions {
        &self.stored.inverse
    }

    /// Evaluates R(x) from [`direct`](Self::direct), in double precision. With positive powers the terms differ in
    /// sign, and [`PartialFractionAccuracy::condition`] measures the resulting loss of digits.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.stored.direct.evaluate(x)
    }

    /// Computes the accuracies of R and of 1/R with coefficients rounded to double precision
    /// ([`PartialFractions::check`]).
    pub fn check(&self) -> Check {
        self.stored.check()
    }

    /// Returns the approximation of f_λ(x) = Π_k (x + λ c_k)^{p_k} on [λa, λb], where λ = `by` > 0. Since f_λ(λx) =
    /// λ^p f(x) with p = Σ p_k, the best approximation is R_λ(x) = λ^p R(x/λ), with the same error.
    ///
    /// For f = x^p, f_λ = f: R_λ approximates f on another interval with the same ratio b/a.
    ///
    /// # Errors
    /// Returns [`Error::Interval`], [`Error::Shift`] or [`Error::Range`] if λ is not positive, or if a result leaves
    /// the range of double precision.
    pub fn scaled(&self, by: f64) -> Result<Self, Error> {
        let old = &self.stored;
        let interval = Interval::new(by * old.interval.low(), by * old.interval.high())?;
        let factors = old.function.factors().iter().map(|factor| crate::Factor { shift: by * factor.shift, ..*factor });
        let function = Power::product(factors)?;
        let power: f64 = function.factors().iter().map(|factor| factor.power.value()).sum();
        let direct = old.direct.scaled(by, power)?;
        let inverse = old.inverse.scaled(by, -power)?;
        Ok(Self {
            stored: StoredApproximation { function, interval, order: old.order, error: old.error, direct, inverse },
        })
    }

    /// Returns an approximation of the same function that is valid on all of `wanted`. This is the approximation
    /// itself, if its interval contains `wanted`. For f = x^p, it may be [`scaled`](Self::scaled) to the geometric
    /// mean of `wanted`, if its b/a is at least as large. One approximation can thus serve spectral bounds that are
    /// measured later.
    ///
    /// # Errors
    /// Returns [`Error::NotCovered`] if neither way is possible.
    pub fn covering(&self, wanted: Interval) -> Result<Self, Error> {
        let have = self.interval();
        let refuse = |reason| Err(Error::NotCovered { have, wanted, reason });
        if have.contains(wanted) {
            return Ok(self.clone());
        }
        if self.function().single().is_none() {
            return refuse("the interval is not inside, and only approximations of powers of x can be rescaled");
        }
        if wanted.ratio() > have.ratio() * (1.0 + SAME) {
            return refuse("the ratio of its bounds is larger");
        }
        let mut moved = self.scaled((wanted.low() / have.low()).sqrt() * (wanted.high() / have.high()).sqrt())?;
        // Rounding may have moved a bound just inside of `wanted`.
        let bounds = moved.interval();
        moved.stored.interval = Interval::new(bounds.low().min(wanted.low()), bounds.high().max(wanted.high()))?;
        Ok(moved)
    }
}

impl StoredApproximation {
    fn check(&self) -> Check {
        Check {
            direct: self.direct.check(&self.function, self.interval),
            inverse: self.inverse.check(&self.function.reciprocal(), self.interval),
        }
    }

    /// Returns a description of the fault if a stored approximation is not valid.
    fn fault(&self) -> Option<String> {
        if !(1..=LARGEST_ORDER).contains(&self.order) {
            return Some(format!("the order {} is not between 1 and {LARGEST_ORDER}", self.order));
        }
        if !(self.error > 0.0 && self.error < 1.0) {
            return Some(format!("the error {:e} is not between 0 and 1", self.error));
        }
        for (name, form) in [("direct", &self.direct), ("inverse", &self.inverse)] {
            if form.poles.len() != self.order {
                return Some(format!("`{name}` has {} poles, and the order is {}", form.poles.len(), self.order));
            }
            let finite = |pole: &Pole| pole.residue.is_finite() && pole.shift.is_finite() && pole.shift > 0.0;
            if !(form.constant.is_finite() && form.poles.iter().all(finite)) {
                return Some(format!("`{name}` has numbers that are not finite, or shifts that are not positive"));
            }
            if form.poles.windows(2).any(|pair| pair[0].shift >= pair[1].shift) {
                return Some(format!("the shifts of `{name}` are not in ascending order"));
            }
        }
        let Check { direct, inverse } = self.check();
        let wanted = [("direct", direct, self.error), ("inverse", inverse, self.error / (1.0 - self.error))];
        for (name, form, error) in wanted {
            // Residues and shifts have relative rounding errors of 2⁻⁵³ each, and several such errors if they were
            // scaled. Between the points that are checked, the error is at most 1/cos(π/16) = 1.02 times the largest
            // error at these points.
            let rounding = 8.0 * f64::EPSILON * form.condition;
            let found = form.error;
            if !(found <= (1.0 + 1e-6) * error + rounding && found >= 0.95 * error - rounding) {
                return Some(format!("`{name}` has an error of {found:.6e} on {}, not {error:.6e}", self.interval));
            }
        }
        None
    }
}

impl TryFrom<StoredApproximation> for Approximation {
    type Error = Error;

    fn try_from(stored: StoredApproximation) -> Result<Self, Error> {
        match stored.fault() {
            None => Ok(Self { stored }),
            Some(fault) => Err(Error::Stored(fault)),
        }
    }
}

impl From<Approximation> for StoredApproximation {
    fn from(approximation: Approximation) -> Self {
        approximation.stored
    }
}
