//! Dirac operators.
mod clover;
mod even_odd;
mod rows;
mod schwarz;
mod staggered;
mod wilson;

pub use clover::{CLOVER_FLOPS, CLOVER_MATRIX_FLOPS, CloverParams, EvenOddClover, Schur};
pub use even_odd::{EvenOdd, Form};
pub use schwarz::{BlockOperator, MrInBlocks};
pub use staggered::{
    EvenOddStaggered, IMPROVED_FLOPS, STAGGERED_FLOPS, Staggered, StaggeredLinks, StaggeredParams, StaggeredPhases,
};
pub use wilson::{Anisotropy, DSLASH_ADD_FLOPS, DSLASH_FLOPS, EvenOddWilson, TimeBoundary, Wilson, WilsonParams};
