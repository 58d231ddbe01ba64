//! Linear algebra on fields of one parity: whole iterations' worth of updates and sums in one pass over memory.
//!
//! Arithmetic is in the precision of the field, sums are in double. Each right-hand side has coefficients of its own, so
//! that one launch serves up to [`MOST_SIDES`](crate::per_side::MOST_SIDES) of them.
use crate::algebra::{Complex, Real};
use crate::field::Field;
use crate::per_side::PerSide;
use crate::storage::{
    Colours, Double, FourSpins, Fp16, Half, OneSpin, Precision, Single, SiteFormat, SiteKind, SiteValue, Sites, Spinors,
};
use crate::sums::DeviceSums;
use crate::{Kernel, Reduction};

/// y ← a x + b y; y is not read where b = 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Axpby<F: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<F>,
    /// a
    pub a: PerSide<Complex<F::Real>>,
    /// b
    pub b: PerSide<Complex<F::Real>>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for Axpby<F> {
    const NAME: &'static [&'static str] = &["axpby", F::KIND, F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a.at(rhs), self.b.at(rhs));
            let x = self.x.load(i, rhs).each(|x| a * x);
            // Without b the old y is not read: it may be anything, even NaN.
            let sum = if b == Complex::ZERO { x } else { x.pairs(self.y.load_own(i, rhs), |x, y| b.mul_add(y, x)) };
            self.y.store(i, rhs, &sum);
        }
    }
}

/// y ← a x + y; returns ‖y‖².
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AxpyNorm2<F: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<F>,
    /// a
    pub a: PerSide<Complex<F::Real>>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction for AxpyNorm2<F> {
    const NAME: &'static [&'static str] = &["axpy_norm2", F::KIND, F::NAME];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let a = self.a.at(rhs);
            let (x, y) = (self.x.load(i, rhs), self.y.load_own(i, rhs));
            let y = x.pairs(y, |x, y| a.mul_add(x, y));
            self.y.store(i, rhs, &y);
            [y.norm2()]
        }
    }
}

/// ‖x‖²
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Norm2<F> {
    /// x
    pub x: Field<F>,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction for Norm2<F> {
    const NAME: &'static [&'static str] = &["norm2", F::KIND, F::NAME];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe { [self.x.load(i, rhs).norm2()] }
    }
}

/// (x, y) = Σ x* y and ‖x‖²: \[Re, Im, ‖x‖²\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DotNorm2<F> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<F>,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction for DotNorm2<F> {
    const NAME: &'static [&'static str] = &["dot_norm2", F::KIND, F::NAME];
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe {
            let (x, y) = (self.x.load(i, rhs), self.y.load(i, rhs));
            let dot = x.dot(y);
            [dot.re, dot.im, x.norm2()]
        }
    }
}

/// y ← x + a y with real a; returns ‖y‖². y is not read where a = 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct XpayNorm2<F: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<F>,
    /// a
    pub a: PerSide<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction for XpayNorm2<F> {
    const NAME: &'static [&'static str] = &["xpay_norm2", F::KIND, F::NAME];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let (a, x) = (self.a.at(rhs), self.x.load(i, rhs));
            let y = if a == F::Real::ZERO { x } else { x.pairs(self.y.load_own(i, rhs), |x, y| y.scale_add(a, x)) };
            self.y.store(i, rhs, &y);
            [y.norm2()]
        }
    }
}

/// A step of CG down from r along p with t = A p, whose curvature (p, t) nobody but the device knows yet:
/// t ← r − α t, the next residual, with α = ρ / (p, t). Returns \[‖t‖², (p, t)\]. Where the curvature is not a positive
/// number, or ρ = 0, there is no step: t ← r.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Descent<F: SiteFormat> {
    /// r
    pub r: Field<F>,
    /// t before, the next residual after.
    pub t: Field<F>,
    /// ρ = ‖r‖²
    pub rho: PerSide<f64>,
    /// (p, t)
    pub sums: DeviceSums,
    /// Right-hand sides in front of these among the sums.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction for Descent<F> {
    const NAME: &'static [&'static str] = &["descent", F::KIND, F::NAME];
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 2] {
        unsafe {
            let [curvature, _, _] = self.sums.dot(self.first + rhs);
            let alpha = self.rho.at(rhs) / curvature;
            let moves = curvature > 0.0 && alpha > 0.0 && alpha * 0.0 == 0.0;
            let r = self.r.load(i, rhs);
            let minus = F::Real::from_f64(-alpha);
            // A number that has gone astray must not come near r, not even times 0.
            let t = if moves { r.pairs(self.t.load_own(i, rhs), |r, t| t.scale_add(minus, r)) } else { r };
            self.t.store(i, rhs, &t);
            [t.norm2(), if i == 0 { curvature } else { 0.0 }]
        }
    }
}

