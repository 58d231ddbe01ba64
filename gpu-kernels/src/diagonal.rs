//! The site-diagonal part A of Wilson-like operators M = A − ½ D, and its combination with the hopping term at a site.
//!
//! This module and [`wilson`](crate::wilson) depend on each other: a diagonal determines how a [`WilsonDslash`] combines its
//! hops, and reads the other arguments of the kernel.
use crate::algebra::{Colour, Complex, DiracSpinor, Real, Scalar, complex};
use crate::field::Clover;
use crate::memory::opaque;
use crate::multi_rhs::each_rhs;
use crate::storage::{CloverFormat, HALF};
use crate::wilson::{Forms, WilsonDslash, add, linear};

/// Arguments of the diagonal term A or its inverse at the sites of one parity. Each kind of diagonal uses only the
/// fields that it needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DiagonalArguments {
    /// Kind of the diagonal: [`SiteDiagonal::CODE`].
    pub kind: u32,
    /// 1 if the diagonal is A⁻¹, which is applied to the hops; 0 if it is A.
    pub inverse: u32,
    /// Number a of a mass term, of a twisted mass term or of its inverse.
    pub mass: Scalar,
    /// Factor of iγ_5 in diagonal terms with a twisted mass.
    pub twist: Scalar,
    /// Blocks of a clover term or of its inverse, or E of the inverse of a twisted clover term.
    pub clover: Clover,
    /// Blocks F, which iγ_5 multiplies in the inverse of a twisted clover term.
    pub second: Clover,
}

impl DiagonalArguments {
    /// Returns the arguments of the diagonal term a, a real number.
    pub fn mass(a: f64) -> Self {
        // SAFETY: kernels for a mass do not use it, and views for other kernels are made with a clover term.
        let none = unsafe { Clover::none() };
        let (mass, twist) = (a.into(), 0.0.into());
        DiagonalArguments { kind: Mass::CODE, inverse: 0, mass, twist, clover: none, second: none }
    }
    /// Returns the arguments of the diagonal term a + iμγ_5, or of its inverse.
    pub fn twisted(a: f64, mu: f64, inverse: bool) -> Self {
        let norm = if inverse { a * a + mu * mu } else { 1.0 };
        let (mass, twist) = (a / norm, if inverse { -mu / norm } else { mu });
        let (kind, inverse) = (TwistedMass::CODE, u32::from(inverse));
        DiagonalArguments { kind, inverse, twist: twist.into(), ..Self::mass(mass) }
    }
    /// Returns the arguments of the diagonal term A + iμγ_5 with a clover term A.
    pub fn twisted_clover(clover: Clover, mu: f64) -> Self {
        DiagonalArguments { kind: TwistedClover::CODE, twist: mu.into(), ..Self::clover(clover, false) }
    }
    /// Returns the arguments of E + i `sign` γ_5 F, the inverse of a twisted clover term.
    pub fn twisted_clover_inverse([e, f]: [Clover; 2], sign: f64) -> Self {
        let kind = TwistedClover::CODE;
        DiagonalArguments { kind, twist: sign.into(), second: f, ..Self::clover(e, true) }
    }
    /// Returns the arguments of a clover term, or of its inverse if `inverse` is true.
    pub fn clover(clover: Clover, inverse: bool) -> Self {
        let (kind, inverse) = (CloverBlocks::CODE, u32::from(inverse));
        DiagonalArguments { kind, inverse, clover, ..Self::mass(1.0) }
    }
}

