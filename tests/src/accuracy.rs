//! Accuracy that results can have in each precision.
use crate::report::Tolerance;
use ferrite::Precision;

/// Rounding errors of a precision, from which all tolerances follow.
pub trait Accuracy: Copy {
    /// Largest relative error of one operation in registers: 2⁻⁵³ or 2⁻²⁴.
    fn unit(self) -> f64;
    /// A number as registers hold it.
    fn in_registers(self, x: f64) -> f64;
    /// Largest error of storing a component, relative to the largest component of its site. Half precision has the
    /// codes u ∈ 0 … 65535 with value (u − 32767.5) · peak / 32767, hence half a step = peak / 65534. Fp16 has a mantissa
    /// of 11 bits, hence 2⁻¹¹ of the component itself.
    fn store(self) -> f64;
    /// Rms error of storing a field, relative to its norm. Fixed point: errors are uniform in ± store · peak, with rms
    /// store · peak / √3, and the peak of 24 normal components is 2.4 times their rms. Floating point: uniform in
    /// ± store / m of a component with mantissa m from 1 to 2, and ⟨m²⟩ = 3 / (2 ln 2) where logarithms are uniform.
    fn store_rms(self) -> f64;
    /// Rms error of storing a field of colour vectors, relative to its norm: in fixed point the peak of 6 normal components is 1.75 times
    /// their rms.
    fn colour_rms(self) -> f64;
    /// Largest error of projecting a spinor, relative to what comes out, beyond `unit`: Fp16 rounds the sums of two
    /// components to 11 bits.
    fn project(self) -> f64;
    /// A number of a link as it is kept, times `1 / link_scale` in its error.
    fn round_link(self, x: f64) -> f64;
    /// Double precision cannot be imitated in double: rounding to single stands for it, with this factor.
    fn link_scale(self) -> f64;
    /// Error of a sum in double over n terms of stored numbers, relative to the sum of their magnitudes. Terms are added over colour in the
    /// field's own precision: at most six roundings, of either sign. Squares of the 11-bit numbers of Fp16 end in 0, 1 or 4 modulo 8: where
    /// these bits are rounded away, errors have a sign in common and do not average out; a quarter of a unit is left.
    fn stored_sum(self, n: usize) -> f64;

    /// Whether storage is coarser than arithmetic.
    fn is_coarse(self) -> bool {
        self.store() > self.unit()
    }
    /// Tolerance of a sum of a few terms, made of stored fields and stored.
    ///
    /// *Worst*: spins are rotated by 1/√2 (1 1; −1 1) on the way in and back, which can make the peak of a site √2
    /// times larger and adds two errors over √2: twice the error of storage. Arithmetic: sixteen roundings of each of two
    /// terms, whose sum may be half as large.
    ///
    /// *Relative*: that of storage, half as much again for small lattices; where arithmetic is no better than storage, its
    /// roundings, which add up as a random walk.
    fn sum(self) -> Tolerance {
        Tolerance {
            relative: if self.is_coarse() { 1.5 * self.store_rms() } else { 4.0 * self.unit() },
            worst: 2.02 * self.store() + 64.0 * self.unit(),
        }
    }
    /// Tolerance of a sum of a few terms on sites with `spins` spins. One spin is not rotated: it has the error of storage once.
    fn sum_of(self, spins: usize) -> Tolerance {
        if spins == 4 {
            return self.sum();
        }
        Tolerance {
            relative: if self.is_coarse() { 1.5 * self.colour_rms() } else { 4.0 * self.unit() },
            worst: 1.01 * self.store() + 64.0 * self.unit(),
        }
    }
    /// Error of a sum in double over n terms that were computed and stored on the way: the sum is of the values before storage. |‖y + δ‖² −
    /// ‖y‖²| ≤ 2 ‖y‖ ‖δ‖, ‖δ‖ ≤ √24 store ‖y‖ for any field of spinors, √6 of colour vectors; and sixteen roundings on the way.
    fn fused_sum(self, n: usize) -> f64 {
        10.0 * self.store() + 16.0 * self.unit() + summation(n)
    }
}

impl Accuracy for Precision {
    fn unit(self) -> f64 {
        match self {
            Precision::Double => f64::EPSILON / 2.0,
            Precision::Single | Precision::Half | Precision::Fp16 => f32::EPSILON as f64 / 2.0,
        }
    }
    fn in_registers(self, x: f64) -> f64 {
        match self {
            Precision::Double => x,
            Precision::Single | Precision::Half | Precision::Fp16 => x as f32 as f64,
        }
    }
    fn store(self) -> f64 {
        match self {
            Precision::Double | Precision::Single => self.unit(),
            Precision::Half => 1.0 / 65534.0,
            Precision::Fp16 => 1.0 / 2048.0,
        }
    }
    fn store_rms(self) -> f64 {
        match self {
            Precision::Half => 1.4 * self.store(),
            Precision::Double | Precision::Single | Precision::Fp16 => 0.4 * self.store(),
        }
    }
    fn colour_rms(self) -> f64 {
        match self {
            Precision::Half => 1.05 * self.store(),
            Precision::Double | Precision::Single | Precision::Fp16 => self.store_rms(),
        }
    }
    fn project(self) -> f64 {
        match self {
            Precision::Fp16 => self.store(),
            Precision::Double | Precision::Single | Precision::Half => 0.0,
        }
    }
    fn round_link(self, x: f64) -> f64 {
        match self {
            Precision::Double | Precision::Single => x as f32 as f64,
            // Fixed point in steps of 2⁻¹⁵ from −1 to 1 − 2⁻¹⁵.
            Precision::Half => ((x * 32768.0).round() / 32768.0).min(1.0 - 1.0 / 32768.0),
            // Eleven bits; below 2⁻¹⁴ multiples of 2⁻²⁴.
            Precision::Fp16 => {
                let unit = 2f64.powi((x.abs().log2().floor() as i32).max(-14) - 10);
                (x / unit).round_ties_even() * unit
            }
        }
    }
    fn link_scale(self) -> f64 {
        match self {
            Precision::Double => f64::EPSILON / f32::EPSILON as f64,
            Precision::Single | Precision::Half | Precision::Fp16 => 1.0,
        }
    }
    fn stored_sum(self, n: usize) -> f64 {
        let arithmetic = match self {
            Precision::Fp16 => self.unit(),
            Precision::Double | Precision::Single | Precision::Half => 12.0 * self.unit() / (n as f64).sqrt(),
        };
        arithmetic + summation(n)
    }
}

/// Error of sums in double over n terms of either sign, relative to the sum of their magnitudes: the mean rounding error of a partial sum
/// is below half a unit, and those of n partial sums add up as a random walk at worst.
pub fn summation(n: usize) -> f64 {
    (n as f64).sqrt() * f64::EPSILON
}
