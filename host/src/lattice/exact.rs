//! Sums whose bits do not depend on the order of their terms.

/// Scale 2⁶⁴ of fixed-point numbers. Terms lose everything below 2⁻⁶⁴, which is far below the last bit of a term of order 1.
const SCALE: f64 = (1u128 << 64) as f64;
/// Limit 2¹² for terms in fixed point. Four smaller terms on each of 2⁴⁸ sites, the largest number in a lattice, fit into 127 bits.
const LIMIT: f64 = (1u64 << 12) as f64;

/// A sum over sites in fixed point. Its bits do not depend on how the sites are distributed over threads and processes. Terms of 2¹² and
/// more, which no reasonable field has, are summed separately in floating point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FixedPointSum {
    fixed: i128,
    overflow: f64,
}

impl FixedPointSum {
    pub fn add(&mut self, term: f64) {
        if term.abs() < LIMIT {
            self.fixed += (term * SCALE) as i128;
        } else {
            // A NaN is also added to `overflow`, so that the sum becomes NaN.
            self.overflow += term;
        }
    }
    pub fn combine(self, other: Self) -> Self {
        Self { fixed: self.fixed + other.fixed, overflow: self.overflow + other.overflow }
    }
    pub fn total(self) -> f64 {
        self.fixed as f64 / SCALE + self.overflow
    }
    /// Returns the sum as words, to be sent to other processes.
    pub fn words(self) -> [u64; 3] {
        [self.fixed as u64, (self.fixed >> 64) as u64, self.overflow.to_bits()]
    }
    pub fn from_words([low, high, overflow]: [u64; 3]) -> Self {
        Self { fixed: i128::from(high as i64) << 64 | i128::from(low), overflow: f64::from_bits(overflow) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(terms: impl IntoIterator<Item = f64>) -> FixedPointSum {
        let mut sum = FixedPointSum::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }

    #[test]
    fn order_and_parts_do_not_matter() {
        let terms: Vec<f64> = (0..4000).map(|i| (f64::from(i) * 0.7).sin() * 10f64.powi(i % 7 - 4)).collect();
        let whole = sum(terms.iter().copied());
        assert_eq!(sum(terms.iter().rev().copied()), whole);
        let parts = terms.chunks(333).rev().map(|part| sum(part.iter().copied()));
        assert_eq!(parts.fold(FixedPointSum::default(), FixedPointSum::combine), whole);
        assert_eq!(FixedPointSum::from_words(whole.words()), whole);
        // Floating point is off by a rounding of the largest partial sum, here below 10³, for each term.
        let plain: f64 = terms.iter().sum();
        assert!((whole.total() - plain).abs() < 4000.0 * 1e3 * f64::EPSILON);
    }

    #[test]
    fn known_sums() {
        assert_eq!(sum([0.1; 10]).total(), 1.0);
        assert_eq!(sum([1e3, 1e-15, -1e3]).total(), (1e-15 * SCALE).trunc() / SCALE);
        let negative = sum([-0.75, -1e-3]);
        assert_eq!(FixedPointSum::from_words(negative.words()), negative);
        assert_eq!(sum([1e300, 1.0, -1e300]).total(), 1.0);
        assert!(sum([1.0, f64::NAN]).total().is_nan());
        assert_eq!(sum([f64::INFINITY, 1.0]).total(), f64::INFINITY);
    }
}
