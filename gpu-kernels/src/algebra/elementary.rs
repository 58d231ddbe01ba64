//! Elementary functions that return the same bits on every backend. They consist of exactly rounded operations in a
//! fixed order and call no library.
//!
//! If a random number decides whether a proposal is accepted, a different last bit can change the decision, and with it
//! the configuration.
use super::Real;

/// Returns the square root of x, rounded correctly.
#[inline(always)]
pub fn sqrt(x: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        let out: f64;
        // SAFETY: arithmetic on registers.
        unsafe {
            core::arch::asm!("sqrt.rn.f64 {0}, {1};", out(reg64) out, in(reg64) x, options(pure, nomem, nostack));
        }
        out
    }
    #[cfg(not(target_arch = "nvptx64"))]
    return x.sqrt();
}

/// Computes c_0 + c_1 x + c_2 x² + … by Horner's rule with fused operations.
macro_rules! polynomial {
    ($x:expr; $last:expr) => { $last };
    ($x:expr; $first:expr, $($rest:expr),+) => { Real::mul_add(polynomial!($x; $($rest),+), $x, $first) };
}

/// Returns ln x for a normal positive x, with an error of at most 2 units in the last place.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // x = 2ᵉ m with √½ ≤ m < √2. The upper bits of the difference between the bit patterns of x and √½ are e.
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const MANTISSA: u64 = (1 << 52) - 1;
    let shifted = x.to_bits().wrapping_sub(ROOT_HALF);
    let e = (shifted as i64 >> 52) as i32 as f64;
    let f = f64::from_bits((shifted & MANTISSA).wrapping_add(ROOT_HALF)) - 1.0;
    // With s = (m − 1) / (m + 1), ln m = 2 artanh s = s (2 + s² (2/3 + s² (2/5 + …))) = f − s (f − rest), and s² < 0.0295.
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * polynomial!(z; 2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0,
        2.0 / 17.0, 2.0 / 19.0, 2.0 / 21.0, 2.0 / 23.0);
    let mantissa = f - Real::mul_add(s, f - rest, -(e * LN2_LOW));
    Real::mul_add(e, LN2_HIGH, mantissa)
}

/// Returns \[sin 2πu, cos 2πu\] for 0 ≤ u ≤ 1, with an absolute error of about one unit in the last place of 1.
#[inline(always)]
pub fn sin_cos_turns(u: f64) -> [f64; 2] {
    // 4 u = k + r with an integer k and |r| ≤ ½, and 4 u − k is computed exactly. The Taylor series are evaluated at y = (π/2) r, so |y| ≤
    // π/4.
    let quarters = (4.0 * u + 0.5) as u32;
    let y = (4.0 * u - quarters as f64) * core::f64::consts::FRAC_PI_2;
    let z = y * y;
    let sin = y * polynomial!(z; 1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0, -1.0 / 1_307_674_368_000.0, 1.0 / 355_687_428_096_000.0);
    let cos = polynomial!(z; 1.0, -1.0 / 2.0, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0,
        1.0 / 479_001_600.0, -1.0 / 87_178_291_200.0, 1.0 / 20_922_789_888_000.0);
    let (sin, cos) = if quarters & 1 == 0 { (sin, cos) } else { (cos, -sin) };
    if quarters & 2 == 0 { [sin, cos] } else { [-sin, -cos] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_library_has_them() {
        let mut x = 1e-300;
        while x < 1e300 {
            for x in [x, 1.0 / x, 1.0 - 1.0 / (1.0 + x), 1.0 + f64::min(x, 1e3) * 1e-3] {
                if x > 1e-300 {
                    let (ours, theirs) = (ln(x), x.ln());
                    assert!((ours - theirs).abs() <= 4.5e-16 * theirs.abs(), "ln {x}: {ours} {theirs}");
                }
            }
            x *= 1.003;
        }
        for k in 0..=100_000 {
            let u = k as f64 / 100_000.0;
            let ([sin, cos], (s, c)) = (sin_cos_turns(u), (core::f64::consts::TAU * u).sin_cos());
            // The library's argument, 2πu, is rounded.
            assert!((sin - s).abs() < 8e-16 && (cos - c).abs() < 8e-16, "{u}: {sin} {s} {cos} {c}");
            assert!((sin * sin + cos * cos - 1.0).abs() < 5e-16);
        }
        assert_eq!(sin_cos_turns(0.25), [1.0, 0.0]);
    }
}
