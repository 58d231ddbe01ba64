//! Linear algebra on fields of one parity. One pass over memory does several updates and sums of an iteration.
//!
//! Arithmetic is in the precision of the field, and sums are in double precision. Each right-hand side has coefficients of its
//! own, so that one launch serves up to [`MAX_RHS_WITH_NUMBERS`](crate::per_rhs::MAX_RHS_WITH_NUMBERS) of them.
use crate::algebra::{Complex, Real};
use crate::field::Field;
use crate::format::Between;
use crate::lattice::is_first;
use crate::per_rhs::{ComplexPerRhs, PerRhs};
use crate::storage::{NumberFormat, SiteFormat, SiteKind, SiteValue, Sites};
use crate::sums::DeviceSums;
use crate::{Kernel, Reduction};

/// y ← a x + b y; y is not read if b = 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Axpby {
    /// x
    pub x: Field,
    /// y
    pub y: Field,
    /// a
    pub a: ComplexPerRhs,
    /// b
    pub b: ComplexPerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for Axpby {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a.at(rhs), self.b.at(rhs));
            let x = self.x.load::<F>(i, rhs).each(|x| a * x);
            // For b = 0 the old y is not read, because it may hold anything, even NaN.
            let sum =
                if b == Complex::ZERO { x } else { x.pairs(self.y.load_own::<F>(i, rhs), |x, y| b.mul_add(y, x)) };
            self.y.store::<F>(i, rhs, &sum);
        }
    }
}

/// Step of minimum residual: z ← z + α r, t ← r − α t.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MrUpdate {
    /// r
    pub r: Field,
    /// z
    pub z: Field,
    /// t
    pub t: Field,
    /// α
    pub alpha: ComplexPerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for MrUpdate {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let alpha = self.alpha.at(rhs);
            let r = self.r.load::<F>(i, rhs);
            let z = r.pairs(self.z.load_own::<F>(i, rhs), |r, z| alpha.mul_add(r, z));
            self.z.store::<F>(i, rhs, &z);
            let t = r.pairs(self.t.load_own::<F>(i, rhs), |r, t| (-alpha).mul_add(t, r));
            self.t.store::<F>(i, rhs, &t);
        }
    }
}

/// Kernel that computes y ← a x + y and returns ‖y‖².
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AxpyNorm2 {
    /// x
    pub x: Field,
    /// y
    pub y: Field,
    /// a
    pub a: ComplexPerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction<F> for AxpyNorm2 {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let a = self.a.at(rhs);
            let (x, y) = (self.x.load::<F>(i, rhs), self.y.load_own::<F>(i, rhs));
            let y = x.pairs(y, |x, y| a.mul_add(x, y));
            self.y.store::<F>(i, rhs, &y);
            [y.norm2()]
        }
    }
}

/// ‖x‖²
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Norm2 {
    /// x
    pub x: Field,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for Norm2 {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe { [self.x.load::<F>(i, rhs).norm2()] }
    }
}

/// Reduction that returns \[Re (x, y), Im (x, y), ‖x‖²\] with (x, y) = Σ x* y.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct DotNorm2 {
    /// x
    pub x: Field,
    /// y
    pub y: Field,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for DotNorm2 {
    type Values = [f64; 3];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 3] {
        unsafe {
            let (x, y) = (self.x.load::<F>(i, rhs), self.y.load::<F>(i, rhs));
            let dot = x.dot(y);
            [dot.re, dot.im, x.norm2()]
        }
    }
}

/// Kernel that computes y ← x + a y with real a and returns ‖y‖². y is not read if a = 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct XpayNorm2 {
    /// x
    pub x: Field,
    /// y
    pub y: Field,
    /// a
    pub a: PerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction<F> for XpayNorm2 {
    type Values = [f64; 1];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 1] {
        unsafe {
            let (a, x) = (self.a.at::<F::Real>(rhs), self.x.load::<F>(i, rhs));
            let y =
                if a == F::Real::ZERO { x } else { x.pairs(self.y.load_own::<F>(i, rhs), |x, y| y.scale_add(a, x)) };
            self.y.store::<F>(i, rhs, &y);
            [y.norm2()]
        }
    }
}

