//! Blocks of vectors taken as matrices with a vector in each column: X†Y, and X times a small matrix. Block solvers are
//! made of these.
//!
//! Vectors are read several times, by neighbouring blocks of threads at nearly the same time, so that all but the first
//! come from the second-level cache. Larger tiles would read less often; their sums and vectors have to fit into registers.
use crate::algebra::Complex;
use crate::field::Field;
use crate::lattice::Divisor;
use crate::memory::{Access, Global};
use crate::sides::each_side;
use crate::storage::{Element, SiteFormat, SiteValue};
use crate::{FermionKind, Format, Kernel, Precision, Reduction};

/// Pairs of vectors in a tile of [`Gram`]: so many x, so many y.
pub const GRAM_TILE: [usize; 2] = [4, 2];

/// (x_i, y_j) of all pairs of two blocks, in tiles of 4 × 2 pairs. A tile takes the place of a right-hand side: tile
/// a C + b, with C tiles along j, has i = 4 a … 4 a + 3 and j = 2 b, 2 b + 1. Its values are real and imaginary parts, j
/// running fastest. Where a tile reaches beyond the last vector, that one stands in for those that are not there.
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
        let y = |k: u32| unsafe { self.y.load::<F>(i, (first_y + k).min(self.last_y)) };
        let (left, right) = (y(0), y(1));
        let row = |k: u32| {
            let x = unsafe { self.x.load::<F>(i, (first_x + k).min(self.last_x)) };
            let (left, right) = (x.dot(left), x.dot(right));
            [left.re, left.im, right.re, right.im]
        };
        let ([a, b, c, d], [e, f, g, h], [j, k, l, m], [n, o, p, q]) = (row(0), row(1), row(2), row(3));
        [a, b, c, d, e, f, g, h, j, k, l, m, n, o, p, q]
    }
}

/// [`Gram`] of at most 16 x and 16 y, on a GPU as products of matrices on its tensor cores, in double precision: for four
/// sites and one component at a time, a warp multiplies all y with all x*. So each vector is read once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GramOfWarps(pub Gram);
impl GramOfWarps {
    /// So many x and y there may be: the product that a warp has, however many there are.
    pub const MOST: usize = 16;
}
// SAFETY: as for Gram.
unsafe impl<F: SiteFormat> Reduction<F> for GramOfWarps {
    type Values = [f64; 16];
    const BLOCKS: u32 = 264;
    const WARPS: bool = true;
    #[inline(always)]
    unsafe fn site(&self, i: u32, tile: u32) -> [f64; 16] {
        unsafe { Reduction::<F>::site(&self.0, i, tile) }
    }
}
// SAFETY: the tile of thread 4 b + a is the one that has a and b in Gram, since y_j is in row j / 2 + 8 (j mod 2), and x_i
// in column i mod 2 + 2 (i / 4) of the block (i / 2) mod 2; threads have elements of the product as mma's definition says.
#[cfg(target_arch = "nvptx64")]
unsafe impl<F: SiteFormat> crate::device::WarpSum<F> for GramOfWarps {
    #[inline(always)]
    fn side(&self, lane: u32) -> u32 {
        let (a, b) = (lane % 4, lane / 4);
        let known = 4 * a <= self.0.last_x && 2 * b <= self.0.last_y;
        if known { a * self.0.along.get() + b } else { u32::MAX }
    }
    #[inline(always)]
    unsafe fn warp(&self, sums: [f64; 16], i: u32, n: u32, lane: u32) -> [f64; 16] {
        let Gram { x, y, last_x, last_y, .. } = &self.0;
        let (row, site) = (lane / 4, lane % 4);
        let [first_x, first_y] = [4 * (row / 2) + row % 2, 2 * row];
        // Blocks of columns: real and imaginary parts.
        let [a, b, c, d, e, f, g, h, j, k, l, m, o, p, q, r] = sums;
        let (mut re, mut im) = ([[a, e, c, g], [j, o, l, q]], [[b, f, d, h], [k, p, m, r]]);
        let mut step = 0;
        while step < 32 {
            let at = i + step + site;
            let inside = at < n;
            let at = at.min(n - 1);
            // SAFETY: the caller's promise.
            let four = unsafe {
                [
                    y.load::<F>(at, first_y.min(*last_y)),
                    y.load::<F>(at, (first_y + 1).min(*last_y)),
                    x.load::<F>(at, first_x.min(*last_x)),
                    x.load::<F>(at, (first_x + 2).min(*last_x)),
                ]
            };
            F::Value::visit(four, |[left, right, x0, x1]| {
                let [left, right] = [left, right].map(|y| if inside { y.cast::<f64>() } else { Complex::ZERO });
                let [x0, x1] = [x0, x1].map(|x| x.cast::<f64>());
                let (real, imaginary) = ([left.re, right.re], [left.im, right.im]);
                re[0] = mma(mma(re[0], real, x0.re), imaginary, x0.im);
                im[0] = mma(mma(im[0], imaginary, x0.re), real, -x0.im);
                re[1] = mma(mma(re[1], real, x1.re), imaginary, x1.im);
                im[1] = mma(mma(im[1], imaginary, x1.re), real, -x1.im);
            });
            step += 4;
        }
        let ([[a, e, c, g], [j, o, l, q]], [[b, f, d, h], [k, p, m, r]]) = (re, im);
        [a, b, c, d, e, f, g, h, j, k, l, m, o, p, q, r]
    }
}

