//! Operators on a coarse lattice: dense matrices at each site and on each link, which the setup of multigrid computes.
//!
//! A coarse operator is D ψ(A) = X(A) ψ(A) + Σ_d Y_d(A) ψ(A + d) with eight directions d, +x, +y, +z, +t, −x … . A site has 2 n
//! numbers for n near-null vectors, (χ, k) in the order χ n + k; [`multigrid`](crate::multigrid) describes their layout in
//! vectors.
//!
//! Matrices are kept in tiles of 16 × 16 complex numbers, real parts before imaginary ones, so that each lane of a warp
//! reads its eight elements of a tile at once: lane 4 g + t has rows g and g + 8, and columns 2 t, 2 t + 1, 2 t + 8 and
//! 2 t + 9, in the order in which tensor cores expect them.
use crate::Kernel;
use crate::algebra::{Complex, Complex16, complex};
use crate::field::Field;
use crate::ghost::Ghosts;
use crate::lattice::{Divisor, Geometry, Region, Site};
use crate::memory::{Access, Chunk, Global};
use crate::storage::{Half, Single};
use crate::unrolled::unrolled;
use crate::warp::{LANES, Warp, WarpKernel, each_column};

/// Number of rows and number of columns of a tile of a coarse matrix.
pub const COARSE_TILE: u32 = 16;
/// Maximum number of near-null vectors of a level.
pub const MOST_COARSE_VECTORS: u32 = 64;

/// Returns the spinor of a site that holds its number (χ, k), and the index of the number in the spinor.
#[inline(always)]
pub(crate) fn place(spinors: u32, chirality: u32, k: u32) -> (u32, u32) {
    let half = chirality * spinors + k / 6;
    (half / 2, (half & 1) * 6 + k % 6)
}

/// Matrices of a coarse operator at all sites, `count` for each site, in the layout
/// `[site][matrix][row of tiles][column of tiles][part][lane]`. Even sites come first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CoarseTiles {
    base: Global,
    /// Number of tiles along an edge of a matrix.
    tiles: u32,
    /// Number of matrices at a site.
    count: u32,
}

impl CoarseTiles {
    /// Creates a view of matrices at `base`, `count` for each site. A matrix has 2 `vectors` rows, a multiple of 16.
    ///
    /// # Safety
    /// The matrices stay at `base` while a kernel runs that holds the view or a copy of it. They exist at all sites for which
    /// the kernel is launched, in the format of the launch.
    pub unsafe fn new(base: *mut u8, vectors: u32, count: u32) -> Self {
        CoarseTiles { base: Global(base), tiles: 2 * vectors / COARSE_TILE, count }
    }
    /// Returns the number of bytes of `count` matrices with 2 `vectors` rows.
    pub const fn bytes<P: MatrixFormat>(vectors: usize, count: usize) -> usize {
        let tiles = 2 * vectors / COARSE_TILE as usize;
        tiles * tiles * P::TILE_BYTES * count
    }
    /// Returns the number of rows of a matrix, which is also its number of columns.
    #[inline(always)]
    fn rows(&self) -> u32 {
        self.tiles * COARSE_TILE
    }
    /// Returns tile (`row`, `column`) of matrix `which` at a site.
    #[inline(always)]
    unsafe fn tile<P: MatrixFormat>(&self, site: u32, which: u32, row: u32, column: u32) -> Global {
        let matrix = (site * self.count + which) as u64;
        let tile = matrix * (self.tiles * self.tiles) as u64 + (row * self.tiles + column) as u64;
        unsafe { self.base.offset(tile as usize * P::TILE_BYTES) }
    }
    /// Returns the address of a matrix element in single precision.
    #[inline(always)]
    unsafe fn element(&self, site: u32, which: u32, (row, column): (u32, u32)) -> Global {
        unsafe {
            let tile = self.tile::<Single>(site, which, row / COARSE_TILE, column / COARSE_TILE);
            let (r, c) = (row % COARSE_TILE, column % COARSE_TILE);
            let lane = 4 * (r % 8) + c % 8 / 2;
            let number = c % 2 + 2 * (r / 8) + 4 * (c / 8);
            tile.offset((32 * lane + 4 * number) as usize)
        }
    }
    /// Reads a matrix element in single precision. Threads of the same warp may have written it.
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
    /// Writes a matrix element in single precision.
    ///
    /// # Safety
    /// The matrix exists, and no other thread writes the element.
    #[inline(always)]
    pub unsafe fn set(&self, site: u32, which: u32, at: (u32, u32), z: Complex<f32>) {
        unsafe {
            let element = self.element(site, which, at);
            element.store4(0, z.re);
            element.store4(Single::PART, z.im);
        }
    }
}

