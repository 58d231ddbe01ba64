//! Chiral condensate, tr M⁻¹ over the lattice's volume, from noise vectors.
use crate::domain::Result;
use crate::field::{FieldShape, FieldSpace, FullField};
use crate::hmc::HmcError;
use crate::hmc::fermions::{QuarkOperator, draw_noise};
use crate::hmc::links::EvolvingLinks;
use gpu_kernels::random::purpose;
use gpu_kernels::{LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{MultiShiftWorkspace, SolverParams, VectorSpace, multishift_cg, worse_residual};

/// Draws noise ξ with ⟨|ξ|²⟩ = 1 for each complex number on all sites. The noise depends on the seed, the trajectory and the number of the
/// vector, but not on the process grid. `which` is the number of the first vector.
///
/// # Errors
/// Fails for fields that are not colour vectors in double precision, and on failures of the device.
///
/// # Panics
/// If a vector has a number of 4096 or more.
pub fn noise(out: &mut FullField, which: u32, seed: u64, trajectory: u32) -> Result {
    draw_noise(&mut out.even, 0, purpose::NOISE, which, seed, trajectory)?;
    draw_noise(&mut out.odd, 1, purpose::NOISE, which, seed, trajectory)
}

/// Returns the bytes of device memory that the vectors of [`condensate`] take at its peak, for `n` noise vectors and `sites` sites of each
/// parity. Links are not included.
pub fn condensate_bytes(sites: usize, n: usize) -> usize {
    // There are eight vectors: the noise on both parities, the right-hand side, the solution, three of multi-shift CG, and one of the
    // operator.
    let vectors = 8 * FieldShape::colours(Precision::Double, n).bytes(sites);
    let transfer = 2 * 48 * sites * n;
    vectors + transfer
}

/// Estimate of the condensate from one noise vector ξ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Contribution of the even sites: (2/V) Σ ξ†(n) (M⁻¹ ξ)(n) over even sites n.
    pub even: Complex64,
    /// Contribution of the odd sites: (2/V) Σ ξ†(n) (M⁻¹ ξ)(n) over odd sites n.
    pub odd: Complex64,
    /// Larger of the two parities' relative residuals ‖M†ξ − M†M x‖ / ‖M†ξ‖, computed from the solution x in double precision.
    pub residual: f64,
}

/// *Collective.* Computes the [`Estimate`] of each noise vector ξ of a block, with M = m + ½ D. The mean of `even` and `odd` estimates ψ̄ψ
/// = tr M⁻¹ / V of one staggered field, which is four flavours. The systems of all vectors are solved together, to the relative residual
/// `tol`.
pub fn condensate(
    links: &EvolvingLinks,
    operator: &QuarkOperator,
    mass: f64,
    noise: &FullField,
    tol: f64,
) -> std::result::Result<Vec<Estimate>, HmcError> {
    let (domain, n) = (links.own().domain(), noise.even.nrhs());
    let space = FieldSpace::new(domain, FieldShape::colours(Precision::Double, n));
    let constant = |a: f64| vec![Complex64::new(a, 0.0); n];
    let mut estimates = vec![Estimate::default(); n];
    for parity in 0..2 {
        // The system on each parity is M†M x = M† ξ.
        let normal = operator.on(links, Precision::Double, LinkStorage::FULL, parity, mass, n)?;
        let mut rhs = space.allocate()?;
        normal.staggered().dslash(parity, noise.parity(1 - parity), &mut rhs)?;
        space.axpby(&constant(mass), noise.parity(parity), &constant(-0.5), &mut rhs)?;
        let mut x = vec![space.allocate()?];
        let params = SolverParams { tol, max_iterations: 100_000, ..Default::default() }.into();
        let mut workspace = MultiShiftWorkspace::new(&space, 1)?;
        let info = multishift_cg(&space, &normal, &[0.0], &rhs, &mut x, &params, &mut workspace, &mut ())
            .map(|info| info.whole)
            .or_else(|error| error.unless_converged(tol))
            .map_err(|why| HmcError::Solver { quarks: format!("the condensate at m = {mass}"), why: Box::new(why) })?;
        let mut dots = vec![Complex64::ZERO; n];
        space.dot(noise.parity(parity), &x[0], &mut dots)?;
        for ((estimate, dot), residual) in estimates.iter_mut().zip(dots).zip(&info.true_residual) {
            let mean = if parity == 0 { &mut estimate.even } else { &mut estimate.odd };
            *mean = dot * (2.0 / domain.global().volume() as f64);
            estimate.residual = worse_residual(estimate.residual, *residual);
        }
    }
    Ok(estimates)
}
