//! Storage of links, momenta and similar matrices: complex numbers in the format of registers.
use super::{NUMBER_STRIDE, PADDING, TILE, double_words, one_double, record};
use crate::Precision;
use crate::algebra::{AntiHermitian, Complex, Su3, complex};
use crate::memory::{Access, Chunk, Global, HalfChunk};
use crate::per_rhs::Rounded;

/// Real number type of matrices and momenta. Complex numbers are stored one by one, in rows of a tile.
pub trait Element: Rounded {
    /// The precision as a value.
    const PRECISION: Precision;
    /// Bytes of a complex number.
    const BYTES: usize;
    /// Number of sites per tile: those of one warp, or on a CPU as many as have a number in two cache lines.
    const TILE: usize = if cfg!(target_arch = "nvptx64") { PADDING } else { NUMBER_STRIDE / Self::BYTES };
    /// Returns the site of a lane from the index that a kernel gets.
    #[inline(always)]
    fn site(i: u32, _lane: usize) -> u32 {
        i
    }
    /// Reads complex number `k` of a site.
    ///
    /// # Safety
    /// The tile is valid and read as `access` promises; `lane` < [`TILE`](Self::TILE).
    unsafe fn load(tile: Global, lane: usize, k: usize, access: Access) -> Complex<Self>;
    /// Writes complex number `k` of a site.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the number; `lane` < [`TILE`](Self::TILE).
    unsafe fn store(tile: Global, lane: usize, k: usize, z: Complex<Self>);
    /// Reads complex number `k` of a site, or of a group of sites in the group's own lane order.
    ///
    /// # Safety
    /// The contract of [`load`](Self::load) holds.
    #[inline(always)]
    unsafe fn straight(tile: Global, lane: usize, k: usize, access: Access) -> Complex<Self> {
        unsafe { Self::load(tile, lane, k, access) }
    }
    /// Prefetches complex number `k` of a group of sites.
    #[inline(always)]
    fn prefetch(_tile: Global, _lane: usize, _k: usize) {}
    /// Returns whether a place in a tile (`place_in_tiles`) is that of a group with exchanged lanes.
    #[inline(always)]
    fn is_turned(_lane: usize) -> bool {
        false
    }
    /// Returns the numbers of a group after the exchange of lanes that the place encodes.
    #[must_use]
    #[inline(always)]
    fn turned(self, _lane: usize) -> Self {
        self
    }
    /// Returns complex number `k` of an array of complex numbers.
    ///
    /// # Safety
    /// The array is valid and has number `k`; nothing writes it while the kernel runs.
    unsafe fn of_array(array: Global, k: usize) -> Complex<Self>;
}

impl Element for f64 {
    const PRECISION: Precision = Precision::Double;
    const BYTES: usize = 16;
    #[inline(always)]
    unsafe fn load(tile: Global, lane: usize, k: usize, access: Access) -> Complex<f64> {
        one_double(unsafe { record::load::<16>(tile, lane, k, access) }.0)
    }
    #[inline(always)]
    unsafe fn store(tile: Global, lane: usize, k: usize, z: Complex<f64>) {
        unsafe { record::store::<16>(tile, lane, k, Chunk(double_words(z))) }
    }
    #[inline(always)]
    unsafe fn of_array(array: Global, k: usize) -> Complex<f64> {
        one_double(unsafe { array.load16(Self::BYTES * k, Access::Shared) }.0)
    }
}

impl Element for f32 {
    const PRECISION: Precision = Precision::Single;
    const BYTES: usize = 8;
    #[inline(always)]
    unsafe fn load(tile: Global, lane: usize, k: usize, access: Access) -> Complex<f32> {
        // Each number of a matrix is one row of its tile. A GPU reads it as a half chunk.
        let HalfChunk([re, im]) = unsafe { record::load_half::<8>(tile.offset(8 * TILE * k), lane, 0, access) };
        complex(f32::from_bits(re), f32::from_bits(im))
    }
    #[inline(always)]
    unsafe fn store(tile: Global, lane: usize, k: usize, z: Complex<f32>) {
        let words = HalfChunk([z.re.to_bits(), z.im.to_bits()]);
        unsafe { record::store_half::<8>(tile.offset(8 * TILE * k), lane, 0, words) }
    }
    #[inline(always)]
    unsafe fn of_array(array: Global, k: usize) -> Complex<f32> {
        let HalfChunk([re, im]) = unsafe { array.load8(Self::BYTES * k, Access::Shared) };
        complex(f32::from_bits(re), f32::from_bits(im))
    }
}

/// Reads a matrix, nine complex numbers, from a tile of matrices.
///
/// # Safety
/// The contract of [`Element::load`] holds.
#[inline(always)]
pub(crate) unsafe fn load_su3<T: Element>((tile, lane): (Global, usize), access: Access) -> Su3<T> {
    macro_rules! element {
        ($k:literal) => {
            unsafe { T::load(tile, lane, $k, access) }
        };
    }
    Su3([
        [element!(0), element!(1), element!(2)],
        [element!(3), element!(4), element!(5)],
        [element!(6), element!(7), element!(8)],
    ])
}
/// Writes a matrix in the layout of [`load_su3`].
///
/// # Safety
/// The contract of [`Element::store`] holds.
#[inline(always)]
pub(crate) unsafe fn store_su3<T: Element>((tile, lane): (Global, usize), u: &Su3<T>) {
    macro_rules! put {
        ($($k:literal)*) => {$(
            unsafe { T::store(tile, lane, $k, u.0[$k / 3][$k % 3]) };
        )*};
    }
    put!(0 1 2 3 4 5 6 7 8);
}

/// Reads a momentum, four complex numbers, in the layout of [`load_su3`].
///
/// # Safety
/// The contract of [`load_su3`] holds.
#[inline(always)]
pub(crate) unsafe fn load_momentum<T: Element>((tile, lane): (Global, usize), access: Access) -> AntiHermitian<T> {
    macro_rules! element {
        ($k:literal) => {
            unsafe { T::load(tile, lane, $k, access) }
        };
    }
    let diagonal = element!(0);
    AntiHermitian { diagonal: [diagonal.re, diagonal.im], upper: [element!(1), element!(2), element!(3)] }
}
/// Writes a momentum in the layout of [`load_momentum`].
///
/// # Safety
/// The contract of [`store_su3`] holds.
#[inline(always)]
pub(crate) unsafe fn store_momentum<T: Element>((tile, lane): (Global, usize), p: &AntiHermitian<T>) {
    let ([d, e], [a, b, c]) = (p.diagonal, p.upper);
    unsafe {
        T::store(tile, lane, 0, complex(d, e));
        T::store(tile, lane, 1, a);
        T::store(tile, lane, 2, b);
        T::store(tile, lane, 3, c);
    }
}
