//! Record of the place of a computation: backend, device and processes.
use serde::{Deserialize, Serialize};

/// Backend, device and processes of a computation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaceRecord {
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
    /// Processes, and the grid that partitions the lattice among them.
    pub layout: LayoutRecord,
}

/// Processes of a computation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayoutRecord {
    /// Number of processes.
    pub processes: usize,
    /// Number of processes in x, y, z and t.
    pub grid: [usize; 4],
    /// Transport of faces between processes; only in benchmarks of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Whether computation and communication overlapped; only in benchmarks of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<bool>,
}

impl Default for LayoutRecord {
    /// Returns the layout of a single process.
    fn default() -> Self {
        LayoutRecord { processes: 1, grid: [1; 4], transport: None, overlap: None }
    }
}