/// Kind of the diagonal term A, which acts within a site.
pub trait SiteDiagonal: 'static {
    /// Number that identifies the kind in [`DiagonalArguments`].
    const CODE: u32;
    /// Applies the stored A or A⁻¹ to N spinors.
    ///
    /// # Safety
    /// Site `i` exists.
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        i: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N];
    /// Returns the kernel's result and x at site `i` for N right-hand sides from `first` on.
    ///
    /// # Safety
    /// The contract of [`Dslash::compute`](crate::dslash::Dslash::compute) holds.
    #[inline(always)]
    unsafe fn combine<P: CloverFormat, W: Forms, const N: usize>(
        dslash: &WilsonDslash,
        i: u32,
        first: u32,
        hops: [DiracSpinor<P::Real>; N],
    ) -> [[DiracSpinor<P::Real>; 2]; N] {
        let inverse = W::INVERSE.unwrap_or(dslash.diagonal.inverse != 0);
        let b = P::Real::of(dslash.b);
        let mut results = [[DiracSpinor::ZERO; 2]; N];
        unsafe {
            if !inverse {
                // Computes A x + b D ψ. The opaque index keeps the compiler from merging the branches, which would need
                // the registers of both.
                let v = Self::apply::<P, N>(&dslash.diagonal, opaque(i), dslash.all_x::<P, N>(i, first));
                each_rhs!(k < N: {
                    results[k] = [add(v[k], b, hops[k]), DiracSpinor::ZERO];
                });
                return results;
            }
            let v = Self::apply::<P, N>(&dslash.diagonal, i, hops);
            if W::FIXED || dslash.sum != 0 {
                // x + b A⁻¹ D ψ
                each_rhs!(k < N: {
                    let x = dslash.x::<P>(i, first + k as u32);
                    results[k] = [add(x, b, v[k]), x];
                });
            } else {
                // A⁻¹ D ψ
                each_rhs!(k < N: {
                    results[k] = [v[k], DiracSpinor::ZERO];
                });
            }
        }
        results
    }
}

/// Diagonal term 4 + m, a number. Kernels without x compute D ψ alone.
pub struct Mass;
/// Diagonal term of Wilson-clover operators: the [clover term](crate::clover), or its exponential.
pub struct CloverBlocks;
/// Twisted mass term a + iμγ_5 with real numbers a and μ.
pub struct TwistedMass;
/// Clover term with a twisted mass, A + iμγ_5. Its inverse is E − iγ_5 F with Hermitian blocks E and F for each
/// chirality.
pub struct TwistedClover;
/// Diagonal term whose kind the arguments give at run time, for kernels that are not compiled for each kind.
pub struct AnyDiagonal;

impl SiteDiagonal for Mass {
    const CODE: u32 = 0;
    #[inline(always)]
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        _: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        let a = P::Real::of(arguments.mass);
        let mut out = [DiracSpinor::ZERO; N];
        each_rhs!(k < N: {
            out[k] = v[k].map(|z| z.scale(a));
        });
        out
    }
    /// D ψ, or a x + b D ψ.
    #[inline(always)]
    unsafe fn combine<P: CloverFormat, W: Forms, const N: usize>(
        dslash: &WilsonDslash,
        i: u32,
        first: u32,
        hops: [DiracSpinor<P::Real>; N],
    ) -> [[DiracSpinor<P::Real>; 2]; N] {
        let mut results = [[DiracSpinor::ZERO; 2]; N];
        if W::FIXED || dslash.sum != 0 {
            let (a, b) = (P::Real::of(dslash.diagonal.mass), P::Real::of(dslash.b));
            each_rhs!(k < N: {
                let x = unsafe { dslash.x::<P>(i, first + k as u32) };
                results[k] = [linear(a, x, b, hops[k]), x];
            });
        } else {
            each_rhs!(k < N: {
                results[k] = [hops[k], DiracSpinor::ZERO];
            });
        }
        results
    }
}

impl SiteDiagonal for CloverBlocks {
    const CODE: u32 = 1;
    #[inline(always)]
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        i: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        unsafe { arguments.clover.apply_all::<P, N>(i, v) }
    }
}

impl SiteDiagonal for TwistedMass {
    const CODE: u32 = 2;
    /// Applies a + iμγ_5. In the device's basis γ_5 exchanges upper and lower spins, with a sign.
    #[inline(always)]
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        _: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        let (a, mu) = (P::Real::of(arguments.mass), P::Real::of(arguments.twist));
        // Computes a x − iμ y, because γ_5 exchanges upper and lower spins: the component of γ_5 ψ at the spin of x is
        // −y.
        let twisted =
            |x: Complex<P::Real>, y: Complex<P::Real>| complex(a.mul_add(x.re, mu * y.im), a.mul_add(x.im, -mu * y.re));
        let mut out = [DiracSpinor::ZERO; N];
        each_rhs!(k < N: {
            let [p, q, r, s] = v[k].0;
            out[k] = DiracSpinor([p.zip(r, twisted), q.zip(s, twisted), r.zip(p, twisted), s.zip(q, twisted)]);
        });
        out
    }
}

