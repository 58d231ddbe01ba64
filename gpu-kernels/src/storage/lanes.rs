//! Formats of groups of sites ([`lattice::lanes`](crate::lattice::lanes)). Fields are stored number by number, and read and
//! written for several sites at once.
use super::links::LinkFormat;
use super::{Block, CloverFormat, Double, Element, NumberFormat, Recon12, Recon18, Reconstruct, Single, TILE};
use crate::Precision;
use crate::algebra::vector::{F32x8, F32x16, F64x4, F64x8};
use crate::algebra::{Complex, Real, Su3};
use crate::memory::{Access, Global};
use core::marker::PhantomData;
use core::ops::Range;

/// Set of vector registers of one size, with the vector types of each precision.
pub trait VectorSet: Copy + Send + Sync + 'static {
    /// Vector of numbers in single precision.
    type Single: Element;
    /// Vector of numbers in double precision.
    type Double: Element;
    /// Set of registers of half the size, or this set if no smaller registers exist.
    type Half: VectorSet;
}
/// Vector registers of 64 bytes (AVX-512).
#[derive(Clone, Copy, Debug)]
pub struct Bytes64;
impl VectorSet for Bytes64 {
    type Single = F32x16;
    type Double = F64x8;
    type Half = Bytes32;
}
/// Vector registers of 32 bytes (AVX2).
#[derive(Clone, Copy, Debug)]
pub struct Bytes32;
impl VectorSet for Bytes32 {
    type Single = F32x8;
    type Double = F64x4;
    type Half = Bytes32;
}

/// Precision in which a CPU can read fields for several sites at once, in the lanes of vector registers.
pub trait HasLanes: CloverFormat {
    /// Vector of numbers of this precision.
    type In<V: VectorSet>: Element;
}
impl HasLanes for Single {
    type In<V: VectorSet> = V::Single;
}
impl HasLanes for Double {
    type In<V: VectorSet> = V::Double;
}

/// Precision P for several sites at once, in vector registers V.
#[derive(Clone, Copy, Debug)]
pub struct InLanes<P, V>(PhantomData<(P, V)>);

/// Returns complex number `k` of a group of sites in the group's own lane order.
#[inline(always)]
unsafe fn own<T: Element>(tile: Global, lane: usize, k: usize) -> Complex<T> {
    unsafe { T::straight(tile, lane, k, Access::Own) }
}

impl<P: HasLanes, V: VectorSet> NumberFormat for InLanes<P, V> {
    type Real = P::In<V>;
    const PRECISION: Precision = P::PRECISION;
    const RECORD_NUMBER: usize = P::RECORD_NUMBER;
    const SPINOR_BYTES: usize = P::SPINOR_BYTES;
    const HALF_SPINOR_BYTES: usize = P::HALF_SPINOR_BYTES;
    const COLOUR_BYTES: usize = P::COLOUR_BYTES;
    const UNIT_LINKS: bool = P::UNIT_LINKS;
}

impl<P: HasLanes, V: VectorSet> CloverFormat for InLanes<P, V> {
    const CLOVER_BYTES: usize = P::CLOVER_BYTES;
    #[inline(always)]
    unsafe fn load_block(tile: Global, lane: usize, chirality: usize) -> (Block<Self::Real>, Self::Real) {
        (Block::from_record(|j| unsafe { own(tile, lane, 18 * chirality + j) }), Self::Real::ONE)
    }
}

/// Address of the first number of the pair of links of one direction. Each number is read when it is needed, because registers
/// are few.
#[derive(Clone, Copy, Debug)]
pub struct PairInMemory(Global);

/// Prefetches numbers of the same pair in the next tile, where a site has `bytes` bytes. The addresses of all directions form more
/// sequences than a processor recognises.
#[inline(always)]
fn prefetch_next<T: Element>(pair: &PairInMemory, bytes: usize, numbers: Range<usize>) {
    let next = Global(pair.0.0.wrapping_add(T::TILE * bytes));
    let mut k = numbers.start;
    while k < numbers.end {
        T::prefetch(next, 0, k);
        k += 1;
    }
}

macro_rules! links_in_lanes {
    ($($recon:ident)*) => {$(
        impl<P: HasLanes, V: VectorSet> LinkFormat<InLanes<P, V>> for $recon
        where
            $recon: LinkFormat<P>,
        {
            type Pair = PairInMemory;
            const PAIR_BYTES: usize = <$recon as LinkFormat<P>>::PAIR_BYTES;
            #[inline(always)]
            unsafe fn load_pair(tile: Global, lane: usize, mu: usize) -> PairInMemory {
                let pair = mu * <P::In<V> as Element>::TILE * <Self as LinkFormat<P>>::PAIR_BYTES;
                PairInMemory(unsafe { tile.offset(pair + lane % TILE * <P::In<V> as Element>::BYTES) })
            }
            #[inline(always)]
            fn forward(pair: &PairInMemory) -> Su3<P::In<V>> {
                prefetch_next::<P::In<V>>(pair, <Self as LinkFormat<P>>::SITE_BYTES, 0..Self::KEPT);
                // SAFETY: the caller that made the pair guaranteed its validity.
                let number = |j: usize| unsafe { own::<P::In<V>>(pair.0, 0, j) };
                Self::expand(number, || number(2 * Self::KEPT).re)
            }
            #[inline(always)]
            fn backward(pair: &PairInMemory) -> Su3<P::In<V>> {
                prefetch_next::<P::In<V>>(pair, <Self as LinkFormat<P>>::SITE_BYTES, Self::KEPT..2 * Self::KEPT);
                // SAFETY: as above.
                let number = |j: usize| unsafe { own::<P::In<V>>(pair.0, 0, j) };
                Self::expand(|j| number(Self::KEPT + j), || number(2 * Self::KEPT).im)
            }
            #[inline(always)]
            fn row<const J: usize>(pair: &PairInMemory, forward: bool) -> [Complex<P::In<V>>; 3] {
                let first = if forward { 0 } else { Self::KEPT };
                if 3 * J < Self::KEPT {
                    prefetch_next::<P::In<V>>(pair, <Self as LinkFormat<P>>::SITE_BYTES, first + 3 * J..first + 3 * J + 3);
                }
                // SAFETY: as above.
                let number = |j: usize| unsafe { own::<P::In<V>>(pair.0, 0, j) };
                let phase = || {
                    let phases = number(2 * Self::KEPT);
                    if forward { phases.re } else { phases.im }
                };
                Self::expand(|j| number(first + j), phase).0[J]
            }
        }
    )*};
}
links_in_lanes!(Recon18 Recon12);
