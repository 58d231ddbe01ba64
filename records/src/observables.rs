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
