//! X†Y of two blocks of vectors on a GPU's tensor cores.
//!
//! In double precision, tensor cores multiply 16 × 4 by 4 × 8 numbers from compute capability 9.0 on, and 8 × 4 by 4 × 8
//! numbers before. This family is therefore compiled for both. An element of a product has the same terms in both cases, but
//! GPUs of different architectures may round their sums differently.
use crate::Reduction;
use crate::block::Gram;
use crate::storage::SiteFormat;
#[cfg(target_arch = "nvptx64")]
use crate::{algebra::Complex, storage::SiteValue};

/// Inner products of [`Gram`] for at most 16 vectors x and 16 vectors y. On a GPU, tensor cores compute them in double
/// precision: for four sites and one component at a time, a warp multiplies all y by all x*, so that each vector is
/// read once.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct GramOfWarps(pub Gram);
impl GramOfWarps {
    /// Maximum number of vectors x, and maximum number of vectors y. A warp computes a product of this size for any
    /// number of vectors.
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
// SAFETY: the tile of thread 4 b + a is the one that has a and b in Gram, since y_j is in row j / 2 + 8 (j mod 2), and x_i in
// column i mod 2 + 2 (i / 4) of the block (i / 2) mod 2; threads hold the elements of the product defined for mma.
#[cfg(target_arch = "nvptx64")]
unsafe impl<F: SiteFormat> crate::device::WarpSum<F> for GramOfWarps {
    #[inline(always)]
    fn rhs(&self, lane: u32) -> u32 {
        let (a, b) = (lane % 4, lane / 4);
        let known = 4 * a <= self.0.last_x && 2 * b <= self.0.last_y;
        if known { a * self.0.along.get() + b } else { u32::MAX }
    }
    #[inline(always)]
    unsafe fn warp(&self, sums: [f64; 16], i: u32, n: u32, lane: u32) -> [f64; 16] {
        let Gram { x, y, last_x, last_y, .. } = &self.0;
        let (row, site) = (lane / 4, lane % 4);
        let [first_x, first_y] = [4 * (row / 2) + row % 2, 2 * row];
        // `re` and `im` are the real and imaginary parts of the sums for the two blocks of vectors x.
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

/// C + A B, with 16 × 4 elements of A, 4 × 8 of B and 16 × 8 of C. Thread 4 r + c of the warp has A at (r, c) and (r + 8, c), B
/// at (c, r), and C at (r, 2 c), (r, 2 c + 1), (r + 8, 2 c), (r + 8, 2 c + 1).
#[cfg(all(target_arch = "nvptx64", feature = "sm_90"))]
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

/// C + A B with the only shape before compute capability 9.0, which has 8 × 8 elements of C: the upper half of C, then the
/// lower half. A thread has the same elements as with the larger shape.
#[cfg(all(target_arch = "nvptx64", not(feature = "sm_90")))]
#[inline(always)]
fn mma([p, q, r, s]: [f64; 4], [a0, a1]: [f64; 2], b: f64) -> [f64; 4] {
    let half = |mut even: f64, mut odd: f64, a: f64| {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}}}, {{{2}}}, {{{3}}}, {{{0}, {1}}};",
                inout(reg64) even, inout(reg64) odd, in(reg64) a, in(reg64) b,
                options(nomem, nostack)
            );
        }
        [even, odd]
    };
    let ([p, q], [r, s]) = (half(p, q, a0), half(r, s, a1));
    [p, q, r, s]
}

crate::kernels! { FAMILY = "gram_of_warps" also for "sm_90";
    warps GRAM_OF_WARPS "gram_of_warps": [GramOfWarps] => spinors, colours;
}
