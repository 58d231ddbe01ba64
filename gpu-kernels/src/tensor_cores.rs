//! Products of 16 × 8 complex elements on the tensor cores of a GPU. Tensor cores multiply numbers of 11 bits and add in single
//! precision.
//!
//! A number with more bits is split into the sum of two numbers of 11 bits. The product of the two small parts is left out, so
//! that the error is as small as rounding to single precision. The rounding of sums on tensor cores is not specified. Results
//! are therefore close to those of one right-hand side, but not bitwise equal.
use crate::algebra::Complex;
use core::arch::asm;

/// Elements of the sum C that a lane holds: lane 4 g + t has (g, 2 t), (g, 2 t + 1), (g + 8, 2 t) and (g + 8, 2 t + 1).
#[derive(Clone, Copy)]
pub struct TileSums {
    pub re: [f32; 4],
    pub im: [f32; 4],
}

/// The two elements of A that a lane passes to [`TileSums::add_quads`].
#[derive(Clone, Copy)]
pub struct QuadRows([[f32; 4]; 2]);
impl QuadRows {
    #[inline(always)]
    pub fn new([a, b]: [Complex<f32>; 2]) -> Self {
        QuadRows(split([a.re, b.re, a.im, b.im]))
    }
}

/// The element of B that a lane passes to [`TileSums::add_quads`].
#[derive(Clone, Copy)]
pub struct Column([[f32; 2]; 2]);
impl Column {
    #[inline(always)]
    pub fn new(z: Complex<f32>) -> Self {
        Column(split([z.re, z.im]))
    }
    /// Returns this element, or 0 if `keep` is false.
    #[inline(always)]
    pub fn only_if(self, keep: bool) -> Self {
        let zero_or = |[re, im]: [f32; 2]| if keep { [re, im] } else { [0.0, 0.0] };
        Column([zero_or(self.0[0]), zero_or(self.0[1])])
    }
}

impl TileSums {
    pub const ZERO: TileSums = TileSums { re: [0.0; 4], im: [0.0; 4] };

    /// Computes C ← C + A B. Lane 4 g + t passes elements (g, t) and (g + 8, t) of A in `rows`, and element (t, g) of B
    /// in `column`.
    #[inline(always)]
    pub fn add_quads(&mut self, rows: &QuadRows, column: &Column) {
        let ([large_rows, small_rows], [large, small]) = (rows.0, column.0);
        self.add_quad_products(large_rows, large);
        self.add_quad_products(small_rows, large);
        self.add_quad_products(large_rows, small);
    }
    #[inline(always)]
    fn add_quad_products(&mut self, rows: [f32; 4], [re, im]: [f32; 2]) {
        self.re = mma(self.re, rows, [re, -im]);
        self.im = mma(self.im, rows, [im, re]);
    }
    /// Computes C ← C + M ψ. Each lane passes its eight elements of a tile M, and numbers 2 t, 2 t + 1, 2 t + 8 and
    /// 2 t + 9 of ψ for right-hand side g. Elements of M that have more than 11 bits must be split (`to_split`).
    #[inline(always)]
    pub fn add_tile(&mut self, re: [f32; 8], im: [f32; 8], to_split: bool, psi: [Complex<f32>; 4]) {
        let (x, y) = (split(psi.map(|z| z.re)), split(psi.map(|z| z.im)));
        if to_split {
            let (re, im) = (split(re), split(im));
            self.add_tile_products([re[0], im[0]], [x[0], y[0]]);
            self.add_tile_products([re[0], im[0]], [x[1], y[1]]);
            self.add_tile_products([re[1], im[1]], [x[0], y[0]]);
        } else {
            self.add_tile_products([re, im], [x[0], y[0]]);
            self.add_tile_products([re, im], [x[1], y[1]]);
        }
    }
    #[inline(always)]
    fn add_tile_products(&mut self, [re, im]: [[f32; 8]; 2], [x, y]: [[f32; 4]; 2]) {
        self.re = multiply(self.re, re, x);
        self.im = multiply(self.im, re, y);
        self.re = multiply(self.re, im, y.map(|y| -y));
        self.im = multiply(self.im, im, x);
    }
}

/// Splits numbers into sums of two numbers of 11 bits, accurate to 22 bits. The larger parts come first.
#[inline(always)]
fn split<const N: usize>(x: [f32; N]) -> [[f32; N]; 2] {
    let mut parts = [[0.0; N]; 2];
    let mut k = 0;
    while k < N {
        let large = rounded(x[k]);
        parts[0][k] = large;
        parts[1][k] = rounded(x[k] - large);
        k += 1;
    }
    parts
}
/// Returns a number rounded to 11 bits.
#[inline(always)]
fn rounded(x: f32) -> f32 {
    let out: f32;
    // SAFETY: registers only.
    unsafe {
        asm!("cvt.rna.tf32.f32 {0}, {1};", out(reg32) out, in(reg32) x, options(pure, nomem, nostack));
    }
    out
}
/// C + A B with 16 × 16 elements of A in the lane layout of a tile, and 16 × 8 elements of B. Tensor cores take eight columns
/// at a time. Sums do not depend on the order of columns, so that 2 t and 2 t + 1 take the places of t and t + 4.
#[inline(always)]
fn multiply(c: [f32; 4], [a, b, e, f, g, h, k, l]: [f32; 8], [p, q, r, s]: [f32; 4]) -> [f32; 4] {
    mma(mma(c, [a, e, b, f], [p, q]), [g, k, h, l], [r, s])
}
#[inline(always)]
fn mma([mut p, mut q, mut r, mut s]: [f32; 4], [a0, a1, a2, a3]: [f32; 4], [b0, b1]: [f32; 2]) -> [f32; 4] {
    // SAFETY: registers only; all lanes of the warp are here, as `WarpKernel` guarantees.
    unsafe {
        asm!(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};",
            inout(reg32) p, inout(reg32) q, inout(reg32) r, inout(reg32) s,
            in(reg32) a0, in(reg32) a1, in(reg32) a2, in(reg32) a3, in(reg32) b0, in(reg32) b1,
            options(nomem, nostack)
        );
    }
    [p, q, r, s]
}
