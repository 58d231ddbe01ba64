//! Colour vectors and SU(3) matrices.
//!
//! Arithmetic that is written several times uses macros and not closures. A closure that is called more than once may not be
//! inlined into a kernel; it is then compiled for the baseline processor (`cpu.rs`).
use super::{Complex, Real, complex};
use core::ops::{Add, Mul, Sub};

/// A colour vector.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Colour<T>(pub [Complex<T>; 3]);

impl<T: Real> Colour<T> {
    /// 0
    pub const ZERO: Self = Colour([Complex::ZERO; 3]);
    /// Returns the vector of the values `f(z)` for every component z. The loop is unrolled.
    #[inline(always)]
    pub fn map<U>(self, f: impl Fn(Complex<T>) -> Complex<U>) -> Colour<U> {
        let [a, b, c] = self.0;
        Colour([f(a), f(b), f(c)])
    }
    /// Returns the vector of the values `f(a, b)` for every pair of components of `self` and `other`. The loop is
    /// unrolled.
    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        let ([a, b, c], [d, e, g]) = (self.0, other.0);
        Colour([f(a, d), f(b, e), f(c, g)])
    }
}
impl<T: Real> Colour<T> {
    /// Returns Σ |a_k|² for a = self.
    #[inline(always)]
    pub fn norm2(self) -> T {
        let [a, b, c] = self.0;
        let sum = b.re.mul_add(b.re, b.im.mul_add(b.im, a.norm_sqr()));
        c.re.mul_add(c.re, c.im.mul_add(c.im, sum))
    }
    /// Returns the vector divided by its norm.
    #[inline(always)]
    fn normalised(self) -> Self {
        let inverse = T::ONE.over(self.norm2().root());
        self.map(|z| z.scale(inverse))
    }
    /// Returns Σ a_k* b_k for a = self.
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

/// Colour vector with a factor that is multiplied in later, which is cheaper if 16-bit numbers share a norm.
#[derive(Clone, Copy, Debug)]
pub struct ScaledColour<T> {
    /// Colour vector before the multiplication by `scale`.
    pub vector: Colour<T>,
    /// Factor that multiplies `vector`.
    pub scale: T,
}
impl<T: Real> ScaledColour<T> {
    /// Returns the vector with its scale multiplied in.
    #[inline(always)]
    pub fn value(self) -> Colour<T> {
        self.vector.map(|z| z.scale(self.scale))
    }
}

/// Makes an array of the three rows of a matrix, each from its number.
macro_rules! rows {
    ($j:ident => $row:expr) => {
        rows!(@each $j $row, 0 1 2)
    };
    (@each $j:ident $row:expr, $($number:literal)*) => {
        [$({
            #[allow(non_upper_case_globals, reason = "stands for a variable of a loop")]
            const $j: usize = $number;
            $row
        }),*]
    };
}

/// Link: the rows of a 3×3 matrix. Sums of links, which are not in SU(3), have the same type.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Su3<T>(pub [[Complex<T>; 3]; 3]);

impl<T: Real> Su3<T> {
    /// Returns the unit matrix.
    #[inline(always)]
    pub fn unit() -> Self {
        let (o, z) = (Complex::ONE, Complex::ZERO);
        Su3([[o, z, z], [z, o, z], [z, z, o]])
    }
    /// Returns the SU(3) matrix with the first two rows a and b. Unitarity gives the third row c = (a × b)* (Clark et
    /// al. 2009, appendix A.1).
    #[inline(always)]
    pub fn from_two_rows(a: [Complex<T>; 3], b: [Complex<T>; 3]) -> Self {
        Su3([a, b, [minor(a[1], b[2], a[2], b[1]), minor(a[2], b[0], a[0], b[2]), minor(a[0], b[1], a[1], b[0])]])
    }
    /// Returns det (self) = (a × b) · c, where a, b and c are the rows.
    #[inline(always)]
    pub fn determinant(self) -> Complex<T> {
        let [a, b, c] = self.0;
        Colour(Su3::from_two_rows(a, b).0[2]).dot(Colour(c))
    }
    /// Returns the Hermitian conjugate.
    #[inline(always)]
    pub fn adjoint(self) -> Self {
        let u = self.0;
        Su3(rows!(j => [u[0][j].conj(), u[1][j].conj(), u[2][j].conj()]))
    }
    /// Returns i · self.
    #[inline(always)]
    pub fn times_i(self) -> Self {
        self.map(|z| z.times_i())
    }
    /// Returns self · b for real b.
    #[inline(always)]
    pub fn scale(self, b: T) -> Self {
        self.map(|z| z.scale(b))
    }
    /// Returns self · c.
    #[inline(always)]
    pub fn times(self, c: Complex<T>) -> Self {
        self.map(|z| z * c)
    }
    /// 0
    pub const ZERO: Self = Su3([[Complex::ZERO; 3]; 3]);
    /// Returns the outer product v w†.
    #[inline(always)]
    pub fn outer(v: Colour<T>, w: Colour<T>) -> Self {
        let (v, w) = (v.0, w.0);
        Su3(rows!(j => [v[j] * w[0].conj(), v[j] * w[1].conj(), v[j] * w[2].conj()]))
    }
    /// Returns the matrix of the values `f(z)` for every element z. The loop is unrolled.
    #[inline(always)]
    pub fn map(self, f: impl Fn(Complex<T>) -> Complex<T>) -> Self {
        let u = self.0;
        Su3(rows!(j => [f(u[j][0]), f(u[j][1]), f(u[j][2])]))
    }
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        let (a, b) = (self.0, other.0);
        Su3(rows!(j => [f(a[j][0], b[j][0]), f(a[j][1], b[j][1]), f(a[j][2], b[j][2])]))
    }
    /// Returns the matrix after [`settle`](Real::settle), which separates the arithmetic of the matrix from the code
    /// that follows.
    #[inline(always)]
    #[must_use]
    pub fn settled(mut self) -> Self {
        T::settle(&mut self);
        self
    }
    /// Returns tr (self).
    #[inline(always)]
    pub fn trace(self) -> Complex<T> {
        self.0[0][0] + self.0[1][1] + self.0[2][2]
    }
    /// Returns Re tr (self).
    #[inline(always)]
    pub fn re_trace(self) -> T {
        self.0[0][0].re + self.0[1][1].re + self.0[2][2].re
    }
    /// Returns the imaginary part of the trace.
    #[inline(always)]
    pub fn im_trace(self) -> T {
        self.0[0][0].im + self.0[1][1].im + self.0[2][2].im
    }
    /// Converts every element to another real type, rounded if necessary.
    #[inline(always)]
    pub fn cast<U: Real>(self) -> Su3<U> {
        let u = self.0;
        Su3(rows!(j => [u[j][0].cast(), u[j][1].cast(), u[j][2].cast()]))
    }
}
impl<T: Real> Su3<T> {
    /// Returns the unitary matrix obtained from a nearly unitary one: the first two rows are orthonormalised
    /// (Gram–Schmidt), and the third row follows from them.
    #[inline(always)]
    pub fn unitarised(self) -> Self {
        let (a, b) = (Colour(self.0[0]).normalised(), Colour(self.0[1]));
        let overlap = -a.dot(b);
        let b = a.zip(b, |a, b| overlap.mul_add(a, b)).normalised();
        Su3::from_two_rows(a.0, b.0)
    }
}
/// (p q − r s)* with fused operations.
#[inline(always)]
fn minor<T: Real>(p: Complex<T>, q: Complex<T>, r: Complex<T>, s: Complex<T>) -> Complex<T> {
    let re = p.re.mul_add(q.re, (-p.im).mul_add(q.im, (-r.re).mul_add(s.re, r.im * s.im)));
    let im = (-p.re).mul_add(q.im, (-p.im).mul_add(q.re, r.re.mul_add(s.im, r.im * s.re)));
    complex(re, im)
}
/// Σ_k u_k v_k
#[inline(always)]
pub fn row_times<T: Real>(u: [Complex<T>; 3], v: [Complex<T>; 3]) -> Complex<T> {
    u[2].mul_add(v[2], u[1].mul_add(v[1], u[0] * v[0]))
}
impl<T: Real> Mul<Colour<T>> for Su3<T> {
    type Output = Colour<T>;
    #[inline(always)]
    fn mul(self, v: Colour<T>) -> Colour<T> {
        let [a, b, c] = self.0;
        Colour([row_times(a, v.0), row_times(b, v.0), row_times(c, v.0)])
    }
}
impl<T: Real> Mul for Su3<T> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        macro_rules! element {
            ($i:ident, $j:literal) => {
                a[$i][2].mul_add(b[2][$j], a[$i][1].mul_add(b[1][$j], a[$i][0] * b[0][$j]))
            };
        }
        Su3(rows!(i => [element!(i, 0), element!(i, 1), element!(i, 2)]))
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