/// Storage format of matrix elements.
pub trait MatrixFormat: Copy + Send + Sync + 'static {
    /// Number of bytes of a tile.
    const TILE_BYTES: usize;
    /// Whether matrix elements have more than 11 bits.
    const SPLIT: bool;
    /// Number of bytes of the real parts of a tile.
    const PART: usize = Self::TILE_BYTES / 2;
    /// Reads the real or the imaginary parts (`part`) of the eight elements of a lane.
    ///
    /// # Safety
    /// The tile exists, and nothing writes it while the kernel runs.
    unsafe fn load(tile: Global, part: usize, lane: u32) -> [f32; 8];
    /// Returns the factor that multiplies the elements of matrix number `matrix`.
    ///
    /// # Safety
    /// A scale exists for each matrix.
    unsafe fn scale(scales: &Scales, matrix: u32) -> f32;
}

impl MatrixFormat for Single {
    const TILE_BYTES: usize = 2048;
    const SPLIT: bool = true;
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

/// Elements are 16-bit floats with a scale for each matrix.
impl MatrixFormat for Half {
    const TILE_BYTES: usize = 1024;
    const SPLIT: bool = false;
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

/// Scales of 16-bit matrices, `[site][matrix]`: the factor that multiplies the elements of each matrix.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Scales(Global);

impl Scales {
    /// Creates a view of the scales at `base`.
    ///
    /// # Safety
    /// The contract of [`CoarseTiles::new`] holds. Matrices in single precision have no scales.
    pub unsafe fn new(base: *mut u8) -> Self {
        Scales(Global(base))
    }
}

/// Computes a x + b Σ M ψ on the sites of one parity. The matrices M are either hops, eight at each site with ψ on the
/// other parity, or one matrix at each site with ψ at the same site. Call i computes 16 rows at a site of a region.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CoarseApply {
    /// M
    pub matrices: CoarseTiles,
    /// Scales of the matrices.
    pub scales: Scales,
    /// ψ
    pub input: Field,
    /// Field x, which is not read if a = 0.
    pub x: Field,
    /// Field for the result; it may be the field x.
    pub out: Field,
    /// Geometry of the coarse lattice.
    pub geometry: Geometry,
    /// Sites at which the result is computed.
    pub region: Region,
    /// Ghost zones, which hold ψ on sites of neighbouring processes.
    pub ghosts: Ghosts,
    /// Number of tiles along an edge of a matrix.
    pub tiles: Divisor,
    /// Number of spinors at a site.
    pub spinors: u32,
    /// Parity of the sites of the result: 0 for even, 1 for odd.
    pub parity: u32,
    /// Range of matrices to apply: the first, and one past the last.
    pub range: [u32; 2],
    /// 1 if the matrix multiplies ψ at the same site, 0 if the matrices are hops.
    pub here: u32,
    /// a
    pub a: f32,
    /// b
    pub b: f32,
}

impl CoarseApply {
    /// Returns the spinor that holds row or column `number` of a site, and the index in the spinor.
    #[inline(always)]
    fn place(&self, number: u32) -> (u32, u32) {
        let vectors = self.matrices.rows() / 2;
        let lower = number >= vectors;
        place(self.spinors, u32::from(lower), if lower { number - vectors } else { number })
    }
    /// Returns the field that holds ψ for a hop in direction `d`, and the index of the site in that field.
    #[inline(always)]
    fn source(&self, site: &Site, d: u32) -> (Field, u32) {
        macro_rules! ways {
            ($($d:literal)*) => {
                match d {
                    $($d => {
                        let (mu, forward) = ($d % 4, $d < 4);
                        if self.ghosts.is_cut(mu) && self.geometry.wraps(site, mu, forward) {
                            // SAFETY: zones of this kernel hold all spinors of their sites.
                            let zone = unsafe { self.ghosts.field(mu, forward) };
                            (zone, self.geometry.face_index(site, mu))
                        } else {
                            (self.input, self.geometry.neighbour(site, mu, forward))
                        }
                    })*
                    _ => (self.input, site.index),
                }
            };
        }
        ways!(0 1 2 3 4 5 6 7)
    }
}

impl CoarseApply {
    /// Number of warps that compute the rows of a site together; each takes a part of the columns of the matrices. With
    /// one warp for each site, a coarsest level of a few hundred sites would have too few warps for a GPU, and each
    /// would wait for one matrix after the other.
    pub const PARTS: u32 = 4;

