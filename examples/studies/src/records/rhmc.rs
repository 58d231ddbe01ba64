//! Record of `ferrite-studies rhmc`.
use ferrite_records::observables::MeanAndError;
use ferrite_records::{Record, real};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Result of `ferrite-studies rhmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRecord {
    /// Folder of the ensembles and figures.
    pub output: PathBuf,
    /// Bare mass.
    pub mass: f64,
    /// Gauge coupling β.
    pub beta: f64,
    /// Means for each setting of precision and integrator.
    pub rows: Vec<BenchRhmcRow>,
    /// Files of the figures.
    pub figures: Vec<PathBuf>,
    /// Backend: `cpu` or `cuda`.
    pub backend: String,
    /// Description of the first process's device.
    pub device: String,
}

impl Record for BenchRhmcRecord {
    const SCHEMA: &'static str = "ferrite.bench-rhmc/1";
}

/// Means for one setting of precision and integrator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRhmcRow {
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// Name of the setting.
    pub setting: String,
    /// Number of steps of the fermion force.
    pub steps: u32,
    /// Number of steps of the gauge force in each update of the links.
    pub gauge_steps: u32,
    /// Number of updates of the links in a trajectory.
    pub gauge_updates: usize,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Mean plaquette.
    pub plaquette: MeanAndError,
    /// Mean real part of the Polyakov loop.
    pub polyakov_loop: MeanAndError,
    /// Chiral condensate.
    pub condensate: MeanAndError,
    /// Reversibility violation: distance between the start of a trajectory and the end of its reversal.
    pub irreversibility: IrreversibilityMeans,
    /// Change ΔH of the Hamiltonian in a trajectory.
    pub delta_h: MeanAndError,
    /// Fraction of accepted trajectories.
    pub accepted: MeanAndError,
    /// Mean seconds of a trajectory without reversal; `null` if all were reversed.
    #[serde(deserialize_with = "real::read")]
    pub seconds: f64,
}

/// Distance between the start of a trajectory and the end of its reversal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IrreversibilityMeans {
    /// Distance in the links.
    pub links: MeanAndError,
    /// Distance in the momenta.
    pub momenta: MeanAndError,
}
