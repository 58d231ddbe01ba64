//! Dirac operators.
mod wilson;

pub use wilson::{EvenOddWilson, TimeBoundary, Wilson, WilsonParams};
