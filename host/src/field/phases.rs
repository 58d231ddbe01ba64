//! Phases by which hops are multiplied.
use gpu_kernels::algebra::Complex;
use num_complex::Complex64;

/// Factors of hops over a link in x, y, z and t, the same on all sites. They have modulus 1 or are zero. Backward hops have the complex
/// conjugates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HopPhases(pub [Complex64; 4]);

impl HopPhases {
    /// Factors without effect: all are 1.
    pub const NONE: HopPhases = HopPhases([Complex64::ONE; 4]);

    /// Returns the phases of hops over `steps` links.
    #[must_use]
    pub fn over(self, steps: usize) -> Self {
        HopPhases(self.0.map(|z| z.powu(steps as u32)))
    }
    /// Returns the phases of the backward hops.
    #[must_use]
    pub fn conj(self) -> Self {
        HopPhases(self.0.map(|z| z.conj()))
    }
    /// Whether all phases are 1.
    pub fn are_none(&self) -> bool {
        *self == Self::NONE
    }
    /// Returns the phases in the form that kernels use, multiplied by a number.
    pub(super) fn times(&self, factor: f64) -> [Complex<f64>; 4] {
        self.0.map(|z| Complex { re: factor * z.re, im: factor * z.im })
    }
}
