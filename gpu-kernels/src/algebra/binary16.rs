//! Complex numbers of two 16-bit floats (IEEE 754 binary16) in one word.
//!
//! Such a float has 11 bits of mantissa: numbers from 2⁻¹⁴ to 65504 are rounded by 2⁻¹¹ at most, relative to themselves,
//! smaller ones to multiples of 2⁻²⁴. Larger numbers become infinite, and NaN is preserved.
use super::{Complex, Phase, complex};

/// A complex number of two 16-bit floats. The real part is in the low half of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Complex16(pub u32);

impl Complex16 {
    /// Rounds both parts from single precision, to nearest with ties to even.
    #[inline(always)]
    pub fn round(z: Complex<f32>) -> Self {
        Complex16(machine::round(z))
    }
    /// Converts to single precision, exactly.
    #[inline(always)]
    pub fn widen(self) -> Complex<f32> {
        machine::widen(self.0)
    }
    /// Returns a + phase · b with a = self, rounded to nearest and widened to single precision. `exchanged` is b with
    /// its real and imaginary parts exchanged: a GPU then adds ±i b in one instruction; ±b takes two.
    #[inline(always)]
    pub fn combine(self, phase: Phase, exchanged: Self) -> Complex<f32> {
        machine::combine(self.0, phase, exchanged.0)
    }
}

#[cfg(target_arch = "nvptx64")]
mod machine {
    use super::*;
    use core::arch::asm;

    /// Executes an instruction on registers of 32 bits.
    macro_rules! instruction {
        ($text:literal, $($operand:expr),*) => {{
            let out: u32;
            // SAFETY: arithmetic on registers.
            unsafe { asm!($text, out(reg32) out, $(in(reg32) $operand,)* options(pure, nomem, nostack)) }
            out
        }};
    }
    #[inline(always)]
    pub fn round(z: Complex<f32>) -> u32 {
        // The first operand of the instruction becomes the high half of the word.
        instruction!("cvt.rn.f16x2.f32 {0}, {1}, {2};", z.im, z.re)
    }
    #[inline(always)]
    pub fn widen(w: u32) -> Complex<f32> {
        let (re, im): (f32, f32);
        // SAFETY: arithmetic on registers.
        unsafe {
            asm!("{{ .reg .b16 low, high; mov.b32 {{low, high}}, {2};",
                "cvt.f32.f16 {0}, low; cvt.f32.f16 {1}, high; }}",
                out(reg32) re, out(reg32) im, in(reg32) w, options(pure, nomem, nostack));
        }
        complex(re, im)
    }
    #[inline(always)]
    pub fn combine(a: u32, phase: Phase, exchanged: u32) -> Complex<f32> {
        let back = || instruction!("prmt.b32 {0}, {1}, {1}, 0x1032;", exchanged);
        // The products with ±1 are exact, so only the sum is rounded.
        let signed = |signs: u32| instruction!("fma.rn.f16x2 {0}, {1}, {2}, {3};", exchanged, signs, a);
        widen(match phase {
            Phase::One => instruction!("add.rn.f16x2 {0}, {1}, {2};", a, back()),
            Phase::MinusOne => instruction!("sub.rn.f16x2 {0}, {1}, {2};", a, back()),
            Phase::I => signed(0x3C00_BC00),
            Phase::MinusI => signed(0xBC00_3C00),
        })
    }
}

/// Conversions and sums by 32-bit arithmetic, with the same bits as the instructions of a GPU. There are no branches,
/// and masks replace selections, so that the compiler vectorises the code. The compiler does not vectorise the crate
/// `half`, which converts one number at a time after a check of the processor's features, and slows the hopping term by
/// 20 to 40 % (docs/measurements/cpu.md). The tests compare with `half`.
#[cfg(not(target_arch = "nvptx64"))]
mod machine {
    use super::*;

    /// 2ⁿ
    const fn power(n: i32) -> f32 {
        f32::from_bits(((127 + n) as u32) << 23)
    }
    const SIZE: u32 = 0x7FFF_FFFF;
    const INFINITY: u32 = 0x7F80_0000;
    /// 2⁻¹⁴, below which 16-bit floats are multiples of 2⁻²⁴.
    const SMALLEST_NORMAL: u32 = power(-14).to_bits();

    /// Returns 4 |x| (infinity for |x| ≥ 2¹⁶) and a power of two, at least 2, whose addition rounds 4 |x| to 11 bits.
    #[inline(always)]
    fn magnified(x: f32) -> (f32, f32) {
        let size = x.to_bits() & SIZE;
        let exponent = size & INFINITY;
        let exponent = if exponent > SMALLEST_NORMAL { exponent } else { SMALLEST_NORMAL };
        let large = f32::from_bits(size) * power(112) * power(-110);
        (large, f32::from_bits(exponent.wrapping_add(15 << 23)))
    }
    /// Returns x rounded to 16 bits, as a 32-bit float.
    #[inline(always)]
    fn rounded(x: f32) -> f32 {
        let (large, unit) = magnified(x);
        // For |x| ≥ 65520 the rounded value is at least 65536, and the last two factors make it infinite.
        let size = (large + unit - unit) * power(110) * power(-112);
        f32::from_bits(size.to_bits() | x.to_bits() & !SIZE)
    }
    #[inline(always)]
    fn narrow(x: f32) -> u32 {
        let (large, unit) = magnified(x);
        let bits = (large + unit).to_bits();
        // The low bits hold the mantissa, with its leading one, in units of 1/1024. The leading one adds 1 to the
        // exponent, so the five low bits of the exponent of `unit` are the exponent of the 16-bit float minus 1.
        let finite = (bits >> 13 & 0x7C00) + (bits & 0x0FFF);
        let nan = (INFINITY.wrapping_sub(x.to_bits() & SIZE) >> 31).wrapping_neg();
        (finite | x.to_bits() >> 16 & 0x8000) & !nan | 0x7FFF & nan
    }
    #[inline(always)]
    fn wide(h: u32) -> f32 {
        let (sign, size) = ((h & 0x8000) << 16, h & 0x7FFF);
        // The factor 2¹¹² shifts the exponent, and is exact for subnormal numbers as well.
        let finite = (f32::from_bits(size << 13) * power(112)).to_bits();
        // For infinity and NaN, all bits of the exponent are set.
        let above = ((size + 0x400) >> 15).wrapping_neg() & INFINITY;
        f32::from_bits(sign | finite | above)
    }

