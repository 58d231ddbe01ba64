//! Linear algebra with several vectors at once, for solvers that keep a Krylov space.
use crate::algebra::Complex;
use crate::field::Field;
use crate::per_side::PerSide;
use crate::storage::{Double, Fp16, Half, Single, SiteFormat, SiteValue, Spinors};
use crate::{Kernel, Reduction};

/// (x_k, y) for four x_k: real and imaginary parts, one after the other.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiDot<F: SiteFormat> {
    /// x_k
    pub x: [Field<F>; 4],
    /// y
    pub y: Field<F>,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction for MultiDot<F> {
    const NAME: &'static [&'static str] = &["multi_dot", F::KIND, F::NAME];
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe {
            let y = self.y.load(i, rhs);
            let with = |x: &Field<F>| x.load(i, rhs).dot(y);
            let [a, b, c, d] = [with(&self.x[0]), with(&self.x[1]), with(&self.x[2]), with(&self.x[3])];
            [a.re, a.im, b.re, b.im, c.re, c.im, d.re, d.im]
        }
    }
}

/// y ← y + Σ_k a_k x_k with four x_k.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiAxpy<F: SiteFormat> {
    /// x_k
    pub x: [Field<F>; 4],
    /// a_k
    pub a: [PerSide<Complex<F::Real>>; 4],
    /// y
    pub y: Field<F>,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel for MultiAxpy<F> {
    const NAME: &'static [&'static str] = &["multi_axpy", F::KIND, F::NAME];
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let mut y = self.y.load_own(i, rhs);
            macro_rules! add {
                ($($k:literal)*) => {$(
                    let a = self.a[$k].at(rhs);
                    y = self.x[$k].load(i, rhs).pairs(y, |x, y| a.mul_add(x, y));
                )*};
            }
            add!(0 1 2 3);
            self.y.store(i, rhs, &y);
        }
    }
}

crate::entry! { INSTANCES of "krylov":
    reduce "krylov" multi_dot_spinor_double: MultiDot<Spinors<Double>>, registers 0;
    reduce "krylov" multi_dot_spinor_single: MultiDot<Spinors<Single>>, registers 0;
    reduce "krylov" multi_dot_spinor_half: MultiDot<Spinors<Half>>, registers 0;
    reduce "krylov" multi_dot_spinor_fp16: MultiDot<Spinors<Fp16>>, registers 0;
    kernel "krylov" multi_axpy_spinor_double: MultiAxpy<Spinors<Double>>, registers 0;
    kernel "krylov" multi_axpy_spinor_single: MultiAxpy<Spinors<Single>>, registers 0;
    kernel "krylov" multi_axpy_spinor_half: MultiAxpy<Spinors<Half>>, registers 0;
    kernel "krylov" multi_axpy_spinor_fp16: MultiAxpy<Spinors<Fp16>>, registers 0;
}
