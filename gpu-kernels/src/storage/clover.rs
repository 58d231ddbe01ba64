//! The clover term: two Hermitian 6×6 blocks per site, 72 reals.
use super::{Double, Fp16, Half, LinkWords, NumberFormat, STRIDE, Single, TILE, record};
use crate::algebra::{Colour, Complex, DiracSpinor, Real, complex};
use crate::memory::{Access, Chunk, Global};
use crate::multi_rhs::each_rhs;

/// Hermitian 6×6 matrix that acts on two spins of three colours; the index of a row or column is 3 · spin + colour. The
/// diagonal and the elements below it are stored, row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block<T> {
    /// Diagonal.
    pub diagonal: [T; 6],
    /// Elements below the diagonal: (1,0), (2,0), (2,1), (3,0) … (5,4).
    pub lower: [Complex<T>; 15],
}

/// Factor ½ with which clover blocks are stored. It replaces the factors 1/√2 of the changes of spin basis before and
/// after a block.
pub const HALF: f64 = 0.5;

/// Returns the index in [`Block::lower`] of the element (row, column), where row > column.
pub const fn lower_index(row: usize, column: usize) -> usize {
    row * (row - 1) / 2 + column
}

/// Returns the larger of two numbers, or NaN if either is NaN, because a NaN must survive storage.
#[inline(always)]
fn larger_or_nan<T: Real>(a: T, b: T) -> T {
    let is_nan = a.partial_cmp(&a).is_none();
    if a > b || is_nan { a } else { b }
}

impl<T: Real> Block<T> {
    /// 0
    pub const ZERO: Self = Block { diagonal: [T::ZERO; 6], lower: [Complex::ZERO; 15] };

    /// Returns the product of the block with a vector of two spins.
    #[inline(always)]
    pub fn times(&self, [a, b]: [Colour<T>; 2]) -> [Colour<T>; 2] {
        let x = [a.0[0], a.0[1], a.0[2], b.0[0], b.0[1], b.0[2]];
        let mut y = [Complex::ZERO; 6];
        macro_rules! row {
            ($i:literal: $($below:literal)*; $($above:literal)*) => {
                let sum = x[$i].scale(self.diagonal[$i]);
                $(let sum = self.lower[lower_index($i, $below)].mul_add(x[$below], sum);)*
                $(let sum = self.lower[lower_index($above, $i)].conj_mul_add(x[$above], sum);)*
                y[$i] = sum;
            };
        }
        row!(0: ; 1 2 3 4 5);
        row!(1: 0; 2 3 4 5);
        row!(2: 0 1; 3 4 5);
        row!(3: 0 1 2; 4 5);
        row!(4: 0 1 2 3; 5);
        row!(5: 0 1 2 3 4;);
        [Colour([y[0], y[1], y[2]]), Colour([y[3], y[4], y[5]])]
    }
    /// Returns the largest absolute value of all real and imaginary parts, or NaN if one is NaN.
    #[inline(always)]
    fn largest(&self) -> T {
        let mut largest = T::ZERO;
        let mut see = |x: T| largest = larger_or_nan(largest, if x < T::ZERO { -x } else { x });
        for d in self.diagonal {
            see(d);
        }
        for z in self.lower {
            see(z.re);
            see(z.im);
        }
        largest
    }
    /// Returns complex number `j` of the stored record of 18: the diagonal in pairs, then the lower triangle.
    #[inline(always)]
    fn record(&self, j: usize) -> Complex<T> {
        if j < 3 { complex(self.diagonal[2 * j], self.diagonal[2 * j + 1]) } else { self.lower[j - 3] }
    }
    /// Returns the block from the 18 complex numbers of its record.
    #[inline(always)]
    pub(super) fn from_record(at: impl Fn(usize) -> Complex<T>) -> Self {
        let (d, e, f) = (at(0), at(1), at(2));
        Block {
            diagonal: [d.re, d.im, e.re, e.im, f.re, f.im],
            lower: [
                at(3),
                at(4),
                at(5),
                at(6),
                at(7),
                at(8),
                at(9),
                at(10),
                at(11),
                at(12),
                at(13),
                at(14),
                at(15),
                at(16),
                at(17),
            ],
        }
    }
}

