//! Spinors of twelve words, each a complex number of two 16-bit numbers, in three chunks.
//!
//! The upper and the lower pair of spins are 24 contiguous bytes each, a chunk and a half, so that a hop in t reads no more
//! than it needs.
use super::STRIDE;
use crate::algebra::{Projector, ProjectorSign};
use crate::memory::{Access, Chunk, Global, HalfChunk};

/// Number of bytes of the twelve words of a spinor.
pub const BYTES: usize = 48;

/// Reads the twelve words of a spinor. The three colours of a spin follow each other.
///
/// # Safety
/// The tile is valid and read as `access` promises.
#[inline(always)]
pub unsafe fn load(tile: Global, lane: usize, access: Access) -> [u32; 12] {
    let at = |k: usize| unsafe { tile.load16(16 * lane + k * STRIDE, access).0 };
    let (a, b, c) = (at(0), at(1), at(2));
    [a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], c[2], c[3], b[2], b[3]]
}
/// Reads the words of the two spins that the projector `p` in t keeps.
///
/// # Safety
/// The tile is valid and nothing writes it meanwhile.
#[inline(always)]
pub unsafe fn load_kept<S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> [u32; 6] {
    let (chunk, tail) = if p.kept() == 0 { (0, 0) } else { (2, 8) };
    let (Chunk([a, b, c, d]), HalfChunk([e, f])) = unsafe {
        (tile.load16(16 * lane + chunk * STRIDE, Access::Shared), tile.load8(16 * lane + STRIDE + tail, Access::Shared))
    };
    [a, b, c, d, e, f]
}
/// Writes the twelve words of a spinor, `word(spin, colour)` for each spin and colour.
///
/// # Safety
/// The tile is valid, and no other thread writes the element.
#[inline(always)]
pub unsafe fn store(tile: Global, lane: usize, word: impl Fn(usize, usize) -> u32) {
    let put = |k: usize, w: [u32; 4]| unsafe { tile.store16(16 * lane + k * STRIDE, Chunk(w)) };
    put(0, [word(0, 0), word(0, 1), word(0, 2), word(1, 0)]);
    put(1, [word(1, 1), word(1, 2), word(3, 1), word(3, 2)]);
    put(2, [word(2, 0), word(2, 1), word(2, 2), word(3, 0)]);
}

/// Number of bytes of the six words of a half spinor, a chunk and a half.
pub const HALF_BYTES: usize = 24;

/// Reads the six words of a half spinor.
///
/// # Safety
/// The contract of [`load_kept`] holds.
#[inline(always)]
pub unsafe fn load_half(tile: Global, lane: usize) -> [u32; 6] {
    let (Chunk([a, b, c, d]), HalfChunk([e, f])) =
        unsafe { (tile.load16(16 * lane, Access::Shared), tile.load8(STRIDE + 8 * lane, Access::Shared)) };
    [a, b, c, d, e, f]
}
/// Writes the six words of a half spinor.
///
/// # Safety
/// The contract of [`store`] holds.
#[inline(always)]
pub unsafe fn store_half(tile: Global, lane: usize, [a, b, c, d, e, f]: [u32; 6]) {
    unsafe {
        tile.store16(16 * lane, Chunk([a, b, c, d]));
        tile.store8(STRIDE + 8 * lane, HalfChunk([e, f]));
    }
}
