//! Complex numbers.
use super::Real;
use core::ops::{Add, Mul, Neg, Sub};

/// Complex number with the memory layout of `num_complex::Complex`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// Real part.
    pub re: T,
    /// Imaginary part.
    pub im: T,
}

/// Returns re + i im.
#[inline]
pub const fn complex<T>(re: T, im: T) -> Complex<T> {
    Complex { re, im }
}

impl<T: Real> Complex<T> {
    /// 0
    pub const ZERO: Self = complex(T::ZERO, T::ZERO);
    /// 1
    pub const ONE: Self = complex(T::ONE, T::ZERO);

    /// Returns the complex conjugate.
    #[inline]
    pub fn conj(self) -> Self {
        complex(self.re, -self.im)
    }
    /// Returns i · self.
    #[inline]
    pub fn times_i(self) -> Self {
        complex(-self.im, self.re)
    }
    /// Returns self · b + c.
    #[inline]
    pub fn mul_add(self, b: Self, c: Self) -> Self {
        complex(
            self.re.mul_add(b.re, (-self.im).mul_add(b.im, c.re)),
            self.re.mul_add(b.im, self.im.mul_add(b.re, c.im)),
        )
    }
    /// Returns self* · b + c.
    #[inline]
    pub fn conj_mul_add(self, b: Self, c: Self) -> Self {
        self.conj().mul_add(b, c)
    }
    /// Returns self · b for real b.
    #[inline]
    pub fn scale(self, b: T) -> Self {
        complex(self.re * b, self.im * b)
    }
    /// Returns self · b + c for real b.
    #[inline]
    pub fn scale_add(self, b: T, c: Self) -> Self {
        complex(self.re.mul_add(b, c.re), self.im.mul_add(b, c.im))
    }
    /// |self|²
    #[inline]
    pub fn norm_sqr(self) -> T {
        self.re.mul_add(self.re, self.im * self.im)
    }
    /// Applies [`Real::part`] to the real and the imaginary part.
    #[inline]
    pub fn part<U: Real>(self, part: usize) -> Complex<U> {
        complex(self.re.part(part), self.im.part(part))
    }
    /// Converts both parts to another real type, rounded if necessary.
    #[inline]
    pub fn cast<U: Real>(self) -> Complex<U> {
        complex(self.re.cast(), self.im.cast())
    }
}

impl<T: Real> Add for Complex<T> {
    type Output = Self;
    #[inline]
    fn add(self, b: Self) -> Self {
        complex(self.re + b.re, self.im + b.im)
    }
}
impl<T: Real> Sub for Complex<T> {
    type Output = Self;
    #[inline]
    fn sub(self, b: Self) -> Self {
        complex(self.re - b.re, self.im - b.im)
    }
}
impl<T: Real> Mul for Complex<T> {
    type Output = Self;
    #[inline]
    fn mul(self, b: Self) -> Self {
        complex(self.re.mul_add(b.re, -(self.im * b.im)), self.re.mul_add(b.im, self.im * b.re))
    }
}
impl<T: Real> Neg for Complex<T> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        complex(-self.re, -self.im)
    }
}