    /// Returns the range of tiles, over all matrices of a row, that warp `part` computes: the first, and one past the last.
    #[inline(always)]
    fn part(&self, part: u32) -> [u32; 2] {
        let tiles = (self.range[1] - self.range[0]) * self.tiles.get();
        [tiles * part / Self::PARTS, tiles * (part + 1) / Self::PARTS]
    }
    /// Stores a row of the result at a site: b times `sum`, plus a x.
    #[inline(always)]
    unsafe fn put(&self, index: u32, row: u32, rhs: u32, sum: Complex<f32>) {
        let (spinor, number) = self.place(row);
        let at = index * self.spinors + spinor;
        let mut out = sum.scale(self.b);
        unsafe {
            if self.a != 0.0 {
                out = self.x.number(at, rhs, number, Access::Own).scale_add(self.a, out);
            }
            self.out.put_number(at, rhs, number, out);
        }
    }
    /// Stores the two rows of a quad of lanes for one right-hand side.
    #[inline(always)]
    unsafe fn put_rows(&self, index: u32, row: u32, quad: u32, rhs: u32, [a, b, c, d]: [f32; 4]) {
        let row = COARSE_TILE * row + quad;
        unsafe {
            self.put(index, row, rhs, complex(a, b));
            self.put(index, row + 8, rhs, complex(c, d));
        }
    }
}

#[cfg(target_arch = "nvptx64")]
impl CoarseApply {
    /// Returns the columns of one matrix from tile number `tile` on, up to the end of the matrix or of the part, `last`.
    #[inline(always)]
    unsafe fn columns<P: MatrixFormat>(&self, (site, whole): (&Site, u32), tile: u32, last: u32) -> TileColumns {
        let (matrix, first) = self.tiles.divide(tile);
        let end = self.tiles.get().min(first + last - tile);
        let d = self.range[0] + matrix;
        let (input, from) = if self.here != 0 { (self.input, site.index) } else { self.source(site, d) };
        let scale = unsafe { P::scale(&self.scales, whole * self.matrices.count + d) };
        TileColumns { d, first, end, input, from, scale }
    }
    /// Returns the row of tiles that call i computes, the index of its site in the parity, and the site's index in the lattice.
    #[inline(always)]
    fn row_and_site(&self, i: u32) -> (u32, u32, u32) {
        let (number, row) = self.tiles.divide(i);
        let index = self.region.index(number, &self.geometry, self.parity);
        (row, index, index + self.parity * self.geometry.half_volume())
    }
    /// Computes one right-hand side of 16 rows on a GPU.
    #[inline(always)]
    unsafe fn on_gpu<P: MatrixFormat>(&self, warp: Warp, i: u32, rhs: u32) {
        let (row, index, whole) = self.row_and_site(i);
        let site = self.geometry.site(index, self.parity);
        warp.sum_quads::<{ Self::PARTS }, 4>(
            |part, lane| {
                let mut sums = [0.0; 4];
                let [mut tile, last] = self.part(part);
                while tile < last {
                    let columns = unsafe { self.columns::<P>((&site, whole), tile, last) };
                    tile += columns.end - columns.first;
                    let mut mine = [Complex::<f32>::ZERO; 8];
                    let mut column = columns.first;
                    while column < columns.end {
                        unsafe {
                            let tile = self.matrices.tile::<P>(whole, columns.d, row, column);
                            let (re, im) = (P::load(tile, 0, lane), P::load(tile, 1, lane));
                            let [p, q, r, s] = self.psi(&columns, column, lane % 4, rhs);
                            let x = [p, q, p, q, r, s, r, s];
                            unrolled!(k < 8: { mine[k] = complex(re[k], im[k]).mul_add(x[k], mine[k]); });
                        }
                        column += 1;
                    }
                    let rows = of_rows(&mine);
                    unrolled!(k < 4: { sums[k] += columns.scale * rows[k]; });
                }
                sums
            },
            |quad, sums| unsafe { self.put_rows(index, row, quad, rhs, sums) },
        );
    }
    /// Returns ψ for the columns of a tile that belong to lanes with number `t` in their quad.
    #[inline(always)]
    unsafe fn psi(&self, columns: &TileColumns, column: u32, t: u32, rhs: u32) -> [Complex<f32>; 4] {
        let column = COARSE_TILE * column + 2 * t;
        let two = |column: u32| {
            let (spinor, number) = self.place(column);
            unsafe { columns.input.two_numbers(columns.from * self.spinors + spinor, rhs, number) }
        };
        let ([p, q], [r, s]) = (two(column), two(column + 8));
        [p, q, r, s]
    }
}

/// Run of columns of tiles of a matrix, and the field and site of the ψ that multiplies them.
#[cfg(target_arch = "nvptx64")]
struct TileColumns {
    /// Index of the matrix at its site.
    d: u32,
    /// First column of tiles of the run.
    first: u32,
    end: u32,
    /// Field that holds ψ.
    input: Field,
    /// Index of the site in `input`.
    from: u32,
    /// Scale of the matrix.
    scale: f32,
}

/// Returns the sums of a lane's two rows, real and imaginary parts, from the sums `s` of its eight elements of tiles.
#[inline(always)]
fn of_rows(s: &[Complex<f32>; 8]) -> [f32; 4] {
    let (low, high) = ((s[0] + s[1]) + (s[4] + s[5]), (s[2] + s[3]) + (s[6] + s[7]));
    [low.re, low.im, high.re, high.im]
}

#[cfg(not(target_arch = "nvptx64"))]
impl CoarseApply {
    /// Computes one right-hand side of 16 rows on a CPU, eight elements of a lane at a time, with ψ first put in their order.
    /// The order of all sums is that of a GPU.
    #[inline(always)]
    unsafe fn on_cpu<P: MatrixFormat>(&self, warp: Warp, i: u32, rhs: u32) {
        let (number, row) = self.tiles.divide(i);
        let index = self.region.index(number, &self.geometry, self.parity);
        let site = self.geometry.site(index, self.parity);
        let mut sums = [[[0.0; 4]; LANES as usize]; Self::PARTS as usize];
        for (part, sums) in (0..Self::PARTS).zip(&mut sums) {
            let [mut tile, last] = self.part(part);
            while tile < last {
                let (matrix, first) = self.tiles.divide(tile);
                let end = self.tiles.get().min(first + last - tile);
                tile += end - first;
                unsafe { self.add_on_cpu::<P>((index, &site, row), self.range[0] + matrix, first..end, rhs, sums) };
            }
        }
        warp.sum_quads::<{ Self::PARTS }, 4>(
            |part, lane| sums[part as usize][lane as usize],
            |quad, sums| unsafe { self.put_rows(index, row, quad, rhs, sums) },
        );
    }
    /// Adds the contribution of the columns of tiles `columns` of matrix `d`.
    #[inline(always)]
    unsafe fn add_on_cpu<P: MatrixFormat>(
        &self,
        (index, site, row): (u32, &Site, u32),
        d: u32,
        columns: core::ops::Range<u32>,
        rhs: u32,
        sums: &mut [[f32; 4]; LANES as usize],
    ) {
        const MOST_TILES: usize = 2 * MOST_COARSE_VECTORS as usize / COARSE_TILE as usize;
        let whole = index + self.parity * self.geometry.half_volume();
        let (input, from) = if self.here != 0 { (self.input, index) } else { self.source(site, d) };
        let mut psi = [[[[0.0; 8]; 2]; 4]; MOST_TILES];
        for tile in columns.clone() {
            for (t, [re, im]) in psi[tile as usize].iter_mut().enumerate() {
                let column = COARSE_TILE * tile + 2 * t as u32;
                let two = |column: u32| {
                    let (spinor, number) = self.place(column);
                    unsafe { input.two_numbers(from * self.spinors + spinor, rhs, number) }
                };
                let ([p, q], [r, s]) = (two(column), two(column + 8));
                *re = [p, q, p, q, r, s, r, s].map(|z| z.re);
                *im = [p, q, p, q, r, s, r, s].map(|z| z.im);
            }
        }
        let scale = unsafe { P::scale(&self.scales, whole * self.matrices.count + d) };
        for (lane, sums) in (0..LANES).zip(sums) {
            let (mut mine_re, mut mine_im) = ([0.0; 8], [0.0; 8]);
            for column in columns.clone() {
                let [x_re, x_im] = &psi[column as usize][lane as usize % 4];
                let (re, im) = unsafe {
                    let tile = self.matrices.tile::<P>(whole, d, row, column);
                    (P::load(tile, 0, lane), P::load(tile, 1, lane))
                };
                for k in 0..8 {
                    let sum = complex(mine_re[k], mine_im[k]);
                    let sum = complex(re[k], im[k]).mul_add(complex(x_re[k], x_im[k]), sum);
                    (mine_re[k], mine_im[k]) = (sum.re, sum.im);
                }
            }
            let rows = of_rows(&core::array::from_fn(|k| complex(mine_re[k], mine_im[k])));
            sums.iter_mut().zip(rows).for_each(|(sum, mine)| *sum += scale * mine);
        }
    }
}

// SAFETY: number (i, rhs) writes its own rows only, and reads ψ, which is another field, and its rows of x.
unsafe impl<P: MatrixFormat> WarpKernel<P> for CoarseApply {
    const PARTS: u32 = Self::PARTS;
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, rhs: u32) {
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            self.on_cpu::<P>(warp, i, rhs)
        }
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            self.on_gpu::<P>(warp, i, rhs)
        }
    }
}
// SAFETY: as above. A lane reads ψ of a right-hand side that exists, and writes no other; all lanes take the same way.
#[cfg(target_arch = "nvptx64")]
unsafe impl<P: MatrixFormat> crate::device::LoopedWarpKernel<P> for CoarseApply {
    #[inline(always)]
    unsafe fn warp_looped<const N: usize>(&self, warp: Warp, i: u32, nrhs: u32) {
        const { assert!(N == 16 && Self::PARTS == 4) };
        let (row, index, whole) = self.row_and_site(i);
        let site = self.geometry.site(index, self.parity);
        let (g, t, part) = (warp.lane() / 4, warp.lane() % 4, warp.part());
        let mut first = 0;
        while first < nrhs {
            let both = first + 8 < nrhs;
            let [near, far] = [first + g, first + 8 + g].map(|rhs| rhs.min(nrhs - 1));
            let mut sums = [crate::tensor_cores::TileSums::ZERO; 2];
            let [mut tile, last] = self.part(part);
            while tile < last {
                let columns = unsafe { self.columns::<P>((&site, whole), tile, last) };
                tile += columns.end - columns.first;
                let mut column = columns.first;
                while column < columns.end {
                    unsafe {
                        let tile = self.matrices.tile::<P>(whole, columns.d, row, column);
                        let (re, im) = (P::load(tile, 0, warp.lane()), P::load(tile, 1, warp.lane()));
                        let psi = |rhs: u32| self.psi(&columns, column, t, rhs).map(|z| z.scale(columns.scale));
                        sums[0].add_tile(re, im, P::SPLIT, psi(near));
                        if both {
                            sums[1].add_tile(re, im, P::SPLIT, psi(far));
                        }
                    }
                    column += 1;
                }
            }
            // Each lane holds four sums of every block of eight right-hand sides. Each part adds up one of the four over all parts and
            // stores it.
            let [low, high] = sums;
            let of_part = [0, 1, 2, 3].map(|k: usize| [low.re[k], low.im[k], high.re[k], high.im[k]]);
            let [a, b, c, d] = warp.sum_of_parts(of_part);
            let (row, rhs) = (COARSE_TILE * row + g + 8 * (part / 2), first + 2 * t + part % 2);
            unsafe {
                if rhs < nrhs {
                    self.put(index, row, rhs, complex(a, b));
                }
                if rhs + 8 < nrhs {
                    self.put(index, row, rhs + 8, complex(c, d));
                }
            }
            first += N as u32;
        }
    }
}

