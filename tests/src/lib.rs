//! Tests that cross crates, and what they share.
//!
//! * [`testkit`]: domains, matrices on a site and of whole operators, distances
//! * [`gamma`], [`reference`](mod@reference): the Wilson operator from its formulas, in plain loops and in double
//! * [`clover_reference`]: the Wilson-clover operator in the same way
//! * [`staggered_reference`]: naive, asqtad and HISQ fermions in the same way
//! * [`refdata`]: where the data of other codes is
//! * [`formats`]: those that kernels are compiled for
//! * [`accuracy`], [`links`]: what each precision and reconstruction can reach, and so the tolerances
//! * [`report`]: outcomes, tables, comparison of backends
//! * [`checks`]: every kernel against the reference, on any backend
//! * `gpu`: all checks on a GPU, and its results against the CPU's
//! * `tuning`: block sizes on a GPU
#![forbid(unsafe_code)]

/// The snippets of the page compile: `cargo test --doc`.
#[cfg(all(doctest, feature = "cuda"))]
#[doc = include_str!("../../docs/embedding.md")]
mod embedding_page {}

pub mod accuracy;
pub mod checks;
pub mod clover_reference;
pub mod cut;
pub mod flow_reference;
pub mod formats;
pub mod gamma;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod links;
pub mod refdata;
pub mod reference;
pub mod report;
#[cfg(feature = "cuda")]
pub mod rhs_blocking;
pub mod smearing_reference;
pub mod staggered_reference;
pub mod testkit;
#[cfg(feature = "cuda")]
pub mod tuning;
pub mod wilson_like_reference;
