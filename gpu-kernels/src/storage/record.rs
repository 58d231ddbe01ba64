//! Layout of the words of a site's record in a tile.
//!
//! On a GPU a record is stored in chunks of 16 bytes, `[chunk][site]`, so that a warp reads whole cache lines. On a CPU,
//! records of real numbers in 32 or 64 bits are stored complex number by complex number, `[number][site]`, so that two vector
//! registers hold one number of consecutive sites. Formats of 16 bits have chunks on a CPU as well.
use super::{NUMBER_STRIDE, STRIDE};
use crate::memory::{Access, Chunk, Global, HalfChunk};

/// Value of the parameter `NUMBER` for records that are stored in chunks on a CPU; otherwise `NUMBER` is the number of
/// bytes of a complex number.
pub const CHUNKS: usize = 0;

/// Returns whether records of complex numbers of `number` bytes are in chunks on this target.
const fn in_chunks(number: usize) -> bool {
    cfg!(target_arch = "nvptx64") || number == CHUNKS
}
/// Returns the byte offset in the tile of word `i` of a record that is not in chunks.
#[inline(always)]
const fn place<const NUMBER: usize>(lane: usize, i: usize) -> usize {
    let byte = 4 * i;
    byte / NUMBER * NUMBER_STRIDE + NUMBER * lane + byte % NUMBER
}

/// Reads words 4 k to 4 k + 3 of a site's record.
///
/// # Safety
/// The tile is valid and read as `access` promises; `lane` < [`Element::TILE`](super::Element::TILE).
#[inline(always)]
pub unsafe fn load<const NUMBER: usize>(tile: Global, lane: usize, k: usize, access: Access) -> Chunk {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.load16(16 * lane + k * STRIDE, access)
        } else if const { NUMBER == 16 } {
            tile.load16(place::<NUMBER>(lane, 4 * k), access)
        } else {
            let two = |i: usize| tile.load8(place::<NUMBER>(lane, i), access).0;
            let ([a, b], [c, d]) = (two(4 * k), two(4 * k + 2));
            Chunk([a, b, c, d])
        }
    }
}
/// Reads words 4 k and 4 k + 1 of a site's record, which are the last ones of the record.
///
/// # Safety
/// The contract of [`load`] holds.
#[inline(always)]
pub unsafe fn load_half<const NUMBER: usize>(tile: Global, lane: usize, k: usize, access: Access) -> HalfChunk {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.load8(8 * lane + k * STRIDE, access)
        } else {
            tile.load8(place::<NUMBER>(lane, 4 * k), access)
        }
    }
}
/// Reads words 2 k and 2 k + 1 of a site's record that consists of whole chunks.
///
/// # Safety
/// The contract of [`load`] holds.
#[inline(always)]
pub unsafe fn load_number<const NUMBER: usize>(tile: Global, lane: usize, k: usize, access: Access) -> HalfChunk {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.load8(16 * lane + k / 2 * STRIDE + 8 * (k % 2), access)
        } else {
            tile.load8(place::<NUMBER>(lane, 2 * k), access)
        }
    }
}
/// Writes words 2 k and 2 k + 1 of a site's record that consists of whole chunks.
///
/// # Safety
/// The contract of [`store`] holds.
#[inline(always)]
pub unsafe fn store_number<const NUMBER: usize>(tile: Global, lane: usize, k: usize, words: HalfChunk) {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.store8(16 * lane + k / 2 * STRIDE + 8 * (k % 2), words);
        } else {
            tile.store8(place::<NUMBER>(lane, 2 * k), words);
        }
    }
}
/// Writes words 4 k to 4 k + 3 of a site's record.
///
/// # Safety
/// The tile is valid, and no other thread writes the record; `lane` < [`Element::TILE`](super::Element::TILE).
#[inline(always)]
pub unsafe fn store<const NUMBER: usize>(tile: Global, lane: usize, k: usize, chunk: Chunk) {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.store16(16 * lane + k * STRIDE, chunk);
        } else if const { NUMBER == 16 } {
            tile.store16(place::<NUMBER>(lane, 4 * k), chunk);
        } else {
            let Chunk([a, b, c, d]) = chunk;
            tile.store8(place::<NUMBER>(lane, 4 * k), HalfChunk([a, b]));
            tile.store8(place::<NUMBER>(lane, 4 * k + 2), HalfChunk([c, d]));
        }
    }
}
/// Writes words 4 k and 4 k + 1 of a site's record, which are the last ones of the record.
///
/// # Safety
/// The contract of [`store`] holds.
#[inline(always)]
pub unsafe fn store_half<const NUMBER: usize>(tile: Global, lane: usize, k: usize, chunk: HalfChunk) {
    unsafe {
        if const { in_chunks(NUMBER) } {
            tile.store8(8 * lane + k * STRIDE, chunk);
        } else {
            tile.store8(place::<NUMBER>(lane, 4 * k), chunk);
        }
    }
}
/// Writes word `i` of a site's record that consists of `chunks` whole chunks and a last chunk of `tail` bytes.
///
/// # Safety
/// The contract of [`store`] holds.
#[inline(always)]
pub unsafe fn store_word<const NUMBER: usize>(
    tile: Global,
    lane: usize,
    i: usize,
    [chunks, tail]: [usize; 2],
    word: u32,
) {
    let at = if const { !in_chunks(NUMBER) } {
        place::<NUMBER>(lane, i)
    } else if i < 4 * chunks {
        16 * lane + i / 4 * STRIDE + 4 * (i % 4)
    } else {
        tail * lane + chunks * STRIDE + 4 * (i - 4 * chunks)
    };
    unsafe { tile.store4(at, f32::from_bits(word)) }
}
