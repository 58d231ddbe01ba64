//! Gauge ensembles with staggered quarks by rational hybrid Monte Carlo (Clark and Kennedy 2007; Bonati, Cossu, D'Elia and
//! Incardona 2011).
//!
//! | module | what |
//! |---|---|
//! | [`momenta`] | momenta of links: drawing them, their energy, how they move links |
//! | [`gauge`] | gauge actions, their force, loops |
//! | [`fermions`] | pseudofermions: how they are drawn, their action, their force |
//! | [`functions`] | rational functions for numbers of flavours and masses |
//! | [`integrator`] | steps of molecular dynamics |
//! | [`trajectory`] | a trajectory with its Metropolis step |
//! | [`spectrum`] | bounds of the spectrum, on which rational functions depend |
//! | [`condensate`] | the chiral condensate from noise vectors |
mod gradient;

pub use gradient::hop_force;

pub mod condensate;
pub mod fermions;
pub mod force;
pub mod functions;
pub mod gauge;
pub mod integrator;
pub mod links;
pub mod momenta;
pub mod spectrum;
pub mod trajectory;

use crate::backend::BackendError;
use crate::domain::DeviceError;

/// Why a trajectory could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device, or other processes.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A solver.
    #[error("the solver for {quarks}: {why}")]
    Solver {
        /// Which quarks.
        quarks: String,
        /// What it said.
        why: Box<fermions::SolverError>,
    },
}

/// The larger of two residuals; what is no number is the largest.
pub fn worse_residual(a: f64, b: f64) -> f64 {
    if b <= a || a.is_nan() { a } else { b }
}

impl From<BackendError> for Error {
    fn from(error: BackendError) -> Self {
        Error::Device(error.into())
    }
}
