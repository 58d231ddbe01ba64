//! Views of buffers for kernels.
//!
//! A view is an address, and outlives the borrow from which it was made. Launching a view is safe only under a contract, which
//! `crate::field`, the only caller, keeps:
//! - A view is made, put into a kernel and launched in one expression, while the field is borrowed; mutably, if the kernel writes it.
//! - The size of the buffer is checked here.
//! - The launch is in the format of the field.
//! - A backend frees memory only when no launched kernel can still use it.
//!
//! [`Ordered`] governs how backends access memory that other processes or messages use at the same time.
#![allow(unsafe_code)]

use super::DeviceBuffer;
use gpu_kernels::block::Coefficients;
use gpu_kernels::coarse::{CoarseTiles, Scales};
use gpu_kernels::field::{Clover, Field, Links, Matrices, Momenta, ThinLinks};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::Geometry;
use gpu_kernels::multigrid::Squares;
use gpu_kernels::schwarz::Blocks;
use gpu_kernels::storage::{PADDING, padded};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::transfer::HostArray;
use gpu_kernels::{LinkStorage, Precision};

/// Promise about memory that messages or other processes use at the same time: the memory is read and written in an order without races,
/// and its addresses are valid. No type can check this. Only this crate's exchange of faces can give the promise; a backend that wraps
/// another passes it on.
#[derive(Clone, Copy, Debug)]
pub struct Ordered(());

impl Ordered {
    /// Makes the promise.
    ///
    /// # Safety
    /// Everything that is done with the result keeps the promise of [`Ordered`].
    pub(crate) const unsafe fn promised() -> Self {
        Ordered(())
    }
}

/// Empty field, for an argument that a kernel does not use.
// SAFETY: `crate::operators` gives it to kernels of rows without sums as what sums are made with.
pub(crate) const NO_FIELD: Field = unsafe { Field::none() };
/// Empty links, for an argument that a kernel does not use.
// SAFETY: `crate::operators` gives it to kernels of the naive staggered operator as long links.
pub(crate) const NO_LINKS: Links = unsafe { Links::none() };

/// Returns the number of bytes of `sites` sites, padding included.
const fn padded_bytes(sites: usize, site_bytes: usize) -> usize {
    padded(sites) * site_bytes
}