/// Returns the sign ±1 of γ5 for number `number` of a site.
#[inline(always)]
fn gamma5(number: u32, rows: u32) -> f32 {
    if number < rows / 2 { 1.0 } else { -1.0 }
}

/// Computes backward hops from forward ones by γ5-hermiticity: Y_{−μ}(A) = γ5 Y_μ(A − μ̂)† γ5, and X ← X + F + γ5 F†
/// γ5, where F are the hops that stay in an aggregate. Diagonal elements that are zero because a near-null vector
/// vanishes become 1. Call i computes an element of the matrices of a site.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AddBackward {
    /// X
    pub diagonal: CoarseTiles,
    /// F
    pub inside: CoarseTiles,
    /// Y
    pub links: CoarseTiles,
    /// Forward links `[μ]` of the backward neighbour's last sites, from [`PackLinks`], for the directions of `cut`.
    pub ghost_links: [CoarseTiles; 4],
    /// Bit μ is set if direction μ is partitioned.
    pub cut: u32,
    /// Geometry of the coarse lattice.
    pub geometry: Geometry,
    /// Number of rows of a matrix.
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
            unrolled!(mu < 4: {
                let y = if self.cut >> mu & 1 != 0 && self.geometry.wraps(&site, mu, false) {
                    let from = self.geometry.face_index(&site, mu) + (1 - parity) * self.geometry.face_sites(mu);
                    self.ghost_links[mu].get(from, 0, (column, row))
                } else {
                    let from = self.geometry.neighbour(&site, mu, false) + (1 - parity) * half;
                    self.links.get(from, mu as u32, (column, row))
                };
                self.links.set(whole, mu as u32 + 4, (row, column), y.conj().scale(sign));
            });
        }
    }
}

