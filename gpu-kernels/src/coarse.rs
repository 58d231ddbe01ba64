//! Operators on a coarse lattice: dense matrices at each site and on each link, as multigrid makes them.
//!
//! A coarse operator is D ψ(A) = X(A) ψ(A) + Σ_d Y_d(A) ψ(A + d) with eight directions d, +x, +y, +z, +t, −x … . A site has
//! 2 n numbers for n near-null vectors, (χ, k) in the order χ n + k; how vectors keep them is told in
//! [`multigrid`](crate::multigrid).
//!
//! Matrices are kept in tiles of 16 × 16 complex numbers, real parts before imaginary ones, so that each lane of a warp
//! reads its eight elements of a tile at once: lane 4 g + t has rows g and g + 8, and columns 2 t, 2 t + 1, 2 t + 8 and
//! 2 t + 9, in the order in which tensor cores want them.
use crate::Kernel;
use crate::algebra::{Complex, Complex16, complex};
use crate::field::Field;
use crate::lattice::{Divisor, Geometry};
use crate::memory::{Access, Chunk, Global};
use crate::multigrid::{place, unrolled};
use crate::storage::{Half, Single};
use crate::warp::{LANES, Warp, WarpKernel};

/// Rows and columns of a tile.
pub const TILE: u32 = 16;

/// Matrices of a coarse operator at all sites, some for each: `[site][matrix][row of tiles][column of tiles][part][lane]`.
/// Even sites come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Matrices {
    base: Global,
    /// Tiles along an edge.
    tiles: u32,
    /// Matrices of a site.
    count: u32,
}

impl Matrices {
    /// `count` matrices of each site at `base`, with 2 `vectors` rows, a multiple of 16.
    ///
    /// # Safety
    /// The matrices lie there, for as long as a kernel that holds the view or a copy of it runs, at all sites that such
    /// kernels are launched for, in the format that they are launched in.
    pub unsafe fn new(base: *mut u8, vectors: u32, count: u32) -> Self {
        Matrices { base: Global(base), tiles: 2 * vectors / TILE, count }
    }
    /// Bytes of `count` matrices with 2 `vectors` rows.
    pub const fn bytes<P: MatrixFormat>(vectors: usize, count: usize) -> usize {
        let tiles = 2 * vectors / TILE as usize;
        tiles * tiles * P::TILE_BYTES * count
    }
    /// Rows and columns.
    #[inline(always)]
    fn rows(&self) -> u32 {
        self.tiles * TILE
    }
    /// Tile (`row`, `column`) of a matrix.
    #[inline(always)]
    unsafe fn tile<P: MatrixFormat>(&self, site: u32, which: u32, row: u32, column: u32) -> Global {
        let matrix = (site * self.count + which) as u64;
        let tile = matrix * (self.tiles * self.tiles) as u64 + (row * self.tiles + column) as u64;
        unsafe { self.base.offset(tile as usize * P::TILE_BYTES) }
    }
    /// Where an element in single precision is.
    #[inline(always)]
    unsafe fn element(&self, site: u32, which: u32, (row, column): (u32, u32)) -> Global {
        unsafe {
            let tile = self.tile::<Single>(site, which, row / TILE, column / TILE);
            let (r, c) = (row % TILE, column % TILE);
            let lane = 4 * (r % 8) + c % 8 / 2;
            let number = c % 2 + 2 * (r / 8) + 4 * (c / 8);
            tile.offset((32 * lane + 4 * number) as usize)
        }
    }
    /// An element in single precision, which the same warp may have written.
    ///
    /// # Safety
    /// The matrix exists.
    #[inline(always)]
    pub unsafe fn get(&self, site: u32, which: u32, at: (u32, u32)) -> Complex<f32> {
        unsafe {
            let element = self.element(site, which, at);
            complex(element.load4(0, Access::Own), element.load4(Single::PART, Access::Own))
        }
    }
    /// Writes an element in single precision.
    ///
    /// # Safety
    /// The matrix exists, and the element is written by nobody else.
    #[inline(always)]
    pub unsafe fn set(&self, site: u32, which: u32, at: (u32, u32), z: Complex<f32>) {
        unsafe {
            let element = self.element(site, which, at);
            element.store4(0, z.re);
            element.store4(Single::PART, z.im);
        }
    }
}

