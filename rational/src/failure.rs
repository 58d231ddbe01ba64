//! Failures of the exchange of points.

use crate::real::BigFloat;

/// Reason why the exchange found no best approximation at this precision.
#[derive(Clone, Debug)]
pub(crate) enum RemezFailure {
    /// The precision is too low.
    Precision,
    /// Poles or zeros are not all negative; the text is `poles` or `zeros`.
    NotNegative(&'static str),
    /// The points still move after the largest number of exchanges.
    NoConvergence { exchanges: usize, spread: f64 },
    /// |δ| at y, between the points, is larger than the level.
    NotBest { level: f64, found: f64, y: BigFloat },
}
