//! Links: how many of a matrix's reals are kept, and pairs of links per direction.
use super::{Double, Fp16, Half, Precision, STRIDE, Single, TILE};
use crate::algebra::{Complex, Real, Su3, complex, phase_from_quarter_tangent, quarter_tangent};
use crate::memory::{Access, Chunk, Global, HalfChunk};
use core::marker::PhantomData;

/// Which elements of a link are kept and how the others come back.
pub trait Reconstruct: Copy + Send + Sync + 'static {
    /// Real numbers kept per link, as a name: `18`, `12`.
    const NAME: &'static str;
    /// Complex numbers kept per link.
    const KEPT: usize;
    /// All nine elements, each kept in the same way.
    type Full: Reconstruct;
    /// Whether links in t are the unit matrix, except across the boundary: hops in t then read a link only there.
    const TEMPORAL: bool = false;
    /// The matrix from its kept numbers.
    fn expand<T: Real>(kept: impl Fn(usize) -> Complex<T>) -> Su3<T>;
    /// Kept number `j` of a matrix.
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64>;
}

/// All nine elements.
#[derive(Clone, Copy, Debug)]
pub struct Recon18;
/// Two rows; the third by unitarity (Clark et al. 2009, appendix A.1).
#[derive(Clone, Copy, Debug)]
pub struct Recon12;

impl Reconstruct for Recon18 {
    type Full = Recon18;
    const NAME: &'static str = "18";
    const KEPT: usize = 9;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>) -> Su3<T> {
        Su3([[at(0), at(1), at(2)], [at(3), at(4), at(5)], [at(6), at(7), at(8)]])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        u.0[j / 3][j % 3]
    }
}
impl Reconstruct for Recon12 {
    type Full = Recon18;
    const NAME: &'static str = "12";
    const KEPT: usize = 6;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>) -> Su3<T> {
        Su3::from_two_rows([at(0), at(1), at(2)], [at(3), at(4), at(5)])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        u.0[j / 3][j % 3]
    }
}

/// The minimal eight: a_2, a_3, b_1 and the phases φ of a_1 and c_1 (Clark et al. 2009, appendix A.2), kept as
/// tan(φ/4). Rows are a, b, c. Singular where a_2 = a_3 = 0: see [`Recon8::is_singular`].
#[derive(Clone, Copy, Debug)]
pub struct Recon8;

/// The complex number with square modulus `square` (zero if negative) and phase φ given as tan(φ/4).
#[inline(always)]
fn polar<T: Real>(square: T, phase: T) -> Complex<T> {
    phase_from_quarter_tangent(phase).scale(square.sqrt_or_zero())
}

impl Recon8 {
    /// Whether |a_2|² + |a_3|² is so small that the reconstruction would lose more than three digits.
    #[inline(always)]
    pub fn is_singular(u: &Su3<f64>) -> bool {
        u.0[0][1].norm_sqr() + u.0[0][2].norm_sqr() < 1e-6
    }
}
impl Reconstruct for Recon8 {
    type Full = Recon18;
    const NAME: &'static str = "8";
    const KEPT: usize = 4;
    #[inline(always)]
    fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>) -> Su3<T> {
        let (phases, a2, a3, b1) = (at(0), at(1), at(2), at(3));
        // |a_1|² = 1 − |a_2|² − |a_3|², |c_1|² = 1 − |a_1|² − |b_1|²
        let rest = a2.re.mul_add(a2.re, a2.im.mul_add(a2.im, a3.norm_sqr()));
        let a1 = polar(T::ONE - rest, phases.re);
        let c1 = polar((-b1.re).mul_add(b1.re, (-b1.im).mul_add(b1.im, rest)), phases.im);
        let inverse = rest.reciprocal();
        let (d2, d3) = (a2.scale(inverse), a3.scale(inverse));
        let minus_a1 = -a1.conj();
        let (along_b, along_c) = (minus_a1 * b1, minus_a1 * c1);
        let b2 = along_b.mul_add(d2, -(c1.conj() * d3.conj()));
        let b3 = along_b.mul_add(d3, c1.conj() * d2.conj());
        let c2 = along_c.mul_add(d2, b1.conj() * d3.conj());
        let c3 = along_c.mul_add(d3, -(b1.conj() * d2.conj()));
        Su3([[a1, a2, a3], [b1, b2, b3], [c1, c2, c3]])
    }
    #[inline(always)]
    fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
        match j {
            0 => complex(quarter_tangent(u.0[0][0]), quarter_tangent(u.0[2][0])),
            1 => u.0[0][1],
            2 => u.0[0][2],
            _ => u.0[1][0],
        }
    }
}

