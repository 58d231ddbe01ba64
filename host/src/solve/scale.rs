//! Sources whose numbers are far from 1. A residual in single precision or less, ten or more orders below its source, must
//! still have squares that single precision can hold, so such sources are multiplied by a power of two for the solve, which
//! changes no digit, and solutions divided by it.
use crate::domain::Result;
use crate::field::{FieldSpace, FullField};
use num_complex::Complex64;
use solvers::VectorSpace;

/// Norms of sources that are solved for as they are. Below a point with one number 1, and by a margin; and so that numbers
/// have squares far below 10³⁸ even where all the norm is in one of them.
const USUAL: std::ops::Range<f64> = 0.5..1e12;

/// A power of two for each source.
pub(super) struct Scales(Vec<f64>);

impl Scales {
    /// For sources with these norms and so many sites: 1 for those that are usual, zero, or no number, else what makes the
    /// typical number of a site about 1.
    pub fn of(norms: &[f64], sites: usize) -> Self {
        let typical = (sites as f64).sqrt();
        let scale = |norm: &f64| match *norm > 0.0 && norm.is_finite() && !USUAL.contains(norm) {
            true => 2f64.powi((typical / norm).log2().round().clamp(-900.0, 900.0) as i32),
            false => 1.0,
        };
        Scales(norms.iter().map(scale).collect())
    }
    /// Whether there is nothing to do.
    fn are_one(&self) -> bool {
        self.0.iter().all(|scale| *scale == 1.0)
    }
    /// The norms of the sources as they are solved for.
    pub fn norms(&self, norms: &[f64]) -> Vec<f64> {
        norms.iter().zip(&self.0).map(|(norm, scale)| norm * scale).collect()
    }
    /// Multiplies sources, or the guess that belongs to them.
    pub fn apply(&self, space: &FieldSpace, fields: &mut FullField) -> Result {
        self.multiply(space, fields, |scale| scale)
    }
    /// Divides solutions.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
