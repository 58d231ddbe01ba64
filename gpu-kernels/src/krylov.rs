//! Linear algebra with several vectors at once, for solvers that keep a Krylov space.
use crate::field::Field;
use crate::lattice::Divisor;
use crate::per_rhs::ComplexPerRhs;
use crate::storage::{SiteFormat, SiteValue};
use crate::{Kernel, Reduction};

/// Inner products (x_k, y) of four vectors x_k with y: for each k, the real and the imaginary part.
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
            macro_rules! with {
                ($k:literal) => {
                    self.x[$k].load::<F>(i, rhs).dot(y)
                };
            }
            let [a, b, c, d] = [with!(0), with!(1), with!(2), with!(3)];
            [a.re, a.im, b.re, b.im, c.re, c.im, d.re, d.im]
        }
    }
}

/// Inner products (x_a, x_b), a ≤ b, of a few vectors, in groups of four values of a for one b. Right-hand side g N + j
/// of the launch computes group g for right-hand side j of the vectors. The groups of b = 0 come first, then those of b
/// = 1, and so on; for each b, they are in the order of a.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiGram {
    /// x_k
    pub x: [Field; MultiGram::MOST],
    /// N
    pub nrhs: Divisor,
    /// Index of the group of the first right-hand side of the launch.
    pub first: u32,
}

impl MultiGram {
    /// Maximum number of vectors x_k.
    pub const MOST: usize = 12;

    /// Returns b and the first a of a group.
    #[inline(always)]
    fn pair(group: u32) -> (u32, u32) {
        let (mut b, mut left) = (0, group);
        while left > b / 4 {
            left -= b / 4 + 1;
            b += 1;
        }
        (b, 4 * left)
    }
    #[inline(always)]
    fn vector(&self, k: u32) -> Field {
        let mut x = self.x[0];
        // Comparisons replace indexing, because indexing would put the arguments into the local memory of a GPU.
        macro_rules! choose {
            ($($k:literal)*) => {$(
                if k == $k {
                    x = self.x[$k];
                }
            )*};
        }
        choose!(1 2 3 4 5 6 7 8 9 10 11);
        x
    }
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for MultiGram {
    type Values = [f64; 8];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    #[inline(always)]
    unsafe fn site(&self, i: u32, which: u32) -> [f64; 8] {
        let (group, rhs) = self.nrhs.divide(which);
        let (b, a) = Self::pair(self.first + group);
        unsafe {
            let y = self.vector(b).load::<F>(i, rhs);
            macro_rules! with {
                ($k:literal) => {
                    self.vector(if a + $k < b { a + $k } else { b }).load::<F>(i, rhs).dot(y)
                };
            }
            let [a, b, c, d] = [with!(0), with!(1), with!(2), with!(3)];
            [a.re, a.im, b.re, b.im, c.re, c.im, d.re, d.im]
        }
    }
}

/// Kernel that computes y ← y + Σ_k a_k x_k with four vectors x_k.
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
    reduce MULTI_DOT "multi_dot": [MultiDot, in lanes] => spinors;
    reduce MULTI_GRAM "multi_gram": [MultiGram, in lanes] => spinors;
    kernel MULTI_AXPY "multi_axpy": [MultiAxpy, in lanes] => spinors;
}