    #[inline(always)]
    pub fn round(z: Complex<f32>) -> u32 {
        narrow(z.re) | narrow(z.im) << 16
    }
    #[inline(always)]
    pub fn widen(w: u32) -> Complex<f32> {
        complex(wide(w & 0xFFFF), wide(w >> 16))
    }
    /// Computes a + phase · b. Rounding the sum to 24 bits and then to 11 bits gives the same result as rounding it
    /// once to 11 bits, because 24 ≥ 2 · 11 + 2.
    #[inline(always)]
    pub fn combine(a: u32, phase: Phase, exchanged: u32) -> Complex<f32> {
        let sum = phase.combine(widen(a), crate::algebra::Sign::Plus, widen(exchanged.rotate_left(16)));
        complex(rounded(sum.re), rounded(sum.im))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// Returns the value of a finite code.
    fn value(code: u32) -> f64 {
        f16::from_bits(code as u16).to_f64()
    }
    /// Returns the code of a number, after a check against the crate `half`; NaN has a single code here.
    fn code(x: f32) -> u32 {
        let code = Complex16::round(complex(x, 0.0)).0;
        let expected = if x.is_nan() { 0x7FFF } else { f16::from_f32(x).to_bits() };
        assert_eq!(code, u32::from(expected), "{x:e}");
        code
    }

    #[test]
    fn every_code_is_its_value_and_comes_back() {
        for code in 0..0x10000u32 {
            let word = Complex16(code | 0x3C00 << 16);
            let z = word.widen();
            assert_eq!(z.im, 1.0);
            let expected = f16::from_bits(code as u16).to_f32();
            assert!(z.re.to_bits() == expected.to_bits() || z.re.is_nan() && expected.is_nan(), "{code:04x}");
            let back = Complex16::round(z);
            if z.re.is_nan() {
                assert_eq!(back.0, 0x3C00_7FFF);
            } else {
                assert_eq!(back, word);
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_and_ties_are_even() {
        // Around and between all neighbours; above the largest number a step further would be 65536.
        for low in 0..0x7C00u32 {
            let (below, above) = (value(low), if low < 0x7BFF { value(low + 1) } else { 65536.0 });
            let middle = ((below + above) / 2.0) as f32;
            assert_eq!(middle as f64, (below + above) / 2.0, "exact in 32 bits");
            let even = if low % 2 == 0 { low } else { low + 1 };
            assert_eq!(code(middle), even);
            assert_eq!(code(-middle), even | 0x8000);
            assert_eq!(code(middle.next_down()), low);
            assert_eq!(code(middle.next_up()), low + 1);
        }
        // Both ends of every power of two, from the smallest 32-bit float on.
        for exponent in 0..256u32 {
            let first = exponent << 23;
            for bits in [first, first + 1, first + 0x3F_FFFF, first + 0x40_0000, first + 0x7F_FFFF] {
                code(f32::from_bits(bits));
                code(-f32::from_bits(bits));
            }
        }
        assert_eq!(code(f32::MAX), 0x7C00);
        assert_eq!(code(-1e-30), 0x8000);
        assert_eq!(code(f32::NAN), 0x7FFF);
    }

    #[test]
    fn sums_are_rounded_once() {
        // Codes of all sizes; exact sums in double.
        let codes: std::vec::Vec<u32> = (0..0x7C00).step_by(37).flat_map(|c| [c, c | 0x8000]).collect();
        // Real parts are low in a sum, and high in what is exchanged.
        let (real, imaginary) = (Complex16, |code: u32| Complex16(code << 16));
        let (low, high) = (|z| Complex16::round(z).0 & 0xFFFF, |z| Complex16::round(z).0 >> 16);
        for &a in &codes {
            for &b in &codes {
                let exact = value(a) + value(b);
                let got = low(real(a).combine(Phase::One, imaginary(b)));
                if exact.abs() >= 65520.0 {
                    assert_eq!(got & 0x7FFF, 0x7C00);
                    continue;
                }
                let off = (value(got) - exact).abs();
                let (size, sign) = (got & 0x7FFF, got & 0x8000);
                for other in [size.wrapping_sub(1), size + 1].into_iter().filter(|c| *c < 0x7C00) {
                    let distance = (value(other | sign) - exact).abs();
                    assert!(off < distance || off == distance && got % 2 == 0, "{a:04x} + {b:04x}");
                }
                // The other phases are the same sum: a − (−b), and ± i b exchanges the parts.
                let minus = b ^ 0x8000;
                assert_eq!(low(real(a).combine(Phase::MinusOne, imaginary(minus))), got);
                assert_eq!(low(real(a).combine(Phase::I, real(minus))), got);
                assert_eq!(low(real(a).combine(Phase::MinusI, real(b))), got);
                assert_eq!(high(imaginary(a).combine(Phase::I, imaginary(b))), got);
                assert_eq!(high(imaginary(a).combine(Phase::MinusI, imaginary(minus))), got);
            }
        }
    }
}
