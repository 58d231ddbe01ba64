//! Links, momenta and their likes: complex numbers as they are, in the format of registers.
use super::{TILE, double_words, one_double};
use crate::Precision;
use crate::algebra::{AntiHermitian, Complex, Su3, complex};
use crate::memory::{Access, Chunk, Global, HalfChunk};
use crate::per_rhs::Rounded;

/// A real number type as matrices and tables of coefficients are kept in, complex number by complex number; those of a
/// tile's matrices in rows.
pub trait Element: Rounded {
    /// As a value.
    const PRECISION: Precision;
    /// Bytes of a complex number.
    const BYTES: usize;
    /// Reads a complex number.
    ///
    /// # Safety
    /// `at + bytes` is valid and aligned, and read as `access` promises.
    unsafe fn load(at: Global, bytes: usize, access: Access) -> Complex<Self>;
    /// Writes a complex number.
    ///
    /// # Safety
    /// `at + bytes` is valid, aligned, and written by nobody else.
    unsafe fn store(at: Global, bytes: usize, z: Complex<Self>);
}

impl Element for f64 {
    const PRECISION: Precision = Precision::Double;
    const BYTES: usize = 16;
    #[inline(always)]
    unsafe fn load(at: Global, bytes: usize, access: Access) -> Complex<f64> {
        one_double(unsafe { at.load16(bytes, access) }.0)
    }
    #[inline(always)]
    unsafe fn store(at: Global, bytes: usize, z: Complex<f64>) {
        unsafe { at.store16(bytes, Chunk(double_words(z))) }
    }
}

impl Element for f32 {
    const PRECISION: Precision = Precision::Single;
    const BYTES: usize = 8;
    #[inline(always)]
    unsafe fn load(at: Global, bytes: usize, access: Access) -> Complex<f32> {
        let HalfChunk([re, im]) = unsafe { at.load8(bytes, access) };
        complex(f32::from_bits(re), f32::from_bits(im))
    }
    #[inline(always)]
    unsafe fn store(at: Global, bytes: usize, z: Complex<f32>) {
        unsafe { at.store8(bytes, HalfChunk([z.re.to_bits(), z.im.to_bits()])) }
    }
}

/// A matrix: nine complex numbers, one for each of the tile's rows from `at` on.
///
/// # Safety
/// The numbers are valid and read as `access` promises.
#[inline(always)]
pub(crate) unsafe fn load_su3<T: Element>(at: Global, access: Access) -> Su3<T> {
    macro_rules! element {
        ($k:literal) => {
            unsafe { T::load(at, $k * TILE * T::BYTES, access) }
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
/// The numbers are valid and written by nobody else.
#[inline(always)]
pub(crate) unsafe fn store_su3<T: Element>(at: Global, u: &Su3<T>) {
    macro_rules! put {
        ($($k:literal)*) => {$(
            unsafe { T::store(at, $k * TILE * T::BYTES, u.0[$k / 3][$k % 3]) };
        )*};
    }
    put!(0 1 2 3 4 5 6 7 8);
}

/// A momentum: four complex numbers in the same way.
///
/// # Safety
/// As [`load_su3`].
#[inline(always)]
pub(crate) unsafe fn load_momentum<T: Element>(at: Global, access: Access) -> AntiHermitian<T> {
    let element = |k: usize| unsafe { T::load(at, k * TILE * T::BYTES, access) };
    let diagonal = element(0);
    AntiHermitian { diagonal: [diagonal.re, diagonal.im], upper: [element(1), element(2), element(3)] }
}
/// Writes a momentum where [`load_momentum`] finds it.
///
/// # Safety
/// As [`store_su3`].
#[inline(always)]
pub(crate) unsafe fn store_momentum<T: Element>(at: Global, p: &AntiHermitian<T>) {
    let ([d, e], [a, b, c]) = (p.diagonal, p.upper);
    let put = |k: usize, z: Complex<T>| unsafe { T::store(at, k * TILE * T::BYTES, z) };
    put(0, complex(d, e));
    put(1, a);
    put(2, b);
    put(3, c);
}
