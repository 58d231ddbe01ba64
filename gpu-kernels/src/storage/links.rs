//! Storage of links in a precision and a reconstruction: pairs of links for each direction, in chunks.
use super::reconstruct::{BesideFine, InHalf, Recon8, Recon9, Recon12, Recon13, Recon18, Reconstruct, Temporal};
use super::{Double, Element, Fp16, Half, LinkWords, NumberFormat, STRIDE, Single, TILE, place_in_tiles, record};
use crate::algebra::{Complex, Su3, complex, quarter_tangent};
use crate::field::Links;
use crate::memory::{Access, Chunk, Global, HalfChunk};

/// Reconstruction in one precision, which determines how the links U_μ(x) and U†_μ(x−μ̂) of one direction are stored
/// together. The numbers of the first link come first, then those of the second. If phases are stored, a complex number
/// follows that consists of the two phases.
pub trait LinkFormat<P: NumberFormat>: Reconstruct {
    /// Type of a packed pair of links.
    type Pair: Copy;
    /// Whether components must lie between −1 and 1.
    const UNIT: bool = P::UNIT_LINKS;
    /// Bytes of a pair.
    const PAIR_BYTES: usize;
    /// Bytes of the four pairs of a site.
    const SITE_BYTES: usize = 4 * Self::PAIR_BYTES;
    /// Bytes of the links that the hopping term reads at a site away from the boundary in t.
    const READ_BYTES: usize = if Self::TEMPORAL { 3 } else { 4 } * Self::PAIR_BYTES;
    /// Reads the pair of direction `mu` at site `i` of the links at `base`.
    ///
    /// # Safety
    /// The site exists and nothing writes its links meanwhile.
    #[inline(always)]
    unsafe fn pair(base: Global, i: u32, mu: usize) -> Self::Pair {
        unsafe {
            let (tile, lane) = Self::tile(base, i);
            Self::load_pair(tile, lane, mu)
        }
    }
    /// Returns the tile of site `i`, and the site's place in it.
    ///
    /// # Safety
    /// The site exists.
    #[inline(always)]
    unsafe fn tile(base: Global, i: u32) -> (Global, usize) {
        let (tile, lane) = place_in_tiles::<P::Real>(i);
        let offset = tile as u64 * (P::Real::TILE * Self::SITE_BYTES) as u64;
        (unsafe { base.offset(offset as usize) }, lane)
    }
    /// Reads the pair of direction `mu`.
    ///
    /// # Safety
    /// The tile is valid and nothing writes it meanwhile.
    unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> Self::Pair;
    /// Returns U_μ(x) of a pair.
    fn forward(pair: &Self::Pair) -> Su3<P::Real>;
    /// Returns U†_μ(x−μ̂) of a pair.
    fn backward(pair: &Self::Pair) -> Su3<P::Real>;
    /// Returns row `J` of U_μ(x) if `forward`, else of U†_μ(x−μ̂).
    #[inline(always)]
    fn row<const J: usize>(pair: &Self::Pair, forward: bool) -> [Complex<P::Real>; 3] {
        if forward { Self::forward(pair).0[J] } else { Self::backward(pair).0[J] }
    }
}

