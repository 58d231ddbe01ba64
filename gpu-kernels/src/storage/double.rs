//! Double precision: one complex number per chunk.
use super::{NumberFormat, STRIDE, double_words, one_double};
use crate::Precision;
use crate::algebra::{Axis, Colour, Complex, DiracSpinor, HalfSpinor, Projector, Real, Scaled, ScaledColour};
use crate::memory::{Access, Chunk, Global};

/// 64-bit floating point.
#[derive(Clone, Copy, Debug)]
pub struct Double;

impl NumberFormat for Double {
    type Real = f64;
    const PRECISION: Precision = Precision::Double;
    const SPINOR_BYTES: usize = 192;

    #[inline(always)]
    unsafe fn load_spinor(tile: Global, lane: usize, access: Access) -> DiracSpinor<f64> {
        let at = |k: usize| unsafe { one_double(tile.load16(16 * lane + k * STRIDE, access).0) };
        let colour = |s: usize| Colour([at(3 * s), at(3 * s + 1), at(3 * s + 2)]);
        DiracSpinor([colour(0), colour(1), colour(2), colour(3)])
    }
    #[inline(always)]
    unsafe fn load_projected(tile: Global, lane: usize, p: Projector) -> Scaled<f64> {
        let at = |k: usize| unsafe { one_double(tile.load16(16 * lane + k * STRIDE, Access::Shared).0) };
        let colour = |s: usize| Colour([at(3 * s), at(3 * s + 1), at(3 * s + 2)]);
        let mut s = DiracSpinor::ZERO;
        if p.axis == Axis::T {
            s.0[p.kept()] = colour(p.kept());
            s.0[p.kept() + 1] = colour(p.kept() + 1);
        } else {
            s = DiracSpinor([colour(0), colour(1), colour(2), colour(3)]);
        }
        s.project(p)
    }
    #[inline(always)]
    unsafe fn store_spinor(tile: Global, lane: usize, s: &DiracSpinor<f64>) {
        let put = |k: usize, z: Complex<f64>| unsafe { tile.store16(16 * lane + k * STRIDE, Chunk(double_words(z))) };
        let colour = |k: usize, c: Colour<f64>| {
            put(k, c.0[0]);
            put(k + 1, c.0[1]);
            put(k + 2, c.0[2]);
        };
        colour(0, s.0[0]);
        colour(3, s.0[1]);
        colour(6, s.0[2]);
        colour(9, s.0[3]);
    }

    const HALF_SPINOR_BYTES: usize = 96;
    #[inline(always)]
    unsafe fn load_half_spinor(tile: Global, lane: usize, time: bool) -> Scaled<f64> {
        let at = |k: usize| unsafe { one_double(tile.load16(16 * lane + k * STRIDE, Access::Shared).0) };
        let value = HalfSpinor([Colour([at(0), at(1), at(2)]), Colour([at(3), at(4), at(5)])]);
        Scaled { value, scale: if time { 2.0 } else { 1.0 } }
    }
    #[inline(always)]
    unsafe fn store_projected((from, lane): (Global, usize), p: Projector, (to, place): (Global, usize)) {
        let put = |k: usize, z| unsafe { to.store16(16 * place + k * STRIDE, Chunk(double_words(z))) };
        let HalfSpinor([Colour([a, b, c]), Colour([d, e, f])]) = unsafe { Self::load_projected(from, lane, p) }.value;
        put(0, a);
        put(1, b);
        put(2, c);
        put(3, d);
        put(4, e);
        put(5, f);
    }

    const COLOUR_BYTES: usize = 48;
    #[inline(always)]
    unsafe fn load_colour(tile: Global, lane: usize, access: Access) -> ScaledColour<f64> {
        let at = |k: usize| unsafe { one_double(tile.load16(16 * lane + k * STRIDE, access).0) };
        ScaledColour { vector: Colour([at(0), at(1), at(2)]), scale: f64::ONE }
    }
    #[inline(always)]
    unsafe fn store_colour(tile: Global, lane: usize, c: &Colour<f64>) {
        let put = |k: usize, z: Complex<f64>| unsafe { tile.store16(16 * lane + k * STRIDE, Chunk(double_words(z))) };
        put(0, c.0[0]);
        put(1, c.0[1]);
        put(2, c.0[2]);
    }

    const LINK_WORDS: usize = 4;
    #[inline(always)]
    fn decode_link(word: impl Fn(usize) -> u32, j: usize) -> Complex<f64> {
        one_double([word(4 * j), word(4 * j + 1), word(4 * j + 2), word(4 * j + 3)])
    }
    #[inline(always)]
    fn encode_link(z: Complex<f64>) -> [u32; 4] {
        double_words(z)
    }
}
