//! Linear algebra on fields of one parity. One pass over memory does several updates and sums of an iteration.
//!
//! Arithmetic is in the precision of the field, and sums are in double precision. Each right-hand side has coefficients of its
//! own, so that one launch serves up to [`MAX_RHS_WITH_NUMBERS`](crate::per_rhs::MAX_RHS_WITH_NUMBERS) of them.
use crate::algebra::{Complex, Real, complex};
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

/// Squared norms ρ = ‖r‖² of the residuals at the start of an iteration of CG, one for each right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgRho {
    /// Squared norms known to the host; 0 for a right-hand side that takes no step.
    pub given: PerRhs,
    /// Sums of the [`CgResidualUpdate`] of the previous iteration, if they replace the given norms.
    pub kept: DeviceSums,
}

impl CgRho {
    #[inline(always)]
    unsafe fn at(&self, rhs: u32, first: u32) -> f64 {
        let given = self.given.at::<f64>(rhs);
        if given == 0.0 || !self.kept.exist() {
            return given;
        }
        let [norm2, _] = unsafe { self.kept.first(first + rhs) };
        norm2
    }
}

/// Returns α = ρ / (p, t) of CG, or 0 if the quotient is not positive and finite.
#[inline(always)]
fn cg_alpha(rho: f64, curvature: f64) -> f64 {
    let alpha = rho / curvature;
    if curvature > 0.0 && alpha > 0.0 && is_finite(alpha) { alpha } else { 0.0 }
}
#[inline(always)]
fn is_finite(x: f64) -> bool {
    x * 0.0 == 0.0
}

/// CG step for the residual r along p, with t = A p and a curvature (p, (A + σ) p) that is known only on the device. The step
/// is t ← r − α (t + σ p), the next residual, with α = ρ / (p, (A + σ) p). If α is not positive and finite, t ← r. Returns \[‖t‖², (p, (A + σ) p)\].
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgResidualUpdate {
    /// r
    pub r: Field,
    /// t = A p before the launch, and the next residual after it.
    pub t: Field,
    /// p; it is not read if σ = 0.
    pub p: Field,
    /// Shift σ that t does not contain yet.
    pub shift: f64,
    /// ρ
    pub rho: CgRho,
    /// Sums on the device for each right-hand side, from which the curvature follows.
    pub sums: DeviceSums,
    /// Curvature among the sums: 0 if it is their first number, with σ = 0; 1 if it is ‖y‖² + σ ‖p‖², for A = M†M and sums of
    /// y = M p, which must be eight unless σ = 0.
    pub squared: u32,
    /// Number of right-hand sides that precede those of this launch in all sums.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Reduction<F> for CgResidualUpdate {
    type Values = [f64; 2];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 2] {
        unsafe {
            let [re, _, norm2] = self.sums.dot(self.first + rhs);
            let mut curvature = if self.squared == 0 { re } else { norm2 };
            if self.shift != 0.0 {
                let [.., p_p, _] = self.sums.first::<8>(self.first + rhs);
                curvature += self.shift * p_p;
            }
            let alpha = cg_alpha(self.rho.at(rhs, self.first), curvature);
            let r = self.r.load::<F>(i, rhs);
            let minus = F::Real::from_f64(-alpha);
            // If no step is taken, t is not read: NaN or infinity in t would change r even with the factor 0.
            let mut t =
                if alpha > 0.0 { r.pairs(self.t.load_own::<F>(i, rhs), |r, t| t.scale_add(minus, r)) } else { r };
            if self.shift != 0.0 && alpha > 0.0 {
                let minus = F::Real::from_f64(-alpha * self.shift);
                t = self.p.load::<F>(i, rhs).pairs(t, |p, t| p.scale_add(minus, t));
            }
            self.t.store::<F>(i, rhs, &t);
            [t.norm2(), if is_first(i) { curvature } else { 0.0 }]
        }
    }
}

/// The updates of [`CgUpdate`] with coefficients that are known only on the device: x ← x + α p, then p ← r + β p, with α =
/// ρ / (p, A p) and β = ρ'/ρ. If α is not positive and finite, x does not change; if β is not finite, p ← r.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CgUpdateKept {
    /// x
    pub x: Field,
    /// p
    pub p: Field,
    /// Next residual r.
    pub r: Field,
    /// ρ
    pub rho: CgRho,
    /// Sums of the [`CgResidualUpdate`] of this iteration: ρ' and (p, A p).
    pub next: DeviceSums,
    /// Number of right-hand sides that precede those of this launch in all sums.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for CgUpdateKept {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let rho = self.rho.at(rhs, self.first);
            let [next, curvature] = self.next.first(self.first + rhs);
            let (alpha, beta) = (cg_alpha(rho, curvature), next / rho);
            let (r, p) = (self.r.load::<F>(i, rhs), self.p.load_own::<F>(i, rhs));
            if alpha > 0.0 {
                let a = F::Real::from_f64(alpha);
                self.x.store::<F>(i, rhs, &p.pairs(self.x.load_own::<F>(i, rhs), |p, x| p.scale_add(a, x)));
            }
            let b = F::Real::from_f64(beta);
            let p = if is_finite(beta) { p.pairs(r, |p, r| p.scale_add(b, r)) } else { r };
            self.p.store::<F>(i, rhs, &p);
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

/// Products ρ = (r̃, r) at the start of an iteration of BiCGstab, one for each right-hand side.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ShadowRho {
    /// Products known to the host; 0 for a right-hand side that takes no step.
    pub given: ComplexPerRhs,
    /// Eight sums of the second half of the previous iteration, if they replace the given products: ρ = (r̃, s) − ω (r̃, t).
    pub kept: DeviceSums,
}