/// Form of links in which hopping terms read them.
pub trait HopLinks<P: NumberFormat>: 'static {
    /// Packed pair of links of a direction, or its address.
    type HopPair: Copy;
    /// Returns whether the links are in temporal gauge ([`Reconstruct::TEMPORAL`]).
    fn is_temporal(links: &Links) -> bool;
    /// Reads the pair of direction `mu` at site `i`.
    ///
    /// # Safety
    /// The site exists and nothing writes its links meanwhile.
    unsafe fn hop_pair(links: &Links, i: u32, mu: usize) -> Self::HopPair;
    /// Returns U_μ(x) of a pair.
    fn forward_link(pair: &Self::HopPair) -> Su3<P::Real>;
    /// Returns U†_μ(x−μ̂) of a pair.
    fn backward_link(pair: &Self::HopPair) -> Su3<P::Real>;
    /// Returns row `J` of U_μ(x) if `forward`, else of U†_μ(x−μ̂).
    #[inline(always)]
    fn link_row<const J: usize>(pair: &Self::HopPair, forward: bool) -> [Complex<P::Real>; 3] {
        if forward { Self::forward_link(pair).0[J] } else { Self::backward_link(pair).0[J] }
    }
}
impl<P: NumberFormat, R: LinkFormat<P>> HopLinks<P> for R {
    type HopPair = R::Pair;
    #[inline(always)]
    fn is_temporal(_: &Links) -> bool {
        R::TEMPORAL
    }
    #[inline(always)]
    unsafe fn hop_pair(links: &Links, i: u32, mu: usize) -> R::Pair {
        unsafe { R::pair(links.base(), i, mu) }
    }
    #[inline(always)]
    fn forward_link(pair: &R::Pair) -> Su3<P::Real> {
        R::forward(pair)
    }
    #[inline(always)]
    fn backward_link(pair: &R::Pair) -> Su3<P::Real> {
        R::backward(pair)
    }
    #[inline(always)]
    fn link_row<const J: usize>(pair: &R::Pair, forward: bool) -> [Complex<P::Real>; 3] {
        R::row::<J>(pair, forward)
    }
}

/// Form of the long links of improved staggered operators, with the form of the fat links that belong to them.
pub trait ImprovedHops<P: NumberFormat>: HopLinks<P> {
    /// Storage of the fat links.
    type Fat: HopLinks<P>;
}
impl<P: NumberFormat, R: LinkFormat<P, Full: LinkFormat<P>>> ImprovedHops<P> for R {
    type Fat = R::Full;
}

/// Form of links in which the links of a site are written together.
pub trait StoreLinks<P: NumberFormat>: LinkFormat<P> {
    /// Writes the pair of direction `mu`.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the element.
    unsafe fn store_pair(tile: Global, lane: usize, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>);
}

