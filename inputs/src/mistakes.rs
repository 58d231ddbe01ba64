//! Mistakes of an input.

/// Everything that is wrong with an input, a line for each mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistakes(pub String);
