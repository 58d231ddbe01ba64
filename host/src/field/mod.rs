//! Fields: on the host as plain arrays, on the device in the layout its kernels read.
pub mod host;
