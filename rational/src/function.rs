//! Functions to approximate, and the intervals on which they are approximated.

use crate::{Error, Fraction};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A factor (x + c)^p of a function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// Shift c ≥ 0, in the units of x; 4m² for a staggered quark, where x is an eigenvalue of −D².
    #[serde(default)]
    pub shift: f64,
    /// Power p.
    pub power: Fraction,
}

/// Function f(x) = Π_k (x + c_k)^{p_k} for x > 0 with all c_k ≥ 0, where f or 1/f must be a Stieltjes function.
///
/// For c_1 < c_2 < …, f or 1/f is a Stieltjes function if the partial sums p_1, p_1 + p_2, … are all in [−1, 0], or
/// all in [0, 1]. On the cut between −c_k and −c_{k+1} the imaginary part of f is |f| sin π(p_1 + … + p_k). It has
/// one sign, so that f or 1/f is const + ∫ dμ(t)/(x + t) with a positive measure. All best approximations of such
/// functions have poles and zeros that alternate on the negative axis, as solvers of shifted systems need.
///
/// Factors are stored in ascending order of c, and factors of equal c are joined, so that equal functions compare
/// equal. A function is serialised as the list of its factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Factor>", into = "Vec<Factor>")]
pub struct Power {
    factors: Vec<Factor>,
}

impl Power {
    /// Creates f(x) = x^p.
    ///
    /// # Errors
    /// Returns the errors of [`product`](Self::product).
    pub fn new(power: Fraction) -> Result<Self, Error> {
        Self::product([Factor { shift: 0.0, power }])
    }

    /// Creates f(x) = Π_k (x + c_k)^{p_k}.
    ///
    /// # Errors
    /// Fails if a power is 0, if c < 0, if a number is not finite, or if neither f nor 1/f is a Stieltjes function.
    /// Also fails for rational functions, which need no approximation: all their powers are integers after factors of
    /// equal c are joined.
    pub fn product(factors: impl IntoIterator<Item = Factor>) -> Result<Self, Error> {
        let mut joined: Vec<Factor> = Vec::new();
        for (index, factor) in factors.into_iter().enumerate() {
            if !(factor.shift >= 0.0 && factor.shift.is_finite()) {
                return Err(Error::Shift { index, shift: factor.shift });
            }
            if factor.power.is_zero() {
                return Err(Error::ZeroPower { index, shift: factor.shift });
            }
            match joined.iter_mut().find(|old| old.shift == factor.shift) {
                Some(old) => old.power = old.power.plus(factor.power)?,
                // Adding 0 changes −0 to 0.
                None => joined.push(Factor { shift: factor.shift + 0.0, ..factor }),
            }
        }
        joined.retain(|factor| !factor.power.is_zero());
        joined.sort_by(|a, b| a.shift.total_cmp(&b.shift));
        let function = Self { factors: joined };
        if function.factors.iter().all(|factor| factor.power.is_integer()) {
            return Err(Error::AlreadyRational { function: function.to_string() });
        }
        let sums = function.partial_sums()?;
        let within = |low: f64, high: f64| sums.iter().all(|sum| (low..=high).contains(&sum.value()));
        if !within(-1.0, 0.0) && !within(0.0, 1.0) {
            let sums = sums.iter().map(Fraction::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::NotStieltjes { function: function.to_string(), sums });
        }
        Ok(function)
    }

    /// Creates a function from any factors without checks, for tests of functions that are rejected.
    #[cfg(test)]
    pub(crate) fn unchecked(factors: Vec<Factor>) -> Self {
        Self { factors }
    }

    /// Returns the factors, in ascending order of c.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// Returns the function 1/f.
    pub fn reciprocal(&self) -> Self {
        let negated = |factor: &Factor| Factor { power: factor.power.negated(), ..*factor };
        Self { factors: self.factors.iter().map(negated).collect() }
    }

    /// Evaluates f(x) in double precision, for x > 0.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.factors.iter().map(|factor| (x + factor.shift).powf(factor.power.value())).product()
    }

    /// Computes the partial sums p_1, p_1 + p_2, ….
    fn partial_sums(&self) -> Result<Vec<Fraction>, Error> {
        let mut sums: Vec<Fraction> = Vec::with_capacity(self.factors.len());
        for factor in &self.factors {
            sums.push(sums.last().map_or(Ok(factor.power), |sum| sum.plus(factor.power))?);
        }
        Ok(sums)
    }

    /// Returns the length of the cut of f on the negative axis, which begins at −c_1, or `None` if it extends to −∞.
    pub(crate) fn cut(&self) -> Option<f64> {
        let [first, .., last] = self.factors[..] else { return None };
        let total = self.partial_sums().ok()?.pop()?;
        total.is_integer().then_some(last.shift - first.shift)
    }

    /// Returns p if f(x) = x^p, and `None` otherwise.
    pub fn single(&self) -> Option<Fraction> {
        match self.factors[..] {
            [Factor { shift: 0.0, power }] => Some(power),
            _ => None,
        }
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factors.is_empty() {
            return f.write_str("1");
        }
        for (k, factor) in self.factors.iter().enumerate() {
            let space = if k == 0 { "" } else { " " };
            match factor.shift {
                0.0 => write!(f, "{space}x^({})", factor.power)?,
                shift => write!(f, "{space}(x + {shift:e})^({})", factor.power)?,
            }
        }
        Ok(())
    }
}

impl TryFrom<Vec<Factor>> for Power {
    type Error = Error;

    fn try_from(factors: Vec<Factor>) -> Result<Self, Error> {
        Self::product(factors)
    }
}

impl From<Power> for Vec<Factor> {
    fn from(function: Power) -> Self {
        function.factors
    }
}

/// Largest ratio b/a of an [`Interval`].
pub const LARGEST_RATIO: f64 = 1e100;

/// Interval [a, b] with 0 < a < b and b/a ≤ [`LARGEST_RATIO`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Bounds", into = "Bounds")]
pub struct Interval {
    low: f64,
    high: f64,
}

/// Serialised form of an [`Interval`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Interval {
    /// Creates the interval [low, high].
    ///
    /// # Errors
    /// Returns [`Error::Interval`] unless 0 < low < high, both are finite, and high/low ≤ [`LARGEST_RATIO`].
    pub fn new(low: f64, high: f64) -> Result<Self, Error> {
        if low > 0.0 && low < high && high.is_finite() && high / low <= LARGEST_RATIO {
            Ok(Self { low, high })
        } else {
            Err(Error::Interval { low, high })
        }
    }

    /// Returns the lower end a.
    pub fn low(self) -> f64 {
        self.low
    }

    /// Returns the upper end b.
    pub fn high(self) -> f64 {
        self.high
    }

    /// Returns b/a, the condition number of an operator whose spectrum fills the interval.
    pub fn ratio(self) -> f64 {
        self.high / self.low
    }

    /// Returns whether the interval contains all of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:e}, {:e}]", self.low, self.high)
    }
}

impl TryFrom<Bounds> for Interval {
    type Error = Error;

    fn try_from(bounds: Bounds) -> Result<Self, Error> {
        Self::new(bounds.low, bounds.high)
    }
}

impl From<Interval> for Bounds {
    fn from(interval: Interval) -> Self {
        Self { low: interval.low, high: interval.high }
    }
}
