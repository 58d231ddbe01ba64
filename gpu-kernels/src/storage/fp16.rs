//! 16-bit floating point (IEEE 754 binary16) without a norm. It is half precision with fewer instructions and fewer bits.
//!
//! Spinors are projected in pairs of 16-bit numbers, the real and the imaginary part at once, and then widened for arithmetic
//! in f32. Links are 16-bit floats as well. The two lower spins are stored with real and imaginary part exchanged, because four
//! of the six projections in space, those with ±i, need this order.
//!
//! Without a norm for each site the range is limited. Numbers from 6 · 10⁻⁵ to 65504 have the full 11 bits, and the sum of two
//! components of a site must also stay below 65504. Fields should be scaled to about 1. Larger numbers become infinite, which
//! every norm shows.
use super::{LinkWords, NumberFormat, TILE, words};
use crate::Precision;
use crate::algebra::{
    Axis, Colour, Complex, Complex16, DiracSpinor, HalfSpinor, Phase, Projector, ProjectorSign, Real, Scaled,
    ScaledColour, complex,
};
use crate::memory::{Access, Global};

/// Precision of 16-bit floating-point numbers without a norm.
#[derive(Clone, Copy, Debug)]
pub struct Fp16;

/// Converts a number of spin `spin` to its stored form, or from it.
#[inline(always)]
fn kept(spin: usize, z: Complex<f32>) -> Complex<f32> {
    if spin < 2 { z } else { complex(z.im, z.re) }
}

/// Returns upper spin `s` ± phase · lower spin `t`. The colours are written out, because a closure would not be compiled for
/// vector instructions.
#[inline(always)]
fn join<S: ProjectorSign>(w: &[u32; 12], sign: S, (s, t): (usize, usize), phase: Phase) -> Colour<f32> {
    let (upper, lower) = (3 * s, 3 * t);
    // A GPU has an instruction for each phase; a CPU negates the numbers instead.
    let (phase, negative) = match sign.is_plus() {
        true => (phase, 0),
        false if cfg!(target_arch = "nvptx64") => (phase.opposite(), 0),
        false => (phase, 0x8000_8000),
    };
    Colour([
        Complex16(w[upper]).combine(phase, Complex16(w[lower] ^ negative)),
        Complex16(w[upper + 1]).combine(phase, Complex16(w[lower + 1] ^ negative)),
        Complex16(w[upper + 2]).combine(phase, Complex16(w[lower + 2] ^ negative)),
    ])
}

impl NumberFormat for Fp16 {
    type Real = f32;
    const PRECISION: Precision = Precision::Fp16;
    const SPINOR_BYTES: usize = words::BYTES;
    const HAS_RANGE: bool = true;

    #[inline(always)]
    unsafe fn load_spinor(tile: Global, lane: usize, access: Access) -> DiracSpinor<f32> {
        let w = unsafe { words::load(tile, lane, access) };
        let at = |s: usize, c: usize| kept(s, Complex16(w[3 * s + c]).widen());
        let colour = |s: usize| Colour([at(s, 0), at(s, 1), at(s, 2)]);
        DiracSpinor([colour(0), colour(1), colour(2), colour(3)])
    }
    #[inline(always)]
    unsafe fn load_projected<S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> Scaled<f32> {
        if p.axis == Axis::T {
            let w = unsafe { words::load_kept(tile, lane, p) };
            let at = |j: usize| kept(p.kept(), Complex16(w[j]).widen());
            let value = HalfSpinor([Colour([at(0), at(1), at(2)]), Colour([at(3), at(4), at(5)])]);
            return Scaled { value, scale: 2.0 };
        }
        let w = unsafe { words::load(tile, lane, Access::Shared) };
        let [(j, f), (k, g)] = p.partners();
        Scaled { value: HalfSpinor([join(&w, p.sign, (0, j), f), join(&w, p.sign, (1, k), g)]), scale: f32::ONE }
    }
    #[inline(always)]
    unsafe fn store_spinor(tile: Global, lane: usize, s: &DiracSpinor<f32>) {
        unsafe { words::store(tile, lane, |spin, c| Complex16::round(kept(spin, s.0[spin].0[c])).0) }
    }

    const HALF_SPINOR_BYTES: usize = words::HALF_BYTES;
    #[inline(always)]
    unsafe fn load_half_spinor(tile: Global, lane: usize, time: bool) -> Scaled<f32> {
        let w = unsafe { words::load_half(tile, lane) };
        let at = |j: usize| Complex16(w[j]).widen();
        let value = HalfSpinor([Colour([at(0), at(1), at(2)]), Colour([at(3), at(4), at(5)])]);
        Scaled { value, scale: if time { 2.0 } else { 1.0 } }
    }
    #[inline(always)]
    unsafe fn store_projected((from, lane): (Global, usize), p: Projector, (to, place): (Global, usize)) {
        // Projections in the spatial directions are already 16-bit numbers, so nothing is rounded.
        let HalfSpinor([a, b]) = unsafe { Self::load_projected(from, lane, p) }.value;
        let word = |z| Complex16::round(z).0;
        let words = [word(a.0[0]), word(a.0[1]), word(a.0[2]), word(b.0[0]), word(b.0[1]), word(b.0[2])];
        unsafe { words::store_half(to, place, words) };
    }

