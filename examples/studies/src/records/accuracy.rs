//! Record of `ferrite-studies accuracy`.
use ferrite_records::Record;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Result of `ferrite-studies accuracy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRecord {
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the device.
    pub device: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Values of ε, the smallest deviation that is counted.
    pub tolerances: Vec<f64>,
    /// Deviations of the results in each format.
    pub rows: Vec<AccuracyRow>,
    /// File of the plot; `None` without `--plot`.
    pub plot: Option<PathBuf>,
}

impl Record for AccuracyRecord {
    const SCHEMA: &'static str = "ferrite.accuracy/1";
}

/// Deviations of the even-odd Wilson matrix in one format from its result in double precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracyRow {
    /// Precision of the fields.
    pub precision: String,
    /// Number of reals stored per link.
    pub reconstruct: String,
    /// Fraction of components that deviate by ε or more, one for each tolerance.
    pub share: Vec<f64>,
    /// Mean deviation of a component, as an absolute value.
    pub mean: f64,
    /// Largest deviation of a component, as an absolute value.
    pub largest: f64,
}
