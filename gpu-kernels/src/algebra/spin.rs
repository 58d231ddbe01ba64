//! Spin projectors, and the two bases of spin.
//!
//! On the device the γ matrices are in a basis where γ_t is diagonal (Clark et al. 2009, appendix B), so that the
//! projectors in t keep two components as they are and drop the others:
//!
//! ```text
//!       ⎛ 0  0  0  i⎞       ⎛ 0  0  0 −1⎞       ⎛ 0  0  i  0⎞       ⎛ 1  0  0  0⎞
//! γ_x = ⎜ 0  0  i  0⎟ γ_y = ⎜ 0  0  1  0⎟ γ_z = ⎜ 0  0  0 −i⎟ γ_t = ⎜ 0  1  0  0⎟
//!       ⎜ 0 −i  0  0⎟       ⎜ 0  1  0  0⎟       ⎜−i  0  0  0⎟       ⎜ 0  0 −1  0⎟
//!       ⎝−i  0  0  0⎠       ⎝−1  0  0  0⎠       ⎝ 0  i  0  0⎠       ⎝ 0  0  0 −1⎠
//! ```
//!
//! γ_x, γ_y, γ_z are those of the DeGrand–Rossi basis, which every interface uses; there γ_t exchanges the upper and
//! the lower pair of spins.
use super::{Colour, Complex, Real, Su3, complex};
use core::ops::Mul;

/// Spinor: a colour vector for each of the four spins.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct DiracSpinor<T>(pub [Colour<T>; 4]);

/// The two independent spin components that a projector leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfSpinor<T>(pub [Colour<T>; 2]);

/// Half spinor with a real factor that has not been multiplied in yet: the norm of a fixed-point format, a boundary
/// sign or an anisotropy. The accumulating multiply-add applies the factor at no cost.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<T> {
    /// Half spinor before the multiplication by `scale`.
    pub value: HalfSpinor<T>,
    /// Factor that multiplies `value`.
    pub scale: T,
}

/// One of the four directions of the lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Axis {
    X,
    Y,
    Z,
    T,
}

/// Sign of a term, + or −.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sign {
    Plus,
    Minus,
}

/// Sign of a projector: a constant [`Sign`], which costs nothing at run time, or, on a CPU, a [`RuntimeSign`].
pub trait ProjectorSign: Copy {
    /// Returns the opposite sign.
    #[must_use]
    fn opposite(self) -> Self;
    /// Returns whether the sign is +.
    fn is_plus(self) -> bool;
    /// ±x
    fn of<T: Real>(self, x: T) -> T;
    /// a ± b
    fn add<T: Real>(self, a: T, b: T) -> T;
}
impl ProjectorSign for Sign {
    #[inline(always)]
    fn opposite(self) -> Self {
        match self {
            Sign::Plus => Sign::Minus,
            Sign::Minus => Sign::Plus,
        }
    }
    #[inline(always)]
    fn is_plus(self) -> bool {
        self == Sign::Plus
    }
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        if self.is_plus() { x } else { -x }
    }
    #[inline(always)]
    fn add<T: Real>(self, a: T, b: T) -> T {
        if self.is_plus() { a + b } else { a - b }
    }
}

/// A sign that is known only at run time, used as a factor of multiply-adds. Results are bitwise equal to those with a
/// constant sign, because a product with ±1 is exact.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug)]
pub struct RuntimeSign(f64);
#[cfg(not(target_arch = "nvptx64"))]
impl RuntimeSign {
    /// Returns the sign + if `plus` is true, else −.
    #[inline(always)]
    pub fn new(plus: bool) -> Self {
        RuntimeSign(if plus { 1.0 } else { -1.0 })
    }
}
#[cfg(not(target_arch = "nvptx64"))]
impl ProjectorSign for RuntimeSign {
    #[inline(always)]
    fn opposite(self) -> Self {
        RuntimeSign(-self.0)
    }
    #[inline(always)]
    fn is_plus(self) -> bool {
        self.0 > 0.0
    }
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        T::from_f64(self.0) * x
    }
    #[inline(always)]
    fn add<T: Real>(self, a: T, b: T) -> T {
        T::from_f64(self.0).mul_add(b, a)
    }
}

/// Projector P^{±μ} = 1 ± γ_μ. The axis is always a compile-time constant, so it costs nothing at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projector<S = Sign> {
    /// μ
    pub axis: Axis,
    /// ±
    pub sign: S,
}

/// Factor ±1 or ±i of the second operand in a sum of two components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// a + b
    One,
    /// a − b
    MinusOne,
    /// a + i b
    I,
    /// a − i b
    MinusI,
}

