//! Failures of the exchange of points.

use crate::real::BigFloat;

/// Why there is no best approximation in this precision.
#[derive(Clone, Debug)]
pub(crate) enum RemezFailure {
    /// More bits are necessary.
    Precision,
    /// "poles" or "zeros" are where they must not be.
    NotNegative(&'static str),
    /// The points still move.
    NoConvergence { exchanges: usize, spread: f64 },
    /// δ at y is larger than the level.
    NotBest { level: f64, found: f64, y: BigFloat },
}
