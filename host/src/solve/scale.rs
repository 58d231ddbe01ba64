//! Scaling of sources whose numbers are far from 1. The residual of a solve, in single precision or less, falls to ten or more orders below
//! the source, and its squares must still be representable in single precision. Such sources are therefore multiplied by a power of two for
//! the solve, and the solutions are divided by it. A power of two changes no digit.
//!
//! Squares of numbers outside 2^±256 are outside the range of double precision, or nearly so. Sources with such numbers are first
//! multiplied on the host, by [`Exponents`].
use crate::domain::{Domain, Result};
use crate::field::host::{Fermion, HostField};
use crate::field::{FieldSpace, FullField};
use num_complex::Complex64;
use solvers::VectorSpace;
use std::borrow::Cow;

/// Range of norms of sources that need no scaling. The lower end is below the norm 1 of a point source. At the upper end, squares are far
/// below 10³⁸ even if a single number has the whole norm.
const USUAL: std::ops::Range<f64> = 0.5..1e12;

/// Factor of each source, a power of two.
pub(super) struct Scales(Vec<f64>);

impl Scales {
    /// Returns the factors for sources with the given norms on a lattice with `sites` sites. A factor is 1 for norms in the usual range,
    /// and for norms that are zero or not a number. Otherwise it brings the typical number of a site near 1.
    pub fn of(norms: &[f64], sites: usize) -> Self {
        let typical = (sites as f64).sqrt();
        let scale = |norm: &f64| match *norm > 0.0 && norm.is_finite() && !USUAL.contains(norm) {
            true => 2f64.powi((typical / norm).log2().round().clamp(-900.0, 900.0) as i32),
            false => 1.0,
        };
        Scales(norms.iter().map(scale).collect())
    }
    /// Whether all factors are 1.
    fn are_one(&self) -> bool {
        self.0.iter().all(|scale| *scale == 1.0)
    }
    /// Returns the norms of the scaled sources from those of the sources.
    pub fn norms(&self, norms: &[f64]) -> Vec<f64> {
        norms.iter().zip(&self.0).map(|(norm, scale)| norm * scale).collect()
    }
    /// Multiplies the fields of sources, or of their guesses, by the factors.
    pub fn apply(&self, space: &FieldSpace, fields: &mut FullField) -> Result {
        self.multiply(space, fields, |scale| scale)
    }
    /// Divides solutions by the factors.
    pub fn undo(&self, space: &FieldSpace, fields: &mut FullField) -> Result {
        self.multiply(space, fields, |scale| 1.0 / scale)
    }
    fn multiply(&self, space: &FieldSpace, fields: &mut FullField, factor: impl Fn(f64) -> f64) -> Result {
        if self.are_one() {
            return Ok(());
        }
        let factors: Vec<_> = self.0.iter().map(|scale| Complex64::from(factor(*scale))).collect();
        let zeros = vec![Complex64::ZERO; factors.len()];
        let FullField { even, odd } = fields;
        space.axpby(&zeros, odd, &factors, even)?;
        space.axpby(&zeros, even, &factors, odd)
    }
}

/// Exponent of the safe range: a source needs no scaling on the host if its largest element is between 2^−256 and 2^256.
const SAFE: i32 = 256;
/// Exponent of the largest useful guess. If its largest element is above 2^400 times that of a safe source, double precision cannot
/// represent its squares.
const LARGEST_GUESS: i32 = 400;

/// Index of a right-hand side whose solution double precision cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange(pub usize);

/// Exponents of the powers of two that bring the largest element of each source near 1, for sources whose norm double precision cannot
/// represent.
pub(super) struct Exponents(Vec<i32>);

