//! Ferrite: lattice QCD on GPUs.
pub mod field;
pub mod lattice;