/// Storage format of the two clover blocks of a site in one precision.
pub trait CloverFormat: NumberFormat {
    /// Number of bytes of both blocks of a site.
    const CLOVER_BYTES: usize;
    /// Reads the block of `chirality` (0: upper spins of the DeGrand–Rossi basis, 1: lower spins), and the factor that still
    /// multiplies its elements.
    ///
    /// # Safety
    /// The tile is valid and nothing writes it meanwhile.
    unsafe fn load_block(tile: Global, lane: usize, chirality: usize) -> (Block<Self::Real>, Self::Real);
}

/// Storage format in which the blocks of a site are written together.
pub trait StoreClover: CloverFormat {
    /// Writes both blocks of a site.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the element.
    unsafe fn store_blocks(tile: Global, lane: usize, blocks: &[Block<f64>; 2]);
}

/// Storage format in which the two blocks of a site can be written one by one, because they share no words.
pub trait StoreBlock: StoreClover {
    /// Writes the block of `chirality`.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the element.
    unsafe fn store_block(tile: Global, lane: usize, chirality: usize, block: &Block<f64>);
}

/// Divides N blocks by `norm`, and writes their records, 18 complex numbers each, from record number `first` on.
///
/// The loop uses indices, because a slice iterator ends with a null reference, and in the GPU's local memory the first variable
/// of a function has address 0.
#[inline(always)]
unsafe fn store_records<P: LinkWords, const NUMBER: usize, const N: usize>(
    tile: Global,
    lane: usize,
    first: usize,
    blocks: &[Block<f64>; N],
    norm: f64,
) {
    let inverse = norm.reciprocal();
    let mut j = 0;
    while j < 18 * N {
        let words = P::encode_link(blocks[j / 18].record(j % 18).scale(inverse));
        let mut k = 0;
        while k < P::LINK_WORDS {
            let i = (18 * first + j) * P::LINK_WORDS + k;
            unsafe { record::store_word::<NUMBER>(tile, lane, i, [usize::MAX / 4, 0], words[k]) };
            k += 1;
        }
        j += 1;
    }
}

macro_rules! clover_format {
    ($precision:ident: $chunks:literal chunks a block) => {
        impl CloverFormat for $precision {
            const CLOVER_BYTES: usize = 2 * 16 * $chunks;
            #[inline(always)]
            unsafe fn load_block(tile: Global, lane: usize, chirality: usize) -> (Block<Self::Real>, Self::Real) {
                let mut chunks = [Chunk::default(); $chunks];
                let mut k = 0;
                while k < $chunks {
                    let number = chirality * $chunks + k;
                    chunks[k] =
                        unsafe { record::load::<{ <$precision>::RECORD_NUMBER }>(tile, lane, number, Access::Once) };
                    k += 1;
                }
                (Block::from_record(|j| Self::decode_link(|i| chunks[i / 4].0[i % 4], j)), Self::Real::ONE)
            }
        }
        impl StoreClover for $precision {
            #[inline(always)]
            unsafe fn store_blocks(tile: Global, lane: usize, blocks: &[Block<f64>; 2]) {
                unsafe { store_records::<Self, { Self::RECORD_NUMBER }, 2>(tile, lane, 0, blocks, 1.0) }
            }
        }
        impl StoreBlock for $precision {
            #[inline(always)]
            unsafe fn store_block(tile: Global, lane: usize, chirality: usize, block: &Block<f64>) {
                unsafe { store_records::<Self, { Self::RECORD_NUMBER }, 1>(tile, lane, chirality, &[*block], 1.0) }
            }
        }
    };
}
clover_format!(Double: 18 chunks a block);
clover_format!(Single: 9 chunks a block);

/// Reads a block whose complex numbers are words. It has four and a half chunks, so that the two blocks of a site share a
/// chunk.
///
/// # Safety
/// The contract of [`CloverFormat::load_block`] holds.
#[inline(always)]
unsafe fn load_words<P: LinkWords>(tile: Global, lane: usize, chirality: usize) -> Block<P::Real> {
    let mut chunks = [Chunk::default(); 5];
    let mut k = 0;
    while k < 5 {
        chunks[k] = unsafe { tile.load16(16 * lane + (4 * chirality + k) * STRIDE, Access::Shared) };
        k += 1;
    }
    let first = 2 * chirality;
    Block::from_record(|j| P::decode_link(|i| chunks[(first + i) / 4].0[(first + i) % 4], j))
}

