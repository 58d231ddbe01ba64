//! Failures of the exchange of points.

use crate::real::BigFloat;

/// Reason why there is no best approximation at this precision.
#[derive(Clone, Debug)]
pub(crate) enum RemezFailure {
    /// More bits are necessary.
    Precision,
    /// Poles or zeros, as the text states, are not negative.
    NotNegative(&'static str),
    /// The points still move after the last exchange.
    NoConvergence { exchanges: usize, spread: f64 },
    /// |δ| at y is larger than the level.
    NotBest { level: f64, found: f64, y: BigFloat },
}
