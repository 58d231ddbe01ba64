//! Ferrite: lattice QCD on GPUs.
pub mod backend;
pub mod bench;
pub mod dirac;
pub mod domain;
pub mod field;
pub mod files;
pub mod generate;
pub mod lattice;
pub mod measure;
pub mod smear;
pub mod solve;
