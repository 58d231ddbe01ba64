//! Blocks of vectors taken as matrices with a vector in each column: X†Y, and X times a small matrix, the building blocks of
//! block solvers.
//!
//! Vectors are read several times, by neighbouring blocks of threads at nearly the same time, so that all but the first
//! come from the second-level cache. Larger tiles would read less often; their sums and vectors have to fit into registers.
use crate::algebra::Complex;
use crate::field::Field;
use crate::lattice::Divisor;
use crate::memory::Global;
use crate::multi_rhs::each_rhs;
use crate::storage::{Element, SiteFormat, SiteValue};
use crate::{FermionKind, Format, Kernel, Precision, Reduction};

/// Size of a tile of [`Gram`]: number of x and number of y.
pub const GRAM_TILE: [usize; 2] = [4, 2];

/// (x_i, y_j) of all pairs of two blocks, in tiles of 4 × 2 pairs. A tile takes the place of a right-hand side: tile a C + b,
/// with C tiles along j, has i = 4 a … 4 a + 3 and j = 2 b, 2 b + 1. Its values are real and imaginary parts, j running
/// fastest. Where a tile extends past the last vector, that vector is used in place of the missing ones.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Gram {
    /// x
    pub x: Field,
    /// y. May be x.
    pub y: Field,
    /// Number of the last x.
    pub last_x: u32,
    /// Number of the last y.
    pub last_y: u32,
    /// C
    pub along: Divisor,
}
// SAFETY: reads only.
unsafe impl<F: SiteFormat> Reduction<F> for Gram {
    type Values = [f64; 16];
    const THREADS: u32 = 128;
    const BLOCKS: u32 = 2112;
    #[inline(always)]
    unsafe fn site(&self, i: u32, tile: u32) -> [f64; 16] {
        let (a, b) = self.along.divide(tile);
        let (first_x, first_y) = (GRAM_TILE[0] as u32 * a, GRAM_TILE[1] as u32 * b);
        macro_rules! column {
            ($k:literal) => {
                unsafe { self.y.load::<F>(i, (first_y + $k).min(self.last_y)) }
            };
        }
        let (left, right) = (column!(0), column!(1));
        macro_rules! row {
            ($k:literal) => {{
                let x = unsafe { self.x.load::<F>(i, (first_x + $k).min(self.last_x)) };
                let (left, right) = (x.dot(left), x.dot(right));
                [left.re, left.im, right.re, right.im]
            }};
        }
        let ([a, b, c, d], [e, f, g, h], [j, k, l, m], [n, o, p, q]) = (row!(0), row!(1), row!(2), row!(3));
        [a, b, c, d, e, f, g, h, j, k, l, m, n, o, p, q]
    }
}

/// A table of complex numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Coefficients {
    base: Global,
}

impl Coefficients {
    /// Creates a view of the table at `base`.
    ///
    /// # Safety
    /// The table lies there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Coefficients { base: Global(base) }
    }
    /// Returns number `k`; nothing may write it while the kernel runs.
    #[inline(always)]
    unsafe fn at<T: Element>(&self, k: u32) -> Complex<T> {
        unsafe { T::of_array(self.base, k as usize) }
    }
}

/// y_j ← y_j + Σ_i x_i a_ij, or y_j ← Σ_i x_i a_ij, which does not read the old y. Instead of a right-hand side each call has
/// [`outputs`](Self::outputs) of the y_j, for which each x_i is read once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BlockUpdate {
    /// x
    pub x: Field,
    /// y, other vectors than x.
    pub y: Field,
    /// a_ij is number i N + j.
    pub a: Coefficients,
    /// N
    pub count: u32,
    /// 1: y is added to; 0: it is not read.
    pub add: u32,
}
impl BlockUpdate {
    /// Returns the number of y_j that a call computes: as many as fit into registers beside an x.
    pub const fn outputs(format: Format) -> u32 {
        match (format.kind, format.precision) {
            (Some(FermionKind::Wilson), Some(Precision::Double)) => 2,
            _ => 4,
        }
    }

    #[inline(always)]
    unsafe fn compute<F: SiteFormat, const N: usize>(&self, i: u32, first: u32) {
        let last = self.count - 1;
        let mut y = [F::Value::ZERO; N];
        if self.add != 0 {
            each_rhs!(k < N: {
                y[k] = unsafe { self.y.load_own::<F>(i, (first + k as u32).min(last)) };
            });
        }
        let mut row = 0;
        while row < self.count {
            let x = unsafe { self.x.load::<F>(i, row) };
            each_rhs!(k < N: {
                // Past the last y, numbers of the last one are computed again, and not written.
                let a = unsafe { self.a.at::<F::Real>(row * self.count + (first + k as u32).min(last)) };
                y[k] = x.pairs(y[k], |x, y| a.mul_add(x, y));
            });
            row += 1;
        }
        each_rhs!(k < N: {
            if first + (k as u32) < self.count {
                unsafe { self.y.store::<F>(i, first + k as u32, &y[k]) };
            }
        });
    }
}
// SAFETY: call (i, group) writes elements (i, j) of its own y_j only, and reads no others of y.
unsafe impl<F: SiteFormat> Kernel<F> for BlockUpdate {
    #[inline(always)]
    unsafe fn site(&self, i: u32, group: u32) {
        unsafe {
            match const { Self::outputs(F::FORMAT) } {
                2 => self.compute::<F, 2>(i, 2 * group),
                _ => self.compute::<F, 4>(i, 4 * group),
            }
        }
    }
}

crate::kernels! { FAMILY = "block";
    reduce GRAM "gram": [Gram, in lanes] => spinors, colours;
    kernel BLOCK_UPDATE "block_update": [BlockUpdate, in lanes] => spinors, colours;
}
