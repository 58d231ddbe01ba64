//! Gauge fields without quarks: generation, measurement, smearing and gauge fixing.
//!
//! | module | contents |
//! |---|---|
//! | [`generate`] | links and sources from a seed |
//! | [`su3`] | SU(3) matrices: products, distance from SU(3), projection |
//! | [`measure`] | plaquette, link trace and unitarity, by which a field is verified |
//! | [`loops`] | traces of closed paths |
//! | [`ape_hyp`] | APE and HYP smearing of links, on a device |
//! | [`fixing`] | temporal, Coulomb and Landau gauge |
//! | [`quenched`] | SU(3) ensembles by heat bath and over-relaxation |
pub mod ape_hyp;
pub mod fixing;
pub mod generate;
pub mod loops;
pub mod measure;
mod part;
pub mod quenched;
pub mod su3;

pub(crate) use part::GaugePart;
