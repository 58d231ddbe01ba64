//! Mistakes of an input.

/// Mistakes in an input, as a text with one line for each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistakes(pub String);
