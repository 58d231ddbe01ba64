//! Links, momenta and their likes: complex numbers as they are, in the format of registers.
use super::{NUMBER_STRIDE, PADDING, TILE, double_words, one_double, record};
use crate::Precision;
use crate::algebra::{AntiHermitian, Complex, Su3, complex};
use crate::memory::{Access, Chunk, Global, HalfChunk};
use crate::per_rhs::Rounded;

/// A real number type as matrices and momenta are kept in, complex number by complex number, in rows of a tile.
pub trait Element: Rounded {
    /// As a value.
    const PRECISION: Precision;
    /// Bytes of a complex number.
    const BYTES: usize;
    /// Sites per tile: those of one warp; on a CPU as many as have a number in two cache lines.
    const TILE: usize = if cfg!(target_arch = "nvptx64") { PADDING } else { NUMBER_STRIDE / Self::BYTES };
    /// The site of a lane, from the index that a kernel is given.
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
    /// The tile is valid and the number written by nobody else; `lane` < [`TILE`](Self::TILE).
    unsafe fn store(tile: Global, lane: usize, k: usize, z: Complex<Self>);
    /// Reads complex number `k` of a site; of a group of sites, those at their own places.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    #[inline(always)]
    unsafe fn straight(tile: Global, lane: usize, k: usize, access: Access) -> Complex<Self> {
        unsafe { Self::load(tile, lane, k, access) }
    }
    /// Whether a place in a tile (`place_in_tiles`) is that of a group whose lanes have changed places.
    #[inline(always)]
    fn is_turned(_lane: usize) -> bool {
        false
    }
    /// The numbers of a group in the lanes that the place says.
    #[must_use]
    #[inline(always)]
    fn turned(self, _lane: usize) -> Self {
        self
    }
    /// Complex number `k` of an array of complex numbers.
    ///
    /// # Safety
    /// The array is valid and has that number; nothing writes it while the kernel runs.
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
        // Numbers are rows of a tile by themselves, half chunks on a GPU.
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

/// A matrix of a tile of matrices: nine complex numbers.
///
/// # Safety
/// As [`Element::load`].
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
/// Writes a matrix where [`load_su3`] finds it.
///
/// # Safety
/// As [`Element::store`].
#[inline(always)]
pub(crate) unsafe fn store_su3<T: Element>((tile, lane): (Global, usize), u: &Su3<T>) {
    macro_rules! put {
        ($($k:literal)*) => {$(
            unsafe { T::store(tile, lane, $k, u.0[$k / 3][$k % 3]) };
        )*};
    }
    put!(0 1 2 3 4 5 6 7 8);
}

/// A momentum: four complex numbers in the same way.
///
/// # Safety
/// As [`load_su3`].
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
/// Writes a momentum where [`load_momentum`] finds it.
///
/// # Safety
/// As [`store_su3`].
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