/// The two vector updates that end an iteration of CG, with real a and b: x ← x + a p, then p ← r + b p.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgUpdate<F: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// p
    pub p: Field<F>,
    /// r
    pub r: Field<F>,
    /// a
    pub a: PerSide<F::Real>,
    /// b
    pub b: PerSide<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for CgUpdate<F> {
    const NAME: &'static [&'static str] = &["cg_update", F::KIND, F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a.at(rhs), self.b.at(rhs));
            let (x, p, r) = (self.x.load_own(i, rhs), self.p.load_own(i, rhs), self.r.load(i, rhs));
            self.x.store(i, rhs, &p.pairs(x, |p, x| p.scale_add(a, x)));
            self.p.store(i, rhs, &p.pairs(r, |p, r| p.scale_add(b, r)));
        }
    }
}

/// [`CgUpdate`] of N systems that share r, which is read once: what ends an iteration of multi-shift CG.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ShiftUpdate<F: SiteFormat, const N: usize> {
    /// r
    pub r: Field<F>,
    /// x of each system
    pub x: [Field<F>; N],
    /// p of each system
    pub p: [Field<F>; N],
    /// a of each system
    pub a: [PerSide<F::Real>; N],
    /// b of each system
    pub b: [PerSide<F::Real>; N],
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat, const N: usize> Kernel for ShiftUpdate<F, N> {
    const NAME: &'static [&'static str] = &[if N == 2 { "shift_update_2" } else { "shift_update_4" }, F::KIND, F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let r = unsafe { self.r.load(i, rhs) };
        macro_rules! system {
            ($($k:literal)*) => {$(if $k < N {
                let (a, b) = (self.a[$k].at(rhs), self.b[$k].at(rhs));
                unsafe {
                    let (x, p) = (self.x[$k].load_own(i, rhs), self.p[$k].load_own(i, rhs));
                    self.x[$k].store(i, rhs, &p.pairs(x, |p, x| p.scale_add(a, x)));
                    self.p[$k].store(i, rhs, &p.pairs(r, |p, r| p.scale_add(b, r)));
                }
            })*};
        }
        system!(0 1 2 3);
    }
}

/// The updates that end an iteration of BiCGstab: x ← x + α p + ω s, r = s − ω t (s is kept in r), p ← r + β (p − ω v).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BicgstabStep<F: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// s before, r after
    pub r: Field<F>,
    /// p
    pub p: Field<F>,
    /// v
    pub v: Field<F>,
    /// t
    pub t: Field<F>,
    /// α
    pub alpha: PerSide<Complex<F::Real>>,
    /// ω
    pub omega: PerSide<Complex<F::Real>>,
    /// β
    pub beta: PerSide<Complex<F::Real>>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for BicgstabStep<F> {
    const NAME: &'static [&'static str] = &["bicgstab_step", F::KIND, F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (alpha, omega, beta) = (self.alpha.at(rhs), self.omega.at(rhs), self.beta.at(rhs));
            let (x, p, s) = (self.x.load_own(i, rhs), self.p.load_own(i, rhs), self.r.load_own(i, rhs));
            let x = p.pairs(x, |p, x| alpha.mul_add(p, x));
            self.x.store(i, rhs, &s.pairs(x, |s, x| omega.mul_add(s, x)));
            let r = self.t.load(i, rhs).pairs(s, |t, s| (-omega).mul_add(t, s));
            self.r.store(i, rhs, &r);
            let shifted = self.v.load(i, rhs).pairs(p, |v, p| (-omega).mul_add(v, p));
            self.p.store(i, rhs, &shifted.pairs(r, |p, r| beta.mul_add(p, r)));
        }
    }
}

