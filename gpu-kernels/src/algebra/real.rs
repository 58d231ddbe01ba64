//! Real numbers that kernels compute with.
use core::ops::{Add, Mul, Neg, Sub};

/// A real number type: `f32`, `f64`.
pub trait Real:
    Copy
    + PartialEq
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// self · b + c with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Rounds to nearest.
    fn from_f64(x: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
}

macro_rules! real {
    ($t:ident) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            // On a CPU without FMA instructions this calls a library function: slow, but the same result everywhere.
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                return core::$t::math::mul_add(self, b, c);
                #[cfg(not(target_arch = "nvptx64"))]
                return $t::mul_add(self, b, c);
            }
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}
real!(f32);
real!(f64);
