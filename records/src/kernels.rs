//! Times of kernels.
use crate::real;
use serde::{Deserialize, Serialize};

/// Times of kernels on rank 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTimesRecord {
    /// Seconds in all kernels.
    pub seconds: f64,
    /// Fraction of the time that kernels took, relative to the time from the upload of the links to the download of the solutions, or to
    /// the whole task.
    #[serde(deserialize_with = "real::read")]
    pub share: f64,
    /// Launches and seconds of each kernel.
    pub times: Vec<KernelTimeRecord>,
}

/// Number and total time of the launches of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTimeRecord {
    /// Name of the kernel.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Seconds of all launches.
    pub seconds: f64,
}
