//! Fields: in host memory as plain arrays, and on a device in the layout that kernels read.
mod array;
mod clover;
mod coarse;
mod device;
#[cfg(test)]
mod fifth_dimension;
mod gauge;
mod gauge_field;
pub mod host;
mod kept;
mod matrices;
mod phases;
mod rhs;
mod shape;
mod space;

pub use array::DeviceArray;
pub(crate) use clover::HermitianBlocks;
pub use clover::{DeviceClover, HermitianBlock};
pub(crate) use coarse::CoarseMatrices;
pub use device::{DeviceField, FullField};
pub use gauge::DeviceGauge;
pub use gauge_field::GaugeField;
pub use phases::HopPhases;
pub use shape::{FERMION_KINDS, FieldShape};
pub use space::FieldSpace;
