//! Products of blocks of vectors for block solvers: X†Y, and X times a small matrix. A block is a matrix with a vector in each
//! column.
//!
//! Vectors are read several times, by neighbouring blocks of threads at nearly the same time, so that all reads but the first
//! come from the second-level cache. Larger tiles would need fewer reads, but their sums and vectors must fit into registers.
use crate::algebra::Complex;
use crate::field::Field;
use crate::lattice::Divisor;
use crate::memory::Global;
use crate::multi_rhs::each_rhs;
use crate::storage::{Element, SiteFormat, SiteValue};
use crate::{FermionKind, Format, Kernel, Precision, Reduction};

/// Size of a tile of [`Gram`]: number of vectors x, then number of vectors y.
pub const GRAM_TILE: [usize; 2] = [4, 2];

/// Inner products (x_i, y_j) of all pairs of vectors of two blocks, in tiles of 4 × 2 pairs. A launch has tiles in
/// place of right-hand sides: with C tiles along j, tile a C + b has i = 4 a … 4 a + 3 and j = 2 b, 2 b + 1. The values
/// of a tile are real and imaginary parts; j runs fastest. If a tile extends past the last vector, the last vector
/// takes the place of the missing ones.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Gram {
    /// x
    pub x: Field,
    /// Vectors y; they may be the vectors x.
    pub y: Field,
    /// Index of the last vector x, counted from 0.
    pub last_x: u32,
    /// Index of the last vector y, counted from 0.
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

/// View of a table of complex numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Coefficients {
    base: Global,
}

impl Coefficients {
    /// Creates a view of the table at `base`.
    ///
    /// # Safety
    /// The table stays at `base` while a kernel runs that holds the view or a copy of it, and has the numbers for all sites and
    /// right-hand sides of the launch.
    pub unsafe fn new(base: *mut u8) -> Self {
        Coefficients { base: Global(base) }
    }
    /// Returns number `k` of the table. Nothing may write it while the kernel runs.
    #[inline(always)]
    unsafe fn at<T: Element>(&self, k: u32) -> Complex<T> {
        unsafe { T::of_array(self.base, k as usize) }
    }
}

/// Block update y_j ← y_j + Σ_i x_i a_ij, or y_j ← Σ_i x_i a_ij without reading the old y. In place of a right-hand
/// side, each call computes [`outputs`](Self::outputs) of the vectors y_j, and reads each x_i once for all of them.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BlockUpdate {
    /// x
    pub x: Field,
    /// Vectors y, which must not be the vectors x.
    pub y: Field,
    /// Table of the coefficients a_ij; a_ij has the index i N + j.
    pub a: Coefficients,
    /// N
    pub count: u32,
    /// 1 to add to y, 0 to overwrite y without reading it.
    pub add: u32,
}
impl BlockUpdate {
    /// Returns the number of vectors y_j that a call computes: as many as fit into registers together with a vector x.
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
                // Past the last y_j, the call computes the last y_j again and does not store it.
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
