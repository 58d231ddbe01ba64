//! Colour vectors and SU(3) matrices.
use super::elementary::sqrt;
use super::{Complex, Real, complex};
use core::ops::{Add, Mul, Sub};

/// A colour vector.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Colour<T>(pub [Complex<T>; 3]);

impl<T: Real> Colour<T> {
    /// 0
    pub const ZERO: Self = Colour([Complex::ZERO; 3]);
    /// Applies `f` to every component, unrolled.
    #[inline(always)]
    pub fn map<U>(self, f: impl Fn(Complex<T>) -> Complex<U>) -> Colour<U> {
        let [a, b, c] = self.0;
        Colour([f(a), f(b), f(c)])
    }
    /// Applies `f` to every pair of components, unrolled.
    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        let ([a, b, c], [d, e, g]) = (self.0, other.0);
        Colour([f(a, d), f(b, e), f(c, g)])
    }
}
impl<T: Real> Colour<T> {
    /// Σ |a_k|²
    #[inline(always)]
    pub fn norm2(self) -> T {
        let [a, b, c] = self.0;
        let add = |sum: T, z: Complex<T>| z.re.mul_add(z.re, z.im.mul_add(z.im, sum));
        add(add(a.norm_sqr(), b), c)
    }
    /// Σ a_k* b_k
    #[inline(always)]
    pub fn dot(self, other: Self) -> Complex<T> {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        c.conj_mul_add(f, b.conj_mul_add(e, a.conj() * d))
    }
}
impl<T: Real> Add for Colour<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        self.zip(b, |x, y| x + y)
    }
}
impl<T: Real> Sub for Colour<T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        self.zip(b, |x, y| x - y)
    }
}

/// A colour vector times a number that is multiplied in later: where 16-bit numbers share a norm, that is cheaper.
#[derive(Clone, Copy, Debug)]
pub struct ScaledColour<T> {
    /// The vector in units of `scale`.
    pub vector: Colour<T>,
    /// Its unit.
    pub scale: T,
}
impl<T: Real> ScaledColour<T> {
    /// The vector itself.
    #[inline(always)]
    pub fn value(self) -> Colour<T> {
        self.vector.map(|z| z.scale(self.scale))
    }
}

/// A link: rows of a 3×3 matrix. Also sums of links, which are not in SU(3).
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Su3<T>(pub [[Complex<T>; 3]; 3]);

impl<T: Real> Su3<T> {
    /// The unit matrix.
    #[inline(always)]
    pub fn unit() -> Self {
        let (o, z) = (Complex::ONE, Complex::ZERO);
        Su3([[o, z, z], [z, o, z], [z, z, o]])
    }
    /// Third row from unitarity, c = (a × b)* (Clark et al. 2009, appendix A.1).
    #[inline(always)]
    pub fn from_two_rows(a: [Complex<T>; 3], b: [Complex<T>; 3]) -> Self {
        // (a_j b_k − a_k b_j)*, every product fused.
        let minor = |j: usize, k: usize| {
            let (p, q, r, s) = (a[j], b[k], a[k], b[j]);
            let re = p.re.mul_add(q.re, (-p.im).mul_add(q.im, (-r.re).mul_add(s.re, r.im * s.im)));
            let im = (-p.re).mul_add(q.im, (-p.im).mul_add(q.re, r.re.mul_add(s.im, r.im * s.re)));
            complex(re, im)
        };
        Su3([a, b, [minor(1, 2), minor(2, 0), minor(0, 1)]])
    }
    /// det (self) = (a × b) · c
    #[inline(always)]
    pub fn determinant(self) -> Complex<T> {
        let [a, b, c] = self.0;
        Colour(Su3::from_two_rows(a, b).0[2]).dot(Colour(c))
    }
    /// Hermitian conjugate.
    #[inline(always)]
    pub fn adjoint(self) -> Self {
        let u = self.0;
        let column = |j: usize| [u[0][j].conj(), u[1][j].conj(), u[2][j].conj()];
        Su3([column(0), column(1), column(2)])
    }
    /// i · self
    #[inline(always)]
    pub fn times_i(self) -> Self {
        self.map(|z| z.times_i())
    }
    /// self · b for real b.
    #[inline(always)]
    pub fn scale(self, b: T) -> Self {
        self.map(|z| z.scale(b))
    }
    /// 0
    pub const ZERO: Self = Su3([[Complex::ZERO; 3]; 3]);
    /// v w†
    #[inline(always)]
    pub fn outer(v: Colour<T>, w: Colour<T>) -> Self {
        let ([a, b, c], w) = (v.0, w.0);
        let row = |z: Complex<T>| [z * w[0].conj(), z * w[1].conj(), z * w[2].conj()];
        Su3([row(a), row(b), row(c)])
    }
    /// Applies `f` to every element, unrolled.
    #[inline(always)]
    pub fn map(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self {
        let row = |r: [Complex<T>; 3]| [f(r[0]), f(r[1]), f(r[2])];
        Su3([row(self.0[0]), row(self.0[1]), row(self.0[2])])
    }
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        let row = |a: [Complex<T>; 3], b: [Complex<T>; 3]| [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2])];
        Su3([row(self.0[0], other.0[0]), row(self.0[1], other.0[1]), row(self.0[2], other.0[2])])
    }
    /// Re tr (self)
    #[inline(always)]
    pub fn re_trace(self) -> T {
        self.0[0][0].re + self.0[1][1].re + self.0[2][2].re
    }
    /// Rounds or extends every element.
    #[inline(always)]
    pub fn cast<U: Real>(self) -> Su3<U> {
        let row = |r: [Complex<T>; 3]| [r[0].cast(), r[1].cast(), r[2].cast()];
        Su3([row(self.0[0]), row(self.0[1]), row(self.0[2])])
    }
}
impl Su3<f64> {
    /// A nearly unitary matrix made unitary: Gram and Schmidt on the first two rows, the third from them.
    #[inline(always)]
    pub fn unitarised(self) -> Self {
        let normalised = |row: Colour<f64>| {
            let inverse = 1.0 / sqrt(row.norm2());
            row.map(|z| z.scale(inverse))
        };
        let (a, b) = (normalised(Colour(self.0[0])), Colour(self.0[1]));
        let overlap = -a.dot(b);
        let b = normalised(a.zip(b, |a, b| overlap.mul_add(a, b)));
        Su3::from_two_rows(a.0, b.0)
    }
}
impl<T: Real> Mul<Colour<T>> for Su3<T> {
    type Output = Colour<T>;
    #[inline(always)]
    fn mul(self, v: Colour<T>) -> Colour<T> {
        let v = v.0;
        let row = |u: [Complex<T>; 3]| u[2].mul_add(v[2], u[1].mul_add(v[1], u[0] * v[0]));
        Colour([row(self.0[0]), row(self.0[1]), row(self.0[2])])
    }
}
impl<T: Real> Mul for Su3<T> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let element = |i: usize, j: usize| a[i][2].mul_add(b[2][j], a[i][1].mul_add(b[1][j], a[i][0] * b[0][j]));
        let row = |i: usize| [element(i, 0), element(i, 1), element(i, 2)];
        Su3([row(0), row(1), row(2)])
    }
}
impl<T: Real> Add for Su3<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}
impl<T: Real> Sub for Su3<T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}
