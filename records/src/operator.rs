//! The operator of a task, its links and its sources.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// A Dirac operator on links from files, and the sources that it is applied to or solved for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorOnLinks {
    /// Name of the operator, one of those of `--operator`.
    pub operator: String,
    /// The configuration; `None` with fat and long links from files.
    pub gauge: Option<PathBuf>,
    /// File of fat links.
    pub fat: Option<PathBuf>,
    /// File of long links.
    pub long: Option<PathBuf>,
    /// Stout smearing of the links that the operator is made of.
    pub stout: Option<Stout>,
    /// `antiperiodic` or `periodic`.
    pub bc_time: String,
    /// Extents of the lattice.
    pub lattice: [usize; 4],
    /// The sources as given.
    pub sources: Vec<String>,
    /// Parameters of the operator, by the keys of its definition.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// Stout smearing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stout {
    /// ρ
    pub rho: f64,
    /// Number of steps.
    pub levels: usize,
    /// Whether only links in space are smeared, by staples in space.
    pub spatial: bool,
}
