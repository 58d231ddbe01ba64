//! Single precision: two complex numbers per chunk.
#[cfg(target_arch = "nvptx64")]
use super::STRIDE;
use super::{LinkWords, NumberFormat, record, two_singles};
use crate::Precision;
use crate::algebra::{
    Axis, Colour, Complex, DiracSpinor, HalfSpinor, Projector, ProjectorSign, Real, Scaled, ScaledColour, complex,
};
use crate::memory::{Access, Chunk, Global, HalfChunk};

/// Single precision: 32-bit floating point.
#[derive(Clone, Copy, Debug)]
pub struct Single;

#[inline(always)]
fn chunk(a: Complex<f32>, b: Complex<f32>) -> Chunk {
    Chunk([a.re.to_bits(), a.im.to_bits(), b.re.to_bits(), b.im.to_bits()])
}

impl Single {
    /// Bytes of a complex number.
    const BYTES: usize = 8;

    /// Reads numbers 2 `k` and 2 `k` + 1 of a record of complex numbers.
    ///
    /// # Safety
    /// The contract of [`NumberFormat::load_spinor`] holds.
    #[inline(always)]
    pub(crate) unsafe fn two(tile: Global, lane: usize, k: usize, access: Access) -> [Complex<f32>; 2] {
        two_singles(unsafe { record::load::<{ Self::BYTES }>(tile, lane, k, access) })
    }
    /// Reads numbers `k` and `k` + 1 of a spinor, where `k` is even.
    ///
    /// # Safety
    /// The contract of [`NumberFormat::load_spinor`] holds.
    #[inline(always)]
    pub(crate) unsafe fn two_from(tile: Global, lane: usize, k: usize, access: Access) -> [Complex<f32>; 2] {
        #[cfg(target_arch = "nvptx64")]
        return two_singles(unsafe { tile.load16(16 * lane + k / 2 * STRIDE + 8 * (k % 2), access) });
        #[cfg(not(target_arch = "nvptx64"))]
        return unsafe { Self::two(tile, lane, k / 2, access) };
    }
    /// Reads number `k` of a spinor.
    ///
    /// # Safety
    /// The contract of [`NumberFormat::load_spinor`] holds.
    #[inline(always)]
    pub(crate) unsafe fn number(tile: Global, lane: usize, k: usize, access: Access) -> Complex<f32> {
        let HalfChunk([re, im]) = unsafe { record::load_number::<{ Self::BYTES }>(tile, lane, k, access) };
        complex(f32::from_bits(re), f32::from_bits(im))
    }
    /// Writes number `k` of a spinor.
    ///
    /// # Safety
    /// The contract of [`NumberFormat::store_spinor`] holds.
    #[inline(always)]
    pub(crate) unsafe fn put_number(tile: Global, lane: usize, k: usize, z: Complex<f32>) {
        let words = HalfChunk([z.re.to_bits(), z.im.to_bits()]);
        unsafe { record::store_number::<{ Self::BYTES }>(tile, lane, k, words) }
    }
    #[inline(always)]
    unsafe fn put_two(tile: Global, lane: usize, k: usize, a: Complex<f32>, b: Complex<f32>) {
        unsafe { record::store::<{ Self::BYTES }>(tile, lane, k, chunk(a, b)) }
    }
}

impl NumberFormat for Single {
    type Real = f32;
    const PRECISION: Precision = Precision::Single;
    const RECORD_NUMBER: usize = Self::BYTES;
    const SPINOR_BYTES: usize = 96;

    #[inline(always)]
    unsafe fn load_spinor(tile: Global, lane: usize, access: Access) -> DiracSpinor<f32> {
        let two = |k: usize| unsafe { Self::two(tile, lane, k, access) };
        let ([a, b], [c, d], [e, f]) = (two(0), two(1), two(2));
        let ([g, h], [i, j], [k, l]) = (two(3), two(4), two(5));
        DiracSpinor([Colour([a, b, c]), Colour([d, e, f]), Colour([g, h, i]), Colour([j, k, l])])
    }
    #[inline(always)]
    unsafe fn load_projected<S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> Scaled<f32> {
        if p.axis != Axis::T {
            return unsafe { Self::load_spinor(tile, lane, Access::Shared) }.project(p);
        }
        // Spins 0 and 1 are in chunks 0 to 2, spins 2 and 3 in chunks 3 to 5.
        let first = p.kept() / 2 * 3;
        let two = |k: usize| unsafe { Self::two(tile, lane, first + k, Access::Shared) };
        let ([a, b], [c, d], [e, f]) = (two(0), two(1), two(2));
        Scaled { value: HalfSpinor([Colour([a, b, c]), Colour([d, e, f])]), scale: 2.0 }
    }
    #[inline(always)]
    unsafe fn store_spinor(tile: Global, lane: usize, s: &DiracSpinor<f32>) {
        let put = |k: usize, a, b| unsafe { Self::put_two(tile, lane, k, a, b) };
        let [Colour([a, b, c]), Colour([d, e, f]), Colour([g, h, i]), Colour([j, k, l])] = s.0;
        put(0, a, b);
        put(1, c, d);
        put(2, e, f);
        put(3, g, h);
        put(4, i, j);
        put(5, k, l);
    }

    const HALF_SPINOR_BYTES: usize = 48;
    #[inline(always)]
    unsafe fn load_half_spinor(tile: Global, lane: usize, time: bool) -> Scaled<f32> {
        let two = |k: usize| unsafe { Self::two(tile, lane, k, Access::Shared) };
        let ([a, b], [c, d], [e, f]) = (two(0), two(1), two(2));
        Scaled { value: HalfSpinor([Colour([a, b, c]), Colour([d, e, f])]), scale: if time { 2.0 } else { 1.0 } }
    }
    #[inline(always)]
    unsafe fn store_projected((from, lane): (Global, usize), p: Projector, (to, place): (Global, usize)) {
        let put = |k: usize, a, b| unsafe { Self::put_two(to, place, k, a, b) };
        let HalfSpinor([Colour([a, b, c]), Colour([d, e, f])]) = unsafe { Self::load_projected(from, lane, p) }.value;
        put(0, a, b);
        put(1, c, d);
        put(2, e, f);
    }

    const COLOUR_BYTES: usize = 24;
    #[inline(always)]
    unsafe fn load_colour(tile: Global, lane: usize, access: Access) -> ScaledColour<f32> {
        let ([a, b], HalfChunk(last)) =
            unsafe { (Self::two(tile, lane, 0, access), record::load_half::<{ Self::BYTES }>(tile, lane, 1, access)) };
        let [re, im] = last.map(f32::from_bits);
        ScaledColour { vector: Colour([a, b, complex(re, im)]), scale: f32::ONE }
    }
    #[inline(always)]
    unsafe fn store_colour(tile: Global, lane: usize, c: &Colour<f32>) {
        let [a, b, c] = c.0;
        unsafe {
            Self::put_two(tile, lane, 0, a, b);
            record::store_half::<{ Self::BYTES }>(tile, lane, 1, HalfChunk([c.re.to_bits(), c.im.to_bits()]));
        }
    }
}

impl LinkWords for Single {
    const LINK_WORDS: usize = 2;
    #[inline(always)]
    fn decode_link(word: impl Fn(usize) -> u32, j: usize) -> Complex<f32> {
        complex(f32::from_bits(word(2 * j)), f32::from_bits(word(2 * j + 1)))
    }
    #[inline(always)]
    fn encode_link(z: Complex<f64>) -> [u32; 4] {
        [(z.re as f32).to_bits(), (z.im as f32).to_bits(), 0, 0]
    }
}
