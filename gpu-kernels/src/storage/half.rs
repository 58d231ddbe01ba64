//! Half precision: 16-bit fixed point with one f32 norm per site (Clark et al. 2009, section 4.6).
//!
//! Spinor components are stored as integers u with value (u − 32767.5) · norm, where norm = largest |component| / 32767,
//! rounded to nearest. One byte permutation below the exponent of 2²³ makes the float 2²³ + u. In a difference of two such
//! floats the bias cancels. The complement !u is the exact negative of u, so that sums are differences as well. The norm is
//! multiplied in when the hop is accumulated. Colour vectors are not projected, so that nothing has to be negated: their codes
//! have value (u − 32768) · norm, which takes fewer instructions. Link elements are in \[−1, 1\], with value (u − 32768) ·
//! 2⁻¹⁵, clipped at 1 − 2⁻¹⁵. They have no code for NaN, which true residuals in higher precision detect.
use super::{LinkWords, NumberFormat, TILE, words};
use crate::Precision;
use crate::algebra::{
    Axis, Colour, Complex, DiracSpinor, HalfSpinor, Phase, Projector, ProjectorSign, Real, Scaled, ScaledColour,
    complex,
};
use crate::memory::{Access, Chunk, Global, high_half_over, join_low_halves, low_half_over, max_or_nan, reciprocal};

/// Half precision: 16-bit fixed-point numbers with a norm for each site.
#[derive(Clone, Copy, Debug)]
pub struct Half;

/// The float 2²³, whose unit in the last place is 1.
const BIAS: u32 = 0x4B00_0000;
/// The float 256, whose unit in the last place is 2⁻¹⁵.
const LINK_BIAS: u32 = 0x4380_0000;
/// Offset of the norms in a tile of spinors, in bytes.
const NORMS: usize = TILE * words::BYTES;
/// Offset of the norms in a tile of half spinors, in bytes.
const HALF_NORMS: usize = TILE * words::HALF_BYTES;
/// Smallest norm by which components are divided, which keeps the quotient finite.
const SMALLEST: f32 = 1e-35;

/// 2²³ + u for the codes u of the real and the imaginary part.
#[inline(always)]
fn biased(w: u32) -> Complex<f32> {
    complex(low_half_over(w, BIAS), high_half_over(w, BIAS))
}
/// a + phase · b, in units of the norm.
#[inline(always)]
fn combine(a: u32, b: u32, phase: Phase) -> Complex<f32> {
    // Where a part of b has to be added, its code is complemented and then subtracted.
    let (b, cross) = match phase {
        Phase::MinusOne => (b, false),
        Phase::One => (!b, false),
        Phase::I => (b ^ 0x0000_FFFF, true),
        Phase::MinusI => (b ^ 0xFFFF_0000, true),
    };
    let (a, b) = (biased(a), biased(b));
    if cross { complex(a.re - b.im, a.im - b.re) } else { a - b }
}
/// 2 · a, in units of the norm.
#[inline(always)]
fn twice(a: u32) -> Complex<f32> {
    biased(a) - biased(!a)
}

/// Returns the largest |component|, or NaN if one is NaN.
#[inline(always)]
fn largest(c: &Colour<f32>) -> f32 {
    let one = |z: Complex<f32>| max_or_nan(z.re.abs(), z.im.abs());
    max_or_nan(max_or_nan(one(c.0[0]), one(c.0[1])), one(c.0[2]))
}
/// Returns the norm for components up to `largest`, and its inverse. A site of zeros has norm zero, and is read as zero
/// whatever its codes are.
#[inline(always)]
fn norm(largest: f32) -> (f32, f32) {
    let norm = largest * (1.0 / 32767.0);
    (norm, reciprocal(max_or_nan(norm, SMALLEST)))
}
/// Returns the codes of a complex number. Adding 2²³ rounds to the nearest integer, which is the low half of the float.
#[inline(always)]
fn code(z: Complex<f32>, inverse: f32) -> u32 {
    let code = |x: f32| (Real::mul_add(x, inverse, 32767.5) + 8_388_608.0).to_bits();
    join_low_halves(code(z.re), code(z.im))
}
/// The float 2²³ + 32768, which represents zero in the codes of a colour vector.
const COLOUR_ZERO: f32 = 8_421_376.0;
/// Returns a complex number of a colour vector, in units of the norm.
#[inline(always)]
fn colour_number(w: u32) -> Complex<f32> {
    let w = biased(w);
    complex(w.re - COLOUR_ZERO, w.im - COLOUR_ZERO)
}
/// Returns the codes of a complex number of a colour vector.
#[inline(always)]
fn colour_code(z: Complex<f32>, inverse: f32) -> u32 {
    let code = |x: f32| Real::mul_add(x, inverse, COLOUR_ZERO).to_bits();
    join_low_halves(code(z.re), code(z.im))
}

impl NumberFormat for Half {
    type Real = f32;
    const PRECISION: Precision = Precision::Half;
    const SPINOR_BYTES: usize = words::BYTES + 4;