/// Blocks have no norm. Their rounding is relative, so that elements between 6 · 10⁻⁵ and 65504 need none.
impl CloverFormat for Fp16 {
    const CLOVER_BYTES: usize = 9 * 16;
    #[inline(always)]
    unsafe fn load_block(tile: Global, lane: usize, chirality: usize) -> (Block<f32>, f32) {
        (unsafe { load_words::<Self>(tile, lane, chirality) }, f32::ONE)
    }
}
impl StoreClover for Fp16 {
    #[inline(always)]
    unsafe fn store_blocks(tile: Global, lane: usize, blocks: &[Block<f64>; 2]) {
        unsafe { store_records::<Self, { Self::RECORD_NUMBER }, 2>(tile, lane, 0, blocks, 1.0) }
    }
}

/// The two blocks of a site have one norm, which is stored behind their words.
impl CloverFormat for Half {
    const CLOVER_BYTES: usize = 9 * 16 + 4;
    #[inline(always)]
    unsafe fn load_block(tile: Global, lane: usize, chirality: usize) -> (Block<f32>, f32) {
        unsafe { (load_words::<Self>(tile, lane, chirality), tile.load4(9 * STRIDE + 4 * lane, Access::Once)) }
    }
}
impl StoreClover for Half {
    #[inline(always)]
    unsafe fn store_blocks(tile: Global, lane: usize, blocks: &[Block<f64>; 2]) {
        let largest = larger_or_nan(blocks[0].largest(), blocks[1].largest());
        // With this norm, the code of the largest element is 1 − 2⁻¹⁵, the largest number that the format represents.
        let norm = (largest * (32768.0 / 32767.0)) as f32;
        unsafe {
            store_records::<Self, { Self::RECORD_NUMBER }, 2>(
                tile,
                lane,
                0,
                blocks,
                if norm > 0.0 { norm as f64 } else { 1.0 },
            );
            tile.store4(9 * STRIDE + 4 * lane, norm);
        }
    }
}

const _: () = assert!((TILE * <Half as CloverFormat>::CLOVER_BYTES).is_multiple_of(4 * TILE), "tiles stay aligned");
const _: () = assert!((TILE * <Fp16 as CloverFormat>::CLOVER_BYTES).is_multiple_of(4 * TILE), "tiles stay aligned");

/// Applies the clover term, or its inverse, to N spinors in the device's basis. Blocks must be stored with the factor ½
/// of the two changes of basis ([`HALF`]).
///
/// # Safety
/// The contract of [`CloverFormat::load_block`] holds.
#[inline(always)]
pub unsafe fn apply_clover<P: CloverFormat, const N: usize>(
    tile: Global,
    lane: usize,
    spinors: [DiracSpinor<P::Real>; N],
) -> [DiracSpinor<P::Real>; N] {
    let (mut upper, mut out) = ([[Colour::ZERO; 2]; N], [DiracSpinor::ZERO; N]);
    // In the DeGrand–Rossi basis, the clover term is block diagonal. The blocks act on √2 times the upper and the lower
    // spins of this basis.
    let (block, scale) = unsafe { P::load_block(tile, lane, 0) };
    each_rhs!(k < N: {
        let [a, b, c, d] = spinors[k].0;
        let [u, v] = scaled(block.times([a - c, b - d]), scale);
        upper[k] = [u, v];
    });
    let (block, scale) = unsafe { P::load_block(tile, lane, 1) };
    each_rhs!(k < N: {
        let [a, b, c, d] = spinors[k].0;
        let [w, x] = scaled(block.times([a + c, b + d]), scale);
        let [u, v] = upper[k];
        out[k] = DiracSpinor([u + w, v + x, w - u, x - v]);
    });
    out
}

#[inline(always)]
fn scaled<T: Real>([a, b]: [Colour<T>; 2], scale: T) -> [Colour<T>; 2] {
    [a.map(|z| z.scale(scale)), b.map(|z| z.scale(scale))]
}
