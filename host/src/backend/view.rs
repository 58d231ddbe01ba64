//! Buffers as kernels see them.
//!
//! A view is an address and outlives the borrow it was made from. The contract that makes launching views safe is kept
//! by `crate::field`, the only caller: a view is made, put into a kernel and launched in one expression while the field
//! is borrowed, mutably if the kernel writes it; its size is checked here; and a backend frees memory only when no
//! launched kernel can still use it.
//!
//! What backends do with memory that has other users at the same time is [`Ordered`].
#![allow(unsafe_code)]

use super::Buffer;
use gpu_kernels::block::Coefficients;
use gpu_kernels::field::{Clover, Field, Links, Matrices, Momenta, ThinLinks};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::Geometry;
use gpu_kernels::schwarz::Blocks;
use gpu_kernels::storage::{CloverFormat, Element, LinkFormat, Precision, SiteFormat, TILE};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::transfer::HostArray;

/// The promise that memory which others use at the same time, messages and what belongs to other processes, is read and
/// written in an order in which nobody reads what another is writing, and that addresses of it are good. No type can check
/// that; only this crate's exchange of faces can give it, and a backend that wraps another hands it on.
#[derive(Clone, Copy, Debug)]
pub struct Ordered(());

impl Ordered {
    /// # Safety
    /// As the type says, for all that is done with it.
    pub(crate) const unsafe fn promised() -> Self {
        Ordered(())
    }
}

/// A field of `sites` sites and `nrhs` right-hand sides.
pub(crate) fn field<F: SiteFormat>(buffer: &Buffer, sites: usize, nrhs: usize) -> Field<F> {
    let tiles = sites.div_ceil(TILE);
    assert!(tiles * TILE * F::BYTES * nrhs <= buffer.bytes(), "the buffer holds the field");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Field::new(buffer.address(), tiles as u32) }
}
/// The links around `sites` sites.
pub(crate) fn links<P: Precision, R: LinkFormat<P>>(buffer: &Buffer, sites: usize) -> Links<P, R> {
    assert!(sites.div_ceil(TILE) * TILE * R::SITE_BYTES <= buffer.bytes(), "the buffer holds the links");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Links::new(buffer.address()) }
}
/// The links that start at `sites` sites.
pub(crate) fn thin_links<T: Element>(buffer: &Buffer, sites: usize) -> ThinLinks<T> {
    assert!(sites.div_ceil(TILE) * TILE * ThinLinks::<T>::SITE_BYTES <= buffer.bytes(), "the buffer holds the links");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { ThinLinks::new(buffer.address()) }
}
/// One matrix at each of `sites` sites.
pub(crate) fn matrices<T: Element>(buffer: &Buffer, sites: usize) -> Matrices<T> {
    assert!(sites.div_ceil(TILE) * TILE * Matrices::<T>::SITE_BYTES <= buffer.bytes(), "the buffer holds the matrices");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Matrices::new(buffer.address()) }
}
/// The momenta of the links that start at `sites` sites.
pub(crate) fn momenta<T: Element>(buffer: &Buffer, sites: usize) -> Momenta<T> {
    assert!(sites.div_ceil(TILE) * TILE * Momenta::<T>::SITE_BYTES <= buffer.bytes(), "the buffer holds the momenta");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Momenta::new(buffer.address()) }
}
/// The clover term on `sites` sites.
pub(crate) fn clover<P: CloverFormat>(buffer: &Buffer, sites: usize) -> Clover<P> {
    assert!(sites.div_ceil(TILE) * TILE * P::CLOVER_BYTES <= buffer.bytes(), "the buffer holds the clover term");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Clover::new(buffer.address()) }
}
/// Ghost zones of `tiles[μ]` tiles for each right-hand side, in the directions that are `cut`. `crate::halo` makes zones as
/// large as that.
pub(crate) fn ghosts<P: Precision>(
    zones: [[*mut u8; 2]; 4],
    tiles: [u32; 4],
    cut: u32,
    geometry: &Geometry,
) -> Ghosts<P> {
    // SAFETY: `crate::halo` keeps the zones as long as the domain lives, and its fields keep the domain.
    unsafe { Ghosts::new(zones, tiles, cut, Blocks::one(geometry)) }
}
/// Links in the memory of a message, which `crate::halo` makes as large as they need.
pub(crate) fn message_links<T: Element>(zone: *mut u8) -> ThinLinks<T> {
    // SAFETY: as for `ghosts`.
    unsafe { ThinLinks::new(zone) }
}
/// A field in the memory of a message, in the same way, with so many tiles for each right-hand side.
pub(crate) fn message_field<F: SiteFormat>(zone: *mut u8, tiles: u32) -> Field<F> {
    // SAFETY: as for `ghosts`.
    unsafe { Field::new(zone, tiles) }
}
/// Sums in a buffer of the device.
pub(crate) fn device_sums(buffer: &Buffer, stride: u32, widths: [u32; 5]) -> DeviceSums {
    // SAFETY: `crate::dirac` makes the buffer for all parts, and keeps it as long as kernels may read it.
    unsafe { DeviceSums::new(buffer.address(), stride, widths) }
}
/// A clover term for rows that have none.
pub(crate) fn no_clover<P: CloverFormat>() -> Clover<P> {
    // SAFETY: it is not read.
    unsafe { Clover::new(std::ptr::null_mut()) }
}
/// An array of `count` complex numbers.
pub(crate) fn host_array(buffer: &Buffer, count: usize) -> HostArray {
    assert!(16 * count <= buffer.bytes(), "the buffer holds the array");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { HostArray::new(buffer.address()) }
}
/// A table of `count` complex numbers.
pub(crate) fn coefficients<T: Element>(buffer: &Buffer, count: usize) -> Coefficients<T> {
    assert!(T::BYTES * count <= buffer.bytes(), "the buffer holds the table");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Coefficients::new(buffer.address()) }
}