    const COLOUR_BYTES: usize = 12;
    #[inline(always)]
    unsafe fn load_colour(tile: Global, lane: usize, access: Access) -> ScaledColour<f32> {
        let at = |k: usize| {
            let word = unsafe { tile.load4(4 * lane + k * 4 * TILE, access) };
            Complex16(word.to_bits()).widen()
        };
        ScaledColour { vector: Colour([at(0), at(1), at(2)]), scale: f32::ONE }
    }
    #[inline(always)]
    unsafe fn store_colour(tile: Global, lane: usize, c: &Colour<f32>) {
        let put = |k: usize| {
            let word = Complex16::round(c.0[k]).0;
            unsafe { tile.store4(4 * lane + k * 4 * TILE, f32::from_bits(word)) }
        };
        put(0);
        put(1);
        put(2);
    }
}

impl LinkWords for Fp16 {
    const LINK_WORDS: usize = 1;
    #[inline(always)]
    fn decode_link(word: impl Fn(usize) -> u32, j: usize) -> Complex<f32> {
        Complex16(word(j)).widen()
    }
    #[inline(always)]
    fn encode_link(z: Complex<f64>) -> [u32; 4] {
        [Complex16::round(z.cast()).0, 0, 0, 0]
    }
}

const _: () = assert!((TILE * Fp16::SPINOR_BYTES).is_multiple_of(4 * TILE), "tiles stay aligned to cache lines");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Chunk;

    /// Returns a spinor of numbers of several sizes and both signs, made of a seed.
    fn spinor(seed: u32) -> DiracSpinor<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 65536.0 - 128.0
        };
        let mut s = DiracSpinor::ZERO;
        s.0.iter_mut().flat_map(|colour| &mut colour.0).for_each(|z| *z = complex(next(), 0.01 * next()));
        s
    }
    fn numbers(colours: &[Colour<f32>]) -> impl Iterator<Item = f32> {
        colours.iter().flat_map(|colour| colour.0).flat_map(|z| [z.re, z.im])
    }

    #[test]
    fn spinors_come_back_rounded_and_projected() {
        let mut memory = [Chunk::default(); TILE * words::BYTES / 16];
        let tile = Global(memory.as_mut_ptr().cast());
        for lane in 0..TILE {
            unsafe { Fp16::store_spinor(tile, lane, &spinor(lane as u32)) };
        }
        for lane in 0..TILE {
            let exact = spinor(lane as u32);
            let stored = unsafe { Fp16::load_spinor(tile, lane, Access::Shared) };
            for (x, y) in numbers(&exact.0).zip(numbers(&stored.0)) {
                assert!((x - y).abs() <= x.abs() / 2048.0);
            }
            for axis in [Axis::X, Axis::Y, Axis::Z, Axis::T] {
                for p in [Projector::plus(axis), Projector::minus(axis)] {
                    let (expected, got) = (stored.project(p), unsafe { Fp16::load_projected(tile, lane, p) });
                    assert_eq!(expected.scale, got.scale);
                    let rounded = expected.value.0.map(|colour| colour.map(|z| Complex16::round(z).widen()));
                    assert_eq!(HalfSpinor(rounded), got.value);
                }
            }
        }
    }

    #[test]
    fn hops_in_time_read_two_spins_only() {
        let mut memory = [Chunk::default(); TILE * words::BYTES / 16];
        let tile = Global(memory.as_mut_ptr().cast());
        for p in [Projector::plus(Axis::T), Projector::minus(Axis::T)] {
            let mut s = spinor(1);
            let dropped = 2 - p.kept();
            s.0[dropped..dropped + 2].fill(Colour([complex(f32::NAN, f32::NAN); 3]));
            unsafe { Fp16::store_spinor(tile, 5, &s) };
            let h = unsafe { Fp16::load_projected(tile, 5, p) };
            assert!(numbers(&h.value.0).all(f32::is_finite));
        }
    }

    #[test]
    fn what_is_out_of_range_is_infinite() {
        let mut memory = [Chunk::default(); TILE * words::BYTES / 16];
        let tile = Global(memory.as_mut_ptr().cast());
        let mut s = spinor(2);
        s.0[1].0[2].im = 1e5;
        s.0[3].0[0] = complex(4e4, f32::NAN);
        s.0[0].0[0] = complex(0.0, -4e4);
        let (stored, projected) = unsafe {
            Fp16::store_spinor(tile, 0, &s);
            // In x, −i times spin 3 joins spin 0: 0 + NaN and −4 · 10⁴ − 4 · 10⁴.
            (Fp16::load_spinor(tile, 0, Access::Shared), Fp16::load_projected(tile, 0, Projector::minus(Axis::X)))
        };
        assert_eq!(stored.0[1].0[2].im, f32::INFINITY);
        assert!(stored.0[3].0[0].im.is_nan() && stored.0[3].0[0].re.is_finite());
        let sum = projected.value.0[0].0[0];
        assert!(sum.re.is_nan() && sum.im == f32::NEG_INFINITY, "{sum:?}");
    }
}
