//! Fields: on the host as plain arrays, on the device in the layout that its kernels read.
mod any;
mod clover;
mod device;
mod gauge;
pub mod host;
mod matrices;
mod sides;
mod space;
mod thin;

pub use any::{AnyField, AnyOperator, AnySpace};
pub use clover::DeviceClover;
pub use device::{DeviceColour, DeviceField, DeviceSpinor, FieldKind, FullColour, FullField, FullSpinor};
pub use gauge::DeviceGauge;
pub use space::{ColourSpace, FieldSpace, SpinorSpace};
pub use thin::ThinGauge;
