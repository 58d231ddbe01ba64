//! Times of kernels.
use crate::real;
use serde::{Deserialize, Serialize};

/// Time in kernels, of rank 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTimes {
    /// Seconds in all kernels.
    pub seconds: f64,
    /// Share of the time from the links' upload to the solutions' download, or of the whole task.
    #[serde(deserialize_with = "real::read")]
    pub share: f64,
    /// Launches and seconds of each kernel.
    pub times: Vec<KernelTime>,
}

/// Launches of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Name of the kernel.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Seconds of all launches.
    pub seconds: f64,
}