/// Links in temporal gauge (Clark et al. 2009, section 4.3), kept as `R` keeps them: those in t are the unit matrix,
/// except across the boundary, and are not read elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Temporal<R>(PhantomData<R>);

macro_rules! temporal {
    ($recon:ident: $name:literal) => {
        impl Reconstruct for Temporal<$recon> {
            type Full = Recon18;
            const NAME: &'static str = $name;
            const KEPT: usize = $recon::KEPT;
            const TEMPORAL: bool = true;
            #[inline(always)]
            fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>) -> Su3<T> {
                $recon::expand(at)
            }
            #[inline(always)]
            fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
                $recon::reduce(u, j)
            }
        }
    };
}
temporal!(Recon12: "12t");
temporal!(Recon8: "8t");

/// [`Recon12`] in temporal gauge.
pub type Recon12T = Temporal<Recon12>;
/// [`Recon8`] in temporal gauge.
pub type Recon8T = Temporal<Recon8>;

/// Links in 16-bit fixed point, as `R` keeps them in [`Half`], beside fields in single precision. CG with fields in 16
/// bits loses its way where an operator is ill conditioned, because its directions grow far larger than the residuals that
/// are added to them; a matrix rounded to 16 bits is a matrix still. Links are most of what staggered operators read.
#[derive(Clone, Copy, Debug)]
pub struct Short<R>(PhantomData<R>);

macro_rules! short {
    ($($recon:ident: $name:literal, $alias:ident;)*) => {$(
        impl Reconstruct for Short<$recon> {
            type Full = Short<Recon18>;
            const NAME: &'static str = $name;
            const KEPT: usize = $recon::KEPT;
            #[inline(always)]
            fn expand<T: Real>(at: impl Fn(usize) -> Complex<T>) -> Su3<T> {
                $recon::expand(at)
            }
            #[inline(always)]
            fn reduce(u: &Su3<f64>, j: usize) -> Complex<f64> {
                $recon::reduce(u, j)
            }
        }
        #[doc = concat!("[`", stringify!($recon), "`] in 16 bits beside fields in single precision.")]
        pub type $alias = Short<$recon>;
    )*};
}
short! {
    Recon18: "18h", Recon18H;
    Recon12: "12h", Recon12H;
    Recon8: "8h", Recon8H;
}

/// A reconstruction in a precision: how the pair of links of one direction is kept, U_μ(x) and U†_μ(x−μ̂).
pub trait LinkFormat<P: Precision>: Reconstruct {
    /// The chunks of a pair.
    type Pair: Copy;
    /// Whether components have to lie between −1 and 1.
    const UNIT: bool = P::UNIT_LINKS;
    /// Bytes of a pair.
    const PAIR_BYTES: usize;
    /// Bytes of the four pairs of a site.
    const SITE_BYTES: usize = 4 * Self::PAIR_BYTES;
    /// Bytes of the links that the hopping term reads at a site away from the boundary in t.
    const READ_BYTES: usize = if Self::TEMPORAL { 3 } else { 4 } * Self::PAIR_BYTES;
    /// Reads the pair of direction `mu`.
    ///
    /// # Safety
    /// The tile is valid and nothing writes it meanwhile.
    unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> Self::Pair;
    /// U_μ(x) of a pair.
    fn forward(pair: &Self::Pair) -> Su3<P::Real>;
    /// U†_μ(x−μ̂) of a pair.
    fn backward(pair: &Self::Pair) -> Su3<P::Real>;
    /// Writes one link of a pair.
    ///
    /// # Safety
    /// The tile is valid and the element written by nobody else.
    unsafe fn store_link(tile: Global, lane: usize, mu: usize, forward: bool, u: &Su3<f64>);
}

