//! Dirac operators.
mod wilson;

pub use wilson::{DSLASH_ADD_FLOPS, DSLASH_FLOPS, EvenOddWilson, TimeBoundary, Wilson, WilsonParams};