/// CG step for the residual r along p, with t = A p and a curvature (p, t) that is known only on the device. The step
/// is t ← r − α t, the next residual, with α = ρ / (p, t). If the curvature is not a positive number, or if ρ = 0, t ←
/// r. Returns \[‖t‖², (p, t)\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgResidualUpdate {
    /// r
    pub r: Field,
    /// t = A p before the launch, and the next residual after it.
    pub t: Field,
    /// Squared norms ρ = ‖r‖², one for each right-hand side.
    pub rho: PerRhs,
    /// Curvature (p, t) for each right-hand side, as sums on the device.
    pub sums: DeviceSums,
    /// Number of right-hand sides that precede those of this launch in `sums`.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction<F> for CgResidualUpdate {
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 2] {
        unsafe {
            let [curvature, _, _] = self.sums.dot(self.first + rhs);
            let alpha = self.rho.at::<f64>(rhs) / curvature;
            let moves = curvature > 0.0 && alpha > 0.0 && alpha * 0.0 == 0.0;
            let r = self.r.load::<F>(i, rhs);
            let minus = F::Real::from_f64(-alpha);
            // If no step is taken, t is not read: NaN or infinity in t would change r even with the factor 0.
            let t = if moves { r.pairs(self.t.load_own::<F>(i, rhs), |r, t| t.scale_add(minus, r)) } else { r };
            self.t.store::<F>(i, rhs, &t);
            [t.norm2(), if is_first(i) { curvature } else { 0.0 }]
        }
    }
}

/// The two vector updates that end an iteration of CG, with real a and b: x ← x + a p, then p ← r + b p.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgUpdate {
    /// x
    pub x: Field,
    /// p
    pub p: Field,
    /// r
    pub r: Field,
    /// a
    pub a: PerRhs,
    /// b
    pub b: PerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for CgUpdate {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (a, b) = (self.a.at::<F::Real>(rhs), self.b.at::<F::Real>(rhs));
            let (x, p, r) = (self.x.load_own::<F>(i, rhs), self.p.load_own::<F>(i, rhs), self.r.load::<F>(i, rhs));
            self.x.store::<F>(i, rhs, &p.pairs(x, |p, x| p.scale_add(a, x)));
            self.p.store::<F>(i, rhs, &p.pairs(r, |p, r| p.scale_add(b, r)));
        }
    }
}

/// The vector updates of [`CgUpdate`] for N systems that share r, which is read once. They end an iteration of
/// multi-shift CG.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ShiftUpdate<const N: usize> {
    /// r
    pub r: Field,
    /// Solution x of each system.
    pub x: [Field; N],
    /// Search direction p of each system.
    pub p: [Field; N],
    /// Coefficient a of each system.
    pub a: [PerRhs; N],
    /// Coefficient b of each system.
    pub b: [PerRhs; N],
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat, const N: usize> Kernel<F> for ShiftUpdate<N> {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        let r = unsafe { self.r.load::<F>(i, rhs) };
        macro_rules! system {
            ($($k:literal)*) => {$(if $k < N {
                let (a, b) = (self.a[$k].at::<F::Real>(rhs), self.b[$k].at::<F::Real>(rhs));
                unsafe {
                    let (x, p) = (self.x[$k].load_own::<F>(i, rhs), self.p[$k].load_own::<F>(i, rhs));
                    self.x[$k].store::<F>(i, rhs, &p.pairs(x, |p, x| p.scale_add(a, x)));
                    self.p[$k].store::<F>(i, rhs, &p.pairs(r, |p, r| p.scale_add(b, r)));
                }
            })*};
        }
        system!(0 1 2 3);
    }
}