impl Exponents {
    /// *Collective.* Computes the exponents of the powers of two by which to multiply sources. An exponent is 0 for a source whose largest
    /// element is in the safe range, zero or not finite.
    pub fn of<F: Fermion>(domain: &Domain, sources: &[HostField<F>]) -> Result<Self> {
        Ok(Self::of_elements(&largest_elements(domain, sources)?))
    }
    fn of_elements(largest: &[f64]) -> Self {
        let exponent = |largest: &f64| match largest.is_finite() && *largest > 0.0 {
            true => Some(largest.log2().floor() as i32).filter(|exponent| exponent.abs() > SAFE).map_or(0, |e| -e),
            false => 0,
        };
        Exponents(largest.iter().map(exponent).collect())
    }
    fn are_zero(&self) -> bool {
        self.0.iter().all(|exponent| *exponent == 0)
    }
    /// Returns the sources, multiplied by their powers of two.
    pub fn apply<'a, F: Fermion>(&self, sources: &'a [HostField<F>]) -> Cow<'a, [HostField<F>]> {
        if self.are_zero() {
            return Cow::Borrowed(sources);
        }
        let mut scaled = sources.to_vec();
        scaled.iter_mut().zip(&self.0).for_each(|(field, exponent)| multiply(field, *exponent));
        Cow::Owned(scaled)
    }
    /// *Collective.* Returns the scaled guesses. A guess is replaced by zero if it is far too large for its source.
    pub fn apply_to_guess<'a, F: Fermion>(
        &self,
        domain: &Domain,
        guess: &'a [HostField<F>],
    ) -> Result<Cow<'a, [HostField<F>]>> {
        let largest = largest_elements(domain, guess)?;
        let useless = |largest: f64, exponent: i32| {
            largest.is_finite() && largest > 0.0 && largest.log2() + f64::from(exponent) > f64::from(LARGEST_GUESS)
        };
        let useless: Vec<bool> = largest.iter().zip(&self.0).map(|(l, e)| useless(*l, *e)).collect();
        if self.are_zero() && !useless.contains(&true) {
            return Ok(Cow::Borrowed(guess));
        }
        let mut scaled = guess.to_vec();
        for ((field, exponent), useless) in scaled.iter_mut().zip(&self.0).zip(useless) {
            match useless {
                true => *field = HostField::zero(field.lattice()),
                false => multiply(field, *exponent),
            }
        }
        Ok(Cow::Owned(scaled))
    }
    /// *Collective.* Scales solutions back to the scale of their sources. Fails with the first solution whose largest element is afterwards
    /// above the largest number in double precision, or below the smallest normal one.
    pub fn undo<F: Fermion>(
        &self,
        domain: &Domain,
        solutions: &mut [HostField<F>],
    ) -> Result<std::result::Result<(), OutOfRange>> {
        if self.are_zero() {
            return Ok(Ok(()));
        }
        let before = largest_elements(domain, solutions)?;
        solutions.iter_mut().zip(&self.0).for_each(|(field, exponent)| multiply(field, -exponent));
        let after = largest_elements(domain, solutions)?;
        let lost = |j: &usize| {
            self.0[*j] != 0
                && before[*j].is_finite()
                && before[*j] > 0.0
                && !(f64::MIN_POSITIVE..=f64::MAX).contains(&after[*j])
        };
        Ok((0..solutions.len()).find(lost).map_or(Ok(()), |j| Err(OutOfRange(j))))
    }
}

/// Multiplies a field by 2^`exponent`, in two steps, because a single power of two may be out of range even if the result is not.
fn multiply<F: Fermion>(field: &mut HostField<F>, exponent: i32) {
    if exponent == 0 {
        return;
    }
    let [first, second] = [exponent / 2, exponent - exponent / 2].map(|half| 2f64.powi(half));
    field.numbers_mut().iter_mut().for_each(|z| *z = Complex64::new(z.re * first * second, z.im * first * second));
}

