//! Largest counts of work in one call of an interface, and checks of numbers.
use crate::solver::MOST_ITERATIONS;
use crate::{Failure, Outcome};
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

/// Fails unless a number is finite and `fits` holds for it. `expected` describes such numbers in the message.
///
/// # Errors
/// Other numbers.
pub fn number(name: &str, value: f64, expected: &str, fits: impl Fn(f64) -> bool) -> Outcome {
    match value.is_finite() && fits(value) {
        true => Ok(()),
        false => Err(Failure::refused(format!("{name} = {value}: expected {expected}"))),
    }
}

/// Fails unless a whole number is at most `most`.
///
/// # Errors
/// Larger numbers.
pub fn at_most(name: &str, value: u64, most: u64) -> Outcome {
    match value <= most {
        true => Ok(()),
        false => Err(Failure::refused(format!("{name} = {value}: expected a whole number of at most {most}"))),
    }
}

/// Fails unless a number is finite and above 0.
///
/// # Errors
/// Other numbers.
pub fn positive(name: &str, value: f64) -> Outcome {
    number(name, value, "a number above 0", |x| x > 0.0)
}