/// Returns the view of a field of `sites` sites and `nrhs` right-hand sides.
pub(crate) fn field(buffer: &DeviceBuffer, sites: usize, nrhs: usize, site_bytes: usize) -> Field {
    assert!(padded_bytes(sites, site_bytes) * nrhs <= buffer.bytes(), "the buffer holds the field");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Field::new(buffer.address(), sites.div_ceil(PADDING) as u32) }
}
/// Returns the view of one slice of a five-dimensional field. The field has `ls` slices of `sites` sites and `nrhs` right-hand sides; `s`
/// is the number of the slice.
pub(crate) fn slice(
    buffer: &DeviceBuffer,
    sites: usize,
    (s, ls): (usize, usize),
    nrhs: usize,
    site_bytes: usize,
) -> Field {
    let block = padded_bytes(sites, site_bytes);
    assert!(s < ls && block * ls * nrhs <= buffer.bytes(), "the buffer holds the field");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Field::new(buffer.address().wrapping_add(s * block), (ls * sites.div_ceil(PADDING)) as u32) }
}
/// Returns the view of the links that start or end at `sites` sites.
pub(crate) fn links(buffer: &DeviceBuffer, sites: usize, precision: Precision, storage: LinkStorage) -> Links {
    let site_bytes = storage.site_bytes(precision);
    assert!(padded_bytes(sites, site_bytes) <= buffer.bytes(), "the buffer holds the links");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Links::new(buffer.address(), storage) }
}
/// Returns the view of the links that start at `sites` sites.
pub(crate) fn thin_links(buffer: &DeviceBuffer, sites: usize, site_bytes: usize) -> ThinLinks {
    assert!(padded_bytes(sites, site_bytes) <= buffer.bytes(), "the buffer holds the links");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { ThinLinks::new(buffer.address()) }
}
/// Returns the view of one matrix at each of `sites` sites.
pub(crate) fn matrices(buffer: &DeviceBuffer, sites: usize, site_bytes: usize) -> Matrices {
    assert!(padded_bytes(sites, site_bytes) <= buffer.bytes(), "the buffer holds the matrices");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Matrices::new(buffer.address()) }
}
/// Returns the view of the momenta of the links that start at `sites` sites.
pub(crate) fn momenta(buffer: &DeviceBuffer, sites: usize, site_bytes: usize) -> Momenta {
    assert!(padded_bytes(sites, site_bytes) <= buffer.bytes(), "the buffer holds the momenta");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Momenta::new(buffer.address()) }
}
/// Returns the view of the clover term on `sites` sites.
pub(crate) fn clover(buffer: &DeviceBuffer, sites: usize, site_bytes: usize) -> Clover {
    assert!(padded_bytes(sites, site_bytes) <= buffer.bytes(), "the buffer holds the clover term");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Clover::new(buffer.address()) }
}
/// Returns the view of ghost zones. Each zone has `steps[μ]` times [`PADDING`] sites for each right-hand side; the bits of `cut` are the
/// partitioned directions. `crate::halo` makes zones of this size.
pub(crate) fn ghosts(zones: [[*mut u8; 2]; 4], steps: [u32; 4], cut: u32, geometry: &Geometry) -> Ghosts {
    // SAFETY: `crate::halo` keeps the zones as long as the domain lives, and its fields keep the domain.
    unsafe { Ghosts::new(zones, steps, cut, Blocks::one(geometry)) }
}
/// Returns the view of links in the memory of a message. `crate::halo` makes the memory large enough.
pub(crate) fn message_links(zone: *mut u8) -> ThinLinks {
    // SAFETY: as for `ghosts`.
    unsafe { ThinLinks::new(zone) }
}
/// Returns the view of a field in the memory of a message; its right-hand sides are `step` times [`PADDING`] sites apart. `crate::halo`
/// makes the memory large enough.
pub(crate) fn message_field(zone: *mut u8, step: u32) -> Field {
    // SAFETY: as for `ghosts`.
    unsafe { Field::new(zone, step) }
}
/// Returns the view of sums in a buffer of the device, from number `first` on: five parts, `stride` numbers apart, with `widths` values for
/// a right-hand side.
pub(crate) fn device_sums(buffer: &DeviceBuffer, first: usize, stride: u32, widths: [u32; 5]) -> DeviceSums {
    // SAFETY: the caller makes the buffer for all parts, and keeps it as long as kernels may read it.
    unsafe { DeviceSums::new(buffer.address().wrapping_add(8 * first), stride, widths) }
}
/// Returns the view of an array of `count` complex numbers in double precision.
pub(crate) fn host_array(buffer: &DeviceBuffer, count: usize) -> HostArray {
    assert!(16 * count <= buffer.bytes(), "the buffer holds the array");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { HostArray::new(buffer.address()) }
}
/// Returns the view of a table of `count` complex numbers, each of `bytes` bytes.
pub(crate) fn coefficients(buffer: &DeviceBuffer, count: usize, bytes: usize) -> Coefficients {
    assert!(bytes * count <= buffer.bytes(), "the buffer holds the table");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Coefficients::new(buffer.address()) }
}
/// Returns the view of the matrices of a coarse operator, `bytes` bytes in total, with `count` matrices for each site.
pub(crate) fn coarse_matrices(buffer: &DeviceBuffer, bytes: usize, vectors: usize, count: usize) -> CoarseTiles {
    assert!(bytes <= buffer.bytes(), "the buffer holds the matrices");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { CoarseTiles::new(buffer.address(), vectors as u32, count as u32) }
}
/// Returns the view of square matrices of `size` rows, two for each of `aggregates` aggregates.
pub(crate) fn squares(buffer: &DeviceBuffer, aggregates: usize, size: usize) -> Squares {
    assert!(Squares::bytes(aggregates, size) <= buffer.bytes(), "the buffer holds the matrices");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Squares::new(buffer.address(), size as u32) }
}
/// Returns the view of one matrix for each site, in single precision, in the memory of a message. `crate::halo` makes the memory large
/// enough.
pub(crate) fn message_matrices(zone: *mut u8, vectors: usize) -> CoarseTiles {
    // SAFETY: as for `ghosts`.
    unsafe { CoarseTiles::new(zone, vectors as u32, 1) }
}
/// Returns the view of the scales of `count` matrices, in single precision.
pub(crate) fn coarse_scales(buffer: &DeviceBuffer, count: usize) -> Scales {
    assert!(4 * count <= buffer.bytes(), "the buffer holds the scales");
    // SAFETY: the size was checked, the rest is the contract above.
    unsafe { Scales::new(buffer.address()) }
}
