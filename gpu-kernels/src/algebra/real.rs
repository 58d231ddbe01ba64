//! Real numbers that kernels compute with.
use super::{Complex, complex, elementary};
use crate::lattice::Where;
use core::ops::{Add, Mul, Neg, Sub};

/// A real number type: `f32`, `f64`, or a vector of the numbers of several sites.
pub trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// Number of sites whose numbers a value holds; more than one if a CPU computes a group of sites.
    const LANES: usize = 1;
    /// Corresponding type in double precision.
    type Double: Real;
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// self · b + c with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Converts from double precision, rounded to nearest.
    fn from_f64(x: f64) -> Self;
    /// Converts to double precision, exactly. A value of several sites gives the sum over them.
    fn to_f64(self) -> f64;
    /// Returns the sum of four values in double precision. Values of several sites are summed over them.
    #[inline]
    fn sum([a, b, c, d]: [Self; 4]) -> f64 {
        (a.to_f64() + b.to_f64()) + (c.to_f64() + d.to_f64())
    }
    /// Converts to another precision, for the same number of sites.
    #[inline]
    fn cast<T: Real>(self) -> T {
        T::from_f64(self.to_f64())
    }
    /// Returns part number `part` of a value of several sites: as many numbers as `T` holds, in the precision of `T`.
    #[inline]
    fn part<T: Real>(self, _part: usize) -> T {
        self.cast()
    }
    /// Returns the number of one lane in double precision.
    #[inline]
    fn lane(self, _: usize) -> f64 {
        self.to_f64()
    }
    /// Returns a copy whose number in a lane is `x`.
    #[inline]
    #[must_use]
    fn with_lane(self, _: usize, x: f64) -> Self {
        Self::from_f64(x)
    }
    /// self / b, exactly rounded.
    fn over(self, b: Self) -> Self;
    /// √self, exactly rounded.
    fn root(self) -> Self;
    /// Returns `x` for sites where self is positive, and `other` for the others.
    fn where_positive(self, x: Self, other: Self) -> Self;
    /// √max(self, 0)
    fn sqrt_or_zero(self) -> Self;
    /// 1 / self
    fn reciprocal(self) -> Self;
    /// Returns self if `condition` is 0, else `other`. Without this function, the compiler for GPUs might select one of two
    /// addresses and move the values at them into local memory.
    fn or(self, other: Self, condition: u32) -> Self;
    /// Returns self and forces its computation at this point. The compiler for GPUs may otherwise defer it past later branches,
    /// and keep all of its inputs in registers until then.
    fn black_box(self) -> Self;
    /// Separates the arithmetic that made `x` from the code after it: interleaved, both would take more registers than exist.
    /// Numbers of several sites are moved to memory.
    #[inline]
    fn settle<X>(_: &mut X) {}
    /// Returns the argument `x` of a kernel in this precision.
    fn of(x: Scalar) -> Self;
    /// Returns `x` for sites where `is` holds, and `other` for the others.
    fn where_or(is: Where, x: Scalar, other: Scalar) -> Self;
    /// Returns self · b for sites where `is` holds, and self for the others.
    fn times_where(self, is: Where, b: Self) -> Self;
}

/// Real number among the arguments of a kernel that is compiled for several precisions. The number is rounded before
/// the launch, because instructions can use an argument directly, whereas a conversion in the kernel would need
/// registers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Scalar {
    f64: f64,
    f32: f32,
}
impl From<f64> for Scalar {
    fn from(x: f64) -> Self {
        Scalar { f64: x, f32: x as f32 }
    }
}

macro_rules! real {
    ($t:ident, $register:ident, $select:literal) => {
        impl Real for $t {
            type Double = f64;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            // On a CPU without FMA instructions, `mul_add` calls a library function, which is slow but gives the same
            // result.
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return core::$t::math::mul_add(self, b, c);
                #[cfg(not(target_arch = "nvptx64"))]
                return $t::mul_add(self, b, c);
            }
            #[inline]
            fn or(self, other: Self, condition: u32) -> Self {
                #[cfg(target_arch = "nvptx64")]
                {
                    let out;
                    // SAFETY: arithmetic on registers.
                    unsafe {
                        core::arch::asm!(
                            "{{ .reg .pred %other; setp.ne.u32 %other, {3}, 0;",
                            concat!($select, " {0}, {2}, {1}, %other; }}"),
                            out($register) out, in($register) self, in($register) other, in(reg32) condition,
                            options(pure, nomem, nostack)
                        );
                    }
                    out
                }
                #[cfg(not(target_arch = "nvptx64"))]
                if condition == 0 { self } else { other }
            }
            #[inline]
            fn black_box(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                {
                    let mut x = self;
                    // SAFETY: an instruction that does nothing, and stays where it is.
                    unsafe { core::arch::asm!("// {0}", inout($register) x, options(nomem, nostack)) };
                    x
                }
                #[cfg(not(target_arch = "nvptx64"))]
                self
            }
            #[inline]
            fn of(x: Scalar) -> Self {
                x.$t
            }
            #[inline]
            fn where_or(is: Where, x: Scalar, other: Scalar) -> Self {
                Self::of(if is.any() { x } else { other })
            }
            #[inline]
            fn times_where(self, is: Where, b: Self) -> Self {
                if is.any() { self * b } else { self }
            }
            #[inline]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline]
            fn over(self, b: Self) -> Self {
                self / b
            }
            #[inline]
            fn root(self) -> Self {
                elementary::sqrt(self as f64) as $t
            }
            #[inline]
            fn where_positive(self, x: Self, other: Self) -> Self {
                if self > 0.0 { x } else { other }
            }
            #[inline]
            fn sqrt_or_zero(self) -> Self {
                instruction::$t::sqrt(if self > 0.0 { self } else { 0.0 })
            }
            #[inline]
            fn reciprocal(self) -> Self {
                instruction::$t::reciprocal(self)
            }
        }
    };
}
real!(f32, reg32, "selp.f32");
real!(f64, reg64, "selp.f64");

