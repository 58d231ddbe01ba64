//! How accurate results can be in each precision.
use crate::report::Tolerance;
use gpu_kernels::storage::{CloverFormat, Double, Fp16, Half, Single};

/// Rounding errors of a precision, from which all tolerances follow.
pub trait Accuracy: CloverFormat {
    /// Largest relative error of one operation in registers: 2⁻⁵³ or 2⁻²⁴.
    const UNIT: f64;
    /// Largest error of storing a component, relative to the largest component of its site. Half precision has the
    /// codes u ∈ 0 … 65535 with value (u − 32767.5) · peak / 32767, hence half a step = peak / 65534. Fp16 has a mantissa
    /// of 11 bits, hence 2⁻¹¹ of the component itself.
    const STORE: f64;
    /// Rms error of storing a field, relative to its norm. Fixed point: errors are uniform in ± STORE · peak, with rms
    /// STORE · peak / √3, and the peak of 24 normal components is 2.4 times their rms. Floating point: uniform in
    /// ± STORE / m of a component with mantissa m from 1 to 2, and ⟨m²⟩ = 3 / (2 ln 2) where logarithms are uniform.
    const STORE_RMS: f64;
    /// The same for colour vectors: in fixed point the peak of 6 normal components is 1.75 times their rms.
    const COLOUR_RMS: f64 = Self::STORE_RMS;
    /// Largest error of projecting a spinor, relative to what comes out, beyond `UNIT`: Fp16 rounds the sums of two
    /// components to 11 bits.
    const PROJECT: f64 = 0.0;
    /// A number of a link as it is kept, times `1 / LINK_SCALE` in its error.
    fn round_link(x: f64) -> f64;
    /// Double precision cannot be imitated in double: rounding to single stands for it, with this factor.
    const LINK_SCALE: f64 = 1.0;

    /// Of a sum of a few terms, made of stored fields and stored.
    ///
    /// *Worst*: spins are rotated by 1/√2 (1 1; −1 1) on the way in and back, which can make the peak of a site √2
    /// times larger and adds two errors over √2: twice the error of storage. Arithmetic: sixteen roundings of each of two
    /// terms, whose sum may be half as large.
    ///
    /// *Relative*: that of storage, half as much again for small lattices; where arithmetic is no better than storage, its
    /// roundings, which add up as a random walk.
    fn sum() -> Tolerance {
        Tolerance {
            relative: if Self::STORE > Self::UNIT { 1.5 * Self::STORE_RMS } else { 4.0 * Self::UNIT },
            worst: 2.02 * Self::STORE + 64.0 * Self::UNIT,
        }
    }
    /// The same on sites with that many spins. One spin is not rotated: it has the error of storage once.
    fn sum_of(spins: usize) -> Tolerance {
        if spins == 4 {
            return Self::sum();
        }
        Tolerance {
            relative: if Self::STORE > Self::UNIT { 1.5 * Self::COLOUR_RMS } else { 4.0 * Self::UNIT },
            worst: 1.01 * Self::STORE + 64.0 * Self::UNIT,
        }
    }
    /// Of a sum in double over n terms of stored numbers, relative to the sum of their magnitudes. Terms are added over
    /// colour in the field's own precision: at most six roundings, of either sign.
    fn stored_sum(n: usize) -> f64 {
        12.0 * Self::UNIT / (n as f64).sqrt() + summation(n)
    }
    /// Of a sum in double over n terms of what was computed and stored on the way: the sum sees the value before
    /// storage. |‖y + δ‖² − ‖y‖²| ≤ 2 ‖y‖ ‖δ‖, ‖δ‖ ≤ √24 STORE ‖y‖ for any field of spinors,
    /// √6 of colour vectors; and sixteen roundings on the way.
    fn fused_sum(n: usize) -> f64 {
        10.0 * Self::STORE + 16.0 * Self::UNIT + summation(n)
    }
}

impl Accuracy for Double {
    const UNIT: f64 = f64::EPSILON / 2.0;
    const STORE: f64 = Self::UNIT;
    const STORE_RMS: f64 = 0.4 * Self::STORE;
    const LINK_SCALE: f64 = f64::EPSILON / f32::EPSILON as f64;
    fn round_link(x: f64) -> f64 {
        Single::round_link(x)
    }
}
impl Accuracy for Single {
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
    const STORE: f64 = Self::UNIT;
    const STORE_RMS: f64 = 0.4 * Self::STORE;
    fn round_link(x: f64) -> f64 {
        x as f32 as f64
    }
}
impl Accuracy for Half {
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
    const STORE: f64 = 1.0 / 65534.0;
    const STORE_RMS: f64 = 1.4 * Self::STORE;
    const COLOUR_RMS: f64 = 1.05 * Self::STORE;
    // Fixed point in steps of 2⁻¹⁵ from −1 to 1 − 2⁻¹⁵.
    fn round_link(x: f64) -> f64 {
        ((x * 32768.0).round() / 32768.0).min(1.0 - 1.0 / 32768.0)
    }
}
impl Accuracy for Fp16 {
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
    const STORE: f64 = 1.0 / 2048.0;
    const STORE_RMS: f64 = 0.4 * Self::STORE;
    const PROJECT: f64 = Self::STORE;
    // Squares of 11-bit numbers end in 0, 1 or 4 modulo 8. Where these bits are rounded away, errors have a sign in common
    // and do not average out; a quarter of a unit is left.
    fn stored_sum(n: usize) -> f64 {
        Self::UNIT + summation(n)
    }
    // Eleven bits; below 2⁻¹⁴ multiples of 2⁻²⁴.
    fn round_link(x: f64) -> f64 {
        let unit = 2f64.powi((x.abs().log2().floor() as i32).max(-14) - 10);
        (x / unit).round_ties_even() * unit
    }
}

/// Of sums in double over n terms of either sign, relative to the sum of their magnitudes: the mean rounding error of
/// a partial sum is below half a unit, and those of n partial sums add up as a random walk at worst.
pub fn summation(n: usize) -> f64 {
    (n as f64).sqrt() * f64::EPSILON
}
