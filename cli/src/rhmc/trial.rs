//! How long trajectories take.
use super::super::device::Device;
use super::super::{Failure, Outcome};
use super::course::{failed, functions, largest};
use super::input::EnsembleInput;

use ferrite::domain::Domain;
use ferrite::field::GaugeField;
use ferrite::gauge::generate;
use ferrite::hmc::fermions::Pseudofermions;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::monomial::Monomial;
use ferrite::hmc::spectrum::{end_of_interval, interval};
use ferrite::hmc::trajectory::Chain;
use ferrite::lattice::Lattice;
use std::time::Instant;

/// Seconds of trajectories with so many outermost steps on another lattice, each from random links; nothing of them is kept.
pub fn trial<const N: usize>(
    input: &EnsembleInput,
    device: &Device,
    on: Lattice,
    steps: [usize; N],
) -> Outcome<[f64; N]> {
    let domain = &Domain::single(device.backend(), on)?;
    let thin = GaugeField::upload(domain, &generate::random(domain.local(), input.plan.seed))?;
    let links = EvolvingLinks::new(&thin, input.precision())?;
    let mut all = Vec::new();
    for group in &input.groups {
        all.push(functions(group, end_of_interval(largest(&links, group, input.plan.seed)?.max(1.0)))?);
    }
    let mut intervals = Vec::new();
    for group in &input.wilson {
        let found = group.extremes(&links, &input.solvers[0], input.plan.seed).map_err(failed)?;
        intervals.push(found.map_or([0.0; 2], interval));
    }
    let mut seconds = [0.0; N];
    for (seconds, steps) in seconds.iter_mut().zip(steps) {
        let mut plan = input.plan.clone();
        if let Some(outermost) = plan.levels.first_mut() {
            plan.length *= steps as f64 / outermost.steps as f64;
            outermost.steps = steps;
        }
        let mut quarks: Vec<Box<dyn Monomial>> = Vec::new();
        for (group, functions) in input.groups.iter().zip(&all) {
            let (name, count) = (group.name.clone(), group.pseudofermions);
            let mut solvers = input.solvers_of(group);
            // There may be more of them than poles of these functions.
            solvers[0].tol.truncate(1);
            let group = Pseudofermions::new(domain, name, group.operator, functions.clone(), solvers, 0, count)?;
            quarks.push(Box::new(group));
        }
        for (group, interval) in input.wilson.iter().zip(&intervals) {
            quarks.extend(group.parts(domain, &input.solvers, *interval, 0)?);
        }
        let mut chain = Chain::new(plan, &thin, input.precision(), quarks).map_err(failed)?;
        let begin = Instant::now();
        if let Some(why) = chain.trajectory(1, None, false).map_err(failed)?.failure {
            return Err(Failure::failed(why).shared());
        }
        *seconds = begin.elapsed().as_secs_f64();
    }
    Ok(seconds)
}
