//! Fields: on the host as plain arrays, on the device in the layout that its kernels read.
mod gauge;
pub mod host;
mod space;
mod spinor;

pub use gauge::{DeviceGauge, StagedGauge};
pub use space::SpinorSpace;
pub use spinor::{DeviceSpinor, FullSpinor};