/// Functions that are instructions of a GPU. In single precision they are fast approximations, accurate to a few units in the
/// last place.
mod instruction {
    pub mod f32 {
        #[cfg(target_arch = "nvptx64")]
        macro_rules! unary {
            ($name:ident, $text:literal) => {
                #[inline]
                pub fn $name(x: f32) -> f32 {
                    let out: f32;
                    // SAFETY: arithmetic on registers.
                    unsafe {
                        core::arch::asm!(concat!($text, " {0}, {1};"), out(reg32) out, in(reg32) x,
                            options(pure, nomem, nostack));
                    }
                    out
                }
            };
        }
        #[cfg(target_arch = "nvptx64")]
        unary!(sqrt, "sqrt.approx.ftz.f32");
        #[cfg(target_arch = "nvptx64")]
        unary!(reciprocal, "rcp.approx.ftz.f32");
        #[cfg(not(target_arch = "nvptx64"))]
        pub fn sqrt(x: f32) -> f32 {
            x.sqrt()
        }
        #[cfg(not(target_arch = "nvptx64"))]
        pub fn reciprocal(x: f32) -> f32 {
            1.0 / x
        }
    }
    pub mod f64 {
        #[cfg(target_arch = "nvptx64")]
        macro_rules! unary {
            ($name:ident, $text:literal) => {
                #[inline]
                pub fn $name(x: f64) -> f64 {
                    let out: f64;
                    // SAFETY: arithmetic on registers.
                    unsafe {
                        core::arch::asm!(concat!($text, " {0}, {1};"), out(reg64) out, in(reg64) x,
                            options(pure, nomem, nostack));
                    }
                    out
                }
            };
        }
        #[cfg(target_arch = "nvptx64")]
        unary!(approximate_inverse, "rcp.approx.ftz.f64");
        #[cfg(target_arch = "nvptx64")]
        unary!(approximate_inverse_sqrt, "rsqrt.approx.ftz.f64");
        // The correctly rounded instructions compile to function calls with slow paths, and registers are spilled
        // around the calls. Instead, two steps of Newton's method refine approximations of 20 bits to one unit in the
        // last place for numbers of ordinary size.
        #[cfg(target_arch = "nvptx64")]
        #[inline]
        pub fn reciprocal(x: f64) -> f64 {
            use crate::algebra::Real;
            let refine = |y: f64| Real::mul_add(y, Real::mul_add(-x, y, 1.0), y);
            refine(refine(approximate_inverse(x)))
        }
        #[cfg(target_arch = "nvptx64")]
        #[inline]
        pub fn sqrt(x: f64) -> f64 {
            use crate::algebra::Real;
            let y = approximate_inverse_sqrt(if x > 1e-280 { x } else { 1e-280 });
            let (root, half) = (x * y, 0.5 * y);
            let off = Real::mul_add(-root, half, 0.5);
            let (root, half) = (Real::mul_add(root, off, root), Real::mul_add(half, off, half));
            Real::mul_add(root, Real::mul_add(-root, half, 0.5), root)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        pub fn sqrt(x: f64) -> f64 {
            x.sqrt()
        }
        #[cfg(not(target_arch = "nvptx64"))]
        pub fn reciprocal(x: f64) -> f64 {
            1.0 / x
        }
    }
}

/// Returns the point on the unit circle with angle φ, computed from t = tan(φ/4), |t| ≤ 1. The function is rational and
/// needs no sine or cosine; t resolves all angles about equally well.
#[inline]
pub fn phase_from_quarter_tangent<T: Real>(t: T) -> Complex<T> {
    let square = t * t;
    let inverse = (T::ONE + square).reciprocal();
    // Computes the point at angle φ/2; its square is the point at angle φ.
    let (cos, sin) = ((T::ONE - square) * inverse, (t + t) * inverse);
    complex(cos.mul_add(cos, -(sin * sin)), (sin + sin) * cos)
}

/// Returns t = tan(φ/4), where φ in (−π, π] is the angle of a complex number. The result is 0 for 0 and NaN for NaN.
#[inline]
pub fn quarter_tangent(z: Complex<f64>) -> f64 {
    let square = z.norm_sqr();
    let norm = square.sqrt_or_zero();
    if norm == 0.0 {
        // `square` is 0 or NaN here, and is the result.
        return square;
    }
    // Computes the larger of cos and |sin| of φ/2 by the half-angle formula, and the other one from sin φ.
    let (c, s) = (z.re / norm, z.im.abs() / norm);
    let larger = ((1.0 + c.abs()) * 0.5).sqrt_or_zero();
    let smaller = 0.5 * s / larger;
    let (cos, sin) = if c >= 0.0 { (larger, smaller) } else { (smaller, larger) };
    let t = sin / (1.0 + cos);
    if z.im < 0.0 { -t } else { t }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases() {
        for k in -1000..=1000 {
            let (s, c) = (core::f64::consts::PI * k as f64 * 1e-3).sin_cos();
            for r in [1e-8, 0.3, 1.0] {
                let t = quarter_tangent(complex(r * c, r * s));
                assert!(t.abs() <= 1.0);
                let back = phase_from_quarter_tangent(t);
                assert!((back.re - c).abs() < 1e-15 && (back.im - s).abs() < 1e-15, "{k} {r}");
            }
        }
        assert_eq!(quarter_tangent(Complex::ZERO), 0.0);
        assert!(quarter_tangent(complex(f64::NAN, 1.0)).is_nan() && quarter_tangent(complex(1.0, f64::NAN)).is_nan());
    }
}