/// How elements of matrices are kept.
pub trait MatrixFormat: Copy + Send + Sync + 'static {
    /// Bytes of a tile.
    const TILE_BYTES: usize;
    /// Bytes of the real parts of a tile.
    const PART: usize = Self::TILE_BYTES / 2;
    /// Eight elements of a lane, real or imaginary parts.
    ///
    /// # Safety
    /// The tile exists; nothing writes it while the kernel runs.
    unsafe fn load(tile: Global, part: usize, lane: u32) -> [f32; 8];
    /// What a matrix is multiplied by.
    ///
    /// # Safety
    /// There is a scale for each matrix.
    unsafe fn scale(scales: &Scales, matrix: u32) -> f32;
}

impl MatrixFormat for Single {
    const TILE_BYTES: usize = 2048;
    #[inline(always)]
    unsafe fn load(tile: Global, part: usize, lane: u32) -> [f32; 8] {
        unsafe {
            let at = part * Self::PART + 32 * lane as usize;
            let (Chunk(a), Chunk(b)) = (tile.load16(at, Access::Once), tile.load16(at + 16, Access::Once));
            let ([a, b, c, d], [e, f, g, h]) = (a.map(f32::from_bits), b.map(f32::from_bits));
            [a, b, c, d, e, f, g, h]
        }
    }
    #[inline(always)]
    unsafe fn scale(_: &Scales, _: u32) -> f32 {
        1.0
    }
}

/// 16-bit floats with a scale for each matrix.
impl MatrixFormat for Half {
    const TILE_BYTES: usize = 1024;
    #[inline(always)]
    unsafe fn load(tile: Global, part: usize, lane: u32) -> [f32; 8] {
        let Chunk([a, b, c, d]) = unsafe { tile.load16(part * Self::PART + 16 * lane as usize, Access::Once) };
        let [a, b, c, d] = [a, b, c, d].map(|word| Complex16(word).widen());
        [a.re, a.im, b.re, b.im, c.re, c.im, d.re, d.im]
    }
    #[inline(always)]
    unsafe fn scale(scales: &Scales, matrix: u32) -> f32 {
        unsafe { scales.0.load4(4 * matrix as usize, Access::Shared) }
    }
}

/// A number for each matrix, `[site][matrix]`, by which its elements in 16 bits are multiplied.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Scales(Global);

impl Scales {
    /// Scales at `base`.
    ///
    /// # Safety
    /// As for [`Matrices::new`]; matrices in single precision have none.
    pub unsafe fn new(base: *mut u8) -> Self {
        Scales(Global(base))
    }
}

/// a x + b Σ M ψ on the sites of one parity: hops, with eight matrices for each site and ψ on the other parity, or, with one
/// matrix for each site, its product with ψ at the same site. Number i computes 16 rows of a site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CoarseApply {
    /// M
    pub matrices: Matrices,
    /// Their scales.
    pub scales: Scales,
    /// ψ
    pub input: Field,
    /// x; not read if a = 0.
    pub x: Field,
    /// The result. May be x.
    pub out: Field,
    /// The coarse lattice.
    pub geometry: Geometry,
    /// Tiles along an edge of a matrix.
    pub tiles: Divisor,
    /// Spinors of a site.
    pub spinors: u32,
    /// Parity of the result.
    pub parity: u32,
    /// The matrices that count, from the first one to that before the last one.
    pub range: [u32; 2],
    /// 1: ψ at the same site.
    pub here: u32,
    /// a
    pub a: f32,
    /// b
    pub b: f32,
}

impl CoarseApply {
    /// Spinor and number in it, at a site, of a row or a column.
    #[inline(always)]
    fn place(&self, number: u32) -> (u32, u32) {
        let vectors = self.matrices.rows() / 2;
        let lower = number >= vectors;
        place(self.spinors, u32::from(lower), if lower { number - vectors } else { number })
    }
}

