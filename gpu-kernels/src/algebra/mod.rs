//! Numbers, colour and spin.
//!
//! Small functions of complex numbers, reals and vectors are `inline`, not `inline(always)`: the compiler then simplifies them once, before
//! it copies them into every kernel, which saves a quarter of the compile time (docs/measurements/build.md). Everything larger stays
//! `inline(always)`, because a function that is left out of line on a CPU has no vector instructions.
mod anti_hermitian;
mod binary16;
mod complex;
pub mod elementary;
mod hermitian;
mod real;
mod spin;
pub mod su2;
mod su3;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vector;

pub use anti_hermitian::AntiHermitian;
pub use binary16::Complex16;
pub use complex::{Complex, complex};
pub use hermitian::Hermitian;
pub use real::{Real, Scalar, phase_from_quarter_tangent, quarter_tangent};
#[cfg(not(target_arch = "nvptx64"))]
pub use spin::RuntimeSign;
pub use spin::{
    Axis, DiracSpinor, HalfSpinor, Phase, Projector, ProjectorSign, Scaled, Sign, to_degrand_rossi, to_device_basis,
};
pub use su3::{Colour, ScaledColour, Su3, row_times};