    #[inline(always)]
    unsafe fn load_spinor(tile: Global, lane: usize, access: Access) -> DiracSpinor<f32> {
        let (w, norm) = unsafe { (words::load(tile, lane, access), tile.load4(NORMS + 4 * lane, access)) };
        let half = norm * 0.5;
        let value = |j: usize| twice(w[j]).scale(half);
        let colour = |s: usize| Colour([value(3 * s), value(3 * s + 1), value(3 * s + 2)]);
        DiracSpinor([colour(0), colour(1), colour(2), colour(3)])
    }
    #[inline(always)]
    unsafe fn load_projected<S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> Scaled<f32> {
        let scale = unsafe { tile.load4(NORMS + 4 * lane, Access::Shared) };
        let value = if p.axis == Axis::T {
            let w = unsafe { words::load_kept(tile, lane, p) };
            let at = |j: usize| twice(w[j]);
            HalfSpinor([Colour([at(0), at(1), at(2)]), Colour([at(3), at(4), at(5)])])
        } else {
            let w = unsafe { words::load(tile, lane, Access::Shared) };
            let [(j, f), (k, g)] = p.partners();
            // The complement of a code is the code of the negative number.
            let negative = if p.sign.is_plus() { 0 } else { u32::MAX };
            let join = |s: usize, t: usize, phase: Phase| {
                let at = |c: usize| combine(w[3 * s + c], w[3 * t + c] ^ negative, phase);
                Colour([at(0), at(1), at(2)])
            };
            HalfSpinor([join(0, j, f), join(1, k, g)])
        };
        Scaled { value, scale }
    }
    #[inline(always)]
    unsafe fn store_spinor(tile: Global, lane: usize, s: &DiracSpinor<f32>) {
        let largest = |c: usize| largest(&s.0[c]);
        let (norm, inverse) = norm(max_or_nan(max_or_nan(largest(0), largest(1)), max_or_nan(largest(2), largest(3))));
        let word = |spin: usize, c: usize| code(s.0[spin].0[c], inverse);
        unsafe {
            tile.store4(NORMS + 4 * lane, norm);
            words::store(tile, lane, word);
        }
    }

    const HALF_SPINOR_BYTES: usize = words::HALF_BYTES + 4;
    #[inline(always)]
    unsafe fn load_half_spinor(tile: Global, lane: usize, time: bool) -> Scaled<f32> {
        let (w, norm) = unsafe { (words::load_half(tile, lane), tile.load4(HALF_NORMS + 4 * lane, Access::Shared)) };
        let at = |j: usize| twice(w[j]);
        let value = HalfSpinor([Colour([at(0), at(1), at(2)]), Colour([at(3), at(4), at(5)])]);
        // For projections in t, the words are those of the spinor itself, which the projector doubles.
        Scaled { value, scale: if time { norm } else { norm * 0.5 } }
    }
    #[inline(always)]
    unsafe fn store_projected((from, lane): (Global, usize), p: Projector, (to, place): (Global, usize)) {
        let (words, norm) = if p.axis == Axis::T {
            unsafe { (words::load_kept(from, lane, p), from.load4(NORMS + 4 * lane, Access::Shared)) }
        } else {
            let Scaled { value: HalfSpinor([a, b]), scale } = unsafe { Self::load_projected(from, lane, p) };
            let (norm, inverse) = norm(max_or_nan(largest(&a), largest(&b)));
            let word = |z| code(z, inverse);
            let words = [word(a.0[0]), word(a.0[1]), word(a.0[2]), word(b.0[0]), word(b.0[1]), word(b.0[2])];
            (words, norm * scale)
        };
        unsafe {
            words::store_half(to, place, words);
            to.store4(HALF_NORMS + 4 * place, norm);
        }
    }

    /// Number of bytes of a colour vector, one chunk of three words and the norm.
    const COLOUR_BYTES: usize = 16;
    #[inline(always)]
    unsafe fn load_colour(tile: Global, lane: usize, access: Access) -> ScaledColour<f32> {
        let Chunk([a, b, c, norm]) = unsafe { tile.load16(16 * lane, access) };
        ScaledColour { vector: Colour([a, b, c].map(colour_number)), scale: f32::from_bits(norm) }
    }
    #[inline(always)]
    unsafe fn store_colour(tile: Global, lane: usize, c: &Colour<f32>) {
        let (norm, inverse) = norm(largest(c));
        let word = |k: usize| colour_code(c.0[k], inverse);
        unsafe { tile.store16(16 * lane, Chunk([word(0), word(1), word(2), norm.to_bits()])) };
    }
    #[inline(always)]
    unsafe fn copy_colour((from, lane): (Global, usize), (to, place): (Global, usize)) {
        // The words are copied, because decoding and encoding would change the norm.
        unsafe { to.store16(16 * place, from.load16(16 * lane, Access::Shared)) };
    }

    const UNIT_LINKS: bool = true;
}

impl LinkWords for Half {
    const LINK_WORDS: usize = 1;
    #[inline(always)]
    fn decode_link(word: impl Fn(usize) -> u32, j: usize) -> Complex<f32> {
        let w = word(j);
        complex(low_half_over(w, LINK_BIAS) - 257.0, high_half_over(w, LINK_BIAS) - 257.0)
    }
    #[inline(always)]
    fn encode_link(z: Complex<f64>) -> [u32; 4] {
        // Adding 1.5 · 2⁵² rounds to the nearest integer without a call of a library function.
        let code = |x: f64| {
            let u = (x * 32768.0 + 32768.0).clamp(0.0, 65535.0);
            (u + 6_755_399_441_055_744.0).to_bits() as u32 & 0xffff
        };
        [code(z.re) | code(z.im) << 16, 0, 0, 0]
    }
}

const _: () = assert!((TILE * Half::SPINOR_BYTES).is_multiple_of(4 * TILE), "tiles stay aligned to cache lines");
