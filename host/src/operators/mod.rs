//! Dirac operators, and the fat and long links that improved ones hop over.
mod angles;
mod clover;
mod diagonal;
mod even_odd;
mod exp_clover;
pub mod fat_links;
mod keys;
mod neighbours;
mod operator;
mod schwarz;
mod smearing;
mod staggered;
mod staggered_links;
mod twisted;
mod twisted_clover;
mod wilson;
mod wilson_family;
mod wilson_hop;
mod wilson_like;

pub use angles::{BOUNDARIES, BoundaryAngles, TimeBoundary};
pub use clover::{CLOVER, CLOVER_FLOPS, CLOVER_MATRIX_FLOPS, CloverParams, SCHURS};
pub use diagonal::{Diagonal, DiagonalForm};
pub use even_odd::{EvenOdd, OperatorForm};
pub use exp_clover::{EXP_CLOVER, ExpCloverParams};
pub use keys::{DIVISOR, Key, KeyKind, Keys, LARGEST, SMALLEST, choose, is_divisor};
pub use neighbours::{NeighbourHops, covariant_shift};
pub use operator::{Definition, LinkRecipe, OUTPUT_OF_ALL, Operator, OperatorLinks, OperatorParameters, Resolved};
pub use schwarz::{BlockOperator, MrInBlocks};
pub use smearing::{Smearing, Tadpole};
pub use staggered::{
    ASQTAD, EvenOddStaggered, HISQ, PHASES, STAGGERED, Staggered, StaggeredOperator, StaggeredParams, StaggeredPhases,
};
pub use staggered_links::{IMPROVED_FLOPS, STAGGERED_FLOPS, StaggeredLinks};
pub use twisted::{TWIST_FLOPS, TWISTED, TwistedParams};
pub use twisted_clover::{TWISTED_CLOVER, TWISTED_EXP_CLOVER, TwistedCloverParams, TwistedExpCloverParams};
pub use wilson::{Anisotropy, DSLASH_ADD_FLOPS, DSLASH_FLOPS, Wilson, WilsonParams};
pub use wilson_family::{COEFFICIENTS, LinkDependence, Term, WILSON, WilsonLike};
pub use wilson_like::{EvenOddWilson, Schur};

/// All operators that users can choose, in the order of help texts.
pub static OPERATORS: [&Definition; 9] =
    [&WILSON, &CLOVER, &EXP_CLOVER, &TWISTED, &TWISTED_CLOVER, &TWISTED_EXP_CLOVER, &STAGGERED, &ASQTAD, &HISQ];

/// Other names of operators, each with the operator's own name.
pub const ALIASES: [(&str, &str); 1] = [("naive", "staggered")];

/// Returns the operator with this name or [alias](ALIASES).
pub fn operator_named(name: &str) -> Option<&'static Definition> {
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
    OPERATORS.into_iter().find(|definition| definition.name == own)
}

/// Returns all names that [`operator_named`] accepts, with their operators: those of [`OPERATORS`] first.
pub fn names_of_operators() -> impl Iterator<Item = (&'static str, &'static Definition)> {
    let own = OPERATORS.into_iter().map(|definition| (definition.name, definition));
    own.chain(ALIASES.iter().filter_map(|(alias, _)| Some((*alias, operator_named(alias)?))))
}