/// The vector updates that end an iteration of BiCGstab: x ← x + α p + ω s, r ← s − ω t, p ← r + β (p − ω v). The field
/// `r` holds s before the launch.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BicgstabStep {
    /// x
    pub x: Field,
    /// Vector s before the launch, and residual r after it.
    pub r: Field,
    /// p
    pub p: Field,
    /// v
    pub v: Field,
    /// t
    pub t: Field,
    /// α
    pub alpha: ComplexPerRhs,
    /// ω
    pub omega: ComplexPerRhs,
    /// β
    pub beta: ComplexPerRhs,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for BicgstabStep {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let (alpha, omega, beta) = (self.alpha.at(rhs), self.omega.at(rhs), self.beta.at(rhs));
            let back = -omega;
            let (x, p, s) = (self.x.load_own::<F>(i, rhs), self.p.load_own::<F>(i, rhs), self.r.load_own::<F>(i, rhs));
            let x = p.pairs(x, |p, x| alpha.mul_add(p, x));
            self.x.store::<F>(i, rhs, &s.pairs(x, |s, x| omega.mul_add(s, x)));
            let r = self.t.load::<F>(i, rhs).pairs(s, |t, s| back.mul_add(t, s));
            self.r.store::<F>(i, rhs, &r);
            let shifted = self.v.load::<F>(i, rhs).pairs(p, |v, p| back.mul_add(v, p));
            self.p.store::<F>(i, rhs, &shifted.pairs(r, |p, r| beta.mul_add(p, r)));
        }
    }
}

/// Conversion between precisions: y ← f x or y ← y + f x, where x and y can have different precisions.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Convert {
    /// x
    pub x: Field,
    /// y
    pub y: Field,
    /// f
    pub factor: PerRhs,
    /// Operation: 0 for y ← f x in the arithmetic of x, rounded once if f is a power of two; 1 for y ← y + f x in the
    /// arithmetic of y.
    pub add: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<K: SiteKind, P: NumberFormat, Q: NumberFormat> Kernel<Between<Sites<K, P>, Sites<K, Q>>> for Convert {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let x = self.x.load::<Sites<K, P>>(i, rhs);
            let y = if self.add == 0 {
                let factor = self.factor.at(rhs);
                K::cast::<P::Real, Q::Real>(x.each(|x| x.scale(factor)))
            } else {
                let factor = self.factor.at(rhs);
                let x = K::cast::<P::Real, Q::Real>(x).each(|x| x.scale(factor));
                x.pairs(self.y.load_own::<Sites<K, Q>>(i, rhs), |x, y| x + y)
            };
            self.y.store::<Sites<K, Q>>(i, rhs, &y);
        }
    }
}

crate::kernels! { FAMILY = "blas";
    kernel AXPBY "axpby": [Axpby, in lanes] => spinors, colours;
    kernel MR_UPDATE "mr_update": [MrUpdate, in lanes] => spinors;
    reduce AXPY_NORM2 "axpy_norm2": [AxpyNorm2, in lanes] => spinors, colours;
    reduce NORM2 "norm2": [Norm2, in lanes] => spinors, colours;
    reduce DOT_NORM2 "dot_norm2": [DotNorm2, in lanes] => spinors, colours;
    reduce XPAY_NORM2 "xpay_norm2": [XpayNorm2, in lanes] => spinors, colours;
    kernel CG_UPDATE "cg_update": [CgUpdate, in lanes] => spinors, colours;
    kernel BICGSTAB_STEP "bicgstab_step": [BicgstabStep, in lanes] => spinors;
    reduce CG_RESIDUAL_UPDATE "cg_residual_update": [CgResidualUpdate, in lanes] => colours;
    kernel SHIFT_UPDATE_2 "shift_update_2": [ShiftUpdate<2>, in lanes] => colours;
    kernel SHIFT_UPDATE_4 "shift_update_4": [ShiftUpdate<4>, in lanes] => colours;
    kernel CONVERT "convert": [Convert] => spinor_pairs, colour_pairs;
}
