//! Linear algebra with several vectors at once, for solvers that keep a Krylov space.
use crate::field::Field;
use crate::per_rhs::ComplexPerRhs;
use crate::storage::{SiteFormat, SiteValue};
use crate::{Kernel, Reduction};

/// (x_k, y) for four x_k: real and imaginary parts, one after the other.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiDot {
    /// x_k
    pub x: [Field; 4],
    /// y
    pub y: Field,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for MultiDot {
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) -> [f64; 8] {
        unsafe {
            let y = self.y.load::<F>(i, rhs);
            let with = |x: &Field| x.load::<F>(i, rhs).dot(y);
            let [a, b, c, d] = [with(&self.x[0]), with(&self.x[1]), with(&self.x[2]), with(&self.x[3])];
            [a.re, a.im, b.re, b.im, c.re, c.im, d.re, d.im]
        }
    }
}

/// y ← y + Σ_k a_k x_k with four x_k.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiAxpy {
    /// x_k
    pub x: [Field; 4],
    /// a_k
    pub a: [ComplexPerRhs; 4],
    /// y
    pub y: Field,
}
// SAFETY: call (i, rhs) reads and writes element (i, rhs) only.
unsafe impl<F: SiteFormat> Kernel<F> for MultiAxpy {
    #[inline(always)]
    unsafe fn site(&self, i: u32, rhs: u32) {
        unsafe {
            let mut y = self.y.load_own::<F>(i, rhs);
            macro_rules! add {
                ($($k:literal)*) => {$(
                    let a = self.a[$k].at(rhs);
                    y = self.x[$k].load::<F>(i, rhs).pairs(y, |x, y| a.mul_add(x, y));
                )*};
            }
            add!(0 1 2 3);
            self.y.store::<F>(i, rhs, &y);
        }
    }
}

crate::kernels! { FAMILY = "krylov";
    reduce MULTI_DOT "multi_dot": [MultiDot] => spinors;
    kernel MULTI_AXPY "multi_axpy": [MultiAxpy] => spinors;
}