/// y ← f x in another precision, rounded once: f is a power of two.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Convert<K, P: Precision, Q> {
    /// x
    pub x: Field<Sites<K, P>>,
    /// y
    pub y: Field<Sites<K, Q>>,
    /// f
    pub factor: PerSide<P::Real>,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl<K: SiteKind, P: Precision, Q: Precision> Kernel for Convert<K, P, Q> {
    const NAME: &'static [&'static str] = &["convert", K::NAME, P::NAME, Q::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let factor = self.factor.at(rhs);
            let x = self.x.load(i, rhs).each(|x| x.scale(factor));
            self.y.store(i, rhs, &K::cast::<P::Real, Q::Real>(x));
        }
    }
}

/// y ← y + f x, with x in another precision, in the arithmetic of y.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Accumulate<K, P, Q: Precision> {
    /// x
    pub x: Field<Sites<K, P>>,
    /// y
    pub y: Field<Sites<K, Q>>,
    /// f
    pub factor: PerSide<Q::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<K: SiteKind, P: Precision, Q: Precision> Kernel for Accumulate<K, P, Q> {
    const NAME: &'static [&'static str] = &["accumulate", K::NAME, P::NAME, Q::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let factor = self.factor.at(rhs);
            let x = K::cast::<P::Real, Q::Real>(self.x.load(i, rhs)).each(|x| x.scale(factor));
            self.y.store(i, rhs, &x.pairs(self.y.load_own(i, rhs), |x, y| x + y));
        }
    }
}

