//! Storage formats as types. A new format is one file in this module, and changes no kernel.
//!
//! Fields are stored in tiles of [`TILE`] consecutive sites. On a GPU the layout is \[tile\]\[16-byte chunk\]\[site of the
//! tile\], so that a warp reads whole cache lines. On a CPU it is \[tile\]\[number\]\[site\] (`record.rs`), because vector
//! registers take one number of several sites. Links are stored for the parity of the *output* of the hopping term. All eight
//! links of a site are together, with the Hermitian conjugates of the backward links. Links therefore need no neighbour
//! addresses, at the cost of twice the memory (measured in docs/measurements/dslash.md).
#[cfg(not(target_arch = "nvptx64"))]
mod any_links;
mod clover;
mod double;
mod element;
pub(crate) mod fine;
mod fp16;
mod half;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod links;
mod numbers;
mod reconstruct;
mod record;
mod single;
mod site;
mod staged;
mod words;

#[cfg(not(target_arch = "nvptx64"))]
pub use any_links::{AnyLinks, AnyLongLinks, AnyStaggeredLinks, AnyWilsonLinks};
pub use clover::{Block, CloverFormat, HALF, StoreBlock, StoreClover, apply_clover, lower_index};
pub use double::Double;
pub use element::Element;
pub(crate) use element::{load_momentum, load_su3, store_momentum, store_su3};
pub use fine::Fine18;
pub use fp16::Fp16;
pub use half::Half;
#[cfg(target_arch = "x86_64")]
pub use lanes::{Bytes32, Bytes64, HasLanes, InLanes, VectorSet};
pub use links::{HopLinks, ImprovedHops, LinkFormat, StoreLinks};
pub use reconstruct::{
    BesideFine, InHalf, Recon8, Recon8H, Recon8T, Recon9, Recon9F, Recon9H, Recon12, Recon12H, Recon12T, Recon13,
    Recon13F, Recon13H, Recon18, Recon18H, Reconstruct, Temporal,
};
pub use single::Single;
pub use site::{Colours, SiteFormat, SiteKind, SiteValue, Sites, Spinors, StaggeredFermion, WilsonFermion};
pub use staged::{Slots, Staged, stage, staged_bytes};

use crate::Precision;
use crate::algebra::{Colour, Complex, DiracSpinor, Projector, ProjectorSign, Scaled, ScaledColour};
use crate::memory::{Access, Chunk, Global};

/// Number of sites per tile in single precision and in 16-bit formats. Other number types have [`Element::TILE`] sites
/// per tile.
pub const TILE: usize = <f32 as Element>::TILE;
/// Bytes from one complex number of a record to its next on a CPU: two cache lines.
const NUMBER_STRIDE: usize = 128;
/// Granularity of allocation, in sites. Fields have memory for a multiple of this number of sites, which is whole tiles
/// on every backend.
pub const PADDING: usize = 32;
/// Returns the smallest multiple of [`PADDING`] that is at least `sites`.
pub const fn padded(sites: usize) -> usize {
    sites.next_multiple_of(PADDING)
}
/// Returns the tile of a site, and the site's place in it. Sites of a group in a vector register have the place of their first
/// site; the bits above [`TILE`] encode the exchange of lanes.
#[inline(always)]
pub(crate) fn place_in_tiles<T: Element>(i: u32) -> (u32, usize) {
    let sites = T::TILE as u32;
    #[cfg(not(target_arch = "nvptx64"))]
    if T::LANES > 1 {
        let (site, turn) = crate::lattice::lanes::first_and_turn(i);
        let (part, turn) = (turn & !(T::LANES as u32 - 1), turn & (T::LANES as u32 - 1));
        return ((site + part) / sites, ((site + part) % sites) as usize + TILE * turn as usize);
    }
    (i / sites, (i % sites) as usize)
}
/// Distance in bytes between consecutive chunks of a site.
pub(crate) const STRIDE: usize = 16 * TILE;