impl ShadowRho {
    #[inline(always)]
    unsafe fn at(&self, rhs: u32, first: u32) -> Complex<f64> {
        let given = self.given.at::<f64>(rhs);
        if given == Complex::ZERO || !self.kept.exist() {
            return given;
        }
        unsafe { HalfStep::of(self.kept, first + rhs).rho }
    }
}

/// Scalars that follow from the eight sums over s, t and r̃ of an iteration of BiCGstab.
struct HalfStep {
    /// ω = (t, s)/‖t‖², or 0 if the quotient is not finite.
    omega: Complex<f64>,
    /// ρ = (r̃, s) − ω (r̃, t) of the next residual.
    rho: Complex<f64>,
    /// Whether all sums are finite.
    finite: bool,
}

impl HalfStep {
    #[inline(always)]
    unsafe fn of(sums: DeviceSums, j: u32) -> Self {
        let [s_t_re, s_t_im, w_s_re, w_s_im, w_t_re, w_t_im, s_s, t_t] = unsafe { sums.first(j) };
        let omega = complex_or_zero(complex(s_t_re / t_t, -s_t_im / t_t));
        let rho = (-omega).mul_add(complex(w_t_re, w_t_im), complex(w_s_re, w_s_im));
        let finite = is_finite(s_t_re + s_t_im + w_s_re + w_s_im + w_t_re + w_t_im + s_s + t_t);
        HalfStep { omega, rho, finite }
    }
}

/// Returns z, or 0 if a part of z is not finite.
#[inline(always)]
fn complex_or_zero(z: Complex<f64>) -> Complex<f64> {
    if is_finite(z.re) && is_finite(z.im) { z } else { Complex::ZERO }
}
/// Returns a / b, or 0 if the quotient is not finite.
#[inline(always)]
fn quotient(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    let product = b.conj_mul_add(a, Complex::ZERO);
    complex_or_zero(complex(product.re / b.norm_sqr(), product.im / b.norm_sqr()))
}
#[inline(always)]
fn rounded<T: Real>(z: Complex<f64>) -> Complex<T> {
    complex(T::from_f64(z.re), T::from_f64(z.im))
}

/// First half of an iteration of BiCGstab, with sums that are known only on the device: r ← r − α v, which is s, with α = ρ
/// / (r̃, v). If α is not finite, r does not change.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BicgstabHalfKept {
    /// Residual r before the launch, and s after it.
    pub r: Field,
    /// v
    pub v: Field,
    /// ρ
    pub rho: ShadowRho,
    /// Sums on the device that contain (r̃, v).
    pub shadow_v: DeviceSums,
    /// Number of right-hand sides that precede those of this launch in all sums.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for BicgstabHalfKept {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let [re, im, _] = self.shadow_v.dot(self.first + rhs);
            let alpha = quotient(self.rho.at(rhs, self.first), complex(re, im));
            if alpha == Complex::ZERO {
                return;
            }
            let back = rounded::<F::Real>(-alpha);
            let r = self.v.load::<F>(i, rhs).pairs(self.r.load_own::<F>(i, rhs), |v, r| back.mul_add(v, r));
            self.r.store::<F>(i, rhs, &r);
        }
    }
}

/// The updates of [`BicgstabStep`] with coefficients that are known only on the device: α = ρ / (r̃, v), ω = (t, s)/‖t‖² and β
/// = (ρ'/ρ)(α/ω). Coefficients that are not finite are 0. If a sum over s, t and r̃ is not finite, no vector changes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BicgstabStepKept {
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
    /// ρ
    pub rho: ShadowRho,
    /// Sums on the device that contain (r̃, v).
    pub shadow_v: DeviceSums,
    /// Eight sums over s, t and r̃.
    pub sums: DeviceSums,
    /// Number of right-hand sides that precede those of this launch in all sums.
    pub first: u32,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for BicgstabStepKept {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let rho = self.rho.at(rhs, self.first);
            let [re, im, _] = self.shadow_v.dot(self.first + rhs);
            let HalfStep { omega, rho: next, finite } = HalfStep::of(self.sums, self.first + rhs);
            if !finite || rho == Complex::ZERO {
                return;
            }
            let alpha = quotient(rho, complex(re, im));
            let beta = complex_or_zero(quotient(next, rho) * quotient(alpha, omega));
            let (alpha, back) = (rounded::<F::Real>(alpha), rounded::<F::Real>(-omega));
            let (omega, beta) = (rounded::<F::Real>(omega), rounded::<F::Real>(beta));
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
    kernel BICGSTAB_HALF_KEPT "bicgstab_half_kept": [BicgstabHalfKept, in lanes] => spinors;
    kernel BICGSTAB_STEP_KEPT "bicgstab_step_kept": [BicgstabStepKept, in lanes] => spinors;
    reduce CG_RESIDUAL_UPDATE "cg_residual_update": [CgResidualUpdate, in lanes] => spinors, colours;
    kernel CG_UPDATE_KEPT "cg_update_kept": [CgUpdateKept, in lanes] => spinors, colours;
    kernel SHIFT_UPDATE_2 "shift_update_2": [ShiftUpdate<2>, in lanes] => spinors, colours;
    kernel SHIFT_UPDATE_4 "shift_update_4": [ShiftUpdate<4>, in lanes] => spinors, colours;
    kernel CONVERT "convert": [Convert] => spinor_pairs, colour_pairs;
}