// SAFETY: number (i, rhs) writes its own rows only, and reads ψ, which is another field, and its rows of x.
unsafe impl<P: MatrixFormat> WarpKernel<P> for CoarseApply {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, rhs: u32) {
        let (index, row) = self.tiles.divide(i);
        let site = self.geometry.site(index, self.parity);
        let whole = index + self.parity * self.geometry.half_volume();
        warp.sum_quads::<4>(
            |lane| {
                let mut sums = [0.0; 4];
                let mut d = self.range[0];
                while d < self.range[1] {
                    let from = if self.here != 0 { index } else { neighbour(&self.geometry, &site, d) };
                    let scale = unsafe { P::scale(&self.scales, whole * self.matrices.count + d) };
                    let mut mine = [0.0; 4];
                    let mut column = 0;
                    while column < self.tiles.get() {
                        unsafe {
                            let tile = self.matrices.tile::<P>(whole, d, row, column);
                            let (re, im) = (P::load(tile, 0, lane), P::load(tile, 1, lane));
                            let first = TILE * column + 2 * (lane % 4);
                            let two = |number: u32| {
                                let (spinor, number) = self.place(number);
                                self.input.two_numbers(from * self.spinors + spinor, rhs, number)
                            };
                            let ([p, q], [r, s]) = (two(first), two(first + 8));
                            let add = |sum: [f32; 2], k: usize, x: Complex<f32>| {
                                let z = complex(re[k], im[k]).mul_add(x, complex(sum[0], sum[1]));
                                [z.re, z.im]
                            };
                            let low = add(add(add(add([mine[0], mine[1]], 0, p), 1, q), 4, r), 5, s);
                            let high = add(add(add(add([mine[2], mine[3]], 2, p), 3, q), 6, r), 7, s);
                            mine = [low[0], low[1], high[0], high[1]];
                        }
                        column += 1;
                    }
                    unrolled!(k < 4: { sums[k] += scale * mine[k]; });
                    d += 1;
                }
                sums
            },
            |quad, sums| {
                unrolled!(k < 2: {
                    let (spinor, number) = self.place(TILE * row + quad + 8 * k as u32);
                    let at = index * self.spinors + spinor;
                    let mut out = complex(self.b * sums[2 * k], self.b * sums[2 * k + 1]);
                    unsafe {
                        if self.a != 0.0 {
                            out = self.x.number(at, rhs, number, Access::Own).scale_add(self.a, out);
                        }
                        self.out.put_number(at, rhs, number, out);
                    }
                });
            },
        );
    }
}

/// Checkerboard index of the neighbour in direction `d` of eight.
#[inline(always)]
fn neighbour(geometry: &Geometry, site: &crate::lattice::Site, d: u32) -> u32 {
    match d {
        0 => geometry.neighbour(site, 0, true),
        1 => geometry.neighbour(site, 1, true),
        2 => geometry.neighbour(site, 2, true),
        3 => geometry.neighbour(site, 3, true),
        4 => geometry.neighbour(site, 0, false),
        5 => geometry.neighbour(site, 1, false),
        6 => geometry.neighbour(site, 2, false),
        _ => geometry.neighbour(site, 3, false),
    }
}

/// The sign of γ5 in front of a number.
#[inline(always)]
fn gamma5(number: u32, rows: u32) -> f32 {
    if number < rows / 2 { 1.0 } else { -1.0 }
}

