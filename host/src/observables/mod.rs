//! Measurements on gauge fields and on solutions, besides those that verify a field ([`gauge::measure`](crate::gauge::measure)).
//!
//! | module | what |
//! |---|---|
//! | [`quantity`] | the table of measured quantities: names, keys, units, kernels |
//! | [`loops`] | plaquette, rectangle and Polyakov loop together |
//! | [`field_strength`] | energy density and topological charge |
//! | [`polyakov`] | the Polyakov loop |
//! | [`wilson_loops`] | Wilson loops for the static potential |
//! | [`flow`] | the gradient flow: observables along it, t₀ and w₀ |
//! | [`condensate`] | the chiral condensate from noise vectors |
//! | [`traces`] | tr Γ M⁻¹ of any operator from noise vectors |
//! | [`spectrum`] | correlators of mesons and nucleons |
//! | [`memory`] | memory of a run that makes an ensemble and measures on it |
pub mod condensate;
pub mod field_strength;
pub mod flow;
pub mod loops;
pub mod memory;
pub mod polyakov;
pub mod quantity;
pub mod spectrum;
pub mod traces;
pub mod wilson_loops;