/// Precision in which numbers are stored, with its arithmetic. The provided functions are for fields whose complex
/// numbers are stored one by one ([`Element`]).
pub trait NumberFormat: Copy + Send + Sync + 'static {
    /// Type of real numbers in registers.
    type Real: Element;
    /// The precision as a value.
    const PRECISION: Precision;
    /// Number of bytes of a complex number in records that are stored number by number on a CPU, or 0 for records in chunks.
    const RECORD_NUMBER: usize = record::CHUNKS;
    /// Bytes of one four-spin spinor.
    const SPINOR_BYTES: usize;
    /// Whether numbers that occur in fields can be too large or too small for the format.
    const HAS_RANGE: bool = false;
    /// Reads a spinor of the tile at `tile`.
    ///
    /// # Safety
    /// The tile is valid and read as `access` promises; `lane` < [`Element::TILE`].
    #[inline(always)]
    unsafe fn load_spinor(tile: Global, lane: usize, access: Access) -> DiracSpinor<Self::Real> {
        unsafe { numbers::load_spinor(tile, lane, access) }
    }
    /// Reads the part of a spinor that `p` needs, and projects it.
    ///
    /// # Safety
    /// The contract of [`load_spinor`](Self::load_spinor) holds; nothing writes the tile meanwhile.
    #[inline(always)]
    unsafe fn load_projected<S: ProjectorSign>(tile: Global, lane: usize, p: Projector<S>) -> Scaled<Self::Real> {
        unsafe { numbers::load_projected(tile, lane, p) }
    }
    /// Writes a spinor.
    ///
    /// # Safety
    /// The tile is valid, and no other thread writes the element.
    #[inline(always)]
    unsafe fn store_spinor(tile: Global, lane: usize, s: &DiracSpinor<Self::Real>) {
        unsafe { numbers::store_spinor(tile, lane, s) }
    }

    /// Bytes of a projected spinor.
    const HALF_SPINOR_BYTES: usize;
    /// Reads a half spinor of the tile at `tile`. `time` is set if it is the projection by a projector in t.
    ///
    /// # Safety
    /// The contract of [`load_projected`](Self::load_projected) holds.
    #[inline(always)]
    unsafe fn load_half_spinor(tile: Global, lane: usize, time: bool) -> Scaled<Self::Real> {
        unsafe { numbers::load_half_spinor(tile, lane, time) }
    }
    /// Reads a spinor, and writes its projection by `p` to another tile. [`load_half_spinor`](Self::load_half_spinor) from that
    /// tile equals [`load_projected`](Self::load_projected) from this one, up to rounding in `Half`.
    ///
    /// # Safety
    /// Both tiles are valid; nothing writes the first meanwhile, and no other thread writes that element of the second.
    #[inline(always)]
    unsafe fn store_projected(from: (Global, usize), p: Projector, to: (Global, usize)) {
        unsafe { numbers::store_projected::<Self::Real>(from, p, to) }
    }

    /// Bytes of one colour vector.
    const COLOUR_BYTES: usize;
    /// Reads a colour vector of the tile at `tile`.
    ///
    /// # Safety
    /// The contract of [`load_spinor`](Self::load_spinor) holds.
    #[inline(always)]
    unsafe fn load_colour(tile: Global, lane: usize, access: Access) -> ScaledColour<Self::Real> {
        unsafe { numbers::load_colour(tile, lane, access) }
    }
    /// Writes a colour vector.
    ///
    /// # Safety
    /// The contract of [`store_spinor`](Self::store_spinor) holds.
    #[inline(always)]
    unsafe fn store_colour(tile: Global, lane: usize, c: &Colour<Self::Real>) {
        unsafe { numbers::store_colour(tile, lane, c) }
    }
    /// Copies a colour vector, bit by bit.
    ///
    /// # Safety
    /// Both tiles are valid; nothing writes the first meanwhile, and no other thread writes that element of the second.
    #[inline(always)]
    unsafe fn copy_colour((from, lane): (Global, usize), (to, place): (Global, usize)) {
        unsafe { Self::store_colour(to, place, &Self::load_colour(from, lane, Access::Shared).value()) }
    }

    /// Whether components of links must lie between −1 and 1.
    const UNIT_LINKS: bool = false;
}

/// Precision in which the numbers of links are stored as words.
pub trait LinkWords: NumberFormat {
    /// 32-bit words per complex number of a link.
    const LINK_WORDS: usize;
    /// Returns complex number `j` of a link record, from its words.
    fn decode_link(word: impl Fn(usize) -> u32, j: usize) -> Complex<Self::Real>;
    /// Returns the words of a complex number of a link, of which the first [`LINK_WORDS`](Self::LINK_WORDS) are used.
    fn encode_link(z: Complex<f64>) -> [u32; 4];
}

/// Returns the two single-precision complex numbers in a chunk.
#[inline(always)]
pub(crate) fn two_singles(c: Chunk) -> [Complex<f32>; 2] {
    let [a, b, c, d] = c.0.map(f32::from_bits);
    [Complex { re: a, im: b }, Complex { re: c, im: d }]
}
/// Returns the double-precision complex number in a chunk.
#[inline(always)]
fn one_double([a, b, c, d]: [u32; 4]) -> Complex<f64> {
    let join = |low: u32, high: u32| f64::from_bits((high as u64) << 32 | low as u64);
    Complex { re: join(a, b), im: join(c, d) }
}
#[inline(always)]
fn double_words(z: Complex<f64>) -> [u32; 4] {
    let (re, im) = (z.re.to_bits(), z.im.to_bits());
    [re as u32, (re >> 32) as u32, im as u32, (im >> 32) as u32]
}