/// Packs the forward links of the last sites in a direction for the forward neighbour, which needs them for its
/// backward hops: one link for each site, even sites first, in the order of [`Geometry::face_index`]. Call i copies 16
/// bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PackLinks {
    /// Y
    pub links: CoarseTiles,
    /// Buffer for the packed links.
    pub to: CoarseTiles,
    /// Geometry of the coarse lattice.
    pub geometry: Geometry,
    /// Direction μ of the links, 0 to 3.
    pub direction: u32,
    /// Number of chunks of 16 bytes in a matrix.
    pub chunks: Divisor,
}
// SAFETY: each call writes bytes of its own.
unsafe impl Kernel<Single> for PackLinks {
    #[inline(always)]
    unsafe fn site(&self, i: u32, _: u32) {
        let (number, chunk) = self.chunks.divide(i);
        macro_rules! directions {
            ($($mu:literal)*) => {
                match self.direction {
                    $($mu => {
                        let (face, last) = (self.geometry.face_sites($mu), self.geometry.size()[$mu] - 1);
                        let (parity, f) = if number < face { (0, number) } else { (1, number - face) };
                        self.geometry.of_face(f, $mu, last, parity) + parity * self.geometry.half_volume()
                    })*
                    _ => 0,
                }
            };
        }
        let site = directions!(0 1 2 3);
        unsafe {
            let from = self.links.tile::<Single>(site, self.direction, 0, 0);
            let to = self.to.tile::<Single>(number, 0, 0, 0);
            to.store16(16 * chunk as usize, from.load16(16 * chunk as usize, Access::Shared));
        }
    }
}

