//! Largest counts of work in one call of an interface.
use crate::solver::MOST_ITERATIONS;
use ferrite::gauge::{generate, quenched};
use ferrite::hmc::{fermions, stout, trajectory, wilson};
use ferrite::observables::{flow, spectrum::smearing};

/// Names of numbers that a caller chooses, such as flow steps or iterations, each with the largest value that Ferrite
/// accepts.
pub const BOUNDS: [(&str, u64); 10] = [
    ("flow_steps", flow::MOST_FLOW_STEPS),
    ("guesses", wilson::two_flavours::MOST_GUESSES as u64),
    ("iterations", MOST_ITERATIONS as u64),
    ("levels", trajectory::MOST_LEVELS as u64),
    ("noise_sources", generate::NOISE_SOURCES as u64),
    ("passes", quenched::MOST_PASSES),
    ("pseudofermions", fermions::MOST_PSEUDOFERMIONS as u64),
    ("shell_steps", smearing::MOST_SMEARING_STEPS as u64),
    ("smearing_levels", stout::MOST_SMEARING_LEVELS as u64),
    ("trajectory_steps", trajectory::MOST_STEPS as u64),
];