/// *Collective.* Returns the largest |Re| or |Im| of each field on all processes; infinite if a number is not finite.
fn largest_elements<F: Fermion>(domain: &Domain, fields: &[HostField<F>]) -> Result<Vec<f64>> {
    let of_numbers = |largest: f64, z: &Complex64| match z.is_finite() {
        true => largest.max(z.re.abs()).max(z.im.abs()),
        false => f64::INFINITY,
    };
    let mine: Vec<f64> = fields.iter().map(|field| field.numbers().iter().fold(0.0, of_numbers)).collect();
    domain.largest_of(mine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use crate::field::host::HostColour;
    use crate::lattice::Lattice;

    #[test]
    fn scales_are_powers_of_two() {
        let norms = [1.0, 0.0, f64::NAN, 3e-20, 5e30, 1e-300, f64::INFINITY];
        let scales = Scales::of(&norms, 1 << 20);
        assert_eq!([scales.0[0], scales.0[1], scales.0[2], scales.0[6]], [1.0; 4]);
        for (norm, scale) in norms.into_iter().zip(&scales.0).skip(3).take(3) {
            assert_eq!(scale.log2().fract(), 0.0, "{norm}");
            // 2¹⁰ is the typical norm; the last one is stopped at 2⁹⁰⁰.
            let scaled = norm * scale;
            assert!((724.0..1449.0).contains(&scaled) || *scale == 2f64.powi(900), "{norm}: {scaled}");
        }
        assert!(Scales::of(&[1.0, 1e6], 16).are_one() && !scales.are_one());
    }

    #[test]
    fn exponents_bring_the_largest_element_next_to_one() {
        let largest = [1.0, 0.0, f64::INFINITY, 2f64.powi(256), 2f64.powi(-256), 1e-200, 1e200, 5e-324, f64::MAX];
        let exponents = Exponents::of_elements(&largest);
        assert_eq!(exponents.0[..5], [0; 5]);
        for (largest, exponent) in largest.into_iter().zip(&exponents.0).skip(5) {
            let scaled = largest * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
            assert!((0.5..2.0).contains(&scaled) && *exponent != 0, "{largest:e}: 2^{exponent}");
        }
        assert!(Exponents::of_elements(&largest[..5]).are_zero() && !exponents.are_zero());
    }

    #[test]
    fn scaled_sources_come_back_bit_by_bit_unless_they_have_no_place() {
        let lattice = Lattice::new([2; 4]).unwrap();
        let domain = Domain::single(Cpu::new(Some(1)), lattice).unwrap();
        let mut one = HostColour::zero(lattice);
        one.numbers_mut().iter_mut().enumerate().for_each(|(k, z)| *z = Complex64::new(k as f64 / 7.0, -0.3));
        let power = |exponent: i32| {
            let mut field = one.clone();
            multiply(&mut field, exponent);
            field
        };
        let sources = [power(-900), one.clone(), power(900), HostColour::zero(lattice)];
        let exponents = Exponents::of(&domain, &sources).unwrap();
        let mut scaled = exponents.apply(&sources).into_owned();
        let largest = largest_elements(&domain, &scaled).unwrap();
        assert!(largest[..3].iter().all(|l| (1.0..16.0).contains(l)) && largest[3] == 0.0, "{largest:?}");
        assert_eq!(exponents.undo(&domain, &mut scaled).unwrap(), Ok(()));
        assert_eq!(scaled, sources);
        // A guess goes along, and one that is out of proportion is none.
        let guesses = [power(-900), power(900), one.clone(), one.clone()];
        let guess = exponents.apply_to_guess(&domain, &guesses).unwrap();
        assert_eq!(guess[0], exponents.apply(&sources)[0]);
        assert_eq!((&guess[1], &guess[3]), (&HostColour::zero(lattice), &one));
        // Solutions that are much smaller, or larger, than their sources.
        let mut small: Vec<_> = [-300, 0, 0, 0].map(power).into();
        assert_eq!(exponents.undo(&domain, &mut small).unwrap(), Err(OutOfRange(0)));
        let mut large: Vec<_> = [0, 0, 300, 0].map(power).into();
        assert_eq!(exponents.undo(&domain, &mut large).unwrap(), Err(OutOfRange(2)));
    }
}
