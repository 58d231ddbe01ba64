//! Mistakes of an input.

/// Mistakes in an input, one per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistakes(pub String);
