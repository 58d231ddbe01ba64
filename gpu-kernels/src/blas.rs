//! Linear algebra on fields of one parity: whole iterations' worth of updates and sums in one pass over memory.
//!
//! Arithmetic is in the precision of the field, sums are in double. A kernel with coefficients is launched once per
//! right-hand side, because each has its own coefficients and finished ones are left alone.
use crate::algebra::Complex;
use crate::field::Field;
use crate::storage::{Double, Fp16, Half, Single, SiteFormat, SiteValue, Spinors};
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
    pub a: Complex<F::Real>,
    /// b
    pub b: Complex<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for Axpby<F> {
    const NAME: &'static [&'static str] = &["axpby", F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a, self.b);
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
    pub a: Complex<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction for AxpyNorm2<F> {
    const NAME: &'static [&'static str] = &["axpy_norm2", F::NAME];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let a = self.a;
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
    const NAME: &'static [&'static str] = &["norm2", F::NAME];
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
    const NAME: &'static [&'static str] = &["dot_norm2", F::NAME];
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

/// r ← b − r; returns ‖r‖².
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SubNorm2<F> {
    /// b
    pub b: Field<F>,
    /// r
    pub r: Field<F>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction for SubNorm2<F> {
    const NAME: &'static [&'static str] = &["sub_norm2", F::NAME];
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let (b, r) = (self.b.load(i, rhs), self.r.load_own(i, rhs));
            let r = b.pairs(r, |b, r| b - r);
            self.r.store(i, rhs, &r);
            [r.norm2()]
        }
    }
}

/// The two vector updates that end an iteration of CG: x ← x + a p, then p ← r + b p.
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
    pub a: Complex<F::Real>,
    /// b
    pub b: Complex<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for CgUpdate<F> {
    const NAME: &'static [&'static str] = &["cg_update", F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a, self.b);
            let (x, p, r) = (self.x.load_own(i, rhs), self.p.load_own(i, rhs), self.r.load(i, rhs));
            self.x.store(i, rhs, &p.pairs(x, |p, x| a.mul_add(p, x)));
            self.p.store(i, rhs, &p.pairs(r, |p, r| b.mul_add(p, r)));
        }
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
    pub alpha: Complex<F::Real>,
    /// ω
    pub omega: Complex<F::Real>,
    /// β
    pub beta: Complex<F::Real>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for BicgstabStep<F> {
    const NAME: &'static [&'static str] = &["bicgstab_step", F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (alpha, omega, beta) = (self.alpha, self.omega, self.beta);
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
pub struct Convert<F: SiteFormat, G> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<G>,
    /// f
    pub factor: F::Real,
}
// SAFETY: call (i, rhs) writes element (i, rhs) only.
unsafe impl<F: SiteFormat, G: SiteFormat> Kernel for Convert<F, G>
where
    F::Value: SiteValue<F::Real, Cast<G::Real> = G::Value>,
{
    const NAME: &'static [&'static str] = &["convert", F::NAME, G::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe { self.y.store(i, rhs, &self.x.load(i, rhs).each(|x| x.scale(self.factor)).cast::<G::Real>()) }
    }
}

/// y ← y + f x, with x in another precision, in the arithmetic of y.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Accumulate<F, G: SiteFormat> {
    /// x
    pub x: Field<F>,
    /// y
    pub y: Field<G>,
    /// f
    pub factor: G::Real,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat, G: SiteFormat> Kernel for Accumulate<F, G>
where
    F::Value: SiteValue<F::Real, Cast<G::Real> = G::Value>,
{
    const NAME: &'static [&'static str] = &["accumulate", F::NAME, G::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let x = self.x.load(i, rhs).cast::<G::Real>().each(|x| x.scale(self.factor));
            self.y.store(i, rhs, &x.pairs(self.y.load_own(i, rhs), |x, y| x + y));
        }
    }
}

