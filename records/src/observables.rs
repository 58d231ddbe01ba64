//! Records of observables of links.
use crate::real;
use serde::{Deserialize, Serialize};

/// Means of Re tr P / 3 over planes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaquetteMeans {
    /// Mean over all planes.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// Mean over the xy, xz and yz planes.
    #[serde(deserialize_with = "real::read")]
    pub spatial: f64,
    /// Mean over the xt, yt and zt planes.
    #[serde(deserialize_with = "real::read")]
    pub temporal: f64,
}

/// A mean with its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanAndError {
    /// Mean; `null` if there is none.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// One standard deviation of the mean; `null` if it is unknown.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
}

impl From<[f64; 2]> for MeanAndError {
    fn from([mean, error]: [f64; 2]) -> Self {
        MeanAndError { mean, error }
    }
}

/// Means of plaquettes, 2×1 loops and Polyakov loops, each of which is 1 on unit links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopsRecord {
    /// Mean of Re tr P / 3 over all planes, over the spatial and over the temporal planes.
    pub plaquette: PlaquetteMeans,
    /// Mean of Re tr R / 3 over all 2×1 loops.
    #[serde(deserialize_with = "real::read")]
    pub rectangle: f64,
    /// `[re, im]` of the mean over space of tr Π_t U_t / 3.
    #[serde(deserialize_with = "real::read")]
    pub polyakov_loop: [f64; 2],
}

/// Energy density and topological charge from the clover-leaf field strength F.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldStrengthRecord {
    /// Energy density.
    pub energy: EnergyDensity,
    /// Topological charge.
    #[serde(deserialize_with = "real::read")]
    pub charge: f64,
}

/// Spatial and temporal part of the energy density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyDensity {
    /// −Σ tr F² over the spatial planes, mean over sites.
    #[serde(deserialize_with = "real::read")]
    pub space: f64,
    /// −Σ tr F² over the temporal planes, mean over sites.
    #[serde(deserialize_with = "real::read")]
    pub time: f64,
}

impl EnergyDensity {
    /// Returns the energy density −½ Σ_μν tr F_μν², the sum of its spatial and its temporal part.
    pub fn sum(&self) -> f64 {
        self.space + self.time
    }
}

/// Energy densities and topological charge at one time of the gradient flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPointRecord {
    /// Flow time in units of a².
    pub t: f64,
    /// Energy density from the clover-leaf field strength.
    pub energy: EnergyDensity,
    /// Energy density from plaquettes: 2 Σ Re tr (1 − P) over the planes, mean over sites.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub plaquette_energy: f64,
    /// Topological charge.
    #[serde(deserialize_with = "real::read")]
    pub charge: f64,
}

/// Wilson loops of one separation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WilsonLoopsRecord {
    /// Separation R, its three components in descending order.
    pub r: [usize; 3],
    /// Values of W(R, T) for T = 1, 2, …
    pub values: Vec<f64>,
}