macro_rules! link_format {
    ($precision:ident, $recon:ident: $chunks:literal chunks and $tail:literal bytes) => {
        impl LinkFormat<$precision> for $recon {
            type Pair = ([Chunk; $chunks], HalfChunk);
            const PAIR_BYTES: usize = 4 * <$precision>::LINK_WORDS * (2 * Self::KEPT + Self::PHASE as usize);

            #[inline(always)]
            unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> Self::Pair {
                let pair = unsafe {
                    tile.offset(
                        mu * <<$precision as NumberFormat>::Real as Element>::TILE
                            * <Self as LinkFormat<$precision>>::PAIR_BYTES,
                    )
                };
                let mut chunks = [Chunk::default(); $chunks];
                let mut k = 0;
                while k < $chunks {
                    chunks[k] = unsafe { record::load::<{ <$precision>::RECORD_NUMBER }>(pair, lane, k, Access::Once) };
                    k += 1;
                }
                let tail = match $tail {
                    0 => HalfChunk::default(),
                    4 => HalfChunk([unsafe { pair.load4(4 * lane + $chunks * STRIDE, Access::Once) }.to_bits(), 0]),
                    _ => unsafe {
                        record::load_half::<{ <$precision>::RECORD_NUMBER }>(pair, lane, $chunks, Access::Once)
                    },
                };
                (chunks, tail)
            }
            #[inline(always)]
            fn forward(pair: &Self::Pair) -> Su3<<$precision as NumberFormat>::Real> {
                let phase = || number::<$precision, _>(pair, 2 * Self::KEPT).re;
                Self::expand(|j| number::<$precision, _>(pair, j), phase)
            }
            #[inline(always)]
            fn backward(pair: &Self::Pair) -> Su3<<$precision as NumberFormat>::Real> {
                let phase = || number::<$precision, _>(pair, 2 * Self::KEPT).im;
                Self::expand(|j| number::<$precision, _>(pair, Self::KEPT + j), phase)
            }
        }
        impl StoreLinks<$precision> for $recon {
            #[inline(always)]
            unsafe fn store_pair(tile: Global, lane: usize, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>) {
                let pair = unsafe {
                    tile.offset(
                        mu * <<$precision as NumberFormat>::Real as Element>::TILE
                            * <Self as LinkFormat<$precision>>::PAIR_BYTES,
                    )
                };
                let put = |j: usize, z: Complex<f64>| {
                    let words = <$precision>::encode_link(z);
                    let mut k = 0;
                    while k < <$precision>::LINK_WORDS {
                        let i = j * <$precision>::LINK_WORDS + k;
                        let shape = [$chunks, $tail];
                        unsafe {
                            record::store_word::<{ <$precision>::RECORD_NUMBER }>(pair, lane, i, shape, words[k])
                        };
                        k += 1;
                    }
                };
                let mut j = 0;
                while j < Self::KEPT {
                    put(j, Self::reduce(forward, j));
                    put(Self::KEPT + j, Self::reduce(backward, j));
                    j += 1;
                }
                if Self::PHASE {
                    let phase = |u: &Su3<f64>| quarter_tangent(u.determinant());
                    put(2 * Self::KEPT, complex(phase(forward), phase(backward)));
                }
            }
        }
        const _: () = {
            let bytes = <$recon as LinkFormat<$precision>>::PAIR_BYTES;
            assert!(bytes == 16 * $chunks + $tail, "the chunks hold a pair");
            assert!((TILE * bytes).is_multiple_of(4 * TILE), "tiles stay aligned to cache lines");
        };
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
link_format!(Double, Recon13: 13 chunks and 0 bytes);
link_format!(Double, Recon9: 9 chunks and 0 bytes);
link_format!(Single, Recon13: 6 chunks and 8 bytes);
link_format!(Single, Recon9: 4 chunks and 8 bytes);
link_format!(Half, Recon13: 3 chunks and 4 bytes);
link_format!(Half, Recon9: 2 chunks and 4 bytes);
link_format!(Fp16, Recon18: 4 chunks and 8 bytes);
link_format!(Fp16, Recon12: 3 chunks and 0 bytes);
link_format!(Fp16, Recon8: 2 chunks and 0 bytes);

impl<P: NumberFormat, R: LinkFormat<P>> LinkFormat<P> for Temporal<R>
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
}
impl<P: NumberFormat, R: StoreLinks<P>> StoreLinks<P> for Temporal<R>
where
    Temporal<R>: Reconstruct,
{
    #[inline(always)]
    unsafe fn store_pair(tile: Global, lane: usize, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>) {
        unsafe { R::store_pair(tile, lane, mu, forward, backward) }
    }
}

/// Links in half precision for fields in single precision, under another name than that of their reconstruction.
macro_rules! as_in_half {
    ($wrapper:ident) => {
        impl<R: LinkFormat<Half>> LinkFormat<Single> for $wrapper<R>
        where
            $wrapper<R>: Reconstruct,
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
        }
    };
}
as_in_half!(InHalf);
as_in_half!(BesideFine);
impl<R: StoreLinks<Half>> StoreLinks<Single> for InHalf<R>
where
    InHalf<R>: Reconstruct,
{
    #[inline(always)]
    unsafe fn store_pair(tile: Global, lane: usize, mu: usize, forward: &Su3<f64>, backward: &Su3<f64>) {
        unsafe { R::store_pair(tile, lane, mu, forward, backward) }
    }
}

/// Returns complex number `j` of a packed pair.
#[inline(always)]
fn number<P: LinkWords, const K: usize>(pair: &([Chunk; K], HalfChunk), j: usize) -> Complex<P::Real> {
    P::decode_link(|i| word(pair, i), j)
}
/// Returns word `i` of a packed pair.
#[inline(always)]
fn word<const K: usize>(pair: &([Chunk; K], HalfChunk), i: usize) -> u32 {
    if i < 4 * K { pair.0[i / 4].0[i % 4] } else { pair.1.0[i - 4 * K] }
}

#[cfg(test)]
mod tests;
