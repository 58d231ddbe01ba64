//! Links of a site in shared memory. Each thread copies its own links from the field once, and uses them for every right-hand
//! side.
use super::NumberFormat;
use super::links::LinkFormat;
use super::reconstruct::Reconstruct;
use crate::LinkStorage;
use crate::algebra::{Complex, Real, Su3};
#[cfg(target_arch = "nvptx64")]
use crate::memory::shared;
use crate::memory::{Chunk, Global, HalfChunk};
#[cfg(target_arch = "nvptx64")]
use crate::multi_rhs::LOOPED_THREADS;
use core::marker::PhantomData;

/// Storage of links in shared memory, with the reconstruction `R` and packed as in the field of links. A CPU reads the
/// links from the field instead.
#[derive(Clone, Copy, Debug)]
pub struct Staged<R>(PhantomData<R>);

impl<R: Reconstruct> Reconstruct for Staged<R> {
    const STORAGE: LinkStorage = R::STORAGE;
    const KEPT: usize = R::KEPT;
    const PHASE: bool = R::PHASE;
    type Full = Staged<R::Full>;
    const TEMPORAL: bool = R::TEMPORAL;
    #[inline(always)]
    fn expand<T: Real>(kept: impl Fn(usize) -> Complex<T>, phase: impl Fn() -> T) -> Su3<T> {
        R::expand(kept, phase)
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        R::reduce(u, j)
    }
}

/// Packed pair of links that is divided into chunks, the last of which may be short.
pub trait Slots: Copy {
    /// Writes a pair of `bytes` bytes to the slots of this thread, from number `slot` on.
    ///
    /// # Safety
    /// The block keeps as many slots as are written; `bytes` is the size of a pair.
    #[cfg(target_arch = "nvptx64")]
    unsafe fn keep(self, slot: usize, bytes: usize);
    /// Reads a pair from the slots of a thread, whose first slot is at `address`, from number `slot` on.
    ///
    /// # Safety
    /// The contract of [`keep`](Self::keep) holds.
    #[cfg(target_arch = "nvptx64")]
    unsafe fn kept(address: u32, slot: usize, bytes: usize) -> Self;
}

/// Distance in bytes between consecutive slots of a thread: 16 for each thread of the block.
#[cfg(target_arch = "nvptx64")]
const STRIDE: u32 = 16 * LOOPED_THREADS;

impl<const K: usize> Slots for ([Chunk; K], HalfChunk) {
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    unsafe fn keep(self, slot: usize, bytes: usize) {
        let at = first_slot() + slot as u32 * STRIDE;
        let mut k = 0;
        while k < K {
            unsafe { shared::store16(at + k as u32 * STRIDE, self.0[k]) };
            k += 1;
        }
        if bytes > 16 * K {
            unsafe { shared::store8(at + K as u32 * STRIDE, self.1) };
        }
    }
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    unsafe fn kept(address: u32, slot: usize, bytes: usize) -> Self {
        let at = address + slot as u32 * STRIDE;
        let mut chunks = [Chunk::default(); K];
        let mut k = 0;
        while k < K {
            chunks[k] = unsafe { shared::load16(at + k as u32 * STRIDE) };
            k += 1;
        }
        let tail = if bytes > 16 * K { unsafe { shared::load8(at + K as u32 * STRIDE) } } else { HalfChunk::default() };
        (chunks, tail)
    }
}

/// Returns the address, in shared memory, of this thread's first slot.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn first_slot() -> u32 {
    crate::device::staged_links() + 16 * crate::device::thread()
}

/// Returns the number of 16-byte slots for a pair.
const fn slots<P: NumberFormat, R: LinkFormat<P>>() -> usize {
    R::PAIR_BYTES.div_ceil(16)
}
/// Returns the number of bytes of the slots for the four pairs of a site.
pub const fn staged_bytes<P: NumberFormat, R: LinkFormat<P>>() -> usize {
    4 * 16 * slots::<P, R>()
}

impl<P: NumberFormat, R: LinkFormat<P, Pair: Slots>> LinkFormat<P> for Staged<R> {
    type Pair = R::Pair;
    const UNIT: bool = R::UNIT;
    const PAIR_BYTES: usize = R::PAIR_BYTES;
    /// Reads a pair of links. On a GPU, `base` is the address of the thread's first slot.
    #[inline(always)]
    unsafe fn pair(base: Global, i: u32, mu: usize) -> R::Pair {
        #[cfg(target_arch = "nvptx64")]
        unsafe {
            let _ = i;
            R::Pair::kept(base.0 as u32, mu * slots::<P, R>(), R::PAIR_BYTES)
        }
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe {
            R::pair(base, i, mu)
        }
    }
    #[inline(always)]
    unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> R::Pair {
        unsafe { R::load_pair(tile, lane, mu) }
    }
    #[inline(always)]
    fn forward(pair: &R::Pair) -> Su3<P::Real> {
        R::forward(pair)
    }
    #[inline(always)]
    fn backward(pair: &R::Pair) -> Su3<P::Real> {
        R::backward(pair)
    }
}

/// Copies the pairs of links of site `i` to this thread's slots, and returns the base address of the slots for
/// [`LinkFormat::pair`].
///
/// # Safety
/// The contract of [`StageLinks::stage`](crate::multi_rhs::StageLinks::stage) holds.
#[inline(always)]
pub unsafe fn stage<P: NumberFormat, R: LinkFormat<P, Pair: Slots>>(base: Global, i: u32) -> Global {
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        macro_rules! keep {
            ($($mu:literal)*) => {$(R::pair(base, i, $mu).keep($mu * slots::<P, R>(), R::PAIR_BYTES);)*};
        }
        keep!(0 1 2 3);
        Global(first_slot() as usize as *mut u8)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = i;
        base
    }
}
