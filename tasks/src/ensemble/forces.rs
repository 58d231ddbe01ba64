//! Forces of all parts of the action on the links from which a run starts.
use super::course::functions;
use super::input::EnsembleInput;
use super::quarks::failed;
use super::{first_links, needs, settings};
use crate::device::Device;
use crate::layout::Layout;
use crate::session::Session;
use crate::{Failure, Outcome, fields};
use ferrite::field::GaugeField;
use ferrite::field::host::Matrix;

use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::integrator::LongestMoves;
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite_records::ensemble::{ForceIterations, ForcesRecord, PartForce};
use std::path::Path;
use std::time::Instant;

/// Returns the number of the level on which a force acts, and the longest time by which the force changes the momenta there.
fn places(input: &EnsembleInput, is_there: impl Fn(usize) -> bool, of_gauge: bool) -> (usize, f64) {
    let mut time = input.plan.length;
    for (number, level) in input.plan.levels.iter().enumerate() {
        let LongestMoves { gauge, others, drift } = level.scheme.longest_moves(time, level.steps);
        if is_there(number) {
            return (number, if of_gauge { gauge } else { others });
        }
        time = drift;
    }
    (input.plan.levels.len(), 0.0)
}

/// *Collective.* Computes the forces of all parts of the action on the links from which an ensemble starts. The pseudofermions are those of
/// the given trajectory. `path` is the input file.
///
/// # Errors
/// Links that cannot be read, solvers that give up, failures of the device, and forces that are not numbers.
pub fn measure(
    input: &EnsembleInput,
    path: &Path,
    trajectory: u32,
    layout: &Layout,
    device: &Device,
    session: &Session,
) -> Outcome<ForcesRecord> {
    let comm = &session.comm;
    needs::expect_fit(input, layout.cut())?;
    needs::batches(input, &[], layout, device, comm)?;
    let gauge = first_links(input, layout, session)?;
    // Links and one force are in host memory at the same time.
    fields::require_host_memory(comm, layout.local(), 2 * 576, "links and a force")?;
    let found = {
        let domain = layout.domain(device.backend())?;
        let device_links = GaugeField::upload(&domain, &gauge)?;
        let links = EvolvingLinks::new(&device_links, input.precision())?;
        let plan = &input.plan;
        let quarks = input.quarks();
        let functions = functions(&quarks, &quarks.intervals(&links).map_err(failed)?)?;
        let mut quarks = quarks.parts(&domain, functions).map_err(failed)?;
        let mut found = Vec::new();
        let mut momenta = MomentumField::zero(&domain, input.precision())?;
        let mut norms = |force: &dyn Force| -> Outcome<([f64; 2], f64)> {
            let begin = Instant::now();
            momenta.scale(0.0)?;
            force.kick(&links, 1.0, &mut momenta).map_err(failed)?;
            let matrices = momenta.download()?;
            let seconds = begin.elapsed().as_secs_f64();
            let square = |f: &Matrix| f.iter().flatten().map(num_complex::Complex64::norm_sqr).sum::<f64>();
            let squares: Vec<f64> = matrices.links().iter().map(square).collect();
            let mut sum = [squares.iter().sum::<f64>()];
            comm.sum(&mut sum)?;
            // A maximum ignores NaN, but `worse_residual` keeps it. For the maximum over processes, NaN is replaced by infinity.
            let most = squares.iter().copied().fold(0.0, solvers::worse_residual);
            let most = comm.largest(if most.is_nan() { f64::INFINITY } else { most })?;
            let count = 4 * layout.lattice().volume();
            Ok(([(sum[0] / count as f64).sqrt(), most.sqrt()], seconds))
        };
        let gauge = GaugeActionForce { action: plan.gauge, single: plan.single_gauge_force };
        let ([rms, largest], seconds) = norms(&gauge)?;
        let (level, kick) = places(input, |level| plan.levels[level].gauge, true);
        found.push(PartForce { name: gauge.name(), level, kick, rms, max: largest, iterations: None, seconds });
        for (part, quarks) in quarks.iter_mut().enumerate() {
            quarks.draw(&links, plan.seed, trajectory).map_err(failed)?;
            let of_heat_bath = quarks.take_iterations();
            let ([rms, largest], seconds) = norms(&**quarks)?;
            let iterations = Some(ForceIterations { heat_bath: of_heat_bath, force: quarks.take_iterations() });
            let (level, kick) = places(input, |level| plan.levels[level].quarks.contains(&part), false);
            found.push(PartForce { name: quarks.name(), level, kick, rms, max: largest, iterations, seconds });
        }
        found
    };
    if found.iter().any(|one| !(one.rms.is_finite() && one.max.is_finite())) {
        let why = format!(
            "{}: a force is not a finite number; check the links with `ferrite verify`",
            settings::start(input)
        );
        return Err(Failure::failed(why).shared());
    }
    Ok(ForcesRecord {
        input: path.into(),
        links: settings::start(input),
        lattice: input.lattice.size(),
        trajectory,
        forces: found,
        place: device.record(layout),
    })
}