impl Phase {
    /// Returns the complex conjugate of the phase.
    #[inline(always)]
    pub const fn conj(self) -> Self {
        match self {
            Phase::I => Phase::MinusI,
            Phase::MinusI => Phase::I,
            real => real,
        }
    }
    /// Returns the phase times −1.
    #[inline(always)]
    pub const fn opposite(self) -> Self {
        match self {
            Phase::One => Phase::MinusOne,
            Phase::MinusOne => Phase::One,
            Phase::I => Phase::MinusI,
            Phase::MinusI => Phase::I,
        }
    }
    /// Returns a ± phase · b, where `sign` selects + or −.
    #[inline(always)]
    pub fn combine<T: Real, S: ProjectorSign>(self, a: Complex<T>, sign: S, b: Complex<T>) -> Complex<T> {
        let opposite = sign.opposite();
        match self {
            Phase::One => complex(sign.add(a.re, b.re), sign.add(a.im, b.im)),
            Phase::MinusOne => complex(opposite.add(a.re, b.re), opposite.add(a.im, b.im)),
            Phase::I => complex(opposite.add(a.re, b.im), sign.add(a.im, b.re)),
            Phase::MinusI => complex(sign.add(a.re, b.im), opposite.add(a.im, b.re)),
        }
    }
    /// Returns a ± phase · b for each colour component.
    #[inline(always)]
    fn combine_colours<T: Real, S: ProjectorSign>(
        self,
        Colour([a, b, c]): Colour<T>,
        sign: S,
        Colour([d, e, f]): Colour<T>,
    ) -> Colour<T> {
        Colour([self.combine(a, sign, d), self.combine(b, sign, e), self.combine(c, sign, f)])
    }
    /// Returns a + scale · phase · b, computed with fused multiply-adds.
    #[inline(always)]
    pub fn accumulate<T: Real>(self, a: Complex<T>, scale: T, b: Complex<T>) -> Complex<T> {
        let minus = -scale;
        match self {
            Phase::One => complex(scale.mul_add(b.re, a.re), scale.mul_add(b.im, a.im)),
            Phase::MinusOne => complex(minus.mul_add(b.re, a.re), minus.mul_add(b.im, a.im)),
            Phase::I => complex(minus.mul_add(b.im, a.re), scale.mul_add(b.re, a.im)),
            Phase::MinusI => complex(scale.mul_add(b.im, a.re), minus.mul_add(b.re, a.im)),
        }
    }
}

impl Phase {
    /// Adds scale · phase · b to a, colour by colour.
    #[inline(always)]
    fn add_to<T: Real>(self, a: &mut Colour<T>, scale: T, b: Colour<T>) {
        let [x, y, z] = a.0;
        *a = Colour([
            self.accumulate(x, scale, b.0[0]),
            self.accumulate(y, scale, b.0[1]),
            self.accumulate(z, scale, b.0[2]),
        ]);
    }
}

impl Projector {
    /// Returns the projector 1 + γ_μ, where `axis` is μ.
    #[inline(always)]
    pub const fn plus(axis: Axis) -> Self {
        Projector { axis, sign: Sign::Plus }
    }
    /// Returns the projector 1 − γ_μ, where `axis` is μ.
    #[inline(always)]
    pub const fn minus(axis: Axis) -> Self {
        Projector { axis, sign: Sign::Minus }
    }
}

impl<S: ProjectorSign> Projector<S> {
    /// Returns the opposite projector P^{∓μ} = γ_5 P^{±μ} γ_5.
    #[inline(always)]
    pub fn opposite(self) -> Self {
        Projector { sign: self.sign.opposite(), ..self }
    }
    /// Returns, for directions x, y and z, the lower spins j0 and j1 that the projector P combines with the upper spins
    /// 0 and 1, and the phases φ_0 and φ_1: h_0 = ψ_0 ± φ_0 ψ_{j0}, h_1 = ψ_1 ± φ_1 ψ_{j1}. The lower spins of P ψ are
    /// ±φ_0* h_0 at j0 and ±φ_1* h_1 at j1.
    #[inline(always)]
    pub const fn partners(self) -> [(usize, Phase); 2] {
        use Phase::*;
        match self.axis {
            Axis::X => [(3, I), (2, I)],
            Axis::Y => [(3, MinusOne), (2, One)],
            Axis::Z => [(2, I), (3, MinusI)],
            // Callers do not use this value: the projector in t keeps two spins instead of combining spins.
            Axis::T => [(2, One), (3, One)],
        }
    }
    /// Returns `sums`, four spins of one colour, with the sum of what P reconstructs from the two independent components
    /// \[a, b\] of this colour added. P is a projector in x, y or z.
    #[inline(always)]
    pub fn add_colour<T: Real>(self, mut sums: [Complex<T>; 4], [a, b]: [Complex<T>; 2]) -> [Complex<T>; 4] {
        let [(j, f), (k, g)] = self.partners();
        sums[0] = sums[0] + a;
        sums[1] = sums[1] + b;
        sums[j] = f.conj().combine(sums[j], self.sign, a);
        sums[k] = g.conj().combine(sums[k], self.sign, b);
        sums
    }
    /// Returns the first of the two spins that a projector in t keeps. The projector doubles both spins.
    #[inline(always)]
    pub fn kept(self) -> usize {
        if self.sign.is_plus() { 0 } else { 2 }
    }
}

impl<T: Real> HalfSpinor<T> {
    /// 0
    pub const ZERO: Self = HalfSpinor([Colour::ZERO; 2]);
}

