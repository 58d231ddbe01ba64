//! Gauge ensembles by hybrid Monte Carlo, exact or rational, with staggered or Wilson-like quarks or none (Duane, Kennedy, Pendleton
//! and Roweth 1987; Clark and Kennedy 2007; Bonati, Cossu, D'Elia and Incardona 2011).
//!
//! | module | what |
//! |---|---|
//! | [`momenta`] | momenta of links: refresh, kinetic energy, motion of links |
//! | [`action`] | gauge actions and their forces |
//! | [`monomial`] | monomials: parts of the fermion action |
//! | [`fermions`] | pseudofermions: heat bath, action, force |
//! | [`functions`] | rational functions for numbers of flavours and masses |
//! | [`integrator`] | steps of molecular dynamics |
//! | [`stout`] | stout links |
//! | [`trajectory`] | a trajectory with its Metropolis step |
//! | [`quarks`] | quarks as users choose them, and the registry of their monomials |
//! | [`identities`] | consistency of forces with the distribution of the links |
//! | [`wilson`] | Wilson-like quarks |
//! | [`spectrum`] | bounds of the spectrum, on which rational functions depend |
mod gradient;
mod hops;
pub mod paths;
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

/// Reason why a trajectory could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HmcError {
    /// Failure of the device, or of other processes.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Invalid plan of the chain, or invalid noise for a trajectory.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Failure of a solver.
    #[error("the solver for {quarks}: {why}")]
    Solver {
        /// Name of the quarks.
        quarks: String,
        /// Error of the solver.
        why: Box<fermions::SolverError>,
    },
    /// Failure during molecular dynamics.
    #[error("{why}, in move {number} of {of} of molecular dynamics")]
    Move {
        /// Number of the move on the outermost level, from 1.
        number: usize,
        /// Total number of moves.
        of: usize,
        /// Error of the move.
        why: Box<HmcError>,
    },
    /// The trajectory was stopped on request.
    #[error("stopped")]
    Stopped,
}

impl HmcError {
    /// Whether the trajectory was stopped on request, in molecular dynamics or in a solve.
    pub fn is_stop(&self) -> bool {
        match self {
            HmcError::Stopped => true,
            HmcError::Solver { why, .. } => matches!(**why, solvers::SolveError::Cancelled { .. }),
            HmcError::Move { why, .. } => why.is_stop(),
            _ => false,
        }
    }
    /// Returns the error of a solver that gave up or was stopped; `None` for failures of the device and for other errors. All processes
    /// have the same error, because it follows from sums over all processes.
    pub fn solver(&self) -> Option<&fermions::SolverError> {
        match self {
            HmcError::Solver { why, .. } if !matches!(**why, solvers::SolveError::Backend(_)) => Some(why),
            HmcError::Move { why, .. } => why.solver(),
            _ => None,
        }
    }
}

/// Error in a plan of trajectories, or in the noise that was given for a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A level without steps, so that links would not move.
    #[error("level {level} of the integrator has no steps: give at least one")]
    NoSteps {
        /// Number of the level, from 0, the outermost.
        level: usize,
    },
    /// A trajectory length that is zero or not a number.
    #[error("the length of a trajectory must be a number other than 0, not {0}")]
    Length(f64),
    /// Friction of momenta that is not above 0.
    #[error("the friction of momenta must be a number above 0, not {0}")]
    Friction(f64),
    /// Number of a monomial that does not exist.
    #[error(
        "level {level} of the integrator has the force of quark group {group}, counted from 0, but there are \
             {groups} groups"
    )]
    NoSuchQuarks {
        /// Number of the level, from 0, the outermost.
        level: usize,
        /// Number of the monomial, from 0.
        group: usize,
        /// Number of monomials.
        groups: usize,
    },
    /// Noise for more or fewer pseudofermions than the action has.
    #[error("noise is given for {found} pseudofermions, but the action has {expected}")]
    Noise {
        /// Number of fields given.
        found: usize,
        /// Number of pseudofermions.
        expected: usize,
    },
    /// Noise given as colour vectors for pseudofermions that are spinors.
    #[error(
        "noise is given as colour vectors, but the pseudofermions of quark group {group}, counted from 0, are spinors: \
         let the chain draw their noise from its seed"
    )]
    NoiseKind {
        /// Number of the first monomial with such pseudofermions, from 0.
        group: usize,
    },
}

impl From<BackendError> for HmcError {
    fn from(error: BackendError) -> Self {
        HmcError::Device(error.into())
    }
}
