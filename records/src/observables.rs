//! Observables of links.
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
    /// The mean; `None` where there is none.
    #[serde(deserialize_with = "real::read")]
    pub mean: f64,
    /// One standard deviation of the mean; `None` where it is unknown.
    #[serde(deserialize_with = "real::read")]
    pub error: f64,
}

impl From<[f64; 2]> for MeanAndError {
    fn from([mean, error]: [f64; 2]) -> Self {
        MeanAndError { mean, error }
    }
}

/// Means of loops, each 1 on unit links.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopsRecord {
    /// Mean of Re tr P / 3 over all, the spatial, and the temporal planes.
    pub plaquette: PlaquetteMeans,
    /// Mean of Re tr R / 3 over all 2×1 loops.
    #[serde(deserialize_with = "real::read")]
    pub rectangle: f64,
    /// `[re, im]` of the mean over space of tr Π_t U_t / 3.
    #[serde(deserialize_with = "real::read")]
    pub polyakov_loop: [f64; 2],
}

/// Energy density and topological charge, by the clover-leaf field strength F.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldStrengthRecord {
    /// The energy density.
    pub energy: EnergyDensity,
    /// The topological charge.
    #[serde(deserialize_with = "real::read")]
    pub charge: f64,
}

/// Parts of the energy density.
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
    /// Returns −½ Σ_μν tr F_μν².
    pub fn sum(&self) -> f64 {
        self.space + self.time
    }
}

/// A point of the gradient flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPointRecord {
    /// Time of the flow.
    pub t: f64,
    /// Energy density by the clover-leaf field strength.
    pub energy: EnergyDensity,
    /// 2 Σ Re tr (1 − P) over the planes, mean over sites.
    #[serde(default = "real::unknown", deserialize_with = "real::read")]
    pub plaquette_energy: f64,
    /// The topological charge.
    #[serde(deserialize_with = "real::read")]
    pub charge: f64,
}

/// Wilson loops of a separation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WilsonLoopsRecord {
    /// R, its three components in descending order.
    pub r: [usize; 3],
    /// W(R, T) for T = 1, 2, …
    pub values: Vec<f64>,
}
