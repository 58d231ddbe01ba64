//! Fields: on the host as plain arrays, on the device in the layout that its kernels read.
mod clover;
mod device;
mod gauge;
pub mod host;
mod matrices;
mod rhs;
mod space;
mod thin;

pub use clover::DeviceClover;
pub use device::{DeviceField, FullField};
pub use gauge::DeviceGauge;
pub use space::FieldSpace;
pub use thin::ThinGauge;
