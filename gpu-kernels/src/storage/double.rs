//! Double precision: one complex number per chunk.
use super::{LinkWords, NumberFormat, double_words, one_double};
use crate::Precision;
use crate::algebra::Complex;

/// Double precision: 64-bit floating point.
#[derive(Clone, Copy, Debug)]
pub struct Double;

impl NumberFormat for Double {
    type Real = f64;
    const PRECISION: Precision = Precision::Double;
    const RECORD_NUMBER: usize = 16;
    const SPINOR_BYTES: usize = 192;
    const HALF_SPINOR_BYTES: usize = 96;
    const COLOUR_BYTES: usize = 48;
}

impl LinkWords for Double {
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
