//! Lattice QCD kernels: one source for the GPU and the CPU.
//!
//! A kernel is a plain struct, which holds its arguments, with a function of one site that is generic over formats:
//! [`Kernel::site`]. The table of each source file, [`kernels!`](crate::kernels), lists its kernels and their formats, and
//! generates PTX entry points and CPU functions. On the CPU, a parallel loop calls the function. A [`Reduction`] returns
//! numbers for each site, which the launcher adds up in double precision and in a fixed order.
//!
//! * [`algebra`]: real and complex numbers, colour vectors, SU(3), spin projection
//! * [`storage`]: precisions and link reconstructions, as types; [`format`]: as values
//! * [`lattice`]: sites, parities and neighbours
//! * [`wilson`], [`clover`], [`blas`], [`block`], [`gram_of_warps`], [`transfer`], [`gauge`], [`gauge_fixing`],
//!   [`heatbath`]: the kernels
//! * [`multigrid`], [`coarse`]: aggregates, and operators on coarse lattices
//! * [`momenta`], [`gauge_force`], [`fermion_force`], [`wilson_force`], [`stout`]: molecular dynamics
//! * [`warp`]: computations shared by the lanes of a warp; [`threads`]: data shared by the threads of a block; [`multi_rhs`]:
//!   several right-hand sides of a site at a time; [`per_rhs`]: arguments that differ between right-hand sides
//! * [`random`]: counter-based random numbers, the same on every backend
//!
//! # Safety
//! Kernels work on addresses. The contract is that of [`Kernel::site`] and [`Reduction::site`]. Only `unsafe` functions make
//! the views in a kernel. Their caller guarantees the memory of the views and the sites for which the kernel is launched, and
//! every `unsafe` block in this crate relies on that guarantee alone.
#![no_std]
#![allow(clippy::undocumented_unsafe_blocks, reason = "the contract is written once, above")]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, stdarch_nvptx, core_float_math))]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

#[macro_use]
mod format_lists;

pub mod algebra;
pub mod blas;
pub mod block;
pub mod clover;
pub mod coarse;
pub mod contraction;
// Unit tests do not compile the instances, because that takes minutes.
#[cfg(all(feature = "cpu", not(test)))]
pub mod cpu;
pub mod device;
pub mod diagonal;
pub mod dslash;
pub mod exterior;
pub mod faces;
pub mod fermion_force;
pub mod field;
pub mod format;
pub mod gauge;
pub mod gauge_fixing;
pub mod gauge_force;
pub mod ghost;
pub mod gram_of_warps;
pub mod heatbath;
pub mod krylov;
pub mod lattice;
pub mod memory;
pub mod momenta;
pub mod multi_rhs;
pub mod multigrid;
pub mod noise;
pub mod per_rhs;
pub mod random;

pub mod schwarz;
pub mod smeared;
pub mod staggered;
pub mod storage;
pub mod stout;
pub mod sums;
#[cfg(target_arch = "nvptx64")]
mod tensor_cores;
pub mod threads;
pub mod transfer;
mod unrolled;
pub mod warp;
pub mod wilson;
pub mod wilson_force;

mod instances;
mod kernel;
pub use format::{FermionKind, Format, LinkStorage, Precision};
pub use instances::{
    EntryPoint, Family, Instance, Instances, MOST_VALUES, OLDEST_ARCHITECTURE, PossibleFormat, Sum, SumInstances, Table,
};
pub use kernel::{Kernel, Reduction, Values};

/// Identifier of the source of this crate. PTX with another identifier has other kernels or other arguments.
#[cfg(not(target_arch = "nvptx64"))]
pub const SOURCE: &str = env!("GPU_KERNELS_SOURCE");

/// Kernels of all source files.
pub static FAMILIES: &[Family] = &[
    wilson::FAMILY,
    clover::FAMILY,
    staggered::FAMILY,
    exterior::FAMILY,
    faces::FAMILY,
    schwarz::FAMILY,
    krylov::FAMILY,
    smeared::FAMILY,
    blas::FAMILY,
    block::FAMILY,
    gram_of_warps::FAMILY,
    transfer::FAMILY,
    contraction::FAMILY,
    noise::FAMILY,
    multigrid::FAMILY,
    coarse::FAMILY,
    gauge::FAMILY,
    gauge_fixing::FAMILY,
    heatbath::FAMILY,
    momenta::FAMILY,
    gauge_force::FAMILY,
    fermion_force::FAMILY,
    wilson_force::FAMILY,
    stout::FAMILY,
];

/// Returns all instances of all kernels of the crate.
#[inline(never)]
pub fn instances() -> impl Iterator<Item = &'static Instance> {
    FAMILIES.iter().flat_map(Family::instances)
}

/// Returns the entry points in PTX of all kernels.
pub fn entry_points() -> impl Iterator<Item = EntryPoint> {
    instances().flat_map(Instance::entry_points)
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
