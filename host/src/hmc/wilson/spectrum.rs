//! Spectral bounds of K = M̂†M̂, on which rational functions depend.
use super::solver::ComplementSolver;
use super::{VECTORS, WilsonQuarks, draw_noise_for, space};
use crate::field::DeviceField;
use crate::hmc::HmcError;
use crate::hmc::links::EvolvingLinks;
use crate::hmc::poles::SolverCounts;
use crate::hmc::spectrum::of_search;
use crate::solve::Request;
use gpu_kernels::Precision;
use gpu_kernels::random::purpose;
use num_complex::Complex64;
use solvers::{Normal, VectorSpace, largest_eigenvalue};

/// Maximum number of applications of K for the largest eigenvalue, and largest relative excess of its bound.
const STEPS: (usize, f64) = (60, 1e-3);
/// Number of steps of inverse iteration for the smallest eigenvalue.
const INVERSE_STEPS: usize = 8;

/// *Collective.* Computes the smallest and the largest eigenvalue of K = M̂†M̂. The largest one is an upper bound, accurate to a
/// thousandth. The smallest one is the Rayleigh quotient after eight steps of inverse iteration from noise, which is about a tenth too
/// large. `request` determines how systems are solved.
pub fn extremes(
    links: &EvolvingLinks,
    quarks: &WilsonQuarks,
    request: &Request,
    seed: u64,
) -> Result<[f64; 2], HmcError> {
    let domain = links.own().domain();
    let space = space(domain, Precision::Double, 1);
    let noise = || -> Result<DeviceField, HmcError> {
        let mut start = DeviceField::zero(domain, VECTORS)?;
        draw_noise_for(&mut start, purpose::NOISE, (1 << 12) - 1, seed, 0)?;
        Ok(start)
    };
    let system = ComplementSolver::new(quarks, links, request, None, false)?;
    let normal = Normal::new(&space, &*system.exact)?;
    let found = largest_eigenvalue(&space, &normal, &mut noise()?, STEPS.0, STEPS.1, &mut links.stop().clone());
    let largest = found.map_err(of_search)?.bound();
    let (mut x, counts, mut smallest) = (noise()?, SolverCounts::default(), largest);
    for _ in 0..INVERSE_STEPS {
        let mut norm = [0.0];
        space.norm2(&x, &mut norm)?;
        let scale = [Complex64::from(1.0 / norm[0].sqrt())];
        let mut unit = space.allocate()?;
        space.axpby(&scale, &x, &[Complex64::ZERO], &mut unit)?;
        let [next, image] = system.solve_normal("the smallest eigenvalue", &unit, None, &counts)?;
        // The estimate is the Rayleigh quotient (y, K y) / (y, y) of y = K⁻¹ x, where (y, K y) = ‖M̂ y‖².
        let (mut above, mut below) = ([0.0], [0.0]);
        space.norm2(&image, &mut above)?;
        space.norm2(&next, &mut below)?;
        smallest = above[0] / below[0];
        x = next;
    }
    Ok([smallest, largest])
}