crate::entry! { INSTANCES:
    kernel "blas_double" axpby_double: Axpby<Spinors<Double>>, registers 0;
    kernel "blas_single" axpby_single: Axpby<Spinors<Single>>, registers 0;
    kernel "blas_half" axpby_half: Axpby<Spinors<Half>>, registers 0;
    kernel "blas_fp16" axpby_fp16: Axpby<Spinors<Fp16>>, registers 0;
    reduce "blas_double" axpy_norm2_double: AxpyNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" axpy_norm2_single: AxpyNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" axpy_norm2_half: AxpyNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" axpy_norm2_fp16: AxpyNorm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" norm2_double: Norm2<Spinors<Double>>, registers 0;
    reduce "blas_single" norm2_single: Norm2<Spinors<Single>>, registers 0;
    reduce "blas_half" norm2_half: Norm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" norm2_fp16: Norm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" dot_norm2_double: DotNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" dot_norm2_single: DotNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" dot_norm2_half: DotNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" dot_norm2_fp16: DotNorm2<Spinors<Fp16>>, registers 0;
    reduce "blas_double" sub_norm2_double: SubNorm2<Spinors<Double>>, registers 0;
    reduce "blas_single" sub_norm2_single: SubNorm2<Spinors<Single>>, registers 0;
    reduce "blas_half" sub_norm2_half: SubNorm2<Spinors<Half>>, registers 0;
    reduce "blas_fp16" sub_norm2_fp16: SubNorm2<Spinors<Fp16>>, registers 0;
    kernel "blas_double" cg_update_double: CgUpdate<Spinors<Double>>, registers 0;
    kernel "blas_single" cg_update_single: CgUpdate<Spinors<Single>>, registers 0;
    kernel "blas_half" cg_update_half: CgUpdate<Spinors<Half>>, registers 0;
    kernel "blas_fp16" cg_update_fp16: CgUpdate<Spinors<Fp16>>, registers 0;
    kernel "blas_double" bicgstab_step_double: BicgstabStep<Spinors<Double>>, registers 0;
    kernel "blas_single" bicgstab_step_single: BicgstabStep<Spinors<Single>>, registers 0;
    kernel "blas_half" bicgstab_step_half: BicgstabStep<Spinors<Half>>, registers 0;
    kernel "blas_fp16" bicgstab_step_fp16: BicgstabStep<Spinors<Fp16>>, registers 0;
    kernel "convert" convert_double_double: Convert<Spinors<Double>, Spinors<Double>>, registers 0;
    kernel "convert" convert_double_single: Convert<Spinors<Double>, Spinors<Single>>, registers 0;
    kernel "convert" convert_double_half: Convert<Spinors<Double>, Spinors<Half>>, registers 0;
    kernel "convert" convert_single_double: Convert<Spinors<Single>, Spinors<Double>>, registers 0;
    kernel "convert" convert_single_single: Convert<Spinors<Single>, Spinors<Single>>, registers 0;
    kernel "convert" convert_single_half: Convert<Spinors<Single>, Spinors<Half>>, registers 0;
    kernel "convert" convert_half_double: Convert<Spinors<Half>, Spinors<Double>>, registers 0;
    kernel "convert" convert_half_single: Convert<Spinors<Half>, Spinors<Single>>, registers 0;
    kernel "convert" convert_half_half: Convert<Spinors<Half>, Spinors<Half>>, registers 0;
    kernel "convert" convert_double_fp16: Convert<Spinors<Double>, Spinors<Fp16>>, registers 0;
    kernel "convert" convert_single_fp16: Convert<Spinors<Single>, Spinors<Fp16>>, registers 0;
    kernel "convert" convert_half_fp16: Convert<Spinors<Half>, Spinors<Fp16>>, registers 0;
    kernel "convert" convert_fp16_double: Convert<Spinors<Fp16>, Spinors<Double>>, registers 0;
    kernel "convert" convert_fp16_single: Convert<Spinors<Fp16>, Spinors<Single>>, registers 0;
    kernel "convert" convert_fp16_half: Convert<Spinors<Fp16>, Spinors<Half>>, registers 0;
    kernel "convert" convert_fp16_fp16: Convert<Spinors<Fp16>, Spinors<Fp16>>, registers 0;
    kernel "convert" accumulate_double_double: Accumulate<Spinors<Double>, Spinors<Double>>, registers 0;
    kernel "convert" accumulate_double_single: Accumulate<Spinors<Double>, Spinors<Single>>, registers 0;
    kernel "convert" accumulate_double_half: Accumulate<Spinors<Double>, Spinors<Half>>, registers 0;
    kernel "convert" accumulate_single_double: Accumulate<Spinors<Single>, Spinors<Double>>, registers 0;
    kernel "convert" accumulate_single_single: Accumulate<Spinors<Single>, Spinors<Single>>, registers 0;
    kernel "convert" accumulate_single_half: Accumulate<Spinors<Single>, Spinors<Half>>, registers 0;
    kernel "convert" accumulate_half_double: Accumulate<Spinors<Half>, Spinors<Double>>, registers 0;
    kernel "convert" accumulate_half_single: Accumulate<Spinors<Half>, Spinors<Single>>, registers 0;
    kernel "convert" accumulate_half_half: Accumulate<Spinors<Half>, Spinors<Half>>, registers 0;
    kernel "convert" accumulate_double_fp16: Accumulate<Spinors<Double>, Spinors<Fp16>>, registers 0;
    kernel "convert" accumulate_single_fp16: Accumulate<Spinors<Single>, Spinors<Fp16>>, registers 0;
    kernel "convert" accumulate_half_fp16: Accumulate<Spinors<Half>, Spinors<Fp16>>, registers 0;
    kernel "convert" accumulate_fp16_double: Accumulate<Spinors<Fp16>, Spinors<Double>>, registers 0;
    kernel "convert" accumulate_fp16_single: Accumulate<Spinors<Fp16>, Spinors<Single>>, registers 0;
    kernel "convert" accumulate_fp16_half: Accumulate<Spinors<Fp16>, Spinors<Half>>, registers 0;
    kernel "convert" accumulate_fp16_fp16: Accumulate<Spinors<Fp16>, Spinors<Fp16>>, registers 0;
}
