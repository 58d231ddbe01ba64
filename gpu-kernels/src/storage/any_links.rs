//! Links in any storage, for CPUs. One instance of a hopping term serves all reconstructions of a precision, because compiling
//! an instance for each takes longer than a branch at each link.
use super::links::{HopLinks, ImprovedHops, LinkFormat};
use super::{
    Double, Fine18, Fp16, Half, NumberFormat, Recon8, Recon8H, Recon9, Recon9H, Recon12, Recon12H, Recon13, Recon13H,
    Recon18, Recon18H, Reconstruct, Single,
};
use crate::LinkStorage;
use crate::algebra::Su3;
use crate::field::Links;

/// Links whose storage is recorded in their view ([`Links`]) and is known only at run time. Storage of all reals is
/// always supported. Fewer reals need `COMPRESSED`, 16-bit links with fields in single precision need `HALF`, and links
/// in U(3) need `PHASE`.
#[derive(Clone, Copy, Debug)]
pub struct AnyLinks<const COMPRESSED: bool, const HALF: bool, const PHASE: bool>;
/// Links of Wilson-like operators, in a storage that is known only at run time.
pub type AnyWilsonLinks = AnyLinks<true, false, false>;
/// Links of staggered operators with one link for each hop, in a storage that is known only at run time.
pub type AnyStaggeredLinks = AnyLinks<true, true, false>;
/// Long links of improved staggered operators, in a storage that is known only at run time.
pub type AnyLongLinks = AnyLinks<true, true, true>;

/// Address of a pair of links. Each link is decoded when it is needed.
#[derive(Clone, Copy, Debug)]
pub struct PairAddress {
    links: Links,
    i: u32,
    mu: usize,
}

/// Precision of fields whose links can be in a storage that is known only at run time.
pub trait AnyStorage: NumberFormat {
    /// Returns one of the two links of a pair: U_μ(x) if `forward`, else U†_μ(x−μ̂).
    fn link<const COMPRESSED: bool, const HALF: bool, const PHASE: bool>(
        at: &PairAddress,
        forward: bool,
    ) -> Su3<Self::Real>;
}

macro_rules! any_storage {
    ($($precision:ident { $($recon:ident if $there:expr, $($feature:literal)*;)* })*) => {$(
        impl AnyStorage for $precision {
            #[inline(always)]
            fn link<const COMPRESSED: bool, const HALF: bool, const PHASE: bool>(at: &PairAddress, forward: bool) -> Su3<Self::Real> {
                /// Returns one link of a pair in the storage `R`.
                #[inline(always)]
                fn read<R: LinkFormat<$precision>>(at: &PairAddress, forward: bool) -> Su3<<$precision as NumberFormat>::Real> {
                    // SAFETY: whoever made the address vouches for the site.
                    let pair = unsafe { R::pair(at.links.base(), at.i, at.mu) };
                    if forward { R::forward(&pair) } else { R::backward(&pair) }
                }
                let numbers = |storage: LinkStorage| (storage.reals, storage.half, storage.fine);
                let stored = numbers(at.links.storage());
                $(
                    #[cfg(all($(feature = $feature),*))]
                    if $there && stored == numbers($recon::STORAGE) {
                        return read::<$recon>(at, forward);
                    }
                )*
                read::<Recon18>(at, forward)
            }
        }
    )*};
}
any_storage! {
    Double {
        Recon12 if COMPRESSED, "reconstruct-12";
        Recon8 if COMPRESSED, "reconstruct-8";
        Recon13 if PHASE, "reconstruct-12";
        Recon9 if PHASE, "reconstruct-8";
    }
    Single {
        Recon12 if COMPRESSED, "reconstruct-12";
        Recon8 if COMPRESSED, "reconstruct-8";
        Recon13 if PHASE, "reconstruct-12";
        Recon9 if PHASE, "reconstruct-8";
        Recon18H if HALF, "half-links";
        Fine18 if HALF, "half-links";
        Recon12H if HALF && COMPRESSED, "half-links" "reconstruct-12";
        Recon8H if HALF && COMPRESSED, "half-links" "reconstruct-8";
        Recon13H if HALF && PHASE, "half-links" "reconstruct-12";
        Recon9H if HALF && PHASE, "half-links" "reconstruct-8";
    }
    Half {
        Recon12 if COMPRESSED, "reconstruct-12";
        Recon8 if HALF && COMPRESSED, "reconstruct-8";
        Recon13 if PHASE, "reconstruct-12";
        Recon9 if PHASE, "reconstruct-8";
    }
    Fp16 {
        Recon12 if COMPRESSED, "reconstruct-12";
    }
}

impl<P: AnyStorage, const COMPRESSED: bool, const HALF: bool, const PHASE: bool> HopLinks<P>
    for AnyLinks<COMPRESSED, HALF, PHASE>
{
    type HopPair = PairAddress;
    #[inline(always)]
    fn is_temporal(links: &Links) -> bool {
        links.storage().temporal
    }
    #[inline(always)]
    unsafe fn hop_pair(links: &Links, i: u32, mu: usize) -> PairAddress {
        PairAddress { links: *links, i, mu }
    }
    #[inline(always)]
    fn forward_link(pair: &PairAddress) -> Su3<P::Real> {
        P::link::<COMPRESSED, HALF, PHASE>(pair, true)
    }
    #[inline(always)]
    fn backward_link(pair: &PairAddress) -> Su3<P::Real> {
        P::link::<COMPRESSED, HALF, PHASE>(pair, false)
    }
}
impl<P: AnyStorage, const COMPRESSED: bool, const HALF: bool, const PHASE: bool> ImprovedHops<P>
    for AnyLinks<COMPRESSED, HALF, PHASE>
{
    type Fat = AnyLinks<false, HALF, false>;
}