impl<T: Real> DiracSpinor<T> {
    /// 0
    pub const ZERO: Self = DiracSpinor([Colour::ZERO; 4]);
    /// Returns the two independent spin components of P ψ for ψ = self.
    #[inline(always)]
    pub fn project<S: ProjectorSign>(&self, p: Projector<S>) -> Scaled<T> {
        let s = self.0;
        match p.axis {
            Axis::T => {
                let value = HalfSpinor(if p.sign.is_plus() { [s[0], s[1]] } else { [s[2], s[3]] });
                Scaled { value, scale: T::ONE + T::ONE }
            }
            _ => {
                let [(j, f), (k, g)] = p.partners();
                let value = HalfSpinor([f.combine_colours(s[0], p.sign, s[j]), g.combine_colours(s[1], p.sign, s[k])]);
                Scaled { value, scale: T::ONE }
            }
        }
    }
    /// Adds to this spinor the four-spin vector that `p` reconstructs from the two independent components `h`.
    #[inline(always)]
    pub fn add_projected<S: ProjectorSign>(&mut self, h: Scaled<T>, p: Projector<S>) {
        let (HalfSpinor([a, b]), scale) = (h.value, h.scale);
        match p.axis {
            Axis::T => {
                let [s0, s1, s2, s3] = &mut self.0;
                let (first, second) = if p.sign.is_plus() { (s0, s1) } else { (s2, s3) };
                Phase::One.add_to(first, scale, a);
                Phase::One.add_to(second, scale, b);
            }
            _ => {
                let [(j, f), (k, g)] = p.partners();
                Phase::One.add_to(&mut self.0[0], scale, a);
                Phase::One.add_to(&mut self.0[1], scale, b);
                let scale = p.sign.of(scale);
                f.conj().add_to(&mut self.0[j], scale, a);
                g.conj().add_to(&mut self.0[k], scale, b);
            }
        }
    }
    /// Returns the spinor of the values `f(z)` for every component z. The loop is unrolled.
    #[inline(always)]
    pub fn map<U>(self, f: impl Fn(Complex<T>) -> Complex<U>) -> DiracSpinor<U> {
        let [Colour(a), Colour(b), Colour(c), Colour(d)] = self.0;
        macro_rules! colour {
            ($a:ident) => {
                Colour([f($a[0]), f($a[1]), f($a[2])])
            };
        }
        DiracSpinor([colour!(a), colour!(b), colour!(c), colour!(d)])
    }
    /// Returns the spinor of the values `f(a, b)` for every pair of components of `self` and `other`. The loop is
    /// unrolled.
    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(Complex<T>, Complex<T>) -> Complex<T>) -> Self {
        let (x, y) = (self.0, other.0);
        macro_rules! colour {
            ($s:literal) => {
                Colour([f(x[$s].0[0], y[$s].0[0]), f(x[$s].0[1], y[$s].0[1]), f(x[$s].0[2], y[$s].0[2])])
            };
        }
        DiracSpinor([colour!(0), colour!(1), colour!(2), colour!(3)])
    }
}

impl<T: Real> Mul<Scaled<T>> for Su3<T> {
    type Output = Scaled<T>;
    #[inline(always)]
    fn mul(self, h: Scaled<T>) -> Scaled<T> {
        let HalfSpinor([a, b]) = h.value;
        Scaled { value: HalfSpinor([self * a, self * b]), scale: h.scale }
    }
}
impl<T: Real> Scaled<T> {
    /// 0
    pub const ZERO: Self = Scaled { value: HalfSpinor::ZERO, scale: T::ONE };
    /// Returns the half spinor with `scale` multiplied by `factor`.
    #[inline(always)]
    pub fn times(self, factor: T) -> Self {
        Scaled { value: self.value, scale: self.scale * factor }
    }
}

/// Converts ψ from the DeGrand–Rossi basis to the device's basis: S ψ with S = (1/√2) (1 1; −1 1) between upper and
/// lower spins.
#[inline(always)]
pub fn to_device_basis<T: Real>(s: DiracSpinor<T>) -> DiracSpinor<T> {
    let [a, b, c, d] = s.0;
    let r = T::from_f64(core::f64::consts::FRAC_1_SQRT_2);
    let scaled = |v: Colour<T>| v.map(|x| x.scale(r));
    DiracSpinor([scaled(a + c), scaled(b + d), scaled(c - a), scaled(d - b)])
}
/// Converts ψ from the device's basis to the DeGrand–Rossi basis; it is the inverse of [`to_device_basis`].
#[inline(always)]
pub fn to_degrand_rossi<T: Real>(s: DiracSpinor<T>) -> DiracSpinor<T> {
    let [a, b, c, d] = s.0;
    let r = T::from_f64(core::f64::consts::FRAC_1_SQRT_2);
    let scaled = |v: Colour<T>| v.map(|x| x.scale(r));
    DiracSpinor([scaled(a - c), scaled(b - d), scaled(a + c), scaled(b + d)])
}
