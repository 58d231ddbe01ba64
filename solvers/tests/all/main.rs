//! All tests of the crate's interface. They are one program, which links once and runs them side by side.

// What tests share.
mod aggregates;
mod common;
mod cycles;
mod domains;
mod methods;

mod block_cg;
mod compaction;
mod failures;
mod gcr;
mod gcr_cycles;
mod gcr_failures;
mod idr;
mod inverter;
mod multigrid;
mod multigrid_inner;
mod multigrid_wilson;
mod multishift;
mod plain;
mod range;
mod schwarz;
mod solve;