crate::entry! { INSTANCES of "blas":
    kernel "blas_double" axpby_spinor_double: Axpby<Spinors<Double>>, registers 0;
    kernel "blas_single" axpby_spinor_single: Axpby<Spinors<Single>>, registers 0;
    kernel "blas_half" axpby_spinor_half: Axpby<Spinors<Half>>, registers 0;
    kernel "blas_fp16" axpby_spinor_fp16: Axpby<Spinors<Fp16>>, registers 0;
    reduce "blas_double" axpy_norm2_spinor_double: AxpyNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" axpy_norm2_spinor_single: AxpyNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" axpy_norm2_spinor_half: AxpyNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" axpy_norm2_spinor_fp16: AxpyNorm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" norm2_spinor_double: Norm2<Spinors<Double>>, registers 0;
    reduce "blas_single" norm2_spinor_single: Norm2<Spinors<Single>>, registers 0;
    reduce "blas_half" norm2_spinor_half: Norm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" norm2_spinor_fp16: Norm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" dot_norm2_spinor_double: DotNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" dot_norm2_spinor_single: DotNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" dot_norm2_spinor_half: DotNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" dot_norm2_spinor_fp16: DotNorm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" xpay_norm2_spinor_double: XpayNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" xpay_norm2_spinor_single: XpayNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" xpay_norm2_spinor_half: XpayNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" xpay_norm2_spinor_fp16: XpayNorm2<Spinors<Fp16>>, registers 0;
    kernel "blas_double" cg_update_spinor_double: CgUpdate<Spinors<Double>>, registers 0;
    kernel "blas_single" cg_update_spinor_single: CgUpdate<Spinors<Single>>, registers 0;
    kernel "blas_half" cg_update_spinor_half: CgUpdate<Spinors<Half>>, registers 0;
    kernel "blas_fp16" cg_update_spinor_fp16: CgUpdate<Spinors<Fp16>>, registers 0;
    kernel "blas_double" bicgstab_step_spinor_double: BicgstabStep<Spinors<Double>>, registers 0;
    kernel "blas_single" bicgstab_step_spinor_single: BicgstabStep<Spinors<Single>>, registers 0;
    kernel "blas_half" bicgstab_step_spinor_half: BicgstabStep<Spinors<Half>>, registers 0;
    kernel "blas_fp16" bicgstab_step_spinor_fp16: BicgstabStep<Spinors<Fp16>>, registers 0;
    kernel "blas_colour" axpby_colour_double: Axpby<Colours<Double>>, registers 0;
    kernel "blas_colour" axpby_colour_single: Axpby<Colours<Single>>, registers 0;
    kernel "blas_colour" axpby_colour_half: Axpby<Colours<Half>>, registers 0;
    reduce "blas_colour" axpy_norm2_colour_double: AxpyNorm2<Colours<Double>>, registers 0;
    reduce "blas_colour" axpy_norm2_colour_single: AxpyNorm2<Colours<Single>>, registers 0;
    reduce "blas_colour" axpy_norm2_colour_half: AxpyNorm2<Colours<Half>>, registers 0;
    reduce "blas_colour" norm2_colour_double: Norm2<Colours<Double>>, registers 0;
    reduce "blas_colour" norm2_colour_single: Norm2<Colours<Single>>, registers 0;
    reduce "blas_colour" norm2_colour_half: Norm2<Colours<Half>>, registers 0;
    reduce "blas_colour" dot_norm2_colour_double: DotNorm2<Colours<Double>>, registers 0;
    reduce "blas_colour" dot_norm2_colour_single: DotNorm2<Colours<Single>>, registers 0;
    reduce "blas_colour" dot_norm2_colour_half: DotNorm2<Colours<Half>>, registers 0;
    reduce "blas_colour" xpay_norm2_colour_double: XpayNorm2<Colours<Double>>, registers 0;
    reduce "blas_colour" xpay_norm2_colour_single: XpayNorm2<Colours<Single>>, registers 0;
    reduce "blas_colour" xpay_norm2_colour_half: XpayNorm2<Colours<Half>>, registers 0;
    reduce "blas_colour" descent_colour_double: Descent<Colours<Double>>, registers 0;
    reduce "blas_colour" descent_colour_single: Descent<Colours<Single>>, registers 0;
    reduce "blas_colour" descent_colour_half: Descent<Colours<Half>>, registers 0;
    kernel "blas_colour" shift_update_2_colour_double: ShiftUpdate<Colours<Double>, 2>, registers 0;
    kernel "blas_colour" shift_update_2_colour_single: ShiftUpdate<Colours<Single>, 2>, registers 0;
    kernel "blas_colour" shift_update_2_colour_half: ShiftUpdate<Colours<Half>, 2>, registers 0;
    kernel "blas_colour" shift_update_4_colour_double: ShiftUpdate<Colours<Double>, 4>, registers 0;
    kernel "blas_colour" shift_update_4_colour_single: ShiftUpdate<Colours<Single>, 4>, registers 0;
    kernel "blas_colour" shift_update_4_colour_half: ShiftUpdate<Colours<Half>, 4>, registers 0;
    kernel "blas_colour" cg_update_colour_double: CgUpdate<Colours<Double>>, registers 0;
    kernel "blas_colour" cg_update_colour_single: CgUpdate<Colours<Single>>, registers 0;
    kernel "blas_colour" cg_update_colour_half: CgUpdate<Colours<Half>>, registers 0;
    kernel "convert" convert_spinor_double_double: Convert<FourSpins, Double, Double>, registers 0;
    kernel "convert" convert_spinor_double_single: Convert<FourSpins, Double, Single>, registers 0;
    kernel "convert" convert_spinor_double_half: Convert<FourSpins, Double, Half>, registers 0;
    kernel "convert" convert_spinor_double_fp16: Convert<FourSpins, Double, Fp16>, registers 0;
    kernel "convert" convert_spinor_single_double: Convert<FourSpins, Single, Double>, registers 0;
    kernel "convert" convert_spinor_single_single: Convert<FourSpins, Single, Single>, registers 0;
    kernel "convert" convert_spinor_single_half: Convert<FourSpins, Single, Half>, registers 0;
    kernel "convert" convert_spinor_single_fp16: Convert<FourSpins, Single, Fp16>, registers 0;
    kernel "convert" convert_spinor_half_double: Convert<FourSpins, Half, Double>, registers 0;
    kernel "convert" convert_spinor_half_single: Convert<FourSpins, Half, Single>, registers 0;
    kernel "convert" convert_spinor_half_half: Convert<FourSpins, Half, Half>, registers 0;
    kernel "convert" convert_spinor_half_fp16: Convert<FourSpins, Half, Fp16>, registers 0;
    kernel "convert" convert_spinor_fp16_double: Convert<FourSpins, Fp16, Double>, registers 0;
    kernel "convert" convert_spinor_fp16_single: Convert<FourSpins, Fp16, Single>, registers 0;
    kernel "convert" convert_spinor_fp16_half: Convert<FourSpins, Fp16, Half>, registers 0;
    kernel "convert" convert_spinor_fp16_fp16: Convert<FourSpins, Fp16, Fp16>, registers 0;
    kernel "convert_colour" convert_colour_double_double: Convert<OneSpin, Double, Double>, registers 0;
    kernel "convert_colour" convert_colour_double_single: Convert<OneSpin, Double, Single>, registers 0;
    kernel "convert_colour" convert_colour_double_half: Convert<OneSpin, Double, Half>, registers 0;
    kernel "convert_colour" convert_colour_single_double: Convert<OneSpin, Single, Double>, registers 0;
    kernel "convert_colour" convert_colour_single_single: Convert<OneSpin, Single, Single>, registers 0;
    kernel "convert_colour" convert_colour_single_half: Convert<OneSpin, Single, Half>, registers 0;
    kernel "convert_colour" convert_colour_half_double: Convert<OneSpin, Half, Double>, registers 0;
    kernel "convert_colour" convert_colour_half_single: Convert<OneSpin, Half, Single>, registers 0;
    kernel "convert_colour" convert_colour_half_half: Convert<OneSpin, Half, Half>, registers 0;
    kernel "convert" accumulate_spinor_double_double: Accumulate<FourSpins, Double, Double>, registers 0;
    kernel "convert" accumulate_spinor_double_single: Accumulate<FourSpins, Double, Single>, registers 0;
    kernel "convert" accumulate_spinor_double_half: Accumulate<FourSpins, Double, Half>, registers 0;
    kernel "convert" accumulate_spinor_double_fp16: Accumulate<FourSpins, Double, Fp16>, registers 0;
    kernel "convert" accumulate_spinor_single_double: Accumulate<FourSpins, Single, Double>, registers 0;
    kernel "convert" accumulate_spinor_single_single: Accumulate<FourSpins, Single, Single>, registers 0;
    kernel "convert" accumulate_spinor_single_half: Accumulate<FourSpins, Single, Half>, registers 0;
    kernel "convert" accumulate_spinor_single_fp16: Accumulate<FourSpins, Single, Fp16>, registers 0;
    kernel "convert" accumulate_spinor_half_double: Accumulate<FourSpins, Half, Double>, registers 0;
    kernel "convert" accumulate_spinor_half_single: Accumulate<FourSpins, Half, Single>, registers 0;
    kernel "convert" accumulate_spinor_half_half: Accumulate<FourSpins, Half, Half>, registers 0;
    kernel "convert" accumulate_spinor_half_fp16: Accumulate<FourSpins, Half, Fp16>, registers 0;
    kernel "convert" accumulate_spinor_fp16_double: Accumulate<FourSpins, Fp16, Double>, registers 0;
    kernel "convert" accumulate_spinor_fp16_single: Accumulate<FourSpins, Fp16, Single>, registers 0;
    kernel "convert" accumulate_spinor_fp16_half: Accumulate<FourSpins, Fp16, Half>, registers 0;
    kernel "convert" accumulate_spinor_fp16_fp16: Accumulate<FourSpins, Fp16, Fp16>, registers 0;
    kernel "convert_colour" accumulate_colour_double_double: Accumulate<OneSpin, Double, Double>, registers 0;
    kernel "convert_colour" accumulate_colour_double_single: Accumulate<OneSpin, Double, Single>, registers 0;
    kernel "convert_colour" accumulate_colour_double_half: Accumulate<OneSpin, Double, Half>, registers 0;
    kernel "convert_colour" accumulate_colour_single_double: Accumulate<OneSpin, Single, Double>, registers 0;
    kernel "convert_colour" accumulate_colour_single_single: Accumulate<OneSpin, Single, Single>, registers 0;
    kernel "convert_colour" accumulate_colour_single_half: Accumulate<OneSpin, Single, Half>, registers 0;
    kernel "convert_colour" accumulate_colour_half_double: Accumulate<OneSpin, Half, Double>, registers 0;
    kernel "convert_colour" accumulate_colour_half_single: Accumulate<OneSpin, Half, Single>, registers 0;
    kernel "convert_colour" accumulate_colour_half_half: Accumulate<OneSpin, Half, Half>, registers 0;
}