/// C + A B, with 16 × 4 elements of A, 4 × 8 of B and 16 × 8 of C, as a warp has them: thread 4 r + c has A at (r, c) and
/// (r + 8, c), B at (c, r), and C at (r, 2 c), (r, 2 c + 1), (r + 8, 2 c), (r + 8, 2 c + 1).
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn mma([mut p, mut q, mut r, mut s]: [f64; 4], [a0, a1]: [f64; 2], b: f64) -> [f64; 4] {
    // SAFETY: registers only; all threads of the warp are here, for `WarpSum::warp` is called by all.
    unsafe {
        core::arch::asm!(
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}}}, {{{6}}}, {{{0}, {1}, {2}, {3}}};",
            inout(reg64) p, inout(reg64) q, inout(reg64) r, inout(reg64) s,
            in(reg64) a0, in(reg64) a1, in(reg64) b,
            options(nomem, nostack)
        );
    }
    [p, q, r, s]
}

/// A table of complex numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Coefficients {
    base: Global,
}

impl Coefficients {
    /// The table at `base`.
    ///
    /// # Safety
    /// The table lies there, for as long as a kernel that holds the view or a copy of it runs, with all
    /// sites and right-hand sides that such kernels are launched for.
    pub unsafe fn new(base: *mut u8) -> Self {
        Coefficients { base: Global(base) }
    }
    /// Number `k`; nothing may write it while the kernel runs.
    #[inline(always)]
    unsafe fn at<T: Element>(&self, k: u32) -> Complex<T> {
        unsafe { T::load(self.base, k as usize * T::BYTES, Access::Shared) }
    }
}

/// y_j ← y_j + Σ_i x_i a_ij, or the same without the old y, which is not read then. Instead of a right-hand side each
/// call has [`outputs`](Self::outputs) of the y_j, for which each x_i is read once.
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
    /// How many y_j a call computes: as many as registers hold beside an x.
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
            each_side!(k < N: {
                y[k] = unsafe { self.y.load_own::<F>(i, (first + k as u32).min(last)) };
            });
        }
        let mut row = 0;
        while row < self.count {
            let x = unsafe { self.x.load::<F>(i, row) };
            each_side!(k < N: {
                // Beyond the last y, numbers of the last one are computed again, and not written.
                let a = unsafe { self.a.at::<F::Real>(row * self.count + (first + k as u32).min(last)) };
                y[k] = x.pairs(y[k], |x, y| a.mul_add(x, y));
            });
            row += 1;
        }
        each_side!(k < N: {
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
    reduce GRAM "gram": [Gram] => spinors, colours;
    warps GRAM_OF_WARPS "gram_of_warps": [GramOfWarps] => spinors, colours;
    kernel BLOCK_UPDATE "block_update": [BlockUpdate] => spinors, colours;
}
