//! Dirac operators, and the fat and long links that improved ones hop over.
mod angles;
mod clover;
mod diagonal;
mod even_odd;
mod exp_clover;
pub mod fat_links;
mod operator;
mod rows;
mod schwarz;
mod staggered;
mod twisted;
mod twisted_clover;
mod wilson;
mod wilson_like;

pub use angles::BoundaryAngles;
pub use clover::{CLOVER, CLOVER_FLOPS, CLOVER_MATRIX_FLOPS, CloverParams, SCHURS};
pub use diagonal::{Diagonal, DiagonalForm};
pub use even_odd::{EvenOdd, OperatorForm};
pub use exp_clover::{EXP_CLOVER, ExpCloverParams};
pub use operator::{
    COEFFICIENTS, Definition, Details, Key, KeyKind, Keys, LinkDependence, LinksOfStaggered, OUTPUT_OF_ALL, Operator, Resolved, Term,
    WilsonLike, choose,
};
pub use schwarz::{BlockOperator, MrInBlocks};
pub use staggered::{
    ASQTAD, EvenOddStaggered, HISQ, IMPROVED_FLOPS, PHASES, STAGGERED, STAGGERED_FLOPS, Smearing, Staggered,
    StaggeredLinks, StaggeredOperator, StaggeredParams, StaggeredPhases, Tadpole,
};
pub use twisted::{TWIST_FLOPS, TWISTED, TwistedParams};
pub use twisted_clover::{TWISTED_CLOVER, TwistedCloverParams};
pub use wilson::{Anisotropy, BOUNDARIES, DSLASH_ADD_FLOPS, DSLASH_FLOPS, TimeBoundary, WILSON, Wilson, WilsonParams};
pub use wilson_like::{EvenOddWilson, Schur};

/// All operators that users can choose, in the order of help texts.
pub static OPERATORS: [&Definition; 8] =
    [&WILSON, &CLOVER, &EXP_CLOVER, &TWISTED, &TWISTED_CLOVER, &STAGGERED, &ASQTAD, &HISQ];

/// The operator of this name.
pub fn operator_named(name: &str) -> Option<&'static Definition> {
    OPERATORS.into_iter().find(|definition| definition.name == name)
}
