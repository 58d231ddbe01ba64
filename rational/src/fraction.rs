//! Powers as fractions of integers, so that they are exact in any precision.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Largest numerator and denominator: the limit keeps sums of several fractions within 64 bits.
const LARGEST: i64 = 1 << 20;

/// A fraction of integers in lowest terms, with a positive denominator.
///
/// As text, a fraction has the form `-1/4`, `3/8` or `2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fraction {
    numerator: i32,
    denominator: i32,
}

impl Fraction {
    /// Creates numerator / denominator in lowest terms.
    ///
    /// # Errors
    /// Returns [`Error::Fraction`] if the denominator is 0, or if an integer is above 2²⁰ = 1048576.
    pub fn new(numerator: i64, denominator: i64) -> Result<Self, Error> {
        let fail = |reason| Error::Fraction { text: format!("{numerator}/{denominator}"), reason };
        if denominator == 0 {
            return Err(fail("the denominator is 0"));
        }
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let reduce = |part: i64| i64::try_from(part.unsigned_abs() / divisor).ok().filter(|part| *part <= LARGEST);
        let (Some(top), Some(bottom)) = (reduce(numerator), reduce(denominator)) else {
            return Err(fail("its integers must be at most 1048576"));
        };
        let top = if (numerator < 0) == (denominator < 0) { top } else { -top };
        // Both numbers are at most 2²⁰.
        Ok(Self { numerator: top as i32, denominator: bottom as i32 })
    }

    /// Returns the numerator.
    pub fn numerator(self) -> i32 {
        self.numerator
    }

    /// Returns the denominator, which is positive.
    pub fn denominator(self) -> i32 {
        self.denominator
    }

    /// Returns the value of the fraction, rounded to double precision.
    pub fn value(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.numerator == 0
    }

    pub(crate) fn is_integer(self) -> bool {
        self.denominator == 1
    }

    pub(crate) fn negated(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }

    pub(crate) fn plus(self, other: Self) -> Result<Self, Error> {
        let [a, b, c, d] = [self.numerator, self.denominator, other.numerator, other.denominator].map(i64::from);
        Self::new(a * d + c * b, b * d)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl FromStr for Fraction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let integer = |part: &str| {
            let reason = "its parts must be integers";
            part.trim().parse().map_err(|_| Error::Fraction { text: text.to_string(), reason })
        };
        let (top, bottom) = text.split_once('/').unwrap_or((text, "1"));
        Self::new(integer(top)?, integer(bottom)?)
    }
}

impl TryFrom<String> for Fraction {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Fraction> for String {
    fn from(fraction: Fraction) -> Self {
        fraction.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_kept_in_lowest_terms() {
        for (top, bottom, text) in [(2, 8, "1/4"), (-3, 6, "-1/2"), (3, -6, "-1/2"), (-4, -2, "2"), (0, -7, "0")] {
            let fraction = Fraction::new(top, bottom).unwrap();
            assert_eq!(fraction.to_string(), text);
            assert_eq!(text.parse::<Fraction>().unwrap(), fraction);
        }
        assert_eq!(" -1 / 4 ".parse::<Fraction>().unwrap(), Fraction::new(-1, 4).unwrap());
        assert_eq!(Fraction::new(-3, 8).unwrap().value(), -0.375);
        let sum = Fraction::new(-1, 4).unwrap().plus(Fraction::new(1, 6).unwrap()).unwrap();
        assert_eq!(sum, Fraction::new(-1, 12).unwrap());
        assert_eq!(Fraction::new(1 << 20, 3).unwrap().numerator(), 1 << 20);
    }

    #[test]
    fn what_is_no_fraction_is_refused() {
        for text in ["", "1/", "/4", "0.25", "1/0", "-1/4/2", "1048577", "1/1048577", "9223372036854775808", "x"] {
            let error = text.parse::<Fraction>().unwrap_err();
            assert!(matches!(error, Error::Fraction { .. }), "{text}: {error}");
        }
        assert!(Fraction::new(i64::MIN, 1).is_err());
        assert!(Fraction::new(1, i64::MIN).is_err());
        assert_eq!(Fraction::new(i64::MIN, i64::MIN).unwrap().to_string(), "1");
    }
}