/// Inverts a matrix at each site by Gauss–Jordan elimination; the pivot is the largest element of a column. Call i computes
/// site i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Invert {
    /// Matrix X, which the kernel overwrites.
    pub matrix: CoarseTiles,
    /// X⁻¹
    pub inverse: CoarseTiles,
}
// SAFETY: number i works on matrices of its own site; lanes have columns of their own, and read others' after they wait.
unsafe impl WarpKernel<Single> for Invert {
    #[inline(always)]
    unsafe fn warp(&self, warp: Warp, i: u32, _: u32) {
        let (m, inverse, rows) = (&self.matrix, &self.inverse, self.matrix.rows());
        warp.each(|lane| {
            each_column(lane, rows, |column| {
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
            // The pivot stays in row p if the column holds only NaN, which has no largest element.
            let pivot = if pivot < rows { pivot } else { p };
            let largest = unsafe { m.get(i, 0, (pivot, p)) };
            let size = largest.norm_sqr();
            let factor = if size == 0.0 { Complex::ONE } else { largest.conj().scale(crate::memory::reciprocal(size)) };
            warp.wait();
            // Exchanges rows p and `pivot`, and divides the new row p by the pivot.
            warp.each(|lane| {
                let exchange = |matrix: &CoarseTiles, column: u32| unsafe {
                    let (a, b) = (matrix.get(i, 0, (p, column)), matrix.get(i, 0, (pivot, column)));
                    matrix.set(i, 0, (pivot, column), a);
                    matrix.set(i, 0, (p, column), factor * b);
                };
                each_column(lane, rows, |column| {
                    if column >= p {
                        exchange(m, column);
                    }
                    exchange(inverse, column);
                });
            });
            // Column p of X keeps its numbers, because other lanes still read them.
            warp.each(|lane| {
                let mut row = 0;
                while row < rows {
                    if row != p {
                        let minus = -unsafe { m.get(i, 0, (row, p)) };
                        let subtract = |matrix: &CoarseTiles, column: u32| unsafe {
                            let z = matrix.get(i, 0, (row, column));
                            let z = minus.mul_add(matrix.get(i, 0, (p, column)), z);
                            matrix.set(i, 0, (row, column), z);
                        };
                        each_column(lane, rows, |column| {
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

/// Product of two matrices on each link: X⁻¹(A) Y_d(A). Call i computes a tile of a link.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct MultiplyLinks {
    /// X⁻¹
    pub left: CoarseTiles,
    /// Y
    pub links: CoarseTiles,
    /// Product X⁻¹ Y.
    pub out: CoarseTiles,
    /// Number of tiles along an edge of a matrix.
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
            let (g, t) = (COARSE_TILE * row + lane / 4, COARSE_TILE * column + 2 * (lane % 4));
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

/// Rounds matrices to 16 bits, with one scale for each matrix. Call i rounds matrix i.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RoundMatrices {
    /// Matrices in single precision.
    pub from: CoarseTiles,
    /// Matrices in 16 bits.
    pub to: CoarseTiles,
    /// Scales of the matrices in 16 bits.
    pub scales: Scales,
    /// Number of matrices at a site.
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
    by_warps COARSE_APPLY "coarse_apply": [CoarseApply] => coarse_links(looped 16);
    setup ADD_BACKWARD "add_backward": [AddBackward] => single_numbers;
    setup PACK_LINKS "pack_links": [PackLinks] => single_numbers;
    setup_by_warps INVERT "invert": [Invert] => single_numbers;
    setup_by_warps MULTIPLY_LINKS "multiply_links": [MultiplyLinks] => single_numbers;
    setup_by_warps ROUND_MATRICES "round_matrices": [RoundMatrices] => single_numbers;
}
