//! Gauge ensembles by hybrid Monte Carlo, exact or rational, with staggered or Wilson-like quarks or none (Duane, Kennedy, Pendleton
//! and Roweth 1987; Clark and Kennedy 2007; Bonati, Cossu, D'Elia and Incardona 2011).
//!
//! | module | what |
//! |---|---|
//! | [`momenta`] | momenta of links: drawing them, their energy, how they move links |
//! | [`action`] | gauge actions, their force |
//! | [`monomial`] | parts of the fermion action |
//! | [`fermions`] | pseudofermions: how they are drawn, their action, their force |
//! | [`functions`] | rational functions for numbers of flavours and masses |
//! | [`integrator`] | steps of molecular dynamics |
//! | [`stout`] | stout links |
//! | [`trajectory`] | a trajectory with its Metropolis step |
//! | [`quarks`] | quarks as users choose them, and the registry of the parts of the action that they make |
//! | [`identities`] | whether forces and the distribution of the links agree |
//! | [`wilson`] | Wilson-like quarks |
//! | [`spectrum`] | bounds of the spectrum, on which rational functions depend |
mod gradient;
mod hops;
mod poles;

pub use gradient::hop_force;
pub use quarks::{MONOMIALS, MonomialDefinition};

pub mod action;
pub mod fermions;
pub mod force;
pub mod functions;
pub mod identities;
pub mod integrator;
pub mod links;
pub mod momenta;
pub mod monomial;
pub mod quarks;
pub mod spectrum;
pub mod stout;
pub mod trajectory;
pub mod wilson;

use crate::backend::BackendError;
use crate::domain::DeviceError;

/// Why a trajectory could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HmcError {
    /// The device, or other processes.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The plan of the chain, or the noise that a trajectory is given.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A solver.
    #[error("the solver for {quarks}: {why}")]
    Solver {
        /// Which quarks.
        quarks: String,
        /// What it said.
        why: Box<fermions::SolverError>,
    },
    /// In molecular dynamics.
    #[error("{why}, in move {number} of {of} of molecular dynamics")]
    Move {
        /// From 1, on the outermost level.
        number: usize,
        /// How many there are.
        of: usize,
        /// What failed.
        why: Box<HmcError>,
    },
    /// Somebody asked for it.
    #[error("stopped")]
    Stopped,
}

impl HmcError {
    /// Whether somebody asked for the end: of molecular dynamics, or of a solve.
    pub fn is_stop(&self) -> bool {
        match self {
            HmcError::Stopped => true,
            HmcError::Solver { why, .. } => matches!(**why, solvers::SolveError::Cancelled { .. }),
            HmcError::Move { why, .. } => why.is_stop(),
            _ => false,
        }
    }
    /// What a solver said, unless the device failed under it: the same on all processes, as it is said of sums over all of them.
    pub fn solver(&self) -> Option<&fermions::SolverError> {
        match self {
            HmcError::Solver { why, .. } if !matches!(**why, solvers::SolveError::Backend(_)) => Some(why),
            HmcError::Move { why, .. } => why.solver(),
            _ => None,
        }
    }
}

/// Why trajectories cannot be made as they are planned.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Links would not move.
    #[error("level {level} of the integrator has no steps")]
    NoSteps {
        /// From 0, the outermost.
        level: usize,
    },
    /// A length that is zero or no number.
    #[error("the length of a trajectory is a number other than 0, not {0}")]
    Length(f64),
    /// Friction that takes nothing away.
    #[error("the friction of momenta is a number above 0, not {0}")]
    Friction(f64),
    /// A group of quarks that there is not.
    #[error("level {level} of the integrator has the force of quark group {group}, counted from 0, of {groups}")]
    NoSuchQuarks {
        /// From 0, the outermost.
        level: usize,
        /// From 0.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// Noise for more or fewer pseudofermions than there are.
    #[error("there is noise for {found} pseudofermions, of which there are {expected}")]
    Noise {
        /// How many fields were given.
        found: usize,
        /// How many there are.
        expected: usize,
    },
    /// Noise, which is colour vectors, for pseudofermions of another kind.
    #[error(
        "noise is given as colour vectors, and the pseudofermions of quark group {group}, counted from 0, are spinors: let the chain \
         draw their noise from its seed"
    )]
    NoiseKind {
        /// Number of the first such part of the fermion action, from 0.
        group: usize,
    },
}

impl From<BackendError> for HmcError {
    fn from(error: BackendError) -> Self {
        HmcError::Device(error.into())
    }
}
