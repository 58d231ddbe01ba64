//! Fields: on the host as plain arrays, on the device in the layout that its kernels read.
mod any;
mod clover;
mod gauge;
pub mod host;
mod space;
mod spinor;
mod thin;

pub use any::{AnyOperator, AnySpace, AnySpinor};
pub use clover::DeviceClover;
pub use gauge::{DeviceGauge, StagedGauge};
pub use space::SpinorSpace;
pub use spinor::{DeviceSpinor, FullSpinor};
pub use thin::ThinGauge;
