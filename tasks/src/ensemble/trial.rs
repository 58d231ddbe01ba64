//! Measurement of the time that trajectories take.
use super::course::functions;
use super::input::EnsembleInput;
use super::quarks::failed;
use crate::device::Device;
use crate::{Failure, Outcome};
use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::gauge::generate;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::trajectory::Chain;
use ferrite::lattice::Lattice;
use std::time::Instant;

/// Measures the time in seconds of trajectories on the lattice `on`, each starting from random links. Each entry of `steps` is the number
/// of outermost steps of one trajectory. The trajectories are discarded.
pub fn trial<const N: usize>(
    input: &EnsembleInput,
    device: &Device,
    on: Lattice,
    steps: [usize; N],
) -> Outcome<[f64; N]> {
    let domain = &Domain::single(device.backend(), on)?;
    let gauge = GaugeField::upload(domain, &generate::random(domain.local(), input.plan.seed))?;
    let links = EvolvingLinks::new(&gauge, input.precision())?;
    let quarks = input.quarks();
    let intervals = quarks.intervals(&links).map_err(failed)?;
    let functions = functions(&quarks, &intervals)?;
    let mut seconds = [0.0; N];
    for (seconds, steps) in seconds.iter_mut().zip(steps) {
        let mut plan = input.plan.clone();
        if let Some(outermost) = plan.levels.first_mut() {
            plan.length *= steps as f64 / outermost.steps as f64;
            outermost.steps = steps;
        }
        let parts = quarks.parts(domain, functions.clone()).map_err(failed)?;
        let mut chain = Chain::new(plan, &gauge, input.precision(), parts).map_err(failed)?;
        let begin = Instant::now();
        if let Some(why) = chain.trajectory(1, None, false).map_err(failed)?.failure {
            return Err(Failure::failed(why).shared());
        }
        *seconds = begin.elapsed().as_secs_f64();
    }
    Ok(seconds)
}