impl SiteDiagonal for TwistedClover {
    const CODE: u32 = 3;
    /// Applies the block of one chirality after the other, like the plain clover term. γ_5 is 1 for the first chirality and −1
    /// for the second.
    #[inline(always)]
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        i: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        let twist = P::Real::of(arguments.twist);
        // Blocks are stored with a factor of ½, which the changes of basis need.
        let half = P::Real::from_f64(HALF);
        let (mut upper, mut lower, mut out) = ([[Colour::ZERO; 2]; N], [[Colour::ZERO; 2]; N], [DiracSpinor::ZERO; N]);
        macro_rules! chirality {
            ($chirality:literal, $spins:ident, $twist:expr, |$a:ident, $b:ident, $c:ident, $d:ident| $chiral:expr) => {
                let (block, scale) = unsafe { arguments.clover.load::<P>(i, $chirality) };
                each_rhs!(k < N: {
                    let [$a, $b, $c, $d] = v[k].0;
                    $spins[k] = scaled(block.times($chiral), scale);
                });
                if arguments.inverse != 0 {
                    let (block, scale) = unsafe { arguments.second.load::<P>(i, $chirality) };
                    each_rhs!(k < N: {
                        let [$a, $b, $c, $d] = v[k].0;
                        $spins[k] = twisted($spins[k], $twist * scale, block.times($chiral));
                    });
                } else {
                    each_rhs!(k < N: {
                        let [$a, $b, $c, $d] = v[k].0;
                        $spins[k] = twisted($spins[k], $twist * half, $chiral);
                    });
                }
            };
        }
        // The two spins are √2 times the upper or the lower spins of the DeGrand–Rossi basis.
        chirality!(0, upper, twist, |a, b, c, d| [a - c, b - d]);
        chirality!(1, lower, (-twist), |a, b, c, d| [a + c, b + d]);
        each_rhs!(k < N: {
            let ([a, b], [c, d]) = (upper[k], lower[k]);
            out[k] = DiracSpinor([a + c, b + d, c - a, d - b]);
        });
        out
    }
}

#[inline(always)]
fn scaled<T: Real>([a, b]: [Colour<T>; 2], scale: T) -> [Colour<T>; 2] {
    [a.map(|z| z.scale(scale)), b.map(|z| z.scale(scale))]
}

/// x + i t y
#[inline(always)]
fn twisted<T: Real>(x: [Colour<T>; 2], t: T, y: [Colour<T>; 2]) -> [Colour<T>; 2] {
    let twisted = |x: Complex<T>, y: Complex<T>| complex((-t).mul_add(y.im, x.re), t.mul_add(y.re, x.im));
    let ([a, b], [c, d]) = (x, y);
    [a.zip(c, twisted), b.zip(d, twisted)]
}

impl SiteDiagonal for AnyDiagonal {
    const CODE: u32 = u32::MAX;
    #[inline(always)]
    unsafe fn apply<P: CloverFormat, const N: usize>(
        arguments: &DiagonalArguments,
        i: u32,
        v: [DiracSpinor<P::Real>; N],
    ) -> [DiracSpinor<P::Real>; N] {
        unsafe {
            match arguments.kind {
                CloverBlocks::CODE => CloverBlocks::apply::<P, N>(arguments, i, v),
                TwistedMass::CODE => TwistedMass::apply::<P, N>(arguments, i, v),
                TwistedClover::CODE => TwistedClover::apply::<P, N>(arguments, i, v),
                _ => Mass::apply::<P, N>(arguments, i, v),
            }
        }
    }
    #[inline(always)]
    unsafe fn combine<P: CloverFormat, W: Forms, const N: usize>(
        dslash: &WilsonDslash,
        i: u32,
        first: u32,
        hops: [DiracSpinor<P::Real>; N],
    ) -> [[DiracSpinor<P::Real>; 2]; N] {
        unsafe {
            match dslash.diagonal.kind {
                CloverBlocks::CODE => CloverBlocks::combine::<P, W, N>(dslash, i, first, hops),
                TwistedMass::CODE => TwistedMass::combine::<P, W, N>(dslash, i, first, hops),
                TwistedClover::CODE => TwistedClover::combine::<P, W, N>(dslash, i, first, hops),
                _ => Mass::combine::<P, W, N>(dslash, i, first, hops),
            }
        }
    }
}