/// The hops backward from those forward, which the operator's γ5-hermiticity relates: Y_{−μ}(A) = γ5 Y_μ(A − μ̂)† γ5, and
/// X ← X + F + γ5 F† γ5 with the hops F that stay in an aggregate. An element of the diagonal that is zero because a
/// near-null vector is, becomes 1. Call i computes an element of the matrices of a site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AddBackward {
    /// X
    pub diagonal: Matrices,
    /// F
    pub inside: Matrices,
    /// Y
    pub links: Matrices,
    /// The coarse lattice.
    pub geometry: Geometry,
    /// Rows of a matrix.
    pub rows: Divisor,
}
// SAFETY: call i writes its own element of X and of the backward links, and reads forward links.
unsafe impl Kernel<Single> for AddBackward {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _: u32) {
        let (rest, column) = self.rows.divide(i);
        let (whole, row) = self.rows.divide(rest);
        let half = self.geometry.half_volume();
        let (parity, index) = if whole < half { (0, whole) } else { (1, whole - half) };
        let site = self.geometry.site(index, parity);
        let rows = self.rows.get();
        let sign = gamma5(row, rows) * gamma5(column, rows);
        unsafe {
            let (f, g) = (self.inside.get(whole, 0, (row, column)), self.inside.get(whole, 0, (column, row)));
            let x = self.diagonal.get(whole, 0, (row, column)) + f + g.conj().scale(sign);
            let empty = row == column && x.re == 0.0 && x.im == 0.0;
            self.diagonal.set(whole, 0, (row, column), if empty { Complex::ONE } else { x });
            let mut mu = 0;
            while mu < 4 {
                let from = neighbour(&self.geometry, &site, mu + 4) + (1 - parity) * half;
                let y = self.links.get(from, mu, (column, row));
                self.links.set(whole, mu + 4, (row, column), y.conj().scale(sign));
                mu += 1;
            }
        }
    }
}

/// The inverse of a matrix at each site, by Gauss-Jordan elimination with the largest pivots of columns. Number i is site i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Invert {
    /// X, which is lost.
    pub matrix: Matrices,
    /// X⁻¹
    pub inverse: Matrices,
}
// SAFETY: number i works on matrices of its own site; lanes have columns of their own, and look at others' after they wait.
unsafe impl WarpKernel<Single> for Invert {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (m, inverse, rows) = (&self.matrix, &self.inverse, self.matrix.rows());
        warp.each(|lane| {
            columns(lane, rows, |column| {
                let mut row = 0;
                while row < rows {
                    let z = if row == column { Complex::ONE } else { Complex::ZERO };
                    unsafe { inverse.set(i, 0, (row, column), z) };
                    row += 1;
                }
            });
        });
        let mut p = 0;
        while p < rows {
            let (_, pivot) = warp.largest(|lane| {
                let mut best = (-1.0, rows);
                let mut row = p + lane;
                while row < rows {
                    let size = unsafe { m.get(i, 0, (row, p)) }.norm_sqr();
                    if size > best.0 {
                        best = (size, row);
                    }
                    row += LANES;
                }
                best
            });
            // Of a column of numbers that are none, nothing is the largest.
            let pivot = if pivot < rows { pivot } else { p };
            let largest = unsafe { m.get(i, 0, (pivot, p)) };
            let size = largest.norm_sqr();
            let factor = if size == 0.0 { Complex::ONE } else { largest.conj().scale(crate::memory::reciprocal(size)) };
            warp.wait();
            // Exchanges two rows, and divides that of the pivot by it.
            warp.each(|lane| {
                let exchange = |matrix: &Matrices, column: u32| unsafe {
                    let (a, b) = (matrix.get(i, 0, (p, column)), matrix.get(i, 0, (pivot, column)));
                    matrix.set(i, 0, (pivot, column), a);
                    matrix.set(i, 0, (p, column), factor * b);
                };
                columns(lane, rows, |column| {
                    if column >= p {
                        exchange(m, column);
                    }
                    exchange(inverse, column);
                });
            });
            // Column p of X stays as it is, for the lanes that need its numbers; nobody looks at it again.
            warp.each(|lane| {
                let mut row = 0;
                while row < rows {
                    if row != p {
                        let minus = -unsafe { m.get(i, 0, (row, p)) };
                        let subtract = |matrix: &Matrices, column: u32| unsafe {
                            let z = matrix.get(i, 0, (row, column));
                            let z = minus.mul_add(matrix.get(i, 0, (p, column)), z);
                            matrix.set(i, 0, (row, column), z);
                        };
                        columns(lane, rows, |column| {
                            if column > p {
                                subtract(m, column);
                            }
                            subtract(inverse, column);
                        });
                    }
                    row += 1;
                }
            });
            p += 1;
        }
    }
}

