//! Spin: projectors, and the two bases.
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

/// Four spins of colour.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct DiracSpinor<T>(pub [Colour<T>; 4]);

/// The two independent spin components that a projector leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfSpinor<T>(pub [Colour<T>; 2]);

/// A half spinor times a real factor that has not been multiplied yet: the norm of a fixed-point format, a boundary
/// sign, an anisotropy. It goes into the accumulating multiply-add, where it costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<T> {
    /// The half spinor before scaling.
    pub value: HalfSpinor<T>,
    /// The factor.
    pub scale: T,
}

/// One of the four directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Axis {
    X,
    Y,
    Z,
    T,
}

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sign {
    Plus,
    Minus,
}

/// P^{±μ} = 1 ± γ_μ. Used with constants only, so that it costs nothing at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projector {
    /// μ
    pub axis: Axis,
    /// ±
    pub sign: Sign,
}

/// Factor of the second operand in a sum of two components.
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
    /// Returns the complex conjugate.
    #[inline(always)]
    pub const fn conj(self) -> Self {
        match self {
            Phase::I => Phase::MinusI,
            Phase::MinusI => Phase::I,
            real => real,
        }
    }
    /// a + phase · b
    #[inline(always)]
    pub fn combine<T: Real>(self, a: Complex<T>, b: Complex<T>) -> Complex<T> {
        match self {
            Phase::One => a + b,
            Phase::MinusOne => a - b,
            Phase::I => complex(a.re - b.im, a.im + b.re),
            Phase::MinusI => complex(a.re + b.im, a.im - b.re),
        }
    }
    /// Returns a + phase · b for each colour component.
    #[inline(always)]
    fn combine_colours<T: Real>(self, Colour([a, b, c]): Colour<T>, Colour([d, e, f]): Colour<T>) -> Colour<T> {
        Colour([self.combine(a, d), self.combine(b, e), self.combine(c, f)])
    }
    /// a + scale · phase · b, fused.
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
    /// 1 + γ_μ
    #[inline(always)]
    pub const fn plus(axis: Axis) -> Self {
        Projector { axis, sign: Sign::Plus }
    }
    /// 1 − γ_μ
    #[inline(always)]
    pub const fn minus(axis: Axis) -> Self {
        Projector { axis, sign: Sign::Minus }
    }
    /// Returns P^{∓μ} = γ_5 P^{±μ} γ_5.
    #[inline(always)]
    pub const fn opposite(self) -> Self {
        match self.sign {
            Sign::Plus => Self::minus(self.axis),
            Sign::Minus => Self::plus(self.axis),
        }
    }
    /// Returns, for x, y and z, the lower spins that join the upper spins 0 and 1, and their phases: h_0 = ψ_0 + φ_0 ψ_{j0},
    /// h_1 = ψ_1 + φ_1 ψ_{j1}. The lower spins of P ψ are then φ_0* h_0 at j0 and φ_1* h_1 at j1.
    #[inline(always)]
    pub const fn partners(self) -> [(usize, Phase); 2] {
        use Phase::*;
        match (self.axis, self.sign) {
            (Axis::X, Sign::Plus) => [(3, I), (2, I)],
            (Axis::X, Sign::Minus) => [(3, MinusI), (2, MinusI)],
            (Axis::Y, Sign::Plus) => [(3, MinusOne), (2, One)],
            (Axis::Y, Sign::Minus) => [(3, One), (2, MinusOne)],
            (Axis::Z, Sign::Plus) => [(2, I), (3, MinusI)],
            (Axis::Z, Sign::Minus) => [(2, MinusI), (3, I)],
            // Not used: in t the projector keeps two spins.
            (Axis::T, _) => [(2, One), (3, One)],
        }
    }
    /// Returns, for t, the first of the two spins that the projector keeps, each doubled.
    #[inline(always)]
    pub const fn kept(self) -> usize {
        match self.sign {
            Sign::Plus => 0,
            Sign::Minus => 2,
        }
    }
}

impl<T: Real> HalfSpinor<T> {
    /// 0
    pub const ZERO: Self = HalfSpinor([Colour::ZERO; 2]);
}

impl<T: Real> DiracSpinor<T> {
    /// 0
    pub const ZERO: Self = DiracSpinor([Colour::ZERO; 4]);
    /// Returns the two independent components of P ψ.
    #[inline(always)]
    pub fn project(&self, p: Projector) -> Scaled<T> {
        let s = self.0;
        match p.axis {
            Axis::T => {
                let value = HalfSpinor([s[p.kept()], s[p.kept() + 1]]);
                Scaled { value, scale: T::ONE + T::ONE }
            }
            _ => {
                let [(j, f), (k, g)] = p.partners();
                let value = HalfSpinor([f.combine_colours(s[0], s[j]), g.combine_colours(s[1], s[k])]);
                Scaled { value, scale: T::ONE }
            }
        }
    }
    /// Adds the four-spin vector that `p` reconstructs from its two independent components.
    #[inline(always)]
    pub fn add_projected(&mut self, h: Scaled<T>, p: Projector) {
        let (HalfSpinor([a, b]), scale) = (h.value, h.scale);
        match p.axis {
            Axis::T => {
                Phase::One.add_to(&mut self.0[p.kept()], scale, a);
                Phase::One.add_to(&mut self.0[p.kept() + 1], scale, b);
            }
            _ => {
                let [(j, f), (k, g)] = p.partners();
                Phase::One.add_to(&mut self.0[0], scale, a);
                Phase::One.add_to(&mut self.0[1], scale, b);
                f.conj().add_to(&mut self.0[j], scale, a);
                g.conj().add_to(&mut self.0[k], scale, b);
            }
        }
    }
    /// Applies `f` to every component, unrolled.
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
    /// Applies `f` to every pair of components, unrolled.
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
    /// Multiplies the scale by another factor.
    #[inline(always)]
    pub fn times(self, factor: T) -> Self {
        Scaled { value: self.value, scale: self.scale * factor }
    }
}

/// ψ in the device's basis from ψ in the DeGrand–Rossi basis: S ψ with S = (1/√2) (1 1; −1 1) between upper and lower
/// spins.
#[inline(always)]
pub fn to_device_basis<T: Real>(s: DiracSpinor<T>) -> DiracSpinor<T> {
    let [a, b, c, d] = s.0;
    let r = T::from_f64(core::f64::consts::FRAC_1_SQRT_2);
    let scaled = |v: Colour<T>| v.map(|x| x.scale(r));
    DiracSpinor([scaled(a + c), scaled(b + d), scaled(c - a), scaled(d - b)])
}
/// Returns the inverse of [`to_device_basis`].
#[inline(always)]
pub fn to_degrand_rossi<T: Real>(s: DiracSpinor<T>) -> DiracSpinor<T> {
    let [a, b, c, d] = s.0;
    let r = T::from_f64(core::f64::consts::FRAC_1_SQRT_2);
    let scaled = |v: Colour<T>| v.map(|x| x.scale(r));
    DiracSpinor([scaled(a - c), scaled(b - d), scaled(a + c), scaled(b + d)])
}