macro_rules! link_format {
    ($precision:ident, $recon:ident: $chunks:literal chunks and $tail:literal bytes) => {
        impl LinkFormat<$precision> for $recon {
            type Pair = ([Chunk; $chunks], HalfChunk);
            const PAIR_BYTES: usize = 2 * 4 * Self::KEPT * <$precision>::LINK_WORDS;

            #[inline(always)]
            unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> Self::Pair {
                let base = mu * TILE * <Self as LinkFormat<$precision>>::PAIR_BYTES;
                let mut chunks = [Chunk::default(); $chunks];
                let mut k = 0;
                while k < $chunks {
                    chunks[k] = unsafe { tile.load16(base + 16 * lane + k * STRIDE, Access::Once) };
                    k += 1;
                }
                let tail = if $tail == 0 {
                    HalfChunk::default()
                } else {
                    unsafe { tile.load8(base + 8 * lane + $chunks * STRIDE, Access::Once) }
                };
                (chunks, tail)
            }
            #[inline(always)]
            fn forward(pair: &Self::Pair) -> Su3<<$precision as Precision>::Real> {
                Self::expand(|j| <$precision>::decode_link(|i| word(pair, i), j))
            }
            #[inline(always)]
            fn backward(pair: &Self::Pair) -> Su3<<$precision as Precision>::Real> {
                Self::expand(|j| <$precision>::decode_link(|i| word(pair, i), Self::KEPT + j))
            }
            #[inline(always)]
            unsafe fn store_link(tile: Global, lane: usize, mu: usize, forward: bool, u: &Su3<f64>) {
                let base = mu * TILE * <Self as LinkFormat<$precision>>::PAIR_BYTES;
                let first = if forward { 0 } else { Self::KEPT };
                let mut j = 0;
                while j < Self::KEPT {
                    let words = <$precision>::encode_link(Self::reduce(u, j));
                    let mut k = 0;
                    while k < <$precision>::LINK_WORDS {
                        let i = (first + j) * <$precision>::LINK_WORDS + k;
                        let at = if i < 4 * $chunks {
                            16 * lane + i / 4 * STRIDE + 4 * (i % 4)
                        } else {
                            8 * lane + $chunks * STRIDE + 4 * (i - 4 * $chunks)
                        };
                        unsafe { tile.store4(base + at, f32::from_bits(words[k])) };
                        k += 1;
                    }
                    j += 1;
                }
            }
        }
    };
}
link_format!(Double, Recon18: 18 chunks and 0 bytes);
link_format!(Double, Recon12: 12 chunks and 0 bytes);
link_format!(Double, Recon8: 8 chunks and 0 bytes);
link_format!(Single, Recon8: 4 chunks and 0 bytes);
link_format!(Half, Recon8: 2 chunks and 0 bytes);
link_format!(Single, Recon18: 9 chunks and 0 bytes);
link_format!(Single, Recon12: 6 chunks and 0 bytes);
link_format!(Half, Recon18: 4 chunks and 8 bytes);
link_format!(Half, Recon12: 3 chunks and 0 bytes);
link_format!(Fp16, Recon18: 4 chunks and 8 bytes);
link_format!(Fp16, Recon12: 3 chunks and 0 bytes);
link_format!(Fp16, Recon8: 2 chunks and 0 bytes);

impl<P: Precision, R: LinkFormat<P>> LinkFormat<P> for Temporal<R>
where
    Temporal<R>: Reconstruct,
{
    type Pair = R::Pair;
    const PAIR_BYTES: usize = R::PAIR_BYTES;
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
    #[inline(always)]
    unsafe fn store_link(tile: Global, lane: usize, mu: usize, forward: bool, u: &Su3<f64>) {
        unsafe { R::store_link(tile, lane, mu, forward, u) }
    }
}

impl<R: LinkFormat<Half>> LinkFormat<Single> for Short<R>
where
    Short<R>: Reconstruct,
{
    type Pair = R::Pair;
    const UNIT: bool = true;
    const PAIR_BYTES: usize = R::PAIR_BYTES;
    #[inline(always)]
    unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> R::Pair {
        unsafe { R::load_pair(tile, lane, mu) }
    }
    #[inline(always)]
    fn forward(pair: &R::Pair) -> Su3<f32> {
        R::forward(pair)
    }
    #[inline(always)]
    fn backward(pair: &R::Pair) -> Su3<f32> {
        R::backward(pair)
    }
    #[inline(always)]
    unsafe fn store_link(tile: Global, lane: usize, mu: usize, forward: bool, u: &Su3<f64>) {
        unsafe { R::store_link(tile, lane, mu, forward, u) }
    }
}

/// Word `i` of a pair.
#[inline(always)]
fn word<const K: usize>(pair: &([Chunk; K], HalfChunk), i: usize) -> u32 {
    if i < 4 * K { pair.0[i / 4].0[i % 4] } else { pair.1.0[i - 4 * K] }
}