/// Calls `f` with the columns of a lane, of so many.
#[inline(always)]
fn columns(lane: u32, count: u32, mut f: impl FnMut(u32)) {
    let mut column = lane;
    while column < count {
        f(column);
        column += LANES;
    }
}

/// A product of matrices at each site: X⁻¹(A) Y_d(A). Number i computes a tile of a link.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiplyLinks {
    /// X⁻¹
    pub left: Matrices,
    /// Y
    pub links: Matrices,
    /// X⁻¹ Y
    pub out: Matrices,
    /// Tiles along an edge of a matrix.
    pub tiles: Divisor,
}
// SAFETY: number i writes its own tile.
unsafe impl WarpKernel<Single> for MultiplyLinks {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (rest, column) = self.tiles.divide(i);
        let (link, row) = self.tiles.divide(rest);
        let (site, d) = (link / 8, link % 8);
        warp.each(|lane| {
            let (g, t) = (TILE * row + lane / 4, TILE * column + 2 * (lane % 4));
            let (rows, columns) = ([g, g + 8], [t, t + 1, t + 8, t + 9]);
            let mut sums = [[Complex::<f32>::ZERO; 4]; 2];
            let mut k = 0;
            while k < self.left.rows() {
                unsafe {
                    let left = rows.map(|row| self.left.get(site, 0, (row, k)));
                    let right = columns.map(|column| self.links.get(site, d, (k, column)));
                    unrolled!(r < 2: {
                        unrolled!(c < 4: { sums[r][c] = left[r].mul_add(right[c], sums[r][c]); });
                    });
                }
                k += 1;
            }
            unrolled!(r < 2: {
                unrolled!(c < 4: { unsafe { self.out.set(site, d, (rows[r], columns[c]), sums[r][c]) }; });
            });
        });
    }
}

/// Matrices in 16 bits, with a scale for each. Number i is matrix i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RoundMatrices {
    /// In single precision.
    pub from: Matrices,
    /// In 16 bits.
    pub to: Matrices,
    /// The scales.
    pub scales: Scales,
    /// Matrices of a site.
    pub count: Divisor,
}
// SAFETY: number i writes its own matrix and scale.
unsafe impl WarpKernel<Single> for RoundMatrices {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (site, which) = self.count.divide(i);
        let tiles = self.from.tiles * self.from.tiles;
        let (from, to) =
            unsafe { (self.from.tile::<Single>(site, which, 0, 0), self.to.tile::<Half>(site, which, 0, 0)) };
        let (largest, _) = warp.largest(|lane| {
            let (mut best, mut part) = (0.0, 0);
            while part < 2 * tiles {
                let numbers = unsafe { Single::load(from, part as usize, lane) };
                unrolled!(k < 4: {
                    best = crate::memory::max_or_nan(best, numbers[k].abs());
                    best = crate::memory::max_or_nan(best, numbers[k + 4].abs());
                });
                part += 1;
            }
            (best, 0)
        });
        let factor = if largest > 0.0 { crate::memory::reciprocal(largest) } else { 0.0 };
        warp.each(|lane| {
            let mut part = 0;
            while part < 2 * tiles {
                unsafe {
                    let [a, b, c, d, e, f, g, h] = Single::load(from, part as usize, lane).map(|x| factor * x);
                    let words = [(a, b), (c, d), (e, f), (g, h)].map(|(a, b)| Complex16::round(complex(a, b)).0);
                    to.store16(part as usize * Half::PART + 16 * lane as usize, Chunk(words));
                }
                part += 1;
            }
        });
        warp.once(|| unsafe { self.scales.0.store4(4 * i as usize, largest) });
    }
}

crate::kernels! { FAMILY = "coarse";
    by_warps COARSE_APPLY "coarse_apply": [CoarseApply] => coarse_links;
    setup ADD_BACKWARD "add_backward": [AddBackward] => single_numbers;
    setup_by_warps INVERT "invert": [Invert] => single_numbers;
    setup_by_warps MULTIPLY_LINKS "multiply_links": [MultiplyLinks] => single_numbers;
    setup_by_warps ROUND_MATRICES "round_matrices": [RoundMatrices] => single_numbers;
}
