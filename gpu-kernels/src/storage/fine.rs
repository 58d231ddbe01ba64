//! Links in 21 bits, for fat links beside fields in single precision.
//!
//! The parts of a link element are in \[−1, 1\], with value (u − 2²⁰) · 2⁻²⁰, clipped at 1 − 2⁻²⁰. Three codes u share two words: the first
//! is in the low bits of the first word, the third in the high bits of the second word, and the middle one has 11 bits in the first
//! word and 10 in the second.
use super::reconstruct::{Recon18, Reconstruct};
use super::{LinkFormat, STRIDE, Single, StoreLinks, TILE};
use crate::LinkStorage;
use crate::algebra::{Complex, Real, Su3, complex};
use crate::memory::{Access, Chunk, Global};

/// Storage of all nine complex elements of a link, with 21 bits for each real number.
#[derive(Clone, Copy, Debug)]
pub struct Fine18;

/// Bytes of the two links of a direction.
pub(crate) const PAIR_BYTES: usize = 16 * CHUNKS;
const CHUNKS: usize = 6;
const BITS: u32 = 21;
const MASK: u32 = (1 << BITS) - 1;
/// The float 8, whose unit in the last place is 2⁻²⁰.
const BIAS: u32 = 0x4100_0000;
/// Factor from real numbers to codes.
const SCALE: f64 = (1 << 20) as f64;

impl Reconstruct for Fine18 {
    type Full = Fine18;
    const STORAGE: LinkStorage = LinkStorage::FULL.in_fine();
    const KEPT: usize = Recon18::KEPT;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
        Recon18::expand(at, phase)
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        Recon18::reduce(u, j)
    }
}

/// Returns real number `i` of a pair.
#[inline(always)]
fn real(pair: &[Chunk; CHUNKS], i: usize) -> f32 {
    let word = |k: usize| pair[k / 4].0[k % 4];
    let first = i / 3 * 2;
    let code = match i % 3 {
        0 => word(first) & MASK,
        1 => (word(first) >> BITS | word(first + 1) << (32 - BITS)) & MASK,
        _ => word(first + 1) >> (32 - BITS),
    };
    f32::from_bits(code | BIAS) - 9.0
}
/// Returns the code of a real number.
#[inline(always)]
fn code(x: f64) -> u32 {
    // Adding 1.5 · 2⁵² rounds to the nearest integer without a call of a library function.
    let u = (x * SCALE + SCALE).clamp(0.0, f64::from(MASK));
    (u + 6_755_399_441_055_744.0).to_bits() as u32 & MASK
}
/// Returns the matrix that begins with real number `first` of a pair.
#[inline(always)]
fn link(pair: &[Chunk; CHUNKS], first: usize) -> Su3<f32> {
    Fine18::expand(|j| complex(real(pair, first + 2 * j), real(pair, first + 2 * j + 1)), || 0.0)
}

impl LinkFormat<Single> for Fine18 {
    type Pair = [Chunk; CHUNKS];
    const UNIT: bool = true;
    const PAIR_BYTES: usize = PAIR_BYTES;
    #[inline(always)]
    unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> Self::Pair {
        let mut chunks = [Chunk::default(); CHUNKS];
        let mut k = 0;
        while k < CHUNKS {
            chunks[k] = unsafe { tile.load16(mu * TILE * PAIR_BYTES + 16 * lane + k * STRIDE, Access::Once) };
            k += 1;
        }
        chunks
    }
    #[inline(always)]
    fn forward(pair: &Self::Pair) -> Su3<f32> {
        link(pair, 0)
    }
    #[inline(always)]
    fn backward(pair: &Self::Pair) -> Su3<f32> {
        link(pair, 18)
    }
}
impl StoreLinks<Single> for Fine18 {
    #[inline(always)]
    unsafe fn store_pair(tile: Global, lane: usize, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>) {
        let code = |i: usize| {
            let z = Self::reduce(if i < 18 { forward } else { backward }, i % 18 / 2);
            code(if i.is_multiple_of(2) { z.re } else { z.im })
        };
        // Six codes fill a chunk.
        let mut k = 0;
        while k < CHUNKS {
            let words = |i: usize| {
                let (a, b, c) = (code(i), code(i + 1), code(i + 2));
                [a | b << BITS, b >> (32 - BITS) | c << (32 - BITS)]
            };
            let ([a, b], [c, d]) = (words(6 * k), words(6 * k + 3));
            let at = mu * TILE * PAIR_BYTES + 16 * lane + k * STRIDE;
            unsafe { tile.store16(at, Chunk([a, b, c, d])) };
            k += 1;
        }
    }
}
